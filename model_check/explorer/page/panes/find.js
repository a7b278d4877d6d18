/** A search for a shortest run: to a violation, or to a state that is claimed possible. */

import { element, fill } from "../dom.js";

const STATES = 20_000;

/** @param {HTMLElement} pane @param {import("../session.js").Session} session @param {{shown: boolean, property?: string, states?: number, start?: string}} control */
export function drawFind(pane, session, control) {
  if (session.view === null || !control.shown) return fill(pane);
  const property = propertyField(session, control);
  const states = element("input", { type: "number", min: 1, value: control.states ?? STATES, "data-key": "find-states", required: true });
  const start = element(
    "select",
    { "data-key": "find-start" },
    [["initial", "the initial state"], ["here", "this state"]].map(([value, words]) => element("option", { value, selected: control.start === value }, words)),
  );
  const search = (event) => {
    event.preventDefault();
    Object.assign(control, { property: property.value, states: Number(states.value), start: start.value });
    void session.find(property.value, { states: Number(states.value), start: start.value });
  };
  return fill(
    pane,
    element("h2", {}, "Find a shortest run"),
    element(
      "form",
      { class: "chooser", onsubmit: search },
      element("label", {}, element("span", {}, "to"), property),
      element("label", {}, element("span", {}, "from"), start),
      element("label", {}, element("span", {}, "states at most"), states),
      element("button", { type: "submit", class: "primary", "data-key": "find-go" }, "Find"),
    ),
  );
}

function propertyField(session, control) {
  const words = (one) => (one.kind === "always" ? `a violation of ${one.property}` : `a state in which ${one.property} is so`);
  const usual = session.view.properties.filter((one) => one.kind === "always" && one.asked).at(-1)?.property;
  return element(
    "select",
    { "data-key": "find-property" },
    session.view.properties.map((one) => element("option", { value: one.property, selected: one.property === (control.property ?? usual), title: one.meaning }, words(one))),
  );
}
