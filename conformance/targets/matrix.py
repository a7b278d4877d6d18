"""The matrix: all cases on all brokers of this machine, as pages."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from kspec.conformance.targets.drivers import TargetDriver
from kspec.conformance.wire.choice.weakened import RuleScore
from kspec.conformance.wire.run.results import WRONG, Result, Status

SHOWN = (Status.PASS, Status.UNLIKE, Status.FAIL, Status.ENDED, Status.NOT_SUPPORTED, Status.NOT_APPLICABLE)
RAN = SHOWN[:4]


class Column(NamedTuple):
    """A broker, and what came of the cases on it."""

    driver: TargetDriver
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
        """The number of cases by status: all, or those of a subject or a KIP."""
        return Counter(
            one.status
            for one in self.results
            if subject in ("", one.case["subject"]) and (not kip or kip in one.case["kips"])
        )


Scored: TypeAlias = Sequence[tuple[RuleScore, Sequence[str]]]
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
        f"Written by `kspec conformance matrix` on {date}. A cell has the number of cases that pass, or that are unlike",
        "Apache Kafka as the protocol leaves it free, of those that the broker supports. Each broker has a page with the",
        "cases that fail, and the fields that differ.",
        "",
        _row("cases", [f"[{column.title}]({column.file})" for column in columns]),
        _row("---", ["---"] * len(columns)),
        _row("**all**", [_cell(column.counts()) for column in columns]),
    ]
    lines += [_row(subject, [_cell(column.counts(subject)) for column in columns]) for subject in subjects]
    lines += [_row(kip, [_cell(column.counts(kip=kip)) for column in columns]) for kip in kips]
    lines += ["", _row("broker", ["started by", *(status.value for status in SHOWN)])]
    lines += [_row("---", ["---"] * (len(SHOWN) + 1))]
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


def _cell(counts: Counter[Status]) -> str:
    ran = sum(counts[status] for status in RAN)
    return f"{counts[Status.PASS] + counts[Status.UNLIKE]} of {ran}" if ran else "none"


def _row(first: str, cells: Sequence[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"
