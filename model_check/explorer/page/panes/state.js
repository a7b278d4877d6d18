/** A state: one column for each party, logs on common offsets, and the messages in flight below as arrows. */

import { element, fill } from "../dom.js";
import { epochClass } from "../epochs.js";
import { isShown } from "./diagram.js";
import { logColumn, offsetsOf } from "./log.js";

/** Slots that have a picture; the others are told in words. */
const DRAWN = new Set(["log", "highWatermark", "role", "endOffset", "leaderIsr", "partition", "acknowledged"]);

/**
 * @param {HTMLElement} pane
 * @param {Record<string, any>} view a view, or another run's state with its properties
 * @param {{title?: any, differs?: Set<string>, key: string}} options `differs`: labels of slots to be marked
 */
export function drawState(pane, view, options) {
  return fill(pane, stateFigure(view, options));
}

/** @returns {HTMLElement} */
export function stateFigure(view, { title = null, differs = new Set(), changed = new Set(), key }) {
  const parties = partiesOf(view.state);
  const context = { view, differs, changed, offsets: offsetsOf(view.state), key, promised: promisedRecords(view) };
  return element(
    "div",
    { class: "state" },
    title,
    element(
      "div",
      { class: "stage", tabindex: "0", role: "region", "aria-label": "The state, party by party", "data-scrolled": key },
      element(
        "div",
        { class: "columns", style: { "--parties": parties.length, "--abreast": Math.min(3, Math.max(1, view.state.brokers.length)) } },
        parties.map((one) => card(one, context)),
        arrows(view.state.in_flight, parties),
      ),
    ),
  );
}

/** The parties of a state in the order of a diagram's columns, each with its part of the state. */
export function partiesOf(state) {
  const { clients, controller, brokers } = state;
  const knowsRecords = clients.acknowledged !== null || clients.read !== null;
  return [
    ...(knowsRecords || clients.slots.length > 0 ? [{ party: "producer", title: "clients", part: clients }] : []),
    ...(isShown(controller) ? [{ party: controller.party, title: controller.party, part: controller }] : []),
    ...brokers.map((part) => ({ party: part.party, title: part.party, part })),
  ];
}

/** Records that clients were promised, and that a failing property misses in a log: by the log's slot. A view of a log has its broker's. */
function promisedRecords(view) {
  const found = new Map();
  for (const { witness = [], asked } of view.properties ?? []) {
    if (!asked) continue;
    for (const { offset, held } of witness.flatMap((one) => one.records)) {
      const words = Object.values(held).find((one) => one !== null);
      for (const [slot, record] of Object.entries(held)) {
        if (record === null && words) found.set(`${slot.replace(/^[^[]*/, "log")}@${offset}`, words);
      }
    }
  }
  return found;
}

function card({ party, title, part }, context) {
  const parts = { producer: clientsCard, controller: controllerCard, coordinator: controllerCard }[party] ?? brokerCard;
  const role = part.role && part.role.is !== "none" ? part.role.is : null;
  const isDown = part.up === false;
  return element(
    "section",
    { class: `card ${role ?? ""} ${isDown ? "down" : ""}`, "aria-label": title, "data-party": party },
    element("h3", {}, title, isDown ? element("span", { class: "badge down" }, "down") : null, role ? element("span", { class: `badge ${role}` }, role) : null),
    parts(part, context),
    otherSlots(part, context, party),
  );
}

function brokerCard(part, context) {
  return [roleFacts(part, context), part.log ? logColumn(part, context) : null, waiting(part)];
}

/** Facts of one slot: name, value, and the slot's label. */
function facts(rows, context) {
  const shown = rows.filter((row) => row !== null && row[1] !== null && row[1] !== undefined);
  if (shown.length === 0) return null;
  return element(
    "dl",
    { class: `facts ${mark(shown[0][2], context) ?? ""}` },
    shown.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
}

function mark(slot, { differs, changed }) {
  if (slot && differs.has(slot)) return "differs";
  return slot && changed.has(slot) ? "changed" : null;
}

const setInWords = (members) => (members === null || members === undefined ? null : `{${members.join(", ")}}`);

/** An epoch in its colour and as a number. */
export function epochChip(epoch) {
  return epoch === null || epoch === undefined ? null : element("span", { class: `epoch ${epochClass(epoch)}` }, `e${epoch}`);
}

function roleFacts({ broker, role, slots }, context) {
  if (role.is === "none" && !slots.some((slot) => slot.name === "role")) return null;
  const slot = `role[${broker}]`;
  if (role.is === "none") return facts([["role", "none yet", slot]], context);
  return facts(
    [
      role.is === "follower" ? ["follows", `broker ${role.leader}`, slot] : null,
      ["epoch", epochChip(role.leader_epoch), slot],
      ["begins at", role.epoch_start, slot],
      ["ISR", setInWords(role.isr), slot],
      ["pending ISR", setInWords(role.pending_isr), slot],
    ],
    context,
  );
}

function waiting({ waiting: producers }) {
  if (producers.length === 0) return null;
  const words = producers.map((one) => (typeof one === "object" ? Object.entries(one).map((pair) => pair.join(" ")).join(", ") : String(one)));
  return element("p", { class: "waiting" }, element("strong", {}, "waits for a commit: "), words.join("; "));
}

function controllerCard({ partition, slots, fenced, stopping }, context) {
  if (partition === null) return null;
  const slot = slots.find((one) => ["partition", "controller", "zookeeper"].includes(one.slot))?.slot;
  const named = { leader: "leader", leader_epoch: "epoch", isr: "ISR", partition_epoch: "partition epoch", elr: "ELR" };
  const rest = Object.keys(partition).filter((name) => !(name in named));
  const rows = [...Object.keys(named), ...rest]
    .filter((name) => name in partition && !isEmpty(partition[name]) && !isUsual(name, partition[name]))
    .map((name) => [named[name] ?? name.replaceAll("_", " "), partitionValue(name, partition[name]), slot]);
  return facts([...rows, ["fenced", brokersInWords(fenced), slot], ["in controlled shutdown", brokersInWords(stopping), slot]], context);
}

/** Brokers as the controller has them registered; nobody is nothing to tell. */
const brokersInWords = (brokers) => (brokers?.length ? setInWords(brokers) : null);

/** A partition is told to be recovering; that it is not is nothing to tell. */
const isUsual = (name, value) => name === "recovery" && value === "RECOVERED";

const isEmpty = (value) => Array.isArray(value) && value.length === 0;

function partitionValue(name, value) {
  if (name === "leader_epoch") return value === null ? "none yet" : epochChip(value);
  if (name === "leader") return value === null ? "none" : `broker ${value}`;
  if (Array.isArray(value)) return setInWords(value);
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value).toLowerCase();
}

function clientsCard({ acknowledged, read }) {
  return [knownRecords("acknowledged", "✓", acknowledged), knownRecords("read", "◉", read)];
}

function knownRecords(words, sign, records) {
  if (records === null) return null;
  return element(
    "div",
    { class: "known" },
    element("h4", {}, words),
    records.length === 0
      ? element("p", { class: "quiet" }, "nothing yet")
      : element("ul", {}, records.map((one) => element("li", { class: `record ${epochClass(one.leader_epoch)}` }, `${sign} ${one.offset}: ${one.words}`))),
  );
}

/** Every slot in words; those that have a picture, and those that hold nothing, wait to be opened. */
function otherSlots({ slots, log, role, partition }, context, party) {
  const isDrawn = ({ slot, words }) => {
    const name = slot.replace(/\[.*/, "");
    if (words === "none") return true;
    if (name === "log" || name === "highWatermark" || name === "endOffset") return Boolean(log);
    if (name === "controller" || name === "partition" || name === "zookeeper") return Boolean(partition);
    if (name === "process" || name === "clients") return true;
    return DRAWN.has(name) && (role ? role.is !== "none" : true);
  };
  const told = slots.filter((slot) => !isDrawn(slot));
  const rest = slots.filter(isDrawn);
  return [
    slotList(told, context),
    rest.length === 0
      ? null
      : element("details", { class: "all-slots", "data-key": `${context.key}-slots-${party}` }, element("summary", {}, told.length ? "other slots" : "as slots"), slotList(rest, context)),
  ];
}

function slotList(slots, context) {
  if (slots.length === 0) return null;
  return element(
    "dl",
    { class: "slots" },
    slots.map(({ slot, name, words }) => [element("dt", {}, name), element("dd", { class: mark(slot, context) }, words)]),
  );
}

function arrows(messages, parties) {
  if (messages.length === 0) return element("p", { class: "in-flight none quiet" }, "no message in flight");
  const column = (party) => parties.findIndex((one) => one.party === party);
  return element(
    "div",
    { class: "in-flight" },
    element("h4", {}, "in flight"),
    element(
      "ol",
      {},
      messages.map((one) => {
        const [from, to] = [column(one.from), column(one.to)];
        const [left, right] = [Math.min(from, to), Math.max(from, to)];
        return element(
          "li",
          { class: from <= to ? "rightwards" : "leftwards", style: { "--left": left, "--span": Math.max(1, right - left) } },
          element("span", { class: "message" }, element("b", {}, `${one.from} → ${one.to}`), ` ${one.words}`),
          element("span", { class: "arrow", "aria-hidden": "true" }),
        );
      }),
    ),
  );
}
