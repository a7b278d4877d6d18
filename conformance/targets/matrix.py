"""The matrix: all cases on all brokers of this machine, as pages."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from conformance.targets.drivers import Driver
from conformance.wire.choice.weakened import Score
from conformance.wire.run.results import Result, Status

SHOWN = (Status.PASS, Status.FAIL, Status.NOT_SUPPORTED, Status.NOT_APPLICABLE)


class Column(NamedTuple):
    """A broker, and what came of the cases on it."""

    driver: Driver
    results: Sequence[Result]

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"{self.driver.name} {self.driver.version}"

    @property
    def file(self) -> str:
        """The name of its page."""
        kept = (letter if letter.isalnum() or letter == "." else "-" for letter in self.title.lower())
        return f"{''.join(kept)}.md"

    def counts(self, subject: str = "", kip: str = "") -> Counter[Status]:
        """How the cases went: all, or those of a subject or a KIP."""
        return Counter(
            one.status
            for one in self.results
            if subject in ("", one.case["subject"]) and (not kip or kip in one.case["kips"])
        )


Scored: TypeAlias = Sequence[tuple[Score, Sequence[str]]]
"""Weakened rules, each with the names of the cases that catch it."""


def overview(columns: Sequence[Column], missing: dict[str, str], date: str, scores: Scored) -> str:
    """The first page: a row for each subject and each KIP, a column for each broker."""
    subjects = list(dict.fromkeys(one.case["subject"] for column in columns for one in column.results))
    kips = sorted({kip for column in columns for one in column.results for kip in one.case["kips"]})
    lines = [
        "# The conformance matrix",
        "",
        "You want to know how brokers answer the cases of [level 0](../conformance.md).",
        "",
        f"Written by `kspec conformance matrix` on {date}. A cell has the number of cases that pass, of those that",
        "the broker supports. Each broker has a page with the cases that fail, and the fields that differ.",
        "",
        _row("cases", [f"[{column.title}]({column.file})" for column in columns]),
        _row("---", ["---"] * len(columns)),
        _row("**all**", [_cell(column.counts()) for column in columns]),
    ]
    lines += [_row(subject, [_cell(column.counts(subject)) for column in columns]) for subject in subjects]
    lines += [_row(kip, [_cell(column.counts(kip=kip)) for column in columns]) for kip in kips]
    lines += ["", "| broker | started by | pass | fail | not supported | not applicable |", "|---|---|---|---|---|---|"]
    for column in columns:
        counts = column.counts()
        lines.append(_row(column.title, [column.driver.how, *(str(counts[status]) for status in SHOWN)]))
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
    wrong = [one for one in column.results if one.status == Status.FAIL]
    if wrong:
        lines += ["| case | rule | what differs |", "|---|---|---|"]
    for one in wrong:
        differences = one.told[-1].differences if one.told else ()
        text = "; ".join(differences or (one.reason,)).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| `{one.name}` | `{one.case['rule']['function'].removeprefix('spec.')}` | {text} |")
    skipped = Counter(one.reason for one in column.results if one.status in (Status.NOT_SUPPORTED, Status.NOT_APPLICABLE))
    if skipped:
        lines += ["", "Not run, with the number of cases:", "", *(f"- {count}: {why}" for why, count in skipped.items())]
    return "\n".join(lines).rstrip() + "\n"


def _cell(counts: Counter[Status]) -> str:
    ran = counts[Status.PASS] + counts[Status.FAIL]
    return f"{counts[Status.PASS]} of {ran}" if ran else "none"


def _row(first: str, cells: Sequence[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"
