/** The run that a page shows: what it last heard of its back end, and everything that one can do with it. */

import { checkedRecording, isRecording, recordedBackEnd } from "./back_ends/recorded.js";
import { fragmentOf, placeIn } from "./fragment.js";

/**
 * @typedef {import("./back_ends/server.js").Message} Message
 * @typedef {import("./back_ends/server.js").Answer} Answer
 */

const SEARCHED_STATES = 20_000;

export class Session extends EventTarget {
  /** @param {import("./back_ends/server.js").BackEnd} backEnd */
  constructor(backEnd) {
    super();
    this.backEnd = backEnd;
    /** @type {Answer | null} the view of the present state */
    this.view = null;
    /** @type {Answer[]} */
    this.models = [];
    /** @type {string | null} the rules of the second side, as the fragment has them */
    this.besideRules = null;
    /** @type {Answer | null} the run under the rules of the second side */
    this.beside = null;
    /** @type {Answer | null} the last error; the next answer takes it away */
    this.problem = null;
    /** @type {{words: string, states?: number, level?: number} | null} a search that goes on */
    this.search = null;
    /** @type {Answer | null} how the last search ended */
    this.found = null;
    this.busy = false;
    this._pending = 0;
    this._queue = Promise.resolve();
  }

  /** Whether there is a recorded run and nothing else: no other step can be taken, and nothing can be searched. */
  get isRecordOnly() {
    return this.backEnd.isRecordOnly?.() === true;
  }

  /** Whether other runs can be opened. */
  get canBegin() {
    return !this.isRecordOnly || this.backEnd.hasMore === true;
  }

  /** Show a recording; behind it stays what there was, for other runs. */
  showRecording(document_) {
    return this._inTurn(async () => {
      const behind = this.backEnd;
      const recording = recordedBackEnd(document_, () => behind);
      const view = await recording.ask({ do: "view" });
      this.backEnd = recording;
      this.besideRules = this.beside = this.found = this.problem = null;
      this.view = view;
    });
  }

  /** Open a document: a recording, or a trace that the back end makes a run of. */
  async openDocument(document_) {
    if (isRecording(document_)) return this.showRecording(checkedRecording(document_));
    if (document_?.cases === undefined) return this.go({ do: "import", trace: document_ });
    const answer = await this.ask({ do: "import", trace: document_ });
    return answer.answer === "recording" ? this.showRecording(answer.recording) : this.refuse(answer);
  }

  /** Everything that is asked waits for its turn. */
  _inTurn(work) {
    this._pending += 1;
    this._queue = this._queue.then(async () => {
      this.busy = true;
      this.dispatchEvent(new Event("busy"));
      try {
        await work();
      } catch (error) {
        this.problem = { kind: "page", words: String(error?.message ?? error) };
      }
      this._pending -= 1;
      this.busy = this._pending > 0;
      this._changed();
    });
    return this._queue;
  }

  _changed() {
    this.dispatchEvent(new Event("change"));
  }

  /** An answer that is not a view: the list of models, a move that is explained, a file. */
  async ask(message, report) {
    const answer = await this.backEnd.ask(message, report);
    if (answer.answer === "error" && answer.kind === "no-run" && this.view) {
      const again = await this.backEnd.ask({ do: "open", address: this.view.whole });
      if (again.answer !== "error") {
        await this.backEnd.ask({ do: "jump", to: this.view.position });
        return this.backEnd.ask(message, report);
      }
    }
    return answer;
  }

  async loadModels() {
    await this._inTurn(async () => {
      const answer = await this.ask({ do: "models" });
      if (answer?.answer === "models") this.models = answer.models;
      else this.problem = answer;
    });
  }

  /** Send a message whose answer is a view, and show that. */
  go(message) {
    return this._inTurn(() => this._go(message));
  }

  async _go(message) {
    const answer = await this.ask(message);
    if (answer.answer === "error") {
      this.problem = answer;
      return false;
    }
    this.problem = null;
    this.view = answer;
    if (answer.changed) this.problem = { kind: "changed", words: answer.changed.words, more: answer.changed };
    await this._takeBeside();
    return true;
  }

  async _takeBeside() {
    this.beside = this.besideRules === null ? null : await this.ask({ do: "retrace", address: this.besideRules });
  }

  start(model, parameters) {
    this.besideRules = null;
    this.found = null;
    return this.go({ do: "start", model, parameters });
  }

  step(move, choice = 1) {
    const message = { do: "step", action: move.action, args: move.args };
    return this.go(choice === 1 ? message : { ...message, choice });
  }

  jump(to) {
    const there = Math.min(Math.max(to, 1), this.view.length);
    return there === this.view.position ? this._queue : this.go({ do: "jump", to: there });
  }

  back() {
    return this.jump(this.view.position - 1);
  }

  forward() {
    return this.jump(this.view.position + 1);
  }

  undo() {
    return this.view.position === 1 ? this._queue : this.go({ do: "undo" });
  }

  /** Put other rules beside the run, or take them away with `null`. */
  compare(rules) {
    return this._inTurn(async () => {
      this.besideRules = rules;
      this.problem = null;
      await this._takeBeside();
      if (this.beside?.answer === "error") {
        this.problem = this.beside;
        this.besideRules = this.beside = null;
      }
    });
  }

  /** Go where a fragment says: the run is opened anew if it is another one. */
  openFragment(hash) {
    return this._inTurn(async () => {
      const place = placeIn(hash);
      if (!place.address) return;
      this.besideRules = place.beside;
      const isOpen = this.view !== null && this.view.whole === place.address;
      if (!isOpen && !(await this._go({ do: "open", address: place.address }))) return;
      const problem = this.problem;
      if (place.position !== null && place.position > this.view.length) {
        this.problem = { kind: "bad-position", words: `this link is to state ${place.position}, and the run has ${this.view.length}` };
      } else {
        const to = place.position ?? this.view.length;
        if (to !== this.view.position) await this._go({ do: "jump", to });
        else if (isOpen) await this._takeBeside();
        this.problem ??= problem;
      }
      this._dropFailedSide();
    });
  }

  _dropFailedSide() {
    if (this.beside?.answer !== "error") return;
    this.problem = this.beside;
    this.besideRules = this.beside = null;
  }

  /** The fragment of what is shown now. */
  fragment() {
    if (this.view === null) return "";
    const { whole, position, length } = this.view;
    return fragmentOf({ address: whole, position: position === length ? null : position, beside: this.besideRules });
  }

  // ---- searches

  find(property, { states = SEARCHED_STATES, start = "initial" } = {}) {
    return this._searched(`looking for ${property}`, { do: "find", property, states, start });
  }

  /** The shortest run in which the two sides differ: in a state, or in a verdict. */
  findDifference(rules, until, states = SEARCHED_STATES) {
    this.besideRules = rules;
    return this._searched("looking for a difference", { do: "differ", address: rules, until, states });
  }

  _searched(words, message) {
    return this._inTurn(async () => {
      this.search = { words };
      this.found = this.problem = null;
      this._changed();
      const answer = await this.ask(message, (progress) => this._heard(progress));
      this.search = null;
      if (answer.answer === "error") {
        this.problem = answer;
        return;
      }
      if (answer.found) await this._go({ do: "open", address: answer.address });
      this.found = answer;
    });
  }

  _heard(progress) {
    if (this.search === null || progress?.states === undefined) return;
    this.search = { ...this.search, states: progress.states, level: progress.level };
    this._changed();
  }

  cancel() {
    this.backEnd.cancel();
  }

  // ---- what is told

  /** Tell an error that the page itself found. */
  refuse(problem) {
    this.problem = problem;
    this._changed();
  }

  dismiss() {
    this.problem = this.found = null;
    this._changed();
  }
}
