/** The keys of the page, and the list of them. */

import { element } from "./dom.js";

/**
 * @typedef {{keys: string[], words: string, run: (event: KeyboardEvent) => void}} Shortcut
 */

/** @param {HTMLElement | Document} place @param {Shortcut[]} shortcuts */
export function listenToKeys(place, shortcuts) {
  const known = new Map(shortcuts.flatMap((one) => one.keys.map((key) => [key, one])));
  place.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key !== "Escape" && isTyping(event)) return;
    const found = known.get(event.key);
    if (!found) return;
    event.preventDefault();
    found.run(event);
  });
}

/** Keys that a field, or a region that scrolls, needs itself. */
function isTyping(event) {
  const [target] = event.composedPath();
  if (target.closest?.("input, select, textarea")) return true;
  return event.key.startsWith("Arrow") && Boolean(target.closest?.("[role=region][tabindex]"));
}

const NAMES = { ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

/** @param {Shortcut[]} shortcuts */
export function keyList(shortcuts) {
  return element(
    "dl",
    { class: "keys" },
    shortcuts.map(({ keys, words }) => [element("dt", {}, keys.map((key) => element("kbd", {}, NAMES[key] ?? key))), element("dd", {}, words)]),
  );
}
