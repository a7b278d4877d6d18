"""The explorer's page in the site, with what it needs to run the rules in the browser."""

import shutil
from pathlib import Path

from kspec.cli.explorer.live import write_worker
from kspec.cli.explorer.npm import PackageError
from kspec.cli.explorer.page import PAGE, page_for

NO_PAGE = "<!doctype html><html lang='en'><title>The explorer</title><p>The explorer's page is not built yet.</p></html>\n"


def live_explorer(folder: Path) -> list[str]:
    """Copy the page of the explorer, and what runs the rules behind it. The result says what the site has to do without."""
    shutil.copytree(PAGE, folder)
    missing = []
    index = folder / "index.html"
    if index.is_file():
        index.write_text(page_for({"kind": "worker"}), encoding="utf-8")
    else:
        index.write_text(NO_PAGE, encoding="utf-8")
        missing.append("the page of the explorer")
    try:
        write_worker(folder)
    except PackageError as error:
        missing.append(f"Pyodide, so runs can be stepped as recorded and nothing else: {error}")
    return missing
