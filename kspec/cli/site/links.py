"""The links of a site: each page and anchor that one leads to is there, and nothing is asked of another site."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("kspec-run", "src")}
"""Elements and attributes that a browser loads by itself; other links are followed by readers."""

ICONS = {"canonical", "alternate"}


class PageLinks(HTMLParser):
    """The anchors of a page, the links that it has, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element links to."""
        known = {name: value for name, value in attrs if value is not None}
        self.anchors.update(known[name] for name in ("id", "name") if name in known)
        for name in ("href", "src"):
            if name not in known or (tag == "link" and known.get("rel") in ICONS):
                continue
            (self.loads if (tag, name) in LOADS else self.links).append(known[name])


def read(page: Path) -> PageLinks:
    """The links of a page."""
    found = PageLinks()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def broken(site: Path) -> Iterator[str]:
    """The links of a site that lead nowhere, a sentence for each; also what its pages would load from elsewhere."""
    pages = {page.resolve(): read(page) for page in sorted(site.rglob("*.html"))}
    for page, found in pages.items():
        name = page.relative_to(site.resolve())
        for target in found.loads:
            if urlsplit(target).netloc:
                yield f"{name} loads {target} from another site"
        for target in [*found.links, *found.loads]:
            problem = _problem(page, target, site.resolve(), pages)
            if problem:
                yield f"{name} links to {target}: {problem}"
    for sheet in sorted(site.rglob("*.css")):
        for target in re.findall(r"url\(\s*['\"]?((?:https?:|//)[^)'\"]*)", sheet.read_text(encoding="utf-8")):
            yield f"{sheet.relative_to(site)} loads {target} from another site"


def _problem(page: Path, target: str, site: Path, pages: dict[Path, PageLinks]) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    if parts.path.startswith("/"):
        return "an absolute address, which is wrong below another prefix"
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not file.is_relative_to(site):
        return "outside of the site"
    if file.is_dir():
        file = file / "index.html"
    if not file.is_file():
        return "there is no such file"
    is_run = file.parent.name == "explorer"
    if parts.fragment and file in pages and not is_run and unquote(parts.fragment) not in pages[file].anchors:
        return "the page has no such anchor"
    return ""
