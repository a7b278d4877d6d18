"""The matrix: all cases on all brokers of this machine, as pages."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from kspec.conformance.targets.drivers import TargetDriver
from kspec.conformance.wire.choice.weakened import RuleScore
from kspec.conformance.wire.run.results import WRONG, Result, Status

SHOWN = (Status.PASS, Status.UNLIKE, Status.FAIL, Status.ENDED, Status.NOT_SUPPORTED, Status.NOT_APPLICABLE)
RAN = SHOWN[:4]
GOOD = SHOWN[:2]
ALL = "all"


class Column(NamedTuple):
    """A broker, and what came of the cases on it."""

    driver: TargetDriver
    results: Sequence[Result]

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"{self.driver.name} {self.driver.version}"

    def counts(self) -> Counter[Status]:
        """The number of cases by status."""
        return Counter(one.status for one in self.results)

    def kept(self, name: str, date: str) -> "ColumnCounts":
        """The part of it that the first page shows, by subject and by KIP. `name`: what the broker is looked for by."""
        rows: dict[str, Counter[str]] = {}
        for one in self.results:
            for row in (ALL, one.case["subject"], *one.case["kips"]):
                rows.setdefault(row, Counter())[one.status.value] += 1
        counts = {row: dict(found) for row, found in rows.items()}
        return ColumnCounts(name, self.title, self.driver.how, date, counts)


class ColumnCounts(NamedTuple):
    """A column of the first page: the cases by status of each row (all, a subject, a KIP), and when they were run."""

    name: str
    title: str
    how: str
    date: str
    rows: dict[str, dict[str, int]]

    @property
    def file(self) -> str:
        """The name of the broker's page."""
        kept = (letter if letter.isalnum() or letter == "." else "-" for letter in self.title.lower())
        return f"{''.join(kept)}.md"

    def cell(self, row: str) -> str:
        """Cases that pass, or are unlike Apache Kafka where that is free, of those that the broker supports."""
        found = self.rows.get(row, {})
        ran = sum(found.get(status.value, 0) for status in RAN)
        if not ran:
            return "none" if found else "not run"
        return f"{sum(found.get(status.value, 0) for status in GOOD)} of {ran}"

    def number(self, status: Status) -> int:
        """All cases with a status."""
        return self.rows[ALL].get(status.value, 0)


def columns_as_text(columns: Sequence[ColumnCounts]) -> str:
    """Columns as JSON, so that one broker can be run anew, and the others stay."""
    return json.dumps([one._asdict() for one in columns], indent=1) + "\n"


def read_columns(text: str) -> list[ColumnCounts]:
    """Columns from JSON. Raises: `ValueError`, if it is none of this matrix."""
    try:
        return [ColumnCounts(**one) for one in json.loads(text)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"no columns of a conformance matrix: {error}") from error


def with_column(columns: Sequence[ColumnCounts], new: ColumnCounts) -> list[ColumnCounts]:
    """Columns with a new one in the place of the former one of the same broker, or at the end."""
    if any(one.name == new.name for one in columns):
        return [new if one.name == new.name else one for one in columns]
    return [*columns, new]


Scored: TypeAlias = Sequence[tuple[RuleScore, Sequence[str]]]
"""Weakened rules, each with the names of the cases that catch it."""


def overview(columns: Sequence[ColumnCounts], subjects: Sequence[str], missing: dict[str, str], scores: Scored) -> str:
    """The first page: a row for each subject and each KIP, a column for each broker."""
    rows = {row for column in columns for row in column.rows} - {ALL}
    known = [one for one in subjects if one in rows]
    lines = [
        "# The conformance matrix",
        "",
        "You want to know how brokers answer the cases of [level 0](../conformance.md).",
        "",
        "Written by `kspec conformance matrix`. A cell has the number of cases that pass, or that are unlike Apache Kafka",
        "as the protocol leaves it free, of those that the broker supports. Each broker has a page with the cases that",
        "fail, and the fields that differ.",
        "",
        _row("cases", [f"[{column.title}]({column.file})" for column in columns]),
        _row("---", ["---"] * len(columns)),
        _row("**all**", [column.cell(ALL) for column in columns]),
    ]
    lines += [_row(row, [column.cell(row) for column in columns]) for row in (*known, *sorted(rows - set(subjects)))]
    lines += ["", _row("broker", ["started by", "run on", *(status.value for status in SHOWN)])]
    lines += [_row("---", ["---"] * (len(SHOWN) + 2))]
    lines += [_row(one.title, [one.how, one.date, *(str(one.number(status)) for status in SHOWN)]) for one in columns]
    if missing:
        lines += ["", "Not on the machine that wrote this page:", ""]
        lines += [f"- {name}: {reason}" for name, reason in missing.items()]
    return "\n".join([*lines, "", *_scores(scores)]) + "\n"


def _scores(scores: Scored) -> list[str]:
    caught = sum(bool(cases) for _, cases in scores)
    return [
        "## Weakened rules",
        "",
        f"Of {len(scores)} weakened rules of this project's broker {caught} are caught, each by at least one case.",
        "",
        "| weakened rule | cases that catch it | one of them, or the reason |",
        "|---|---|---|",
        *(f"| `{one.name}` | {len(cases)} | {_shortest(cases) or one.reason} |" for one, cases in scores),
    ]


def _shortest(names: Sequence[str]) -> str:
    return f"`{min(names, key=len)}`" if names else ""


def failures(column: Column) -> str:
    """The page of a broker: each case that fails, with the fields that differ."""
    counts = column.counts()
    told = ", ".join(f"{counts[status]} {status.value}" for status in SHOWN)
    lines = [f"# {column.title}", "", f"You want to know which cases this broker fails: {told}.", ""]
    lines += [f"Started by {column.driver.how}.", ""]
    wrong = [one for one in column.results if one.status in WRONG]
    if wrong:
        lines += ["| case | rule | what differs |", "|---|---|---|"]
    for one in wrong:
        text = _plain(_cause(one))
        lines.append(f"| `{one.name}` | `{one.case['rule']['function'].removeprefix('spec.')}` | {text} |")
    free = [one for one in column.results if one.status == Status.UNLIKE]
    if free:
        lines += [
            "",
            "Unlike Apache Kafka, as the protocol leaves it free:",
            "",
            "| case | answer, and the reason |",
            "|---|---|",
        ]
        lines += [_row(f"`{one.name}`", [_plain(one.reason)]) for one in free]
    skipped = Counter(one.reason for one in column.results if one.status in (Status.NOT_SUPPORTED, Status.NOT_APPLICABLE))
    if skipped:
        lines += ["", "Not run, with the number of cases:", "", *(f"- {count}: {why}" for why, count in skipped.items())]
    return "\n".join(lines).rstrip() + "\n"


def _cause(result: Result) -> str:
    """The fields that differ, and what became of the broker."""
    if result.status == Status.ENDED:
        return f"the broker stops answering: {result.reason}"
    return "; ".join(result.told[-1].differences if result.told else ()) or result.reason


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _row(first: str, cells: Sequence[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"
