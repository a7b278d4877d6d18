/** Two sides: the run, and the same actions under other rules; where they part, and which rule makes the difference. */

import { breakable, button, element, fill } from "../dom.js";
import { rulesText } from "../fragment.js";
import { changesTable } from "./step.js";
import { diagramOf } from "./diagram.js";
import { obstacle, rulesList } from "./rules.js";
import { stateFigure } from "./state.js";

/** Models of one family have slots in common, so a run of one can be taken in another. */
const PUBLISHED = ["truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320"];

/** @param {HTMLElement} pane @param {import("../session.js").Session} session @param {{shown: boolean, folded?: boolean}} control `folded`: rules are chosen only when asked for */
export function drawComparison(pane, session, control) {
  const { view, beside } = session;
  if (view === null || (!control.shown && beside === null)) return fill(pane);
  return fill(
    pane,
    element("h2", {}, "Side by side"),
    control.shown || !control.folded ? chooser(session, control) : null,
    beside === null ? null : [parting(session), ruleOfTheDifference(session)],
  );
}

// ---- what stands beside

function chooser(session, control) {
  const { run } = session.view;
  const entry = session.models.find((one) => one.name === run.model);
  const fields = {};
  const chosen = () => {
    const parameters = {};
    for (const name of ["release", "mutant"]) if (fields[name]) parameters[name] = fields[name].value || null;
    if (fields.repair) parameters.repair = fields.repair.value ? [fields.repair.value] : [];
    const model = fields.model?.value ?? run.model;
    return rulesText(model, keepWhatIsOther(parameters, run, model));
  };
  const now = rulesOf(session.besideRules);
  const family = PUBLISHED.includes(run.model) ? PUBLISHED : [run.model];
  if (family.length > 1) fields.model = select("model", family, now.model ?? nextOf(family, run.model));
  if (entry?.releases.length) fields.release = select("release", entry.releases, now.release ?? run.parameters.release);
  if (entry && Object.keys(entry.mutants).length) fields.mutant = select("mutant", ["", ...Object.keys(entry.mutants)], now.mutant ?? run.parameters.mutant ?? "", entry.mutants);
  if (entry && Object.keys(entry.repairs).length) fields.repair = select("repair", ["", ...Object.keys(entry.repairs)], now.repair ?? "", entry.repairs);
  return element(
    "form",
    { class: "chooser", onsubmit: (event) => (event.preventDefault(), void session.compare(chosen())) },
    Object.entries(fields).map(([name, field]) => element("label", {}, element("span", {}, name), field)),
    element("button", { type: "submit", "data-key": "beside-show", class: "primary" }, "Show beside"),
    button("beside-differ", "Find where they differ", () => session.findDifference(chosen(), "state"), { title: "The shortest run in which the two lead to different states" }),
    button("beside-verdict", "Find where one fails", () => session.findDifference(chosen(), "verdict"), { title: "The shortest run in which a property is violated on one side only" }),
    session.beside?.there ? button("beside-swap", "Swap sides", () => session.openFragment(swapped(session)), { title: "Steps are then taken under the other rules: some are possible there only" }) : null,
    button("beside-close", "One side", () => ((control.shown = false), void session.compare(null)), { title: "Take the second side away" }),
  );
}

function select(name, values, chosen, meanings = {}) {
  return element(
    "select",
    { name, "data-key": `beside-${name}` },
    values.map((value) => element("option", { value, selected: value === (chosen ?? ""), title: meanings[value] }, value === "" ? "none" : meanings[value] ? `${value}: ${meanings[value]}` : value)),
  );
}

const nextOf = (family, name) => family[Math.min(family.indexOf(name) + 1, family.length - 1)];

/** Only what is other than in the run stands in the address of the second side. */
function keepWhatIsOther(parameters, run, model) {
  if (model !== run.model) return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null && value.length !== 0));
  const here = (name) => JSON.stringify(run.parameters[name] ?? null);
  return Object.fromEntries(Object.entries(parameters).filter(([name, value]) => JSON.stringify(value) !== here(name)));
}

/** The fragment with the sides exchanged. */
function swapped({ view, beside }) {
  const there = beside.under.parameters;
  const isOther = ([name, value]) => name in there && JSON.stringify(value) !== JSON.stringify(there[name]);
  const other = Object.fromEntries(Object.entries(view.run.parameters).filter(isOther));
  return `#${beside.address ?? beside.there.address}&beside=${rulesText(view.run.model, other)}`;
}

/** The rules that a fragment names, by field. */
function rulesOf(text) {
  if (text === null) return {};
  const [model, ...parameters] = text.split("~");
  const found = { model };
  for (const one of parameters) {
    const point = one.indexOf(".");
    found[one.slice(0, point)] = one.slice(point + 1);
  }
  return found;
}

// ---- where the two part

function parting(session) {
  const { beside, view } = session;
  const there = sideName(session, beside.under);
  if (beside.same) return element("p", { class: "verdict same", role: "status" }, `So far there is no difference: every step is possible under ${there}, and leads to the same state.`);
  const steps = beside.parts_at === 1 ? beside.words : partingInWords(beside, view, there);
  return element(
    "div",
    { class: "verdict apart", role: "status" },
    element("p", {}, steps),
    verdicts(session),
  );
}

function partingInWords(beside, view, there) {
  const step = beside.step?.words ?? "";
  const isUnknown = beside.forbidden_by === null;
  if (!beside.possible && beside.stuck_at === beside.parts_at) return [`The two part at state ${beside.parts_at}: the step `, element("b", {}, step), ` is not possible under ${there}${isUnknown ? ", which has no such action" : ""}.`];
  const stuck = beside.possible ? "" : ` From state ${beside.stuck_at} on the run is not possible there.`;
  return [`The two part at state ${beside.parts_at}: the step `, element("b", {}, breakable(step)), ` leads elsewhere under ${there}.${stuck}`];
}

function verdicts(session) {
  const { properties = [], under } = session.beside;
  if (properties.length === 0) return null;
  const names = [describedRules(session.view.run, under), sideName(session, under)];
  return element(
    "table",
    { class: "verdicts" },
    element("thead", {}, element("tr", {}, ["property", ...names].map((words) => element("th", { scope: "col" }, words)))),
    element("tbody", {}, properties.map((one) => element("tr", {}, element("th", { scope: "row" }, breakable(one.property)), [one.here, one.there].map(verdict)))),
  );
}

const verdict = (words) => element("td", { class: words }, `${words === "violated" ? "✕" : "✓"} ${words}`);

/** A short name of a side: what is not as on the other one. */
function sideName(session, under) {
  return describedRules(under, session.view.run);
}

/** A model with the rules that make it: release, mutant, repairs. */
export function describedRules({ model, parameters }, other) {
  const parts = [parameters.release ? `release ${parameters.release}` : model];
  if (parameters.mutant) parts.push(`with mutant ${parameters.mutant}`);
  if (parameters.repair?.length) parts.push(`repaired: ${[].concat(parameters.repair).join(", ")}`);
  const told = new Set(["release", "mutant", "repair"]);
  for (const [name, value] of Object.entries(parameters)) {
    if (!told.has(name) && other && name in other.parameters && JSON.stringify(other.parameters[name]) !== JSON.stringify(value)) parts.push(`${name} ${value}`);
  }
  return parts.join(" ");
}

function ruleOfTheDifference(session) {
  const { beside } = session;
  if (!beside.rules && !beside.forbidden_by) return null;
  const { instead = [], only_here: here = [], only_there: there = [] } = beside.rules ?? {};
  const [ours, theirs] = [describedRules(session.view.run, beside.under), sideName(session, beside.under)];
  return element(
    "section",
    { class: "difference", "aria-label": "The rule that makes the difference" },
    element("h3", {}, "The rule that makes the difference"),
    instead.length > 0 ? insteadTable(instead, ours, theirs) : null,
    beside.forbidden_by && beside.stuck_at === beside.parts_at ? element("div", { class: "forbids" }, element("h4", {}, `What forbids it under ${theirs}`), obstacle(beside.forbidden_by)) : null,
    more(session, [here, ours, "here"], [there, theirs, "there"]),
  );
}

function insteadTable(instead, ours, theirs) {
  return element(
    "table",
    { class: "instead" },
    element("thead", {}, element("tr", {}, ["rule", ours, theirs].map((words) => element("th", { scope: "col" }, words)))),
    element("tbody", {}, instead.map((one) => element("tr", {}, element("th", { scope: "row" }, one.field.replaceAll("_", " ")), [one.here, one.there].map((rule) => element("td", {}, element("code", { title: rule }, breakable(rule.split(".").at(-1)))))))),
  );
}

function differencesTable(differences, ours, theirs) {
  return changesTable(differences.map((one) => ({ slot: one.slot, before: one.here, after: one.there })), [ours, theirs]);
}

/** What differs after the step, and the rules with their docstrings. */
function more(session, ...sides) {
  const { differences = [] } = session.beside;
  const names = sides.map(([, name]) => name);
  return element(
    "details",
    { "data-key": "difference" },
    element("summary", {}, "What differs after the step, and the rules as they stand"),
    differences.length ? differencesTable(differences, ...names) : null,
    ruleColumns(session, ...sides),
  );
}

function ruleColumns(session, ...sides) {
  if (sides.every(([rules]) => rules.length === 0)) return null;
  return element(
    "div",
    { class: "two" },
    sides.map(([rules, name, side]) => element("div", {}, element("h4", {}, `Called only under ${name}`), rules.length ? rulesList(session, rules, side) : element("p", { class: "quiet" }, "no other rule"))),
  );
}

// ---- both states

/** @param {HTMLElement} pane @param {import("../session.js").Session} session */
export function drawTwoStates(pane, session) {
  const { view, beside } = session;
  const differs = differingSlots(view, beside.there);
  const ours = describedRules(view.run, beside.under);
  const theirs = sideName(session, beside.under);
  return fill(
    pane,
    element("h2", {}, "State ", element("small", {}, differs.size === 0 ? "the same on both sides" : `${differs.size === 1 ? "1 slot differs" : `${differs.size} slots differ`}`)),
    element(
      "div",
      { class: "sides" },
      side(view, ours, `state ${view.position}`, differs, "here"),
      beside.there ? side(beside.there, theirs, `state ${beside.there.position}${beside.there.position < view.position ? ", where it ends" : ""}`, differs, "there") : element("p", {}, beside.words),
    ),
  );
}

function side(view, name, words, differs, key) {
  const failing = view.properties.filter((one) => one.asked && one.verdict === "violated").map((one) => one.property);
  const title = element("h3", {}, name, " ", element("small", {}, words));
  const verdicts_ = element("p", { class: failing.length ? "violated" : "holds" }, failing.length ? `✕ violated: ${failing.join(", ")}` : "✓ no property is violated");
  return element("section", { class: `side ${key}`, "aria-label": name }, stateFigure(view, { title: [title, verdicts_], differs, key }));
}

function differingSlots(view, there) {
  if (!there) return new Set();
  const slots = ({ state }) => [...state.brokers, state.controller, state.clients].flatMap((part) => part.slots);
  const theirs = new Map(slots(there).map((one) => [one.slot, one.words]));
  return new Set(slots(view).filter((one) => theirs.get(one.slot) !== one.words).map((one) => one.slot));
}

/** Both diagrams, one beside the other. */
export function twoDiagrams(session) {
  const { view, beside } = session;
  const sides = [[view, describedRules(view.run, beside.under)], [beside.there, sideName(session, beside.under)]];
  return element(
    "div",
    { class: "sides" },
    sides.map(([one, name]) =>
      element(
        "section",
        { "aria-label": name },
        element("h3", {}, name),
        element("div", { class: "scrolled diagram", tabindex: "0", role: "region", "aria-label": `Space-time diagram of ${name}` }, diagramOf(one, { onstep: (number) => session.jump(number), partsAt: beside.parts_at })),
      ),
    ),
  );
}
