/** The last step: what it changed, and the rules that it called; or what changed since another state. */

import { breakable, button, element, fill } from "../dom.js";
import { violationsOf } from "../violations.js";
import { rulesList } from "./rules.js";

/** @param {HTMLElement} pane @param {import("../session.js").Session} session */
export function drawStep(pane, session) {
  const { view } = session;
  if (view === null) return fill(pane);
  const { step } = view;
  if (step === null) return fill(pane, element("h2", {}, "Initial state"), element("p", { class: "quiet" }, "No step has been taken."));
  const [name, ...rest] = step.words.split("  ");
  const violated = violationsOf(view, step);
  return fill(
    pane,
    element("h2", {}, `State ${step.number} `, element("small", {}, `after a step of ${step.party}`)),
    element("p", { class: "action" }, element("b", {}, name), " ", rest.join(" ")),
    violated.length > 0 ? element("p", { class: "violates" }, "✕ violated: ", violated.join(", ")) : null,
    element("h3", {}, "Changes"),
    changesTable(step.changes),
    diffControl(session),
    element("h3", {}, "Rules that it calls"),
    step.rules.length === 0 ? element("p", { class: "quiet" }, "No rule of a broker or the controller: the model itself takes this step.") : rulesList(session, step.rules, "step"),
  );
}

/** Slots with their values before and after. */
export function changesTable(changes, [before, after] = ["before", "after"]) {
  if (changes.length === 0) return element("p", { class: "quiet" }, "Nothing that a slot shows.");
  return element(
    "div",
    { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Changes" },
    element(
      "table",
      { class: "changes" },
      element("thead", {}, element("tr", {}, ["slot", before, after].map((words) => element("th", { scope: "col" }, words)))),
      element(
        "tbody",
        {},
        changes.map((one) => element("tr", {}, element("th", { scope: "row" }, breakable(one.slot)), element("td", {}, one.before), element("td", {}, one.after))),
      ),
    ),
  );
}

function diffControl(session) {
  const { view } = session;
  const result = element("div", { "aria-live": "polite" });
  const field = element("input", { type: "number", min: 1, max: view.length, value: 1, "data-key": "diff-from", id: "diff-from" });
  const show = async () => {
    const answer = await session.ask({ do: "diff", from: Number(field.value) });
    if (answer.answer === "error") return fill(result, element("p", { class: "problem" }, answer.words));
    return fill(result, changesTable(answer.changes, [`state ${answer.from}`, `state ${answer.to}`]));
  };
  return element(
    "details",
    { class: "diff", "data-key": "diff" },
    element("summary", {}, "Against another state"),
    element("form", { onsubmit: (event) => (event.preventDefault(), void show()) }, element("label", { for: "diff-from" }, "state "), field, " ", button("diff-show", "Show", show)),
    result,
  );
}
