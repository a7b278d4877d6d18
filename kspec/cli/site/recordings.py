"""Recorded runs for the site: small files that a page steps through without a back end."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kspec.cli.explorer.recording import recorded


def record_runs(runs: Mapping[str, Mapping[str, Any]], folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Record these runs, a file for each address; the result has the file of each name."""
    files: dict[str, str] = {}
    for name in names:
        address = runs[name]["address"]
        if address not in files:
            files[address] = f"{name}.run"
            text = json.dumps(recorded(address, files=False), separators=(",", ":"))
            (folder / files[address]).write_bytes(gzip.compress(text.encode(), mtime=0))
    return {name: files[run["address"]] for name, run in runs.items() if run["address"] in files}
