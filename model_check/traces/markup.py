"""HTML for notebooks: elements whose texts are escaped, in a style that is readable on light and dark pages.

No script, and nothing that is fetched from elsewhere: what is shown is all in the text.
"""

from collections.abc import Iterable
from html import escape

EPOCH_COLOURS = ("#cfe3f5", "#fbe3b0", "#cdebd9", "#f3d1e3", "#e6e0f8", "#f9d9c8")
"""Backgrounds of records by leader epoch. Their text is dark on light and dark pages; the epoch stands in it, too."""

VIOLATION = "#d55e00"
"""The colour of what is violated, beside a word that says so."""

STYLE = f"""
.kspec {{ font: 13px/1.45 system-ui, sans-serif; color: inherit; max-width: 100%; overflow-x: auto }}
.kspec table {{ border-collapse: collapse; margin: 4px 0; font-size: 12px; color: inherit; background: none }}
.kspec th, .kspec td {{ text-align: left; vertical-align: top; padding: 2px 8px; color: inherit; background: none;
  border: 1px solid rgba(127, 127, 127, .45); white-space: normal }}
.kspec th {{ font-weight: 600 }}
.kspec .title {{ font-weight: 600; margin: 2px 0 }}
.kspec .quiet {{ opacity: .75 }}
.kspec .parties {{ display: flex; flex-wrap: wrap; gap: 8px; align-items: flex-start }}
.kspec .party {{ border: 1px solid rgba(127, 127, 127, .6); border-radius: 4px; padding: 4px 8px; max-width: 26em }}
.kspec .log {{ display: flex; flex-wrap: wrap; align-items: stretch; margin: 4px 0; min-height: 2.6em }}
.kspec .record {{ border: 1px solid #777; padding: 1px 6px; margin-right: 2px; text-align: center; color: #1a1a1a }}
.kspec .record small {{ display: block; color: #444 }}
.kspec .mark {{ border-left: 3px solid currentColor; padding-left: 3px; margin: 0 4px 0 1px; font-size: 10px }}
.kspec .violated {{ color: inherit; border-left: 4px solid {VIOLATION}; padding-left: 4px; font-weight: 600 }}
.kspec summary {{ cursor: pointer }}
.kspec svg text {{ fill: currentColor; font-size: 10px }}
"""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: str) -> Markup:
    """An element. Content that is no `Markup` is escaped, and so is every attribute; `class_` is `class`."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Iterable[str]) -> Markup:
    """Pieces one after the other, escaped where they are no `Markup`."""
    return Markup("".join(piece if isinstance(piece, Markup) else escape(piece) for piece in content))


def shown(*content: str) -> Markup:
    """Content as a notebook shows it, with its style."""
    return element("div", Markup(f"<style>{STYLE}</style>"), *content, class_="kspec")


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Markup:
    """A table with headings."""
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("table", element("thead", head), element("tbody", *body))


def folded(title: str, *content: str) -> Markup:
    """Content that opens on a click."""
    return element("details", element("summary", title), *content)
