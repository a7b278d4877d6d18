/**
 * A web worker in which the explorer runs: Python itself (Pyodide) and this project's rules, as they are. It has what lies
 * beside it: `pyodide/` and `rooms.zip`.
 *
 * It is sent `{id, message}`, and sends `{id, answer}`; while it loads or searches, `{id, progress}`. `{cancel: true}` stops a
 * search. `{cancellable}` says after loading whether this browser lets it hear of that in the middle of one: if not, whoever
 * started the worker ends it.
 */

const PROGRAM = "pyodide/pyodide.asm.wasm";
const FILES = { python: "pyodide/pyodide.mjs", program: `${PROGRAM}.packed`, rooms: "rooms.zip" };

const EXPLORER = `
import json
from kspec.model_check.explorer import Explorer
from kspec.model_check.explorer.errors import in_short
from pyodide.ffi import can_run_sync, run_sync

def cancelled():
    if can_run_sync():
        run_sync(pause())
    return is_cancelled()

explorer = Explorer(cancelled=cancelled, report=lambda told: report(json.dumps(told)))

def answer(text):
    try:
        return json.dumps(explorer.answer(json.loads(text)))
    except Exception as error:
        words = in_short(f"an error that nobody expected: {type(error).__name__}: {error}")
        return json.dumps({"answer": "error", "kind": "internal", "words": words})

answer
`;

let isCancelled = false;
let present = null;
let loaded = null;
let queue = Promise.resolve();

self.addEventListener("message", ({ data }) => {
  if (data.cancel) isCancelled = true;
  else queue = queue.then(() => reply(data));
});

async function reply({ id, message }) {
  present = id;
  isCancelled = false;
  try {
    loaded ??= load();
    const answer = await loaded;
    self.postMessage({ id, answer: JSON.parse(await answer(JSON.stringify(message))) });
  } catch (error) {
    loaded = null;
    const words = `the model cannot run in this browser: ${lastLine(error)}`;
    self.postMessage({ id, answer: { answer: "error", kind: "no-back-end", words } });
  }
}

/** Load Python and the rooms, at the same time, and make an explorer. */
async function load() {
  tell({ answer: "progress", level: 0, states: 0, doing: "loading Python and the rules" });
  const [python, rooms] = await Promise.all([loadPython(), fetchFile(FILES.rooms)]);
  python.unpackArchive(rooms, "zip");
  const globals = python.globals.get("dict")();
  globals.set("is_cancelled", () => isCancelled);
  globals.set("pause", () => new Promise((resolve) => setTimeout(resolve)));
  globals.set("report", (text) => tell(JSON.parse(text)));
  const answer = python.runPython(EXPLORER, { globals });
  const canPause = Boolean(answer.callPromising && globalThis.WebAssembly?.Suspending);
  self.postMessage({ cancellable: canPause });
  return canPause ? (text) => answer.callPromising(text) : answer;
}

async function loadPython() {
  const [{ loadPyodide }, program] = await Promise.all([import(`./${FILES.python}`), unpacked(FILES.program)]);
  const fetchAsIs = self.fetch.bind(self);
  self.fetch = (asked, ...options) =>
    String(asked?.url ?? asked).endsWith(PROGRAM) ? Promise.resolve(program) : fetchAsIs(asked, ...options);
  try {
    return await loadPyodide();
  } finally {
    self.fetch = fetchAsIs;
  }
}

/** Python's program, a third as large while it lies packed. It is whole before Pyodide asks: that never ends if it is not. */
async function unpacked(name) {
  const stream = new Blob([await fetchFile(name)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(await new Response(stream).arrayBuffer(), { headers: { "Content-Type": "application/wasm" } });
}

async function fetchFile(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: the server answers ${response.status}`);
  return response.arrayBuffer();
}

function tell(progress) {
  self.postMessage({ id: present, progress });
}

/** The line that says what was wrong: Python's errors have it last. */
function lastLine(error) {
  return String(error?.message ?? error).trim().split("\n").at(-1);
}
