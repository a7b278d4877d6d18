/**
 * A recorded run: the views of all its positions, and what else was asked when it was recorded. It is stepped without
 * any back end; where one stands behind it, the first message that the record does not answer goes live there.
 */

import { differencesBetween } from "../differences.js";

/**
 * @typedef {{position: number | null, message: Record<string, any>, answer: Record<string, any>}} RecordedAnswer
 * @typedef {{format: 1, views: Record<string, any>[], common?: Record<string, any>, models?: Record<string, any>,
 *            answers?: RecordedAnswer[]}} Recording
 */

/**
 * @param {Recording & {shared?: any[]}} document_
 * @param {(() => import("./server.js").BackEnd) | null} behind makes the back end that takes over
 * @returns {import("./server.js").BackEnd & {address: string, isRecordOnly: () => boolean, hasMore: boolean, isLive: () => boolean}} its `address` is
 *   that of the whole run; `isRecordOnly`: there is nothing but the record; `hasMore`: other runs can be opened
 */
export function recordedBackEnd(document_, behind = null) {
  const recording = unfolded(document_);
  const views = recording.views.map((view) => ({ ...recording.common, ...view }));
  let position = views.length;
  let live = null;

  const show = (number) => {
    position = number;
    return { ...views[number - 1], changed: null };
  };

  async function ask(message, report) {
    if (isTold && message.do === "open" && isOurs(message.address)) live = null;
    if (live) return live.ask(message, report);
    const known = fromRecord(message);
    if (known) return known;
    if (!behind) return notRecorded(message);
    return goLive(message, report);
  }

  function fromRecord(message) {
    const own = COMMANDS[message.do]?.(message);
    if (own) return own;
    const asked = textOf(message);
    const found = recording.answers?.find(
      (one) => (one.position === null || one.position === position) && textOf(one.message) === asked,
    );
    return found?.answer ?? null;
  }

  const COMMANDS = {
    models: () => recording.models ?? (behind ? null : { answer: "models", models: [] }),
    view: () => show(position),
    open: ({ address }) => (isOurs(address) ? show(placeOf(address)) : null),
    jump: ({ to }) => (views[to - 1] ? show(to) : null),
    undo: () => (position > 1 ? show(position - 1) : null),
    step: (message) => (isNext(message) ? show(position + 1) : null),
    diff: ({ from }) => (views[from - 1] ? differencesBetween(views[from - 1], views[position - 1]) : null),
  };

  const last = views[views.length - 1];
  /** Whether it is a run that no model has. */
  const isTold = last.run.told === true;
  const placeOf = (address) => views.findIndex((view) => sameRun(view.address, address)) + 1;
  const isOurs = (address) => placeOf(address) > 0;

  function isNext({ index, action, args, choice = 1 }) {
    const next = last.steps[position - 1];
    const move = index === undefined ? null : views[position - 1].moves?.find((one) => one.index === index);
    const [name, values] = move ? [move.action, move.args] : [action, args];
    return next?.action === name && textOf(next.args) === textOf(values ?? {}) && next.choice === choice;
  }

  /** What has nothing to do with the present run: it needs no run behind the page. */
  const BY_ITSELF = ["models", "open", "start", "import"];

  async function goLive(message, report) {
    if (isTold && !BY_ITSELF.includes(message.do)) return notRecorded(message);
    live = behind();
    if (BY_ITSELF.includes(message.do)) {
      const answer = await live.ask(message, report);
      if (answer.answer === "error" || message.do === "models") live = null;
      return answer;
    }
    const opened = await live.ask({ do: "open", address: last.address });
    if (opened.answer === "error") {
      live = null;
      return opened;
    }
    await live.ask({ do: "jump", to: position });
    return live.ask(message, report);
  }

  const isRecordOnly = () => (behind === null || isTold) && live === null;
  return { ask, address: last.address, isRecordOnly, hasMore: behind !== null, cancel: () => live?.cancel(), isLive: () => live !== null };
}

/** Whether a document is a recording, as `kspec simulate-cluster --recording` writes one. */
export function isRecording(document_) {
  return document_?.format === 1 && Array.isArray(document_.views) && document_.views.length > 0;
}

/** The document, if the page can draw its views; an error says what is missing. */
export function checkedRecording(document_) {
  for (const [place, view] of unfolded(document_).views.entries()) {
    const isWhole =
      typeof view?.run?.model === "string" &&
      [view.steps, view.properties, view.state?.brokers, view.state?.in_flight].every(Array.isArray) &&
      [view.state.controller?.slots, view.state.clients?.slots].every(Array.isArray) &&
      view.position === place + 1;
    if (!isWhole) throw new Error(`its view ${place + 1} is not whole`);
  }
  return document_;
}

/** The document with its parts where they stand: `{"$": N}` is the Nth of `shared`, which may have earlier ones in it. */
function unfolded({ shared = [], ...document_ }) {
  const parts = [];
  const unfold = (value) => {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(unfold);
    if (typeof value.$ === "number") return parts[value.$];
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, unfold(one)]));
  };
  for (const part of shared) parts.push(unfold(part));
  return unfold(document_);
}

/** Two addresses of one run: the digest at the end is left out where one has none. */
function sameRun(one, other) {
  const parts = (text) => text.split("~~").slice(0, 2).join("~~").replace(/~~$/, "");
  return parts(one) === parts(other);
}

/** JSON with its keys in order, without the message's id. */
function textOf(value) {
  return JSON.stringify(value, (key, member) =>
    member && typeof member === "object" && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).filter(([name]) => name !== "id").sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

function notRecorded(message) {
  const words = `this page has a recorded run and nothing that could answer ${message.do}; it can be stepped forward and back`;
  return { answer: "error", kind: "recorded", words };
}
