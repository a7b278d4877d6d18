/** Elements of the page and of its drawings, made by functions: no markup is ever made of text. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. A key `onclick` is a listener, `data-…` and `aria-…` are attributes; `null` and `false`
 * leave one out; `style` has properties by name, since pages may forbid styles that are texts.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  return furnished(document.createElement(tag), attributes, children);
}

/**
 * An element of an SVG drawing.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {SVGElement}
 */
export function shape(tag, attributes = {}, ...children) {
  return furnished(document.createElementNS(SVG, tag), attributes, children);
}

function furnished(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") for (const [property, one] of Object.entries(value)) made.style.setProperty(property, String(one));
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A button; its `key` finds it again after the pane was drawn anew, so that it keeps the focus. */
export function button(key, words, onclick, attributes = {}) {
  return element("button", { type: "button", "data-key": key, onclick, ...attributes }, words);
}

/**
 * How far regions are scrolled, as they told. To ask them while panes are filled would have the browser lay out all of the page
 * once for each of them.
 * @type {WeakMap<Element, number>}
 */
const lefts = new WeakMap();

function watchScrolling(region) {
  region.addEventListener("scroll", () => lefts.set(region, region.scrollLeft), { passive: true });
}

/** Fill a pane anew. What had the focus, what was open and how far it was scrolled stay as they were. */
export function fill(pane, ...children) {
  const root = pane.getRootNode();
  const focused = pane.contains(root.activeElement) ? root.activeElement.dataset.key : undefined;
  const open = new Set([...pane.querySelectorAll("details[open][data-key]")].map((one) => one.dataset.key));
  const scrolled = new Map([...pane.querySelectorAll("[data-scrolled]")].map((one) => [one.dataset.scrolled, lefts.get(one)]));
  pane.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const one of pane.querySelectorAll("details[data-key]")) if (open.has(one.dataset.key)) one.open = true;
  for (const region of pane.querySelectorAll("[data-scrolled]")) {
    watchScrolling(region);
    const left = scrolled.get(region.dataset.scrolled);
    if (left) region.scrollLeft = left;
  }
  if (focused !== undefined) focusOn(pane, focused);
}

function focusOn(pane, key) {
  const again = pane.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (again && !again.disabled) again.focus({ preventScroll: true });
  else pane.focus({ preventScroll: true });
}

/** `1 step`, `2 steps`. */
export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** A long name in one word may be broken before its capital letters, before its number, and after `_`. */
export function breakable(name) {
  return name.split(/(?=[A-Z][a-z])|(?=\[)|(?<=_)/).flatMap((part, place) => (place === 0 ? [part] : [document.createElement("wbr"), part]));
}
