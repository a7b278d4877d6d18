/** The space-time diagram of a run: one line a party, time downwards, each step numbered; the present one is marked. */

import { element, fill, shape } from "../dom.js";
import { violationsOf } from "../violations.js";

const LANE = 160;
const GUTTER = 56;
const HEAD = 34;
const LINE = 15;
const PAD = 7;
const LETTERS = 23;
/** Longer runs are drawn around the present step. */
const MOST = 120;
const AROUND = 30;

/** @param {HTMLElement} pane @param {import("../session.js").Session} session */
export function drawDiagram(pane, session) {
  const { view } = session;
  if (view === null) return fill(pane);
  const diagram = diagramOf(view, { onstep: (number) => session.jump(number) });
  return fill(
    pane,
    element("h2", {}, "Space-time diagram ", element("small", {}, leftOut(view))),
    view.steps.length === 0
      ? element("p", { class: "quiet" }, "Nothing has happened yet: take an action.")
      : element("div", { class: "scrolled diagram", tabindex: "0", role: "region", "aria-label": "Space-time diagram", "data-scrolled": "diagram" }, diagram),
    stepList(session),
  );
}

function windowOf(view, whole) {
  const { steps, position } = view;
  if (whole || steps.length <= MOST) return steps;
  const first = Math.max(0, Math.min(position - 1 - AROUND, steps.length - 2 * AROUND));
  return steps.slice(first, first + 2 * AROUND);
}

function leftOut(view) {
  const steps = windowOf(view, false);
  return steps.length === view.steps.length ? "" : `states ${steps[0].number} to ${steps.at(-1).number} of ${view.length}`;
}

/** The steps as a list: what the drawing shows, for keyboards and for readers who cannot see it. */
function stepList(session) {
  const { view } = session;
  if (view.steps.length === 0) return null;
  const steps = windowOf(view, false);
  return element(
    "details",
    { class: "step-list", "data-key": "step-list" },
    element("summary", {}, "The run as a list"),
    element(
      "ol",
      { start: steps[0].number },
      steps.map((step) => element("li", { value: step.number }, stepButton(session, step))),
    ),
  );
}

function stepButton(session, step) {
  const here = step.number === session.view.position;
  const made = element("button", { type: "button", class: "link", "data-key": `step-${step.number}`, "aria-current": here ? "step" : null, onclick: () => session.jump(step.number) }, step.words);
  const violated = violationsOf(session.view, step);
  return [made, violated.length > 0 ? element("span", { class: "violated" }, ` ✕ ${violated.join(", ")}`) : null, ` (${step.party})`];
}

/**
 * @param {Record<string, any>} view
 * @param {{onstep?: (number: number) => void, whole?: boolean, partsAt?: number | null}} [options]
 * @returns {SVGElement}
 */
export function diagramOf(view, { onstep, whole = false, partsAt = null } = {}) {
  const parties = partiesIn(view);
  const middle = new Map(parties.map((party, place) => [party, GUTTER + LANE * (place + 0.5)]));
  const width = GUTTER + LANE * parties.length;
  const drawn = [];
  let top = HEAD;
  for (const step of windowOf(view, whole)) {
    const made = stepDrawing(step, view, { middle, width, top, partsAt, onstep });
    drawn.push(made.drawing);
    top += made.height;
  }
  return shape(
    "svg",
    { class: "space-time", style: { "--natural": `${width}px` }, viewBox: `0 0 ${width} ${top + PAD}`, width, height: top + PAD, role: "img", "aria-label": `Space-time diagram of ${view.steps.length} steps; the run is below as a list` },
    lifelines(parties, middle, top),
    drawn,
  );
}

/** A run that no model has may have no controller. */
export const isShown = (controller) => controller.partition !== null || controller.slots.length > 0;

function partiesIn(view) {
  const found = new Set(view.state.brokers.map((one) => one.party));
  if (isShown(view.state.controller)) found.add(view.state.controller.party);
  for (const step of view.steps) {
    for (const event of step.events) for (const party of [event.from, event.to, event.at]) if (party) found.add(party);
    for (const one of step.marks ?? []) found.add(one.party);
  }
  const number = (party) => Number(party.match(/\d+/)?.[0] ?? 0);
  const isMiddle = (party) => ["controller", "coordinator"].includes(party);
  const place = (party) => (party === "producer" || party.startsWith("client") ? -2 : isMiddle(party) ? -1 : number(party));
  return [...found].sort((one, other) => place(one) - place(other));
}

function lifelines(parties, middle, bottom) {
  return parties.map((party) => {
    const x = middle.get(party);
    return shape(
      "g",
      { class: "lane" },
      shape("text", { class: "party", x, y: 18, "text-anchor": "middle" }, party),
      shape("line", { class: "life", x1: x, x2: x, y1: HEAD - 8, y2: bottom }),
    );
  });
}

/** One step: its number, its events from top to bottom, and the band behind them. */
function stepDrawing(step, view, { middle, width, top, partsAt, onstep }) {
  const rows = [...step.events.flatMap((event) => eventRows(withoutPromises(event), middle)), ...(step.marks ?? []).map((one) => markRow(one, middle))];
  const violated = violationsOf(view, step);
  if (violated.length > 0) rows.push(violationRow(violated, width));
  let y = top + PAD;
  const drawn = rows.map((row) => {
    const made = row.draw(y);
    y += row.height;
    return made;
  });
  const height = Math.max(y - top, LINE + PAD) + PAD;
  return { height, drawing: band(step, view, { top, height, width, partsAt, onstep, isViolating: violated.length > 0 }, drawn) };
}

function band(step, view, { top, height, width, partsAt, onstep, isViolating }, drawn) {
  const states = [
    "step",
    step.number === view.position ? "here" : null,
    isViolating ? "violating" : null,
    step.number > view.position ? "later" : null,
    step.number === partsAt ? "parting" : null,
  ];
  return shape(
    "g",
    { class: states.filter(Boolean).join(" "), "data-step": step.number, onclick: onstep && (() => onstep(step.number)) },
    shape("title", {}, `${step.number}: ${step.words}`),
    shape("rect", { class: "band", x: 0, y: top, width, height }),
    shape("text", { class: "number", x: 8, y: top + PAD + 11 }, String(step.number)),
    isViolating ? shape("text", { class: "cross", x: 34, y: top + PAD + 11 }, "✕") : null,
    step.number === partsAt ? shape("text", { class: "apart", x: 34, y: top + PAD + 11 }, "≠") : null,
    drawn,
  );
}

function eventRows(event, middle) {
  if (event.from) return [arrowRow(event, middle)];
  return event.words ? [noteRow(event, middle)] : [];
}

/** What clients were promised stands at the clients, as a mark; a model may keep it in a slot of the controller's. */
function withoutPromises(event) {
  if (event.from) return event;
  return { ...event, words: event.words.split("; ").filter((words) => !/^(acknowledged|clients): /.test(words)).join("; ") };
}

function arrowRow({ from, to, words }, middle) {
  const [x1, x2] = [middle.get(from), middle.get(to)];
  const letters = Math.max(LETTERS, Math.floor((Math.abs(x2 - x1) / LANE) * LETTERS));
  const lines = wrapped(words, letters);
  const height = lines.length * LINE + 12;
  const direction = Math.sign(x2 - x1) || 1;
  const draw = (y) => {
    const at = y + height - 8;
    return shape(
      "g",
      { class: "message" },
      textLines(lines, (x1 + x2) / 2, y, "middle"),
      shape("line", { class: "arrow", x1, x2: x2 - direction * 6, y1: at, y2: at }),
      shape("path", { class: "head", d: `M ${x2} ${at} l ${-direction * 9} -4.5 v 9 z` }),
    );
  };
  return { height, draw };
}

function noteRow({ at, words }, middle) {
  const lines = wrapped(words, LETTERS);
  const height = lines.length * LINE + 8;
  const x = middle.get(at);
  const draw = (y) =>
    shape(
      "g",
      { class: "note" },
      shape("rect", { x: x - LANE / 2 + 6, y, width: LANE - 12, height: height - 2, rx: 3 }),
      textLines(lines, x, y + 1, "middle"),
    );
  return { height: height + 3, draw };
}

const SIGNS_OF_MARKS = { committed: "▣", acknowledged: "✓", read: "◉", lost: "✕" };

/** A record that became committed or acknowledged. */
function markRow({ kind, party, words }, middle) {
  const x = middle.get(party);
  const lines = wrapped(`${SIGNS_OF_MARKS[kind] ?? ""} ${words} ${kind}`, LETTERS - 4);
  const height = lines.length * LINE + 6;
  const draw = (y) =>
    shape(
      "g",
      { class: `mark ${kind}` },
      shape("rect", { x: x - LANE / 2 + 8, y, width: LANE - 16, height: height - 1, rx: 8 }),
      textLines(lines, x, y, "middle"),
    );
  return { height: height + 3, draw };
}

function violationRow(violated, width) {
  const lines = wrapped(`✕ violated: ${violated.join(", ")}`, Math.floor((width - GUTTER) / 6.6));
  return { height: lines.length * LINE + 4, draw: (y) => shape("g", { class: "violation" }, textLines(lines, GUTTER + 6, y, "start")) };
}

function textLines(lines, x, y, anchor) {
  return lines.map((words, place) => shape("text", { x, y: y + 12 + place * LINE, "text-anchor": anchor }, words));
}

/** Words in lines of so many letters at most. */
export function wrapped(words, letters) {
  const lines = [""];
  for (const word of words.split(" ")) {
    const line = lines.at(-1);
    if (line && line.length + 1 + word.length > letters) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines;
}
