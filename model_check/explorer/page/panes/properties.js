/** Every property at every step: its verdict here, along the run, and what witnesses a failure. */

import { breakable, button, element, fill, shape } from "../dom.js";
import { readsList } from "./rules.js";

const SIGNS = { holds: "✓", violated: "✕", reached: "●", "not yet reached": "○" };

/** @param {HTMLElement} pane @param {import("../session.js").Session} session */
export function drawProperties(pane, session) {
  const { view } = session;
  if (view === null) return fill(pane);
  const asked = view.properties.filter((one) => one.asked);
  const others = view.properties.filter((one) => !one.asked);
  const failing = asked.filter((one) => one.verdict === "violated").length;
  return fill(
    pane,
    element("h2", {}, "Properties ", element("small", {}, failing === 0 ? "none is violated here" : `${failing} violated here`)),
    element("ul", { class: "properties" }, asked.map((one) => property(session, one))),
    others.length === 0
      ? null
      : element(
          "details",
          { "data-key": "not-asked" },
          element("summary", {}, "Not asked by default"),
          element("ul", { class: "properties" }, others.map((one) => property(session, one))),
        ),
  );
}

function property(session, one) {
  const kind = one.verdict.replaceAll(" ", "-");
  return element(
    "li",
    { class: `property ${kind}` },
    element(
      "details",
      { "data-key": `property-${one.property}`, open: one.asked && one.verdict === "violated" && one.first_at === session.view.position },
      element(
        "summary",
        {},
        element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[one.verdict]),
        element("span", { class: "name" }, breakable(one.property)),
        element("span", { class: "verdict" }, verdictInWords(one)),
      ),
      element("p", { class: "meaning" }, one.meaning),
      (one.witness ?? []).map(witness),
      places(session, one),
    ),
    along(session.view, one),
  );
}

function verdictInWords(one) {
  if (one.kind === "sometimes") return one.verdict;
  if (one.verdict === "violated") return "violated";
  if (one.premise && one.premise.property && !one.premise.met) return "vacuous so far";
  return one.verdict;
}

function places(session, one) {
  const claims = one.kind === "sometimes";
  const { first_at: first } = one;
  return element(
    "p",
    { class: "places" },
    first === null
      ? null
      : button(`first-${one.property}`, `${claims ? "reached" : "fails"} first in state ${first}`, () => session.jump(first), { class: "link" }),
    session.isRecordOnly ? null : button(`find-${one.property}`, claims ? "find a shortest run to it" : "look for a violation", () => session.find(one.property), { class: "link" }),
    one.premise?.property && !one.premise.met
      ? element("span", { class: "quiet" }, `its premise ${one.premise.property} has not been met in this run`)
      : null,
  );
}

/** A term that fails: the records that differ, and what the term reads. */
function witness(found) {
  return element(
    "div",
    { class: "witness" },
    found.replicas.length > 0 ? element("p", {}, `about ${found.replicas.map((one) => `broker ${one}`).join(", ")}`) : null,
    found.records.map(({ offset, held }) =>
      element(
        "p",
        { class: "held" },
        `offset ${offset}: `,
        Object.entries(held).map(([name, words], place) => [place ? "; " : "", element("span", {}, `${name} has `), element("b", {}, words ?? "nothing")]),
      ),
    ),
    element(
      "details",
      { "data-key": `witness-${found.words.slice(0, 60)}` },
      element("summary", {}, "the term that fails"),
      found.meaning ? element("p", {}, found.meaning) : null,
      element("code", { class: "source" }, found.source),
      readsList(found),
    ),
  );
}

const WIDTH = 200;

/** A strip with one stretch for each verdict in a row: thick where a property fails or a claim is met, thin elsewhere. */
function along(view, { along: verdicts, kind, property: name }) {
  if (!verdicts || verdicts.length < 2) return null;
  const width = WIDTH / view.length;
  const stretches = [...verdicts.matchAll(/0+|1+/g)].map((found) => {
    const isThick = (found[0][0] === "1") === (kind === "sometimes");
    const look = isThick ? (kind === "sometimes" ? "met" : "fails") : "thin";
    return shape("rect", { class: look, x: found.index * width, width: found[0].length * width, y: isThick ? 0 : 3, height: isThick ? 8 : 2 });
  });
  const here = shape("line", { class: "here", x1: (view.position - 0.5) * width, x2: (view.position - 0.5) * width, y1: -2, y2: 10 });
  const picture = shape(
    "svg",
    { class: "along", viewBox: `0 -2 ${WIDTH} 12`, preserveAspectRatio: "none", role: "img", "aria-label": `${name} along the run: ${alongInWords(verdicts, kind)}` },
    stretches,
    here,
  );
  return picture;
}

function alongInWords(verdicts, kind) {
  const [yes, no] = kind === "sometimes" ? ["so", "not so"] : ["holds", "fails"];
  return [...verdicts.matchAll(/0+|1+/g)]
    .map((found) => `${found[0][0] === "1" ? yes : no} in ${found[0].length === 1 ? `state ${found.index + 1}` : `states ${found.index + 1} to ${found.index + found[0].length}`}`)
    .join(", ");
}
