/** The back end of `kspec explore`: an explorer behind HTTP, one for each tab. */

/**
 * @typedef {Record<string, any>} Message
 * @typedef {Record<string, any>} Answer
 * @typedef {{ask: (message: Message, report?: (progress: Answer) => void) => Promise<Answer>, cancel: () => void}} BackEnd
 */

const EVERY = 250;

/** @returns {BackEnd} */
export function serverBackEnd() {
  const session = newSession();
  const post = (what, body) =>
    fetch(`${what}?session=${session}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  async function ask(message, report) {
    const watching = report ? setInterval(() => watch(report), EVERY) : null;
    try {
      return await answerIn(await post("message", message));
    } catch (error) {
      return { answer: "error", kind: "no-back-end", words: `the server does not answer: ${error.message}` };
    } finally {
      if (watching !== null) clearInterval(watching);
    }
  }

  async function watch(report) {
    const answer = await fetch(`progress?session=${session}`);
    if (answer.ok) report(await answer.json());
  }

  return { ask, cancel: () => void post("cancel", {}) };
}

async function answerIn(response) {
  if (response.headers.get("content-type")?.startsWith("application/json")) return response.json();
  const words = `the server answers ${response.status}: ${(await response.text()).slice(0, 200)}`;
  return { answer: "error", kind: "no-back-end", words };
}

function newSession() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
