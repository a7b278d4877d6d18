/** Rules and what forbids a move, for readers: source, docstring, Kafka's class and method, releases, mutants. */

import { breakable, button, element } from "../dom.js";
import { rulesText } from "../fragment.js";

/** What forbids a move: the guard, and the values that it reads. */
export function obstacle(found) {
  if (!found) return element("p", { class: "quiet" }, "Not told.");
  const kinds = { guard: "guard", effect: "refused", bound: "bound of the model", error: "error" };
  return element(
    "div",
    { class: "obstacle" },
    element("p", {}, element("span", { class: "kind" }, kinds[found.kind] ?? found.kind), " ", found.meaning || null),
    found.source ? element("code", { class: "source" }, found.source) : element("p", {}, found.words),
    readsList(found),
    found.place ? element("p", { class: "place quiet" }, found.place) : null,
  );
}

/** The values that a function was made with and reads. */
export function readsList({ made_with: made = {}, reads = [] }) {
  const rows = [
    ...Object.entries(made).map(([name, words]) => [name, words]),
    ...reads.map((read) => [read.slot ?? read.view, read.words]),
  ];
  if (rows.length === 0) return null;
  return element("dl", { class: "reads" }, rows.map(([name, words]) => [element("dt", {}, name), element("dd", {}, words)]));
}

/** More rules than these wait to be opened, and so do the smaller ones of a step that calls many. */
const SHOWN = 8;

/** Rules, each to be opened. */
export function rulesList(session, rules, key) {
  const list = (some) => element("ul", { class: "rules" }, some.map((rule) => element("li", {}, ruleDetails(session, rule, `${key}-${rule.rule}`))));
  if (rules.length <= SHOWN + 1) return list(rules);
  const more = element("summary", {}, `${rules.length - SHOWN} rules more`);
  return [list(rules.slice(0, SHOWN)), element("details", { class: "more-rules", "data-key": `${key}-more` }, more, list(rules.slice(SHOWN)))];
}

function ruleDetails(session, rule, key) {
  return element(
    "details",
    { class: "rule", "data-key": key },
    element("summary", {}, element("code", {}, breakable(nameOf(rule))), " ", element("span", { class: "meaning" }, marked(rule.meaning))),
    docstring(rule.docstring),
    element("p", { class: "place quiet" }, rule.place),
    releases(rule),
    mutants(session, "Weakened by", rule.weakened_by),
    mutants(session, "The weaker rule of", rule.mutant_of),
  );
}

/** The last part of a rule's name; its module stands in its place. */
export function nameOf(rule) {
  return rule.rule.split(".").at(-1);
}

/** A docstring's paragraphs, with `code` and **bold** as such. */
function docstring(text) {
  return element("div", { class: "docstring" }, text.split(/\n\n+/).map((paragraph) => element("p", {}, marked(paragraph))));
}

export function marked(text) {
  return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((part) => {
    if (part.startsWith("**")) return element("strong", {}, part.slice(2, -2));
    if (part.startsWith("`")) return element("code", {}, part.slice(1, -1));
    return part;
  });
}

function releases(rule) {
  return rule.changes.map((use) =>
    element("p", { class: "releases" }, "Rule ", element("code", {}, use.field), ` (${use.of}) of `, releasesInWords(use.releases)),
  );
}

/** `2.1 to 2.3` for many releases in a row. */
function releasesInWords(names) {
  if (names.length === 0) return "no release";
  return names.length > 3 ? `${names[0]} to ${names.at(-1)} (${names.length} releases)` : names.join(", ");
}

function mutants(session, title, found) {
  const names = Object.entries(found);
  if (names.length === 0) return null;
  const model = session.view.run.model;
  return element(
    "div",
    { class: "mutants" },
    element("h4", {}, title),
    element(
      "ul",
      {},
      names.map(([name, summary]) =>
        element(
          "li",
          {},
          session.isRecordOnly ? element("code", {}, name) : button(`mutant-${name}`, name, () => session.compare(rulesText(model, { mutant: name })), {
            title: "The same run with this mutant beside it",
            class: "link",
          }),
          ` ${summary}`,
        ),
      ),
    ),
  );
}
