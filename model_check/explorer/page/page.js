/** The page: its panes, what is drawn when, the keys, and the address in the URL. */

import { fetchedRecording } from "./back_ends/packed.js";
import { button, element, fill } from "./dom.js";
import { placeIn } from "./fragment.js";
import { keyList, listenToKeys } from "./keys.js";
import { drawBar } from "./panes/bar.js";
import { describedRules, drawComparison, drawTwoStates, twoDiagrams } from "./panes/comparison.js";
import { drawDiagram } from "./panes/diagram.js";
import { drawDownloads } from "./panes/downloads.js";
import { drawFind } from "./panes/find.js";
import { drawMoves, possibleMoves } from "./panes/moves.js";
import { drawProperties } from "./panes/properties.js";
import { drawStart, openFile } from "./panes/start.js";
import { drawState } from "./panes/state.js";
import { drawStep } from "./panes/step.js";
import { Session } from "./session.js";
import { nextTheme, presentTheme } from "./theme.js";
import { firstViolation } from "./violations.js";

export class ExplorerPage {
  /** @param {HTMLElement} host @param {import("./back_ends/server.js").BackEnd} backEnd @param {{starts?: any[]}} settings */
  constructor(host, backEnd, settings = {}) {
    this.host = host;
    this.session = new Session(backEnd);
    this.filter = { words: "" };
    this.chosen = { model: null, starts: settings.starts ?? null };
    this.shown = { start: false, compare: { shown: false }, downloads: { shown: false }, find: { shown: false } };
    this.opening = null;
    this.panes = panesIn(host);
    this.shortcuts = this._shortcuts();
    this.help = helpDialog(this.shortcuts);
    host.append(this.help);
    this.session.addEventListener("change", () => this.draw());
    this.session.addEventListener("busy", () => host.setAttribute("aria-busy", "true"));
  }

  /** Load the models, and open the run that the URL names. */
  async begin() {
    listenToKeys(document, this.shortcuts);
    addEventListener("popstate", () => this._openAddress());
    addEventListener("hashchange", () => this._openAddress());
    listenToFiles(this.host, this.session);
    await this.session.loadModels();
    await this._openAddress();
  }

  async _openAddress() {
    const { address } = this.session.backEnd;
    const hash = location.hash.length > 1 ? location.hash : address && this.session.view === null ? `#${address}` : "";
    if (hash !== "" && hash !== (this.opening ?? this.session.fragment())) {
      this.opening = hash; // another address may come before this one is shown
      await this._openFragment(hash);
      if (this.opening === hash) this.opening = null;
    }
    if (this.session.view === null && address) await this._showRecordAfterAll(address);
    if (this.session.view === null) this._showStart(true);
  }

  /** A run that no model has may be kept beside the index of runs. */
  async _openFragment(hash) {
    const { address, position } = placeIn(hash);
    const runs = (this.chosen.starts ?? []).flatMap((group) => group.runs);
    const kept = this.session.view?.whole === address ? undefined : runs.find((run) => run.kept && run.address === address);
    if (!kept) return this.session.openFragment(hash);
    try {
      await this.session.showRecording(await fetchedRecording(`runs/${kept.kept}`));
      if (position !== null) await this.session.jump(position);
    } catch (error) {
      this.session.refuse({ kind: "bad-trace", words: error.message });
    }
    return undefined;
  }

  /** A page that has a run shows it, also where a link leads to nothing: the note that says so stays. */
  async _showRecordAfterAll(address) {
    const { problem } = this.session;
    await this.session.openFragment(`#${address}`);
    if (problem !== null) this.session.refuse(problem);
  }

  // ---- drawing

  draw() {
    const { session, panes } = this;
    const { view } = session;
    if (view !== null && this.drawnView !== view) this._newView();
    this.host.setAttribute("aria-busy", String(session.busy));
    drawHead(panes.head, this);
    drawStatus(panes.status, session);
    if (this.shown.start) this._drawStartOnce();
    else fill(panes.start);
    panes.run.hidden = view === null || this.shown.start;
    panes.run.classList.toggle("two-sided", Boolean(session.beside?.there));
    drawBar(panes.bar, session, this._commands());
    drawFind(panes.find, session, this.shown.find);
    drawDownloads(panes.downloads, session, this.shown.downloads);
    drawComparison(panes.compare, session, this.shown.compare);
    drawMoves(panes.moves, session, this.filter);
    this._drawMiddle();
    drawProperties(panes.properties, session);
    drawStep(panes.step, session);
    this._rewriteAddress();
  }

  _newView() {
    this.drawnView = this.session.view;
    this.shown.start = false;
  }

  /** The form of the start keeps what was typed while other things change. */
  _drawStartOnce() {
    const drawn = [this.chosen.model, this.session.models, this.chosen.starts];
    if (this.panes.start.childElementCount > 0 && drawn.every((one, place) => one === this.startDrawn[place])) return;
    this.startDrawn = drawn;
    drawStart(this.panes.start, this.session, this.chosen);
  }

  _drawMiddle() {
    const { session, panes } = this;
    if (session.view === null) return;
    if (session.beside?.there) {
      drawTwoStates(panes.state, session);
      fill(panes.diagram, element("h2", {}, "Space-time diagrams"), twoDiagrams(session));
      return;
    }
    const changed = new Set(session.view.step?.changes.map((one) => one.slot));
    drawState(panes.state, session.view, { title: element("h2", {}, "State"), key: "here", changed });
    drawDiagram(panes.diagram, session);
  }

  _rewriteAddress() {
    const { session } = this;
    if (session.view === null || session.busy) return;
    const fragment = session.fragment();
    if (location.hash !== fragment) history.pushState(null, "", fragment);
    document.title = `${session.view.run.model}, state ${session.view.position}: Kafka's replication protocol`;
  }

  // ---- commands

  _showStart(shown = !this.shown.start) {
    this.shown.start = shown;
    this.draw();
    if (shown) this.panes.start.focus();
  }

  _toggle(name, key) {
    const control = this.shown[name];
    control.shown = !control.shown;
    this.draw();
    if (control.shown) this.panes[name].querySelector(`[data-key="${key}"]`)?.focus();
  }

  _commands() {
    const { shown, session } = this;
    const downloads = { run: () => this._toggle("downloads", "copy-link"), key: "d", pressed: shown.downloads.shown };
    const begin = { run: () => this._showStart(), key: "n", pressed: shown.start };
    if (session.isRecordOnly) return { ...(session.canBegin ? { "New run": begin } : {}), Downloads: downloads };
    return {
      "New run": begin,
      "Side by side": { run: () => this._toggle("compare", "beside-show"), key: "c", pressed: shown.compare.shown || session.beside !== null },
      Find: { run: () => this._toggle("find", "find-property"), key: "f", pressed: shown.find.shown },
      Downloads: downloads,
    };
  }

  _take(number) {
    const move = possibleMoves(this.session.view)[number - 1];
    if (move && !this.session.isRecordOnly) void this.session.step(move);
  }

  _shortcuts() {
    const { session } = this;
    const on = (run) => () => session.view !== null && void run();
    const live = (run) => on(() => !session.isRecordOnly && void run());
    return [
      { keys: ["ArrowLeft", "k"], words: "one step back", run: on(() => session.back()) },
      { keys: ["ArrowRight", "j"], words: "one step forward", run: on(() => session.forward()) },
      { keys: ["Home"], words: "to the initial state", run: on(() => session.jump(1)) },
      { keys: ["End"], words: "to the last state", run: on(() => session.jump(session.view.length)) },
      { keys: [..."123456789"], words: "take the action with this number", run: (event) => this._take(Number(event.key)) },
      { keys: ["u"], words: "undo the last step", run: on(() => session.undo()) },
      { keys: ["v"], words: "to the first violation", run: on(() => this._toViolation()) },
      { keys: ["/"], words: "filter the actions", run: on(() => this.panes.moves.querySelector('[data-key="filter"]')?.focus()) },
      { keys: ["n"], words: "a new run", run: () => session.canBegin && this._showStart() },
      { keys: ["c"], words: "other rules side by side", run: live(() => this._toggle("compare", "beside-show")) },
      { keys: ["f"], words: "find a run", run: live(() => this._toggle("find", "find-property")) },
      { keys: ["d"], words: "downloads", run: on(() => this._toggle("downloads", "copy-link")) },
      { keys: ["t"], words: "dark, light, or as the system says", run: () => this._theme() },
      { keys: ["Escape"], words: "stop a search, close what is open", run: () => this._close() },
      { keys: ["?"], words: "this list", run: () => this.showHelp() },
    ];
  }

  _toViolation() {
    const step = firstViolation(this.session.view);
    if (step !== null) void this.session.jump(step.number);
  }

  _theme() {
    nextTheme();
    this.draw();
  }

  showHelp() {
    if (!this.help.open) this.help.showModal();
  }

  _close() {
    if (this.help.open) return this.help.close();
    if (this.session.search !== null) return this.session.cancel();
    for (const name of ["compare", "find", "downloads"]) this.shown[name].shown = false;
    if (this.session.view !== null) this.shown.start = false;
    return this.draw();
  }
}

const PANES = [
  ["head", "header", "Page"],
  ["status", "div", null],
  ["start", "section", "Begin a run"],
];
const RUN_PANES = [
  ["bar", "nav", "Run"],
  ["find", "section", "Find a run"],
  ["downloads", "section", "Downloads"],
  ["compare", "section", "Side by side"],
  ["moves", "section", "Actions"],
  ["state", "section", "State"],
  ["diagram", "section", "Diagram"],
  ["properties", "section", "Properties"],
  ["step", "section", "Last step"],
];

function panesIn(host) {
  const made = (rows) => Object.fromEntries(rows.map(([name, tag, label]) => [name, element(tag, { class: `pane ${name}`, "aria-label": tag === "header" ? null : label, tabindex: "-1" })]));
  const panes = { ...made(PANES), ...made(RUN_PANES) };
  const { bar, find, downloads, compare, moves, state, diagram, properties, step } = panes;
  panes.run = element(
    "div",
    { class: "run", hidden: true },
    bar,
    element("div", { class: "wide" }, find, downloads, compare),
    element("div", { class: "left" }, moves),
    element("div", { class: "middle" }, state, diagram),
    element("div", { class: "right" }, properties, step),
  );
  host.append(panes.head, element("main", {}, panes.status, panes.start, panes.run));
  return panes;
}

function drawHead(pane, page) {
  const { view, beside } = page.session;
  const run = view === null ? null : titleOf(view.run);
  return fill(
    pane,
    element("h1", {}, view === null ? "Kafka's replication protocol, step by step" : run),
    view === null ? null : element("p", { class: "parameters-in-words" }, beside?.under ? `beside ${describedRules(beside.under, view.run)}; ` : null, view.run.words),
    element(
      "div",
      { class: "page-commands" },
      button("theme", { system: "◐ system", light: "○ light", dark: "● dark" }[presentTheme()], () => page._theme(), { title: "Dark, light, or as the system says (key t)", "aria-label": `Theme: ${presentTheme()}` }),
      view !== null && page.shown.start ? button("to-run", "Back to the run", () => page._showStart(false), { "aria-keyshortcuts": "Escape" }) : null,
      button("help", "Keys ?", () => page.showHelp(), { "aria-keyshortcuts": "?" }),
    ),
  );
}

function titleOf(run) {
  const rules = describedRules(run, null);
  return rules.startsWith(run.model) ? rules : `${run.model}, ${rules}`;
}

/** What is going on, and what went wrong. */
function drawStatus(pane, session) {
  const { problem, search, found } = session;
  return fill(
    pane,
    search === null ? null : element("div", { class: "searching", role: "status" }, searchInWords(search), " ", button("cancel", "Stop", () => session.cancel())),
    problem === null ? null : problemNote(session, problem),
    found === null ? null : element("div", { class: "found", role: "status" }, foundInWords(found), " ", button("dismiss-found", "Dismiss", () => session.dismiss(), { class: "link" })),
  );
}

function searchInWords({ words, states, level }) {
  return states === undefined ? `${words} …` : `${words}: ${states.toLocaleString("en")} states, ${level} steps deep …`;
}

function problemNote(session, problem) {
  return element("div", { class: `problem ${problem.kind}`, role: "alert" }, element("b", {}, problem.kind === "changed" ? "This link has changed. " : ""), problem.words, " ", button("dismiss", "Dismiss", () => session.dismiss(), { class: "link" }));
}

function foundInWords(answer) {
  const states = `${answer.states.toLocaleString("en")} states were seen`;
  if (answer.found) return `Found: ${answer.looked_for}, ${answer.steps.length} steps from the initial state; ${states}.`;
  if (answer.complete) return `There is none: ${answer.looked_for} was looked for in all ${answer.states.toLocaleString("en")} states.`;
  return `Not found: ${states}, and there are more${answer.stopped_because ? ` (${answer.stopped_because})` : ""}.`;
}

function helpDialog(shortcuts) {
  const dialog = element("dialog", { class: "help", "aria-labelledby": "help-title" });
  dialog.append(element("h2", { id: "help-title" }, "Keys"), keyList(shortcuts), button("close-help", "Close", () => dialog.close()));
  return dialog;
}

function listenToFiles(host, session) {
  host.addEventListener("dragover", (event) => {
    event.preventDefault();
    host.classList.add("dropping");
  });
  host.addEventListener("dragleave", () => host.classList.remove("dropping"));
  host.addEventListener("drop", (event) => {
    event.preventDefault();
    host.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    if (file) void openFile(session, file);
  });
}
