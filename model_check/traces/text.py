"""Text that fits the terminal, whose width it asks for. Pages of the docs are not made of it."""

import shutil
import textwrap

NARROWEST, WIDEST = 40, 120
"""Lines of text are at least and at most this long, whatever the terminal is."""


LEAST_ROOM = 36
"""Columns that a text needs beside others."""


def width() -> int:
    """The columns of the terminal, or 80 where there is none; `COLUMNS` says otherwise."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((80, 24)).columns))


def filled(text: str, indent: str = "", first: str | None = None) -> list[str]:
    """The text in lines that fit. Each line is indented, the first one by `first`, if that is given."""
    start = indent if first is None else first
    return textwrap.wrap(
        text, width(), initial_indent=start, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def row(start: str, text: str, column: int) -> list[str]:
    """A row of a table: its first columns, and a text that begins at `column`, or below where there is little room."""
    if width() - column >= LEAST_ROOM or len(start) + 2 + len(text) <= width():
        return filled(text, " " * column, start.ljust(column))
    return [start.rstrip(), *filled(text, " " * 6)]
