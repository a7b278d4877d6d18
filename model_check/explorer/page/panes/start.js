/** Where a run begins: a model with its parameters, a run that somebody else found, an address, a file. */

import { button, counted, element, fill } from "../dom.js";
import { rulesText } from "../fragment.js";

/** @param {HTMLElement} pane @param {import("../session.js").Session} session @param {{model: string | null, starts: any[] | null}} chosen */
export function drawStart(pane, session, chosen) {
  const { models } = session;
  const entry = models.find((one) => one.name === chosen.model) ?? null;
  return fill(
    pane,
    element("h2", {}, "Begin a run"),
    element("p", { class: "lead" }, "The rules of Kafka's replication protocol run here as they are checked and proved: step a run, ask what forbids a step, and put two releases side by side. Open a run that was found, or begin with a model."),
    element(
      "div",
      { class: "beginnings" },
      element("section", { "aria-label": "A run that was found" }, knownRuns(session, chosen), addressForm(session), fileForm(session)),
      element("section", { "aria-label": "Models" }, element("h3", {}, "A model"), modelList(pane, session, chosen)),
      entry === null ? null : parameterForm(session, entry),
    ),
  );
}

function modelList(pane, session, chosen) {
  if (session.models.length === 0) return element("p", { class: "quiet" }, "The models are not at hand on this page.");
  return element(
    "ul",
    { class: "models" },
    session.models.map((one) =>
      element(
        "li",
        {},
        button(
          `model-${one.name}`,
          [element("b", {}, one.name), element("span", {}, one.summary)],
          () => {
            chosen.model = one.name;
            drawStart(pane, session, chosen);
          },
          { "aria-pressed": String(one.name === chosen.model) },
        ),
      ),
    ),
  );
}

// ---- parameters

function parameterForm(session, entry) {
  const fields = entry.parameters.map((one) => [one, fieldOf(one, entry)]);
  const rare = fields.filter(([one]) => !isUsed(one));
  const submit = (event) => {
    event.preventDefault();
    const given = fields.map(([one, field]) => [one.name, valueIn(one, field)]).filter(([, value]) => value !== undefined);
    void session.start(entry.name, Object.fromEntries(given));
  };
  return element(
    "form",
    { class: "parameters", onsubmit: submit, "aria-label": `Parameters of ${entry.name}` },
    element("h3", {}, entry.name),
    element("p", { class: "quiet" }, entry.summary),
    fields.filter(([one]) => isUsed(one)).map(parameterRow),
    rare.length === 0
      ? null
      : element("details", { "data-key": "more-parameters" }, element("summary", {}, counted(rare.length, "parameter"), " that are off"), rare.map(parameterRow)),
    element("button", { type: "submit", class: "primary", "data-key": "start" }, "Start"),
  );
}

/** Whether a parameter is on as a rule, or names the rules; what is off waits to be opened. */
function isUsed({ name, default: usual }) {
  return ["release", "mutant", "repair"].includes(name) || ![0, false, null].includes(usual);
}

function parameterRow([one, field]) {
  return element(
    "div",
    { class: `parameter ${one.kind}` },
    element("label", { for: `parameter-${one.name}` }, one.name),
    field,
    element("p", { id: `meaning-${one.name}` }, one.meaning),
  );
}

function fieldOf(parameter, entry) {
  const common = { id: `parameter-${parameter.name}`, "data-key": `parameter-${parameter.name}`, "aria-describedby": `meaning-${parameter.name}` };
  const { kind, default: usual } = parameter;
  const meanings = { mutant: entry.mutants, repair: entry.repairs }[parameter.name] ?? {};
  if (kind === "integer") return element("input", { ...common, type: "number", min: parameter.minimum, max: parameter.maximum, value: usual, required: usual !== null });
  if (parameter.choices) return choiceField(parameter, common, meanings);
  return element("input", { ...common, type: "checkbox", checked: usual === true });
}

function choiceField(parameter, common, meanings) {
  const many = isMany(parameter);
  const chosen = [parameter.default].flat();
  return element(
    "select",
    { ...common, multiple: many, size: many ? Math.min(4, parameter.choices.length) : null },
    parameter.default === null && !many ? element("option", { value: "" }, "none") : null,
    parameter.choices.map((value) => element("option", { value, selected: chosen.includes(value) }, meanings[value] ? `${value}: ${meanings[value]}` : value)),
  );
}

const isMany = (parameter) => Array.isArray(parameter.default);

function valueIn(parameter, field) {
  if (field.type === "checkbox") return field.checked;
  if (field.multiple) return [...field.selectedOptions].map((one) => one.value);
  if (field.type === "number") return field.value === "" ? undefined : Number(field.value);
  return field.value === "" ? null : field.value;
}

// ---- runs that there are

/** Runs that were found before, by group: `runs/index.json` has them. */
function knownRuns(session, chosen) {
  if (!chosen.starts?.length) return null;
  return element(
    "div",
    { class: "starts" },
    element("h3", {}, "A run that was found"),
    chosen.starts.map(({ group, title, runs }) =>
      element(
        "details",
        { "data-key": `starts-${group}` },
        element("summary", {}, title, element("small", {}, ` ${runs.length}`)),
        element("ul", {}, runs.map(knownRun)),
      ),
    ),
  );
}

function knownRun(run) {
  const fails = run.fails.length > 0 ? element("span", { class: "violated" }, ` ✕ ${run.fails.join(", ")}`) : null;
  return element(
    "li",
    {},
    element("a", { href: `#${run.address}` }, run.title),
    element("span", { class: "quiet" }, ` ${run.kept ? "recorded" : run.model}, ${counted(run.steps, "step")}`),
    fails,
    run.repaired ? [" ", element("a", { href: `#${run.address}&beside=${rulesThatRepair(run)}` }, "beside its repair")] : null,
    element("p", { class: "quiet" }, run.about),
  );
}

/** What the message `retrace` says, as a fragment has it. */
function rulesThatRepair({ model, repaired }) {
  const { model: other = model, parameters = {}, ...rules } = repaired;
  return rulesText(other, { ...parameters, ...rules });
}

function addressForm(session) {
  const field = element("input", { type: "text", id: "address-field", "data-key": "address", autocomplete: "off", spellcheck: "false", placeholder: "kip-101~replicas.2" });
  const open = (event) => {
    event.preventDefault();
    const written = field.value.trim();
    const text = written.includes("#") ? written.slice(written.indexOf("#")) : `#${written}`;
    void session.openFragment(text);
  };
  return element("form", { class: "address", onsubmit: open }, element("h3", {}, "A link or an address"), element("label", { for: "address-field", class: "hidden" }, "Link or address"), field, " ", element("button", { type: "submit", "data-key": "open" }, "Open"));
}

function fileForm(session) {
  const field = element("input", { type: "file", id: "trace-file", "data-key": "file", accept: ".json,application/json", onchange: () => field.files[0] && openFile(session, field.files[0]) });
  return element(
    "div",
    { class: "file" },
    element("h3", {}, "A trace"),
    element("label", { for: "trace-file" }, "An ITF file, JSON of kspec check, results of kspec conformance run --json, or a recording of kspec simulate-cluster. It may be dropped anywhere on the page."),
    field,
  );
}

/** Open a file that was chosen or dropped. @param {import("../session.js").Session} session @param {File} file */
export async function openFile(session, file) {
  let document_;
  try {
    document_ = JSON.parse(await file.text());
  } catch (error) {
    return session.refuse({ kind: "bad-trace", words: `${file.name} is no JSON: ${error.message}` });
  }
  try {
    await session.openDocument(document_);
  } catch (error) {
    session.refuse({ kind: "bad-trace", words: `${file.name} cannot be shown: ${error.message}` });
  }
}
