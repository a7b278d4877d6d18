/** The bar of the run: where one is, back and forward, and what else can be opened. */

import { button, element, fill } from "../dom.js";
import { firstViolation, violationsOf } from "../violations.js";

/** @param {HTMLElement} pane @param {import("../session.js").Session} session @param {Record<string, () => void>} commands */
export function drawBar(pane, session, commands) {
  const { view } = session;
  if (view === null) return fill(pane);
  const { position, length } = view;
  return fill(
    pane,
    element(
      "div",
      { class: "steps", role: "group", "aria-label": "Steps of the run" },
      pressed("first", "|◀", "To the initial state", "Home", () => session.jump(1), position === 1),
      pressed("back", "◀", "One step back", "←", () => session.back(), position === 1),
      slider(session),
      pressed("forward", "▶", "One step forward", "→", () => session.forward(), position === length),
      pressed("last", "▶|", "To the last state", "End", () => session.jump(length), position === length),
      element("output", { class: "place" }, `state ${position} of ${length}`),
      pressed("undo", "Undo", "Take the last step back", "u", () => session.undo(), position === 1),
      violation(session),
    ),
    element(
      "div",
      { class: "commands", role: "group", "aria-label": "What else there is" },
      Object.entries(commands).map(([words, { run, key, pressed: isOn }]) =>
        button(`command-${words}`, words, run, {
          title: key ? `Key ${key}` : null,
          "aria-keyshortcuts": key,
          "aria-pressed": isOn === undefined ? null : String(isOn),
        }),
      ),
    ),
  );
}

function pressed(key, words, label, shortcut, onclick, disabled) {
  const symbol = /[◀▶]/.test(words);
  return button(key, words, onclick, {
    disabled,
    title: `${label} (key ${shortcut})`,
    "aria-label": symbol ? label : null,
    class: symbol ? "symbol" : null,
  });
}

function slider(session) {
  const { position, length } = session.view;
  const range = element("input", {
    type: "range",
    min: 1,
    max: length,
    value: position,
    disabled: length === 1,
    "data-key": "slider",
    "aria-label": "State of the run",
    "aria-valuetext": `state ${position} of ${length}`,
    onchange: () => session.jump(Number(range.value)),
  });
  return range;
}

function violation(session) {
  const { view } = session;
  const step = firstViolation(view);
  if (step === null) return null;
  const title = `To the first violation: ${violationsOf(view, step).join(", ")} (key v)`;
  return button("violation", `✕ state ${step.number}`, () => session.jump(step.number), { class: "violated", title });
}
