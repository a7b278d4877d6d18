// A runner in JavaScript, written from docs/conformance-format.md alone. It restarts no broker, and has the newest versions only.
//
//   node runner.mjs DIR HOST:PORT [NAME]      DIR is what `kspec conformance generate --out DIR` wrote
//
// It prints a line for each case. Exit status: 0 nothing fails, 1 something does, 2 bad usage, 3 the broker no longer answers.
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

const [folder, address, wanted = ""] = process.argv.slice(2);
const [, host, port] = /^(.+):(\d+)$/.exec(address ?? "") ?? [];
if (!folder || !host) end(2, "usage: node runner.mjs DIR HOST:PORT [NAME]");
const index = JSON.parse(readFileSync(join(folder, "index.json"), "utf8"));
if (index.format !== 6) end(2, `the cases have format ${index.format}, and this runner knows 6`);
const { timing, layouts, probe } = index;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const SLOW = "it does not answer in time";

function end(status, why) {
  console.error(why);
  process.exit(status);
}

class Wrong extends Error {}
class NotSupported extends Error {}
class NotApplicable extends Error {}

// ---- requests: parts

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0x82f63b78 : byte >>> 1;
  return byte >>> 0;
});

function crc32c(data) {
  let sum = 0xffffffff;
  for (const byte of data) sum = CRC[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

function number(size, value) {
  const data = Buffer.alloc(8);
  data.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)));
  return data.subarray(8 - size);
}

function varint(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}

/** A value of a case: bytes and numbers as texts, so that they can be compared; the rest as it is. */
function valueOf(given, known) {
  if (given === null || typeof given !== "object") return typeof given === "number" ? BigInt(given) : given;
  if ("hex" in given) return Buffer.from(given.hex, "hex");
  if (!(given.hole in known)) {
    const why = `no answer has told ${given.hole}`;
    throw given.hole === "older_epoch" && "epoch_0" in known ? new NotApplicable(why) : new NotSupported(why);
  }
  return "plus" in given ? known[given.hole] + BigInt(given.plus) : known[given.hole];
}

function render(parts, known) {
  return Buffer.concat(parts.map((part) => {
    if (typeof part === "string") return Buffer.from(part, "hex");
    if ("crc32c" in part) {
      const inside = render(part.crc32c, known);
      return Buffer.concat([number(4, crc32c(inside)), inside]);
    }
    const value = valueOf(part, known);
    const text = () => Buffer.from(value, "utf8");
    switch (part.as) {
      case "int16": return number(2, value);
      case "int32": return number(4, value);
      case "int64": return number(8, value);
      case "uuid": return value;
      case "string": return Buffer.concat([number(2, text().length), text()]);
      case "compact_string": return Buffer.concat([varint(text().length + 1), text()]);
    }
  }));
}

// ---- answers: layouts

class Reader {
  constructor(data) { this.data = data; this.at = 0; }

  take(size) {
    if (size < 0 || this.at + size > this.data.length) throw new Wrong(`${size} bytes are wanted at ${this.at} of ${this.data.length}`);
    return this.data.subarray(this.at, (this.at += size));
  }

  int(size, signed = true) {
    const value = BigInt(`0x${this.take(size).toString("hex")}`);
    return signed ? BigInt.asIntN(8 * size, value) : value;
  }

  uvarint() {
    for (let value = 0, factor = 1; factor < 2 ** 35; factor *= 128) {
      const byte = this.take(1)[0];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw new Wrong("a variable length number does not end");
  }

  varint() {
    const value = this.uvarint();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }

  size(kind) {
    if (kind.startsWith("compact_")) return this.uvarint() - 1;
    return Number(this.int(kind === "string" ? 2 : 4));
  }

  fields(layout) {
    const found = {};
    for (const field of layout) {
      if (field.type !== "tags") found[field.name] = this.field(field);
      else this.tags(field.tagged, found);
    }
    return found;
  }

  tags(tagged, found) {
    for (let count = this.uvarint(); count > 0; count--) {
      const tag = this.uvarint();
      const inside = new Reader(this.take(this.uvarint()));
      if (tag in tagged) found[tagged[tag].name] = inside.field(tagged[tag]);
    }
  }

  field(field) {
    const kind = field.type;
    const sized = /^(u?)int(8|16|32|64)$/.exec(kind);
    if (sized) return this.int(sized[2] / 8, !sized[1]);
    if (kind === "bool") return this.take(1)[0] !== 0;
    if (kind === "float64") return this.take(8).readDoubleBE();
    if (kind === "uuid") return this.take(16);
    if (kind === "struct") return field.nullable && this.int(1) < 0n ? null : this.fields(field.fields);
    const size = this.size(kind);
    if (size < 0) {
      if (!field.nullable) throw new Wrong(`${field.name} is null`);
      return null;
    }
    if (kind.endsWith("string")) return this.take(size).toString("utf8");
    if (kind.endsWith("bytes")) return this.take(size);
    if (size > this.data.length) throw new Wrong(`an array of ${size}`);
    return Array.from({ length: size }, () => this.field(field.of));
  }
}

// ---- constraints

const UNTOLD = Symbol("a tagged field that is missing");

function at(answer, path, known) {
  for (const [, inside, name] of path.matchAll(/\[([^\]]*)\]|([a-z_0-9]+)/g)) {
    if (answer === null || answer === undefined || answer === UNTOLD) return answer ?? undefined;
    if (!name) answer = ofList(answer, inside, known);
    else answer = name in answer ? answer[name] : UNTOLD;
  }
  return answer;
}

function ofList(entries, inside, known) {
  if (!inside.includes("=")) return inside === "#" ? BigInt(entries.length) : entries[inside];
  const [field, value] = inside.replace("#", "").split("=");
  const text = () => (value.startsWith("'") ? value.slice(1, -1) : BigInt(value));
  const wanted = value.startsWith("@") ? valueOf({ hole: value.slice(1) }, known) : text();
  const having = entries.filter((one) => same(one[field], wanted));
  return inside.startsWith("#") ? BigInt(having.length) : having[0];
}

const isIn = (versions, version) => versions[0] <= version && version <= versions[1];
const same = (one, other) => (Buffer.isBuffer(one) && Buffer.isBuffer(other) ? one.equals(other) : one === other);
const shown = (value) => (Buffer.isBuffer(value) ? value.toString("hex") : String(value));

/** What is wrong with a field, and what of it is free. */
function judged(one, answer, known) {
  const found = at(answer, one.path, known);
  const values = (list) => list.map((given) => valueOf(given, known));
  const wrong = (what) => ({ wrong: `${one.path}: ${shown(found)}, ${what}` });
  if (found === UNTOLD && one.one_of?.length === 1 && one.one_of[0] === -1) return {}; // it has its default
  if (found === undefined || found === UNTOLD) return wrong("which is missing");
  if (one.one_of) {
    if (values(one.one_of).some((value) => same(value, found))) return {};
    const free = one.free;
    const isFree = free && (free.one_of ? values(free.one_of).includes(found) : !values(free.none_of).includes(found));
    return isFree ? { free: `${one.path}: ${shown(found)}: ${free.why}` } : wrong(`not one of ${values(one.one_of).map(shown)}`);
  }
  if (one.none_of) return values(one.none_of).some((value) => same(value, found)) ? wrong("as before") : {};
  if (one.not_empty) {
    const isEmpty = found === null || found.length === 0 || found === 0n || found === -1n || (Buffer.isBuffer(found) && found.every((byte) => byte === 0));
    return isEmpty ? wrong("nothing of its own") : {};
  }
  if ("at_least" in one) return typeof found === "bigint" && found >= valueOf(one.at_least, known) ? {} : wrong(`not at least ${one.at_least}`);
  const what = recordsWrong(one.records, found ?? Buffer.alloc(0), values);
  return what ? wrong(what) : {};
}

function recordsWrong(wanted, data, values) {
  const found = { offsets: [], leader_epochs: [], values: [], times: [], keys: [] };
  const first = wanted.offsets[0] ?? 0;
  const isWanted = (offset) => wanted.offsets.includes(offset);
  while (data.length > 0) {
    const size = data.length < 61 ? 0 : 12 + data.readInt32BE(8);
    if (size < 61 || size > data.length || data[16] !== 2) return "where a batch should be";
    const base = Number(data.readBigInt64BE(0)), attributes = data.readInt16BE(21), firstTime = data.readBigInt64BE(27);
    for (let offset = Math.max(base, first); offset <= base + data.readInt32BE(23) && found.offsets.length < 1000; offset++) {
      found.offsets.push(offset);
      found.leader_epochs.push(BigInt(data.readInt32BE(12)));
    }
    if (wanted.values || wanted.times || wanted.keys) {
      if (attributes & 7) return "compressed";
      const records = new Reader(data.subarray(61, size));
      for (let count = data.readInt32BE(57); count > 0; count--) {
        const record = new Reader(records.take(records.varint()));
        record.take(1);
        const time = firstTime + BigInt(record.varint()), offset = base + record.varint();
        const key = record.take(Math.max(record.varint(), 0));
        const value = record.take(Math.max(record.varint(), 0));
        if (!isWanted(offset)) continue;
        found.values.push(value);
        found.keys.push(key);
        found.times.push(attributes & 8 ? data.readBigInt64BE(35) : time);
      }
    }
    data = data.subarray(size);
  }
  if (String(found.offsets) !== String(wanted.offsets)) return `at ${found.offsets}, not at ${wanted.offsets}`;
  for (const name of ["leader_epochs", "values", "times", "keys"]) {
    const expected = name in wanted && values(wanted[name]);
    if (expected && !(expected.length === found[name].length && expected.every((one, place) => one === null || same(one, found[name][place])))) {
      return `${name} ${found[name].map(shown)}, not ${expected.map(shown)}`;
    }
  }
}

// ---- connections

class Connection {
  constructor() {
    this.correlation = 0n;
    this.data = Buffer.alloc(0);
    this.socket = connect({ host, port: Number(port) });
    this.socket.on("data", (more) => { this.data = Buffer.concat([this.data, more]); this.woken?.(); });
    for (const event of ["error", "close"]) this.socket.on(event, () => { this.closed = true; this.woken?.(); });
  }

  /** Wait until something holds: whether it did within the time. */
  async until(holds, ms) {
    const last = Date.now() + ms;
    while (!holds()) {
      const left = last - Date.now();
      if (left <= 0) return false;
      await Promise.race([pause(left), new Promise((done) => { this.woken = done; })]);
    }
    return true;
  }

  async receive(correlation, ms) {
    const isWhole = () => this.data.length >= 4 && this.data.length >= 4 + this.data.readInt32BE(0);
    if (!(await this.until(() => isWhole() || this.closed, ms))) throw new Wrong(SLOW);
    if (!isWhole()) throw new Wrong("it has closed the connection");
    const size = this.data.readInt32BE(0), frame = this.data.subarray(4, 4 + size);
    this.data = this.data.subarray(4 + size);
    if (size < 4 || BigInt(frame.readInt32BE(0)) !== correlation) throw new Wrong("it answers another request");
    return frame;
  }

  async ask(step, version, known) {
    this.correlation += 1n;
    const body = render(step.bytes[version], { ...known, correlation_id: this.correlation });
    this.socket.write(step.raw ? body : Buffer.concat([number(4, body.length), body]));
    return this.correlation;
  }
}

async function offeredBy(connection) {
  const [version] = probe.versions;
  const frame = await connection.receive(await connection.ask(probe, version, {}), timing.step_ms);
  const answer = new Reader(frame).fields(layouts[probe.api][version]);
  return new Map(answer.api_keys.map((one) => [Number(one.api_key), [Number(one.min_version), Number(one.max_version)]]));
}

async function askWhatIsOffered() {
  const connection = new Connection();
  try {
    return await offeredBy(connection);
  } finally {
    connection.socket.destroy();
  }
}

// ---- cases

const offered = await askWhatIsOffered().catch((error) => end(3, `${address} is no broker that can be tested: ${error.message}`));

function versionOf(step) {
  if (step.raw) return step.versions[0];
  const [first, last] = offered.get(step.key) ?? [0, -1];
  const version = Math.min(last, step.versions[1]);
  return version < Math.max(first, step.versions[0]) ? undefined : version;
}

async function run(one, known) {
  const connections = new Map(), waiting = new Map(), free = [];
  const steps = [];
  for (let step of one.steps) {
    if (step.restart) throw new NotApplicable("this runner restarts no broker");
    if (versionOf(step) === undefined && step.otherwise) step = step.otherwise;
    if (versionOf(step) !== undefined) steps.push(step);
    else if (!step.optional) throw new NotSupported(`${step.api} ${step.versions} is not offered`);
  }
  const look = (api, version, frame, expect, keep) => {
    const answer = new Reader(frame).fields(layouts[api][version]);
    const found = expect.filter((one) => isIn(one.versions, version)).map((one) => judged(one, answer, known));
    const wrong = found.filter((one) => one.wrong).map((one) => one.wrong);
    if (wrong.length) return { wrong: wrong.join("; "), answer };
    free.push(...found.filter((one) => one.free).map((one) => one.free));
    for (const [name, where] of Object.entries(keep ?? {})) {
      if (!isIn(where.versions, version)) continue;
      known[name] = at(answer, where.path, known);
      if (known[name] === undefined || known[name] === UNTOLD) return { wrong: `${where.path} is missing`, answer };
    }
    if (known.epoch_0 > 0n) known.older_epoch = known.epoch_0 - 1n;
    return {};
  };
  const takeAwaited = async (step, own) => { // those of the same client come before the step's own answer
    for (const awaited of (step.awaited ?? []).filter((one) => (one.client === step.client) === own)) {
      const { version, correlation } = waiting.get(awaited.client);
      waiting.delete(awaited.client);
      const frame = await connections.get(awaited.client).receive(correlation, timing.step_ms);
      const { wrong } = look(awaited.api, version, frame, awaited.expect, awaited.keep);
      if (wrong) throw new Wrong(wrong);
    }
  };
  const once = async (step) => {
    const version = versionOf(step);
    if (!connections.has(step.client)) connections.set(step.client, new Connection());
    const connection = connections.get(step.client);
    const sent = Date.now();
    const correlation = await connection.ask(step, version, known);
    await takeAwaited(step, true);
    const forget = () => { connection.socket.destroy(); connections.delete(step.client); };
    if (step.ending === "silent") return void (await offeredBy(connection));
    if (step.ending === "later") {
      waiting.set(step.client, { step, version, correlation });
      return void (await pause(timing.later_pause_ms));
    }
    if (step.ending === "closed") {
      const isOver = await connection.until(() => connection.closed || connection.data.length, timing.step_ms);
      if (connection.data.length) throw new Wrong("it answers, and does not close the connection");
      if (!isOver && !step.free) throw new Wrong("it does not close the connection");
      if (!isOver) free.push(`it does not close the connection: ${step.free.why}`);
      if (!isOver && step.free.ending === "silent") return void (await offeredBy(connection));
      return void forget();
    }
    const frame = await connection.receive(correlation, timing.step_ms);
    if (Date.now() - sent < (step.not_before_ms ?? 0)) throw new Wrong(`it answers after ${Date.now() - sent} ms`);
    const { wrong, answer } = look(step.api, version, frame, step.expect, step.keep);
    if (!wrong) return;
    const codes = step.expect.filter((one) => one.path.endsWith("error_code")).map((one) => at(answer, one.path, known)).filter((code) => code !== UNTOLD);
    return { wrong, again: codes.some((code) => code !== undefined && step.retry?.includes(Number(code))) };
  };
  try {
    for (const step of steps) {
      await pause(step.pause_ms ?? 0);
      const last = Date.now() + timing.step_ms;
      let found;
      while ((found = await once(step))?.again && Date.now() < last) await pause(timing.retry_pause_ms);
      if (found) throw new Wrong(found.wrong);
      await takeAwaited(step, false);
    }
    for (const [client, { step, correlation }] of waiting) {
      const error = await connections.get(client).receive(correlation, timing.quiet_ms).catch((error) => error);
      if (error.message !== SLOW) throw new Wrong(`${step.api} of client ${client} does not wait`);
    }
    return free;
  } finally {
    for (const { socket } of connections.values()) socket.destroy();
  }
}

const runName = Math.random().toString(16).slice(2, 8);
const namesOf = (place) => ({
  topic: `kspec-${runName}-${place}`,
  topic_dotted: `kspec.${runName}.${place}`,
  topic_underscored: `kspec_${runName}_${place}`,
  group: `kspec-${runName}-${place}`,
  now: BigInt(Date.now()),
});

async function verdictOf(one, known) {
  try {
    const free = await run(one, known);
    return free.length ? ["unlike Kafka", free.join("; ")] : ["pass", ""];
  } catch (error) {
    if (error instanceof NotSupported) return ["not supported", error.message];
    if (error instanceof NotApplicable) return ["not applicable", error.message];
    return ["fail", error.message];
  }
}

const exact = index.cases.filter((one) => one.name === wanted);
const chosen = exact.length ? exact : index.cases.filter((one) => one.name.startsWith(wanted));
if (!chosen.length) end(2, `there is no case ${wanted}`);
let failures = 0;
for (const [place, entry] of chosen.entries()) {
  const one = JSON.parse(readFileSync(join(folder, entry.file), "utf8"));
  const known = namesOf(place);
  let [verdict, reason] = await verdictOf(one, known);
  const mayHaveEnded = verdict === "fail" || one.steps.some((step) => step.ending === "closed");
  if (mayHaveEnded && !(await askWhatIsOffered().catch(() => undefined))) verdict = "stops answering";
  console.log([verdict, entry.name, reason].join("\t"));
  if (verdict === "stops answering") end(3, `${address} no longer answers after case ${entry.name}`);
  if (verdict === "fail") failures++;
  await run({ steps: versionOf(index.clean_up) === undefined ? [] : [index.clean_up] }, known).catch(() => undefined);
}
process.exit(failures ? 1 : 0);
