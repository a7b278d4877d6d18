/** A log as a column of records: the same offset stands at the same height in all logs. */

import { element } from "../dom.js";
import { epochClass } from "../epochs.js";

const SHOWN = 24;

/** The offsets that the logs of a state cover: first and end, and those that are left out because every log is alike long. */
export function offsetsOf(state) {
  const logs = state.brokers.map((one) => one.log).filter(Boolean);
  const known = [state.clients.acknowledged, state.clients.read].flatMap((records) => (records ?? []).map((one) => one.offset + 1));
  const end = Math.max(0, ...logs.map((log) => log.end), ...known);
  const start = logs.length === 0 ? 0 : Math.min(...logs.map((log) => log.start));
  return { start, end, from: Math.max(start, end - SHOWN) };
}

/** @returns {HTMLElement} */
export function logColumn(part, context) {
  const { log, broker } = part;
  const { offsets, changed, differs } = context;
  const slot = `log[${broker}]`;
  const state = differs.has(slot) || differs.has(`highWatermark[${broker}]`) ? "differs" : changed.has(slot) || changed.has(`highWatermark[${broker}]`) ? "changed" : "";
  const rows = [];
  for (let offset = offsets.from; offset < offsets.end; offset++) {
    rows.push(line(log, offset), place(part, offset, context));
  }
  return element(
    "div",
    { class: `log ${state}` },
    element("h4", {}, "log", logFacts(log)),
    offsets.from > offsets.start ? element("p", { class: "quiet" }, `offsets ${offsets.start} to ${offsets.from - 1} above`) : null,
    element("ol", { class: "records", start: offsets.from }, rows, line(log, offsets.end)),
    epochHistory(log),
  );
}

function logFacts(log) {
  const watermark = log.high_watermark === null ? "" : `HW ${log.high_watermark}, `;
  const start = log.start > 0 ? `start ${log.start}, ` : "";
  return element("small", {}, ` ${start}${watermark}end ${log.end}`);
}

/** The lines before an offset: log start, high watermark, end offset. */
function line(log, offset) {
  const marks = [];
  if (log.start === offset && offset > 0) marks.push(["start", "start"]);
  if (log.high_watermark === offset) marks.push(["watermark", "HW"]);
  if (log.end === offset) marks.push(["end", "end"]);
  if (marks.length === 0) return null;
  return element(
    "li",
    { class: `line ${marks.map(([kind]) => kind).join(" ")}`, "aria-label": marks.map(([, words]) => `${words} ${offset}`).join(", ") },
    marks.map(([kind, words]) => element("span", { class: kind }, words)),
  );
}

function place(part, offset, context) {
  const { log, broker } = part;
  if (log.records === null || (offset >= log.start && offset < (log.records_from ?? log.start))) return offset < log.end ? unknownRecord(offset) : emptyPlace(offset);
  const record = log.records[offset - (log.records_from ?? log.start)];
  if (offset < log.start || record === undefined) return missing(broker, offset, context);
  const promises = promisesOf(record, context.view.state.clients);
  const committed = record.below_high_watermark;
  return element(
    "li",
    { class: `record ${epochClass(record.leader_epoch)} ${committed ? "committed" : "uncommitted"}`, value: offset },
    element("span", { class: "offset" }, String(offset)),
    element("span", { class: "words" }, record.words),
    promises.map(([sign, words]) => element("span", { class: "promise", title: words, role: "img", "aria-label": words }, sign)),
  );
}

const unknownRecord = (offset) =>
  element("li", { class: "record epoch-none", value: offset }, element("span", { class: "offset" }, String(offset)), element("span", { class: "words" }, "record"));

const emptyPlace = (offset) => element("li", { class: "record empty", value: offset, "aria-hidden": "true" }, element("span", { class: "offset" }, String(offset)));

/** An offset without a record; a record that a property misses there is drawn crossed out. */
function missing(broker, offset, { promised }) {
  const words = promised.get(`log[${broker}]@${offset}`);
  if (!words) return emptyPlace(offset);
  return element(
    "li",
    { class: "record missing", value: offset },
    element("span", { class: "offset" }, String(offset)),
    element("span", { class: "words" }, `✕ ${words} is missing`),
  );
}

function promisesOf(record, { acknowledged, read }) {
  const has = (records) => (records ?? []).some((one) => one.offset === record.offset && one.words === record.words);
  return [
    ...(has(acknowledged) ? [["✓", "acknowledged"]] : []),
    ...(has(read) ? [["◉", "read by a consumer"]] : []),
  ];
}

function epochHistory(log) {
  if (log.epochs === null || log.epochs.length === 0) return null;
  return element(
    "p",
    { class: "epochs" },
    element("span", { class: "quiet" }, "epochs "),
    log.epochs.map((one) => element("span", { class: `epoch ${epochClass(one.leader_epoch)}`, title: `epoch ${one.leader_epoch} begins at offset ${one.start_offset}` }, `e${one.leader_epoch} from ${one.start_offset}`)),
  );
}
