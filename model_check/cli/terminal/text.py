"""Text that fits the terminal."""

import shutil
import textwrap

NARROWEST, WIDEST = 40, 120
"""Lines of text are at least and at most this long, whatever the terminal is."""


def width() -> int:
    """The columns of the terminal, or 80 where there is none; `COLUMNS` says otherwise."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((80, 24)).columns))


def filled(text: str, indent: str = "", first: str | None = None) -> list[str]:
    """The text in lines that fit. Each line is indented, the first one by `first`, if that is given."""
    start = indent if first is None else first
    return textwrap.wrap(
        text, width(), initial_indent=start, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
