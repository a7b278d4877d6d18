/**
 * A run within another page: `<kspec-run src="runs/NAME.json">`. It steps the recorded run; where `worker.js` lies beside
 * this file, the first step that is not recorded goes live.
 *
 * `src`: a recorded run. `address`: the run, where there is no record. `at`: the state to begin with (1). `beside`: rules
 * for the second side, as a fragment has them. `live="off"`: there is no worker. What stands in the element is shown where
 * scripts do not run.
 */

import { fetchedRecording } from "./back_ends/packed.js";
import { recordedBackEnd } from "./back_ends/recorded.js";
import { workerBackEnd } from "./back_ends/worker.js";
import { button, element, fill } from "./dom.js";
import { drawBar } from "./panes/bar.js";
import { drawComparison, drawTwoStates, twoDiagrams } from "./panes/comparison.js";
import { drawDiagram } from "./panes/diagram.js";
import { drawMoves } from "./panes/moves.js";
import { drawProperties } from "./panes/properties.js";
import { drawState } from "./panes/state.js";
import { drawStep } from "./panes/step.js";
import { Session } from "./session.js";
import { violationsOf } from "./violations.js";

const STYLES = ["colours", "layout", "panes", "state", "diagram", "embed", "print"];

class EmbeddedRun extends HTMLElement {
  connectedCallback() {
    if (this.shadowRoot) return;
    this.attachShadow({ mode: "open" });
    this.filter = { words: "" };
    this.compare = { shown: false, folded: true };
    this.shown = { moves: false, more: false };
    followTheme(this);
    this.panes = panesOf(this.shadowRoot);
    // On paper nothing can be stepped, so the whole run is there as a diagram.
    addEventListener("beforeprint", () => this._onPaper(true));
    addEventListener("afterprint", () => this._onPaper(false));
    void this._begin();
  }

  async _begin() {
    try {
      this.session = new Session(await this._backEnd());
    } catch (error) {
      this.panes.status.append(element("p", { class: "problem", role: "alert" }, `This run cannot be shown: ${error.message}`));
      return;
    }
    this.session.addEventListener("change", () => this.draw());
    this.session.addEventListener("busy", () => this._drawStatus());
    const address = this.getAttribute("address") ?? (await this.session.backEnd.ask({ do: "view" })).address;
    const beside = this.getAttribute("beside");
    const at = this.getAttribute("at") ?? "1";
    await this.session.openFragment(`#${address}@${at}${beside ? `&beside=${beside}` : ""}`);
  }

  async _backEnd() {
    const behind = this.getAttribute("live") === "off" ? null : () => workerBackEnd({ worker: new URL("worker.js", import.meta.url).href });
    const source = this.getAttribute("src");
    if (source === null) {
      if (behind === null) throw new Error("it has neither a record nor a worker");
      return behind();
    }
    return recordedBackEnd(await fetchedRecording(source), behind);
  }

  draw() {
    const { session, panes } = this;
    if (session.view === null) return this._drawStatus();
    drawBar(panes.bar, session, this._commands());
    this._drawStatus();
    drawComparison(panes.compare, session, this.compare);
    this._drawState();
    panes.moves.hidden = !this.shown.moves;
    if (this.shown.moves) drawMoves(panes.moves, session, this.filter);
    const hasMore = this.shown.more || this.onPaper === true;
    panes.more.hidden = !hasMore;
    if (!hasMore) return undefined;
    drawProperties(panes.properties, session);
    drawStep(panes.step, session);
    if (session.beside?.there) return fill(panes.diagram, twoDiagrams(session));
    return drawDiagram(panes.diagram, session);
  }

  _onPaper(isPaper) {
    this.onPaper = isPaper;
    if (this.session) this.draw();
  }

  _drawState() {
    const { session, panes } = this;
    if (session.beside?.there) return drawTwoStates(panes.state, session);
    const changed = new Set(session.view.step?.changes.map((one) => one.slot));
    return drawState(panes.state, session.view, { title: null, key: "here", changed });
  }

  _drawStatus() {
    const { problem, busy, view } = this.session;
    fill(
      this.panes.status,
      problem === null ? null : element("div", { class: "problem", role: "alert" }, problem.words, " ", button("dismiss", "Dismiss", () => this.session.dismiss(), { class: "link" })),
      busy && this.shown.moves ? element("p", { class: "quiet" }, "…") : null,
      view === null ? null : lastStep(view),
    );
  }

  _commands() {
    const { shown, compare, session } = this;
    const more = { run: () => this._toggle("more"), pressed: shown.more };
    if (session.isRecordOnly) return { "Diagram, properties, rules": more };
    return {
      "Other steps": { run: () => this._toggle("moves"), pressed: shown.moves },
      "Other rules": { run: () => this._showRules(), pressed: compare.shown || session.beside !== null },
      "Diagram, properties, rules": more,
    };
  }

  _toggle(name) {
    this.shown[name] = !this.shown[name];
    this.draw();
  }

  async _showRules() {
    this.compare.shown = !this.compare.shown;
    if (this.compare.shown && this.session.models.length === 0) await this.session.loadModels();
    this.draw();
  }
}

/** The last step in a sentence, and what fails after it. */
function lastStep(view) {
  const { step } = view;
  if (step === null) return element("p", { class: "last-step", role: "status" }, "The initial state.");
  const [name, ...rest] = step.words.split("  ");
  const violated = violationsOf(view, step);
  const words = step.events.map((event) => (event.from ? `${event.from} to ${event.to}: ${event.words}` : `${event.at} ${event.words}`));
  return element(
    "p",
    { class: "last-step", role: "status" },
    element("b", {}, `${step.number}. ${name}`),
    ` ${rest.join(" ")}. ${words[0] ?? ""}`,
    violated.length > 0 ? element("span", { class: "violated" }, ` ✕ ${violated.join(", ")}`) : null,
  );
}

function panesOf(root) {
  const pane = (name, label) => element("section", { class: `pane ${name}`, "aria-label": label, tabindex: "-1" });
  const panes = {
    bar: pane("bar", "Run"),
    status: element("div", { class: "pane status" }),
    compare: pane("compare", "Side by side"),
    state: pane("state", "State"),
    moves: pane("moves", "Actions"),
    diagram: pane("diagram", "Diagram"),
    properties: pane("properties", "Properties"),
    step: pane("step", "Last step"),
  };
  panes.more = element("div", { class: "more", hidden: true }, panes.diagram, panes.properties, panes.step);
  const { bar, status, compare, state, moves, more } = panes;
  const styles = STYLES.map((name) => element("link", { rel: "stylesheet", href: new URL(`styles/${name}.css`, import.meta.url).href }));
  root.append(...styles, element("div", { class: "kspec embedded" }, bar, status, compare, state, moves, more));
  return panes;
}

/** The site's own choice of dark or light, where it stands in `data-theme`. */
function followTheme(host) {
  const follow = () => {
    const theme = document.documentElement.dataset.theme ?? document.body.dataset.theme;
    host.style.colorScheme = theme === "light" || theme === "dark" ? theme : "light dark";
  };
  follow();
  const changes = new MutationObserver(follow);
  for (const one of [document.documentElement, document.body]) changes.observe(one, { attributeFilter: ["data-theme"] });
}

customElements.define("kspec-run", EmbeddedRun);
