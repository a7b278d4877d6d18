/** Recordings as a site keeps them: compressed. One that is plain JSON is read, too. */

/**
 * @param {string} url
 * @returns {Promise<any>} the recording
 */
export async function fetchedRecording(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: the server answers ${response.status}`);
  const bytes = await response.arrayBuffer();
  return JSON.parse(await textOf(bytes));
}

/** The text of a file. It is compressed if it begins as such files do; some servers and browsers have undone that already. */
async function textOf(bytes) {
  const start = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if (start[0] !== 0x1f || start[1] !== 0x8b) return new TextDecoder().decode(bytes);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
