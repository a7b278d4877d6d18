/** The back end of the static site: the same Python in a web worker, loaded when a live step is first asked for. */

/**
 * @param {{worker?: string}} settings
 * @returns {import("./server.js").BackEnd}
 */
export function workerBackEnd({ worker = "worker.js" } = {}) {
  let started = null;
  let cancellable = false;
  let number = 0;
  const waiting = new Map();

  function start() {
    started = new Worker(new URL(worker, document.baseURI), { type: "module" });
    started.addEventListener("message", ({ data }) => heard(data));
    started.addEventListener("error", (event) => fail(event.message || "its script cannot be loaded"));
  }

  function heard(data) {
    if ("cancellable" in data) cancellable = data.cancellable;
    const one = waiting.get(data.id);
    if (!one) return;
    if (data.progress) hear(one, data.progress);
    if (!data.answer) return;
    waiting.delete(data.id);
    one.resolve(data.answer);
  }

  function hear(one, progress) {
    one.progress = progress;
    one.report?.(progress);
  }

  function fail(words) {
    end(() => ({ answer: "error", kind: "no-back-end", words: `the model cannot run in this browser: ${words}` }));
  }

  /** End the worker; the next message starts another one, which knows no run. */
  function end(answerTo) {
    const ended = [...waiting.values()];
    waiting.clear();
    started?.terminate();
    started = null;
    for (const one of ended) one.resolve(answerTo(one));
  }

  /** Some browsers let a worker hear nothing while it searches: then it is ended. */
  function cancel() {
    if (!started || waiting.size === 0) return;
    if (cancellable) started.postMessage({ cancel: true });
    else end(interrupted);
  }

  return {
    ask: (message, report) =>
      new Promise((resolve) => {
        if (isTooDeep(message, DEEPEST)) return resolve(TOO_DEEP);
        if (!started) start();
        waiting.set(++number, { resolve, report, message, progress: null });
        started.postMessage({ id: number, message });
      }),
    cancel,
  };
}

/** Levels of a message at most: one that is deeper never reaches a worker, and nothing says so. */
const DEEPEST = 100;
const TOO_DEEP = { answer: "error", kind: "bad-message", words: "the message is nested too deeply" };

function isTooDeep(value, left) {
  if (value === null || typeof value !== "object") return false;
  return left === 0 || Object.values(value).some((one) => isTooDeep(one, left - 1));
}

function interrupted({ message, progress }) {
  const { property, start = "initial" } = message;
  const told = { answer: "found", property, start, states: progress?.states ?? 0 };
  return { ...told, found: false, complete: false, stopped_because: "interrupted" };
}
