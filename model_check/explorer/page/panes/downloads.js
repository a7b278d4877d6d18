/** What a run can be taken away as: files that the back end writes, and pictures of the diagram. */

import { button, element, fill } from "../dom.js";
import { diagramOf } from "./diagram.js";
import { pictureOf, standAlone } from "../pictures.js";

const WRITTEN = [
  ["itf", "ITF", "the Informal Trace Format, which Apalache and Quint read"],
  ["mermaid", "Mermaid", "a sequence diagram as text"],
  ["python", "Python", "a snippet that replays the run"],
  ["command", "Command line", "what opens it in a terminal"],
  ["json", "JSON", "states and actions"],
];

/** @param {HTMLElement} pane @param {import("../session.js").Session} session @param {{shown: boolean}} control */
export function drawDownloads(pane, session, control) {
  if (session.view === null || !control.shown) return fill(pane);
  const preview = element("div", { class: "preview", "aria-live": "polite" });
  return fill(
    pane,
    element("h2", {}, "Take the run along"),
    linkRow(session),
    element(
      "ul",
      { class: "downloads" },
      WRITTEN.map(([kind, title, meaning]) =>
        element("li", {}, button(`download-${kind}`, title, () => download(session, kind, preview), { title: meaning }), " ", button(`show-${kind}`, "show", () => show(session, kind, preview), { class: "link", "aria-label": `Show ${title}` }), element("span", { class: "quiet" }, ` ${meaning}`)),
      ),
      element("li", {}, button("download-svg", "SVG", () => downloadSvg(session)), element("span", { class: "quiet" }, " the diagram, to be scaled")),
      element("li", {}, button("download-png", "PNG", () => downloadPng(session)), element("span", { class: "quiet" }, " the diagram, as pixels")),
    ),
    preview,
  );
}

function linkRow(session) {
  const link = () => `${location.href.split("#")[0]}${session.fragment()}`;
  const said = element("span", { class: "quiet", role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(link());
      said.textContent = " copied";
    } catch {
      said.textContent = " the browser allows no copy; the link is in its address bar";
    }
  };
  return element("p", {}, button("copy-link", "Copy the link", copy), said);
}

async function written(session, kind) {
  const answer = await session.ask({ do: "export", as: kind });
  if (answer.answer === "error") session.refuse(answer);
  return answer.answer === "file" ? answer : null;
}

async function download(session, kind) {
  const file = await written(session, kind);
  if (file) save(file.name, new Blob([file.text], { type: file.type }));
}

async function show(session, kind, preview) {
  const file = await written(session, kind);
  if (file) fill(preview, element("h3", {}, file.name), element("pre", { tabindex: "0", role: "region", "aria-label": file.name }, file.text));
}

function save(name, blob) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const nameOfPicture = ({ view }, ending) => `${view.run.model}-${view.length}-states.${ending}`;

function downloadSvg(session) {
  save(nameOfPicture(session, "svg"), new Blob([standAlone(diagramOf(session.view, { whole: true }))], { type: "image/svg+xml" }));
}

async function downloadPng(session) {
  try {
    save(nameOfPicture(session, "png"), await pictureOf(diagramOf(session.view, { whole: true })));
  } catch (error) {
    session.refuse({ kind: "page", words: String(error.message) });
  }
}
