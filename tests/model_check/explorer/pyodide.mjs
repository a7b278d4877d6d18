// node pyodide.mjs FOLDER SCRIPT: runs Python in Pyodide, with the rooms that the web worker has. What it prints is printed.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, script] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide/pyodide.mjs`).href);
const python = await loadPyodide();
python.unpackArchive(new Uint8Array(readFileSync(`${folder}/rooms.zip`)), "zip");
python.runPython(readFileSync(script, "utf-8"));
