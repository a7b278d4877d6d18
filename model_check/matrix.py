"""The verdict matrix: every version of the model `kafka` within the same bounds, property by property.

Each version is explored in several configurations, small enough for all of them. A property is violated if it is in one,
with the shortest run of all; it holds if it does in all and each was exhausted; else it is open.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from model_check.engines import explorer
from model_check.exploration import Limits, Progress
from model_check.models import MODELS
from model_check.models.kafka.settings import controller_of, versions_of
from model_check.symmetry import Symmetry
from spec.broker_versions import BROKER_VERSIONS

CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "two elections": {"elections": 2, "values": 2},
    "a fencing": {"elections": 1, "fencings": 1},
    "an ISR shrink": {"elections": 1, "isr_shrinks": 1},
    "an unclean shutdown": {"elections": 0, "unclean_shutdowns": 1},
}
"""What happens, in each, to three brokers with min.insync.replicas=2 and acks=all."""

MIXED = {"3.9 beside next": "3.9,next,next", "2.0 beside 2.1": "2.0,2.1,2.1"}

ROWS: Mapping[str, str] = {**{version.name: version.name for version in BROKER_VERSIONS}, **MIXED}
"""Rows by name, with the setting `--version` of each."""


class Cell(NamedTuple):
    """A property's verdict: `steps` of the shortest run that violates it, and in which configuration; else -1."""

    property: str
    holds: bool | None
    steps: int = -1
    configuration: str = ""


class Row(NamedTuple):
    """A version's verdicts, and the states explored in each configuration (with `+` if not exhausted)."""

    name: str
    version: str
    cells: Mapping[str, Cell]
    states: Mapping[str, str]


def row(name: str, time_limit: float, report: Callable[[Progress], None] | None = None) -> Row:
    """Explore one version in every configuration."""
    cells: dict[str, Cell] = {}
    states: dict[str, str] = {}
    for configuration, bounds in CONFIGURATIONS.items():
        model = MODELS["kafka"].build({**bounds, "version": ROWS[name]})
        properties = [prop for prop in model.properties if prop.kind == "always" and prop.by_default]
        symmetry = Symmetry(model) if model.interchangeable else None
        limits = Limits(stop_at_first=False, max_seconds=time_limit, report=report)
        result = explorer(symmetry=symmetry)(model, properties, limits)
        states[configuration] = f"{result.distinct_states:,}{'' if result.complete else '+'}"
        for verdict in result.verdicts:
            steps = len(verdict.trace) - 1 if verdict.violated and verdict.trace else -1
            cell = Cell(verdict.prop.name, verdict.holds, steps, configuration if steps >= 0 else "")
            known = cells.get(cell.property)
            cells[cell.property] = cell if known is None else _worse(known, cell)
    return Row(name, ROWS[name], cells, states)


def _worse(one: Cell, other: Cell) -> Cell:
    """The verdict of both configurations together."""
    if one.holds is False and other.holds is False:
        return min(one, other, key=lambda cell: cell.steps)
    order = {False: 0, None: 1, True: 2}
    return min(one, other, key=lambda cell: order[cell.holds])


def verdict_in_words(cell: Cell) -> str:
    """A cell of the table."""
    if cell.holds is False:
        return f"violated ({cell.steps})"
    return "holds" if cell.holds else "open"


def line(entry: Row) -> str:
    """A version in one line: what is violated."""
    broken = [f"{cell.property} ({cell.steps})" for cell in entry.cells.values() if cell.holds is False]
    still_open = any(cell.holds is None for cell in entry.cells.values())
    return f"  {entry.name:<18} {', '.join(broken) or ('nothing found' if still_open else 'all hold')}"


def as_json(rows: list[Row]) -> dict[str, Any]:
    """All rows."""
    return {
        "configurations": {name: dict(bounds) for name, bounds in CONFIGURATIONS.items()},
        "versions": [
            {
                "name": entry.name,
                "version": entry.version,
                "states": dict(entry.states),
                "properties": [cell._asdict() for cell in entry.cells.values()],
            }
            for entry in rows
        ],
    }


# ---- pages


def write_pages(folder: Path, rows: list[Row]) -> Iterator[Path]:
    """Write the matrix as README.md, and a page for each released version with what changed since the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / "README.md"
    index.write_text(matrix_page(rows), encoding="utf-8")
    yield index
    for before, entry in zip([None, *rows], rows, strict=False):
        page = folder / f"{entry.name.replace(' ', '-')}.md"
        page.write_text(version_page(before, entry), encoding="utf-8")
        yield page


def matrix_page(rows: list[Row]) -> str:
    """The table."""
    properties = list(dict.fromkeys(name for entry in rows for name in entry.cells))
    lines = [
        "# Versions",
        "",
        "Written by `kspec matrix --write docs/versions`. Three brokers, min.insync.replicas=2, acks=all.",
        "A property is",
        "*violated* by a run of that many steps, the shortest in any of the configurations; it *holds* if all were",
        "exhausted without a violation; else it is *open*. Each version is Kafka as released, its defects included;",
        "`next` is 4.0 with the known ones repaired. Up to 2.8 the decisions are those of the first KRaft controller",
        "(see [kafka-model.md](../kafka-model.md)).",
        "",
    ]
    lines += [
        f"- {name}: `{' '.join(_option(key, value) for key, value in bounds.items())}`"
        for name, bounds in CONFIGURATIONS.items()
    ]
    lines += ["", f"| version | {' | '.join(properties)} |", f"|---|{'---|' * len(properties)}"]
    for entry in rows:
        cells = [verdict_in_words(entry.cells[name]) if name in entry.cells else "" for name in properties]
        lines.append(f"| [{entry.name}]({entry.name.replace(' ', '-')}.md) | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _option(name: str, value: Any) -> str:
    return f"--{name.replace('_', '-')} {value}"


def changed_rules(before: Row, after: Row) -> list[str]:
    """The rules of broker and controller in which two versions differ, with what they are now."""
    changes = []
    known = {version.name: version for version in BROKER_VERSIONS}
    if before.version in known and after.version in known:
        for rule in fields(known[after.version]):
            was, now = getattr(known[before.version], rule.name), getattr(known[after.version], rule.name)
            if was != now and rule.name != "name":
                changes.append(f"broker `{rule.name}`: `{was.__name__}` → `{now.__name__}`")
    was_control, now_control = _control(before), _control(after)
    for rule in fields(now_control):
        was, now = getattr(was_control, rule.name), getattr(now_control, rule.name)
        if was != now and rule.name != "name":
            changes.append(f"controller `{rule.name}`: `{was.__name__}` → `{now.__name__}`")
    return changes


def _control(entry: Row) -> Any:
    parameters = MODELS["kafka"].build({"version": entry.version}).parameters
    return controller_of(versions_of(dict(parameters)), dict(parameters)).protocol


def version_page(before: Row | None, entry: Row) -> str:
    """What changed in a version: the rules, the verdicts."""
    lines = [f"# Version {entry.name}", "", "Written by `kspec matrix --write docs/versions`.", ""]
    if before is not None and before.version in {version.name for version in BROKER_VERSIONS}:
        changes = changed_rules(before, entry) if entry.version not in MIXED.values() else []
        lines += [f"## Rules changed since {before.name}", ""]
        lines += [f"- {change}" for change in changes] or ["- none that the model looks at"]
        lines += ["", f"## Verdicts changed since {before.name}", ""]
        differences = [
            f"- {name}: {verdict_in_words(before.cells[name])} → {verdict_in_words(cell)}"
            for name, cell in entry.cells.items()
            if name in before.cells and verdict_in_words(before.cells[name]) != verdict_in_words(cell)
        ]
        lines += [*(differences or ["- none"]), ""]
    lines += ["## Verdicts", "", "| property | verdict | shortest run in |", "|---|---|---|"]
    lines += [f"| {cell.property} | {verdict_in_words(cell)} | {cell.configuration} |" for cell in entry.cells.values()]
    lines += ["", "States explored (with symmetry; `+`: not exhausted):", ""]
    lines += [f"- {name}: {count}" for name, count in entry.states.items()]
    return "\n".join(lines) + "\n"
