"""The page with a recorded run as one file of HTML: it needs neither a server nor a network, and opens from a disk."""

import json
import posixpath
import re
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from kspec.cli.explorer.page import PAGE, page_for

SCRIPT = re.compile(r'<script type="module" src="([^"]+)"></script>')
STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
ICON = re.compile(r'(<link rel="icon" href=")([^"]+)(" type="([^"]+)">)')
TITLE = re.compile(r"<title>.*?</title>", re.DOTALL)
IMPORT = re.compile(r"""(\bfrom\s*|\bimport\s*\(?\s*)(["'])(\.{1,2}/[^"']+)\2""")
"""An import of a module beside: from a file on a disk browsers load none."""


def one_file(recording: Mapping[str, Any], title: str, page: Path = PAGE) -> str:
    """The page that shows this recorded run, with its scripts, styles and icon in it."""

    def text(name: str) -> str:
        return (page / name).read_text("utf-8")

    whole = page_for({"kind": "recorded", "recording": recording}, page)
    whole = TITLE.sub(lambda found: f"<title>{escape(title)}</title>", whole, count=1)
    whole = STYLE.sub(lambda found: f"<style>\n{text(found[1])}</style>", whole)
    whole = ICON.sub(lambda found: f"{found[1]}{_data(found[4], text(found[2]))}{found[3]}", whole)
    return SCRIPT.sub(lambda found: _inlined(found[1], page), whole)


def _inlined(main: str, page: Path) -> str:
    """A module and all that it imports: an import map has each as a text under its name."""
    modules: dict[str, str] = {}
    waiting = [main]
    while waiting:
        name = waiting.pop()
        if name in modules:
            continue
        folder, text = posixpath.dirname(name), (page / name).read_text("utf-8")
        waiting += [_beside(folder, found[3]) for found in IMPORT.finditer(_without_comments(text))]
        modules[name] = IMPORT.sub(lambda found, of=folder: f'{found[1]}"{_name(_beside(of, found[3]))}"', text)  # type: ignore[misc]
    imports = {_name(name): _data("text/javascript", text) for name, text in sorted(modules.items())}
    return (
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>\n'
        f'    <script type="module">import "{_name(main)}";</script>'
    )


def _without_comments(text: str) -> str:
    """A script without comments of its types, which name modules, too."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def _beside(folder: str, specifier: str) -> str:
    return posixpath.normpath(posixpath.join(folder, specifier))


def _name(path: str) -> str:
    return f"page/{path}"


def _data(kind: str, text: str) -> str:
    return f"data:{kind};base64,{b64encode(text.encode()).decode()}"
