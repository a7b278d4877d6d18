/**
 * The URL's fragment is the run: `#ADDRESS`, then `@N` for the state that is shown if it is not the last one, then
 * `&beside=RULES` for the second side. ADDRESS and RULES are as docs/explorer.md writes them.
 */

/**
 * @typedef {{address: string, position: number | null, beside: string | null}} Place
 */

/** @param {string} hash @returns {Place} */
export function placeIn(hash) {
  const [run, ...more] = hash.replace(/^#/, "").split("&");
  const beside = more.map((part) => part.split("=")).find(([name]) => name === "beside");
  const [address, position] = run.split("@");
  return {
    address: withoutEscapes(address),
    position: position && /^[1-9][0-9]*$/.test(position) ? Number(position) : null,
    beside: beside ? withoutEscapes(beside[1] ?? "") : null,
  };
}

/** Some programs escape `~` in links; no name of ours has one in it. */
function withoutEscapes(text) {
  return text.replace(/%7[Ee]/g, "~");
}

/** @param {Place} place @returns {string} */
export function fragmentOf({ address, position, beside }) {
  return `#${address}${position === null ? "" : `@${position}`}${beside === null ? "" : `&beside=${beside}`}`;
}

/**
 * Rules as the second side of a fragment: the start of an address.
 * @param {string} model @param {Record<string, string | string[] | number | boolean | null>} parameters
 */
export function rulesText(model, parameters) {
  const written = Object.entries(parameters).map(([name, value]) => `~${name}.${parameterText(value)}`);
  return model + written.join("");
}

function parameterText(value) {
  if (value === true) return "on";
  if (value === false) return "off";
  if (value === null) return "";
  return Array.isArray(value) ? value.join("_") : String(value).replaceAll(",", "_");
}
