/** Start the page: its settings name the back end. */

import { chosenBackEnd } from "./back_ends/choice.js";
import { element } from "./dom.js";
import { ExplorerPage } from "./page.js";
import { recallTheme } from "./theme.js";

async function startPage() {
  recallTheme();
  const host = document.querySelector("#explorer");
  try {
    const settings = JSON.parse(document.querySelector("#back-end").textContent);
    const page = new ExplorerPage(host, await chosenBackEnd(settings), { starts: await knownStarts(settings) });
    await page.begin();
  } catch (error) {
    host.append(element("p", { class: "problem", role: "alert" }, `This page cannot start: ${error.message}`));
  }
}

/** Runs to begin with; a page of one file has none beside it. */
async function knownStarts({ kind, live, starts = "runs/index.json" }) {
  if (kind === "recorded" && !live) return [];
  const found = await fetch(starts);
  return found.ok ? (await found.json()).groups : [];
}

void startPage();
