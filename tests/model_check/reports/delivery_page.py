"""The page `docs/delivery.md`: `python -m tests.model_check.reports.delivery_page` writes it, which takes a minute."""

from collections.abc import Iterable

from kspec.model_check.reports.delivery import TABLES, Cell, as_markdown, cells_of
from tests.places import DOCS

PAGE = DOCS / "delivery.md"

HEAD = """\
# How often a record is delivered

You want to know which settings give at most once, at least once, or exactly once, and what breaks each.

`python -m tests.model_check.reports.delivery_page` writes this page. Each cell is explored completely within small
bounds, or has the length of a shortest run that breaks a guarantee; below each table are the commands that find these
runs, and that show them step by step in the browser. In each column each thing that is named may happen once, at any
moment.

- **At most once**: nothing is delivered twice.
- **At least once**: nothing is lost that its producer is done with, or that the committed offset is past.
- **Exactly once**: both.

A producer without retries is done with a record that has failed: its application is told so, and goes on.

"""

MODELS = """\
## The models

`kspec check delivery` has one producer, one partition, and processes that read it. A producer sends one record after
the other. What a leader takes as a duplicate, or as out of order, is decided by the rules of the release
(`finds_duplicate`, `check_sequences`); committed offsets are those of the group coordinator's handlers. How records
come to other replicas, and who is elected, is not in it: that an elected leader has what is committed, unless the
election is unclean, is what [the model `kafka`](kafka-model.md) shows. A producer that starts again goes on with the
first record that it is not done with.

`kspec check transactions --inputs N` has processes of a group which read an input, write its output and commit the
offset in one transaction ([more](transactions-model.md#processes-of-a-group)). Who reads the output reads what is
committed.

**Left out:** several records in a request, and several requests of a producer under way; more partitions than one;
`enable.auto.commit`, which commits after the work if that is done between two polls; a consumer whose offset is
beyond the log's end after an unclean election waits there (Kafka resets it, or finds the place by epochs since 2.1);
what a process does outside of Kafka, which no transaction covers.
"""


def page(cells: Iterable[list[Cell]]) -> str:
    """The page with these cells, which are given table by table."""
    tables = [as_markdown(table, found) for table, found in zip(TABLES, cells, strict=True)]
    return HEAD + "\n".join((*tables, MODELS))


if __name__ == "__main__":
    PAGE.write_text(page([list(cells_of(table)) for table in TABLES]), encoding="utf-8")
