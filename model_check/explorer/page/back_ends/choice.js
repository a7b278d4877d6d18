/** The back end that a page's own settings name: `<script type="application/json" id="back-end">`. */

import { fetchedRecording } from "./packed.js";
import { recordedBackEnd } from "./recorded.js";
import { serverBackEnd } from "./server.js";
import { workerBackEnd } from "./worker.js";

const KINDS = { server: serverBackEnd, worker: workerBackEnd };

/**
 * `{"kind": "server"}`, `{"kind": "worker"}`, or `{"kind": "recorded", "recording": {…} | "runs/NAME.json", "live": {…}}`.
 * @param {Record<string, any>} settings
 * @returns {Promise<import("./server.js").BackEnd>}
 */
export async function chosenBackEnd(settings) {
  if (settings.kind !== "recorded") return madeBackEnd(settings);
  const { recording, live = null } = settings;
  const document_ = typeof recording === "string" ? await fetchedRecording(recording) : recording;
  return recordedBackEnd(document_, live && (() => madeBackEnd(live)));
}

function madeBackEnd(settings) {
  const made = KINDS[settings.kind];
  if (!made) throw new Error(`no back end ${JSON.stringify(settings.kind)}; choose from ${Object.keys(KINDS).join(", ")}`);
  return made(settings);
}
