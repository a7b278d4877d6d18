"""The pages of `docs/releases/`: the matrix, and for each release what it changed and which runs are possible in it."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from kspec.model_check.core.model import Model, State
from kspec.model_check.models import MODELS
from kspec.model_check.reports import matrix
from kspec.model_check.reports.matrix import (
    ROWS,
    Cell,
    ChangedRule,
    Row,
    ViolatingRun,
    changed_rules,
    explored_in_words,
    verdict_in_words,
)
from kspec.model_check.traces.docstrings import meaning_of
from kspec.model_check.traces.render import action_in_words, changes, field_name, owner, party_name, steps
from kspec.model_check.traces.retrace import retrace
from kspec.spec.releases import broker as broker_releases
from kspec.spec.releases import kraft as kraft_releases
from kspec.spec.releases import zookeeper as zookeeper_releases

WRITTEN = "Written by `kspec matrix --write docs/releases`."


def write_pages(folder: Path, rows: list[Row]) -> Iterator[Path]:
    """Write the matrix as README.md, and a page for each release; yields each page when it is written."""
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / "README.md"
    index.write_text(matrix_page(rows), encoding="utf-8")
    yield index
    for before, entry in zip([None, *rows], rows, strict=False):
        page = folder / page_name(entry.name)
        page.write_text(release_page(before, entry), encoding="utf-8")
        yield page


def page_name(row: str) -> str:
    """The file of a row."""
    return f"{row.replace(' ', '-')}.md"


def _link(row: str, anchor: str = "", text: str = "") -> str:
    return f"[{text or row}]({page_name(row)}{anchor})"


def _title(entry: Row) -> str:
    return entry.name if entry.name == "next" or " " in entry.name else f"Kafka {entry.name}"


def _command(release: str, bounds: Any, option: str) -> str:
    settings = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in bounds.items())
    return f"kspec check kafka --release {release} {settings} {option}"


# ---- the matrix


def matrix_page(rows: list[Row]) -> str:
    """The verdicts as tables. Releases in which no rule differs share one line."""
    lines = [
        "# Releases",
        "",
        WRITTEN,
        "",
        "Each release in the model [`kafka`](../kafka-model.md) is Kafka as released, its defects included; `next` is 4.4",
        "with the known ones repaired. Up to 2.8 the controller works on ZooKeeper, from 3.0 on it is a KRaft controller.",
        "Each is explored in these configurations, with min.insync.replicas=2 and acks=all:",
        "",
        "| configuration | bounds |",
        "|---|---|",
    ]
    lines += [f"| {name} | `{_settings(bounds)}` |" for name, bounds in matrix.CONFIGURATIONS.items()]
    lines += [
        "",
        "A number is the length, in steps, of the shortest run that violates the property in any of them. *holds*: all were",
        "exhausted without a violation. *open*: nothing was found, and some were not exhausted. The page of a release tells",
        "what it changed, how many states were explored, and shows the runs. What a controller's failover does, and a lost",
        "confirmation of ZooKeeper, both only up to 2.8, [the model's page](../kafka-model.md#zookeeper) has.",
    ]
    harmless = [name for name in matrix.CONFIGURATIONS if name != LOSSY]
    lines += ["", "## While no broker loses records", "", *_table(rows, harmless)]
    lines += ["", "## When one stops without warning, and loses any part of its log", "", *_table(rows, [LOSSY])]
    return "\n".join(lines) + "\n"


LOSSY = "an unclean shutdown"


def _table(rows: list[Row], configurations: list[str]) -> list[str]:
    """The properties that do not hold in all releases, as columns; then those that do."""
    checked = {
        name: [verdict for entry in rows if (verdict := entry.verdict(name, configurations)) is not None]
        for name in dict.fromkeys(name for entry in rows for name in entry.properties)
    }
    columns = [name for name, verdicts in checked.items() if any(not verdict.holds for verdict in verdicts)]
    holding = [f"`{name}`" for name, verdicts in checked.items() if verdicts and name not in columns]
    lines = [f"| release | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"] if columns else []
    for group in _groups(rows) if columns else []:
        cells = [_short(group[0].verdict(name, configurations)) for name in columns]
        if any(cells):
            names = " to ".join(dict.fromkeys(_link(entry.name) for entry in (group[0], group[-1])))
            lines.append(f"| {names} | {' | '.join(cells)} |")
    return [*lines, "", f"In all releases these hold: {', '.join(holding)}."] if holding else lines


def _settings(bounds: Any) -> str:
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in bounds.items())


def _short(cell: Cell | None) -> str:
    return f"**{cell.run.steps}**" if cell and cell.run else verdict_in_words(cell)


def _groups(rows: list[Row]) -> list[list[Row]]:
    """The rows in groups: neighbours in which no rule differs are together."""
    groups: list[list[Row]] = []
    for entry in rows:
        if groups and entry.same_as == groups[-1][0].name:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


# ---- a release


def release_page(before: Row | None, entry: Row) -> str:
    """The page of a release: the rules and verdicts that it changed, and the runs that are possible in it."""
    lines = [f"# {_title(entry)}", "", f"{WRITTEN} {_link('README', text='All releases')}.", ""]
    lines += _notes(entry.name)
    if entry.same_as:
        lines += [
            f"No rule that the model looks at differs from {_link(entry.same_as)}: verdicts and runs are the same.",
            "",
        ]
        return "\n".join(lines)
    if before is not None and entry.name in _RELEASES and before.name in _RELEASES:
        lines += _changes(before, entry)
    lines += _verdicts(entry)
    lines += _runs(entry)
    return "\n".join(lines).rstrip() + "\n"


_RELEASES = [name for name, release in ROWS.items() if name == release]


def _notes(name: str) -> list[str]:
    notes = [f"- {party}: {note}" for party, note in _party_notes(name)]
    return [*notes, ""] if notes else []


def notes_on(name: str) -> list[str]:
    """The notes on a release in the tables of releases in `spec`: of the broker, then of the controller."""
    return [note for _, note in _party_notes(name)]


def _party_notes(name: str) -> Iterator[tuple[str, str]]:
    for party, module in (("broker", broker_releases), ("controller", zookeeper_releases), ("controller", kraft_releases)):
        if note := _docs_of_releases(module).get(name):
            yield party, note


def _docs_of_releases(module: ModuleType) -> dict[str, str]:
    """The docstring below each release in its table, by the name of the release."""
    body = ast.parse(inspect.getsource(module)).body
    docs: dict[str, str] = {}
    for statement, following in pairwise(body):
        words = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant) and following.value.value
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and isinstance(words, str):
            protocol = getattr(module, statement.targets[0].id)
            if hasattr(protocol, "name"):
                docs.setdefault(protocol.name, " ".join(words.split()))
    return docs


ANOTHER_CONTROLLER = (
    "The controller is another one: a KRaft controller, whose decisions brokers read in the metadata log, in place of one"
    " that works on ZooKeeper and tells them by request."
)


def _changes(before: Row, entry: Row) -> list[str]:
    since = _link(before.name)
    lines = [f"## Rules changed since {before.name}", "", "| of | rule | in " + since + " | now | which says |"]
    lines += ["|---|---|---|---|---|", *map(_rule_line, changed_rules(before.release, entry.release))]
    if type(matrix.rules_in(before.release)[-1]) is not type(matrix.rules_in(entry.release)[-1]):
        lines += ["", ANOTHER_CONTROLLER]
    lines += ["", f"## Verdicts changed since {before.name}", ""]
    differences = []
    for name in entry.properties:
        was, now = before.verdict(name), entry.verdict(name)
        if name in before.properties and verdict_in_words(was) != verdict_in_words(now):
            differences.append(f"| `{name}` | {verdict_in_words(was)} | {verdict_in_words(now)} |")
    table = [f"| property | {before.name} | {entry.name} |", "|---|---|---|", *differences] if differences else ["None."]
    lines += [*table, ""]
    gone = [_gone(run, entry) for run in before.runs if run not in entry.runs]
    if gone:
        lines += [f"## Runs of {before.name} that are gone", "", *gone, ""]
    return lines


def _rule_line(rule: ChangedRule) -> str:
    names = f"`{rule.before.__name__}` | `{rule.after.__name__}`"
    return f"| {rule.party} | `{rule.name}` | {names} | {meaning_of(rule.after)} |"


def _gone(run: ViolatingRun, entry: Row) -> str:
    model = MODELS["kafka"].build({**run.bounds, "release": entry.release})
    retraced = retrace(run.trace, run.model, model)
    words = f"- {_run_link(run)} ({run.configuration}, {run.steps} steps). {retraced.words or 'Every step is possible'}"
    if retraced.state is None:
        return words
    if _broken(model, retraced.state):
        return f"{words}, and the end violates the same; this release has a shorter run."
    return f"{words}, and nothing is violated in the end."


def _broken(model: Model, state: State) -> bool:
    return any(prop.kind == "always" and prop.by_default and not prop.bind()(state) for prop in model.properties)


def _run_link(run: ViolatingRun) -> str:
    return _link(run.row, f"#run-{run.number}", f"run {run.number} of {run.row}")


def _verdicts(entry: Row) -> list[str]:
    configurations = list(entry.cells)
    lines = ["## Verdicts", "", f"| property | {' | '.join(configurations)} |", f"|---|{'---|' * len(configurations)}"]
    for name in entry.properties:
        cells = [_linked(entry, entry.cells[one].get(name)) for one in configurations]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    explored = [explored_in_words(entry.explored[one]) for one in configurations]
    lines += [f"| *states explored* | {' | '.join(explored)} |", ""]
    lines += ["States are counted up to renaming of brokers where all brokers run the same release.", ""]
    return lines


def _linked(entry: Row, cell: Cell | None) -> str:
    if cell is None:
        return ""
    run = cell.run
    if run is None:
        return verdict_in_words(cell)
    page = "" if run.row == entry.name else page_name(run.row)
    return f"[**{run.steps}**]({page}#run-{run.number})"


def _runs(entry: Row) -> list[str]:
    own = [run for run in entry.runs if run.row == entry.name]
    lines = ["## Runs", ""] if own else []
    for run in own:
        broken = [name for name, cell in entry.cells[run.configuration].items() if cell.run == run]
        command = _command(entry.release, run.bounds, f"--symmetry --invariant {broken[0]}")
        command = command.replace(" --symmetry", "") if "," in entry.release else command
        lines += [f"### Run {run.number}", "", f"{run.configuration}: violates {', '.join(broken)}", ""]
        lines += ["```sh", command, "```", "", "```text", *_steps(run), "```", ""]
    return lines


def _steps(run: ViolatingRun) -> Iterator[str]:
    """The steps of a run, each with what it changed."""
    for number, before, after in steps(run.trace):
        assert after.action is not None
        yield f"{number}  {action_in_words(after.action)}"
        for slot, _, new in changes(run.model, before.state, after.state):
            yield f"     {party_name(owner(slot)):<11} {field_name(slot):<15} {new}"
