"""The tables of `docs/majority-or-isr.md`: `python -m tests.model_check.reports.majority_page` writes them."""

import re
from collections.abc import Sequence

from kspec.model_check.reports.majority import as_markdown
from tests.places import DOCS

PAGE = DOCS / "majority-or-isr.md"
TABLE = re.compile(r"^\|.*(?:\n\|.*)*", re.MULTILINE)


def rewritten(text: str, tables: Sequence[str]) -> str:
    """The page with these tables in the place of those with the same first line."""
    by_head = {table.splitlines()[0]: table for table in tables}
    return TABLE.sub(lambda found: by_head.get(found[0].splitlines()[0], found[0]), text)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), as_markdown()), encoding="utf-8")
