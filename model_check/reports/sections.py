"""Sections of a page that several commands write, each its own."""

import re


def section_of(page: str, title: str) -> str:
    """The section with this title, up to the next one, or an empty text."""
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return found[0].rstrip("\n") + "\n" if found else ""


def with_section(page: str, section: str) -> str:
    """The page with this section in the place of the one with the same title, or at the end."""
    title = section.partition("\n")[0].removeprefix("## ")
    known = section_of(page, title)
    if known:
        return page.replace(known, section.rstrip("\n") + "\n", 1)
    return f"{page.rstrip()}\n\n{section.rstrip()}\n"
