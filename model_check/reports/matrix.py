"""The verdict matrix: every release of the model `kafka` within the same bounds, property by property.

Each release is explored in several configurations, small enough for all releases. A property is violated if it is violated
in one configuration, with the shortest run of all. It holds if it holds in all configurations and each was exhausted.
Otherwise it is open. Releases in which no rule of broker or controller differs are the same model, and are explored once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Limits, Progress, Trace, uninterrupted
from kspec.model_check.core.model import Model
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.models import MODELS
from kspec.model_check.models.kafka.settings import controller_of, releases_of
from kspec.model_check.traces.retrace import retrace
from kspec.model_check.traces.text import row
from kspec.spec.mutation import names_of_rules
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT

CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "two elections": {"brokers": 3, "values": 2, "elections": 2},
    "two brokers, three records": {"brokers": 2, "values": 3, "elections": 2},
    "an ISR shrink": {"brokers": 3, "values": 1, "elections": 1, "isr_shrinks": 1},
    "a fencing": {"brokers": 3, "values": 1, "elections": 1, "fencings": 1},
    "a clean shutdown": {"brokers": 2, "values": 1, "elections": 0, "clean_shutdowns": 1},
    "an unclean shutdown": {"brokers": 2, "values": 1, "elections": 0, "unclean_shutdowns": 1},
}
"""Outcomes in each configuration, with min.insync.replicas=2 and acks=all."""

MIXED = {"2.0 beside 2.1": "2.0,2.1,2.1", "3.9 beside next": "3.9,next,next"}
"""Three brokers of two releases: these rows have no configuration of two brokers."""

ROWS: Mapping[str, str] = {**{release.name: release.name for release in BROKER_RELEASES}, **MIXED}
"""The setting `--release` of each row, by name."""


class ViolatingRun(NamedTuple):
    """A shortest run that violates a property: the row and configuration in which it was found, and its number there."""

    row: str
    configuration: str
    bounds: Mapping[str, Any]
    number: int
    model: Model
    trace: Trace

    @property
    def steps(self) -> int:
        """The number of its steps."""
        return len(self.trace) - 1


class Cell(NamedTuple):
    """The verdict on a property: `holds` is `None` if the exploration was stopped first; `run` shows a violation."""

    holds: bool | None
    run: ViolatingRun | None = None


class ExplorationExtent(NamedTuple):
    """The extent of an exploration: states up to renaming of brokers, levels, and whether that was all."""

    states: int
    depth: int
    complete: bool


class Row(NamedTuple):
    """A release's verdicts by configuration and property. `same_as`: the earlier release in which no rule differs."""

    name: str
    release: str
    cells: Mapping[str, Mapping[str, Cell]]
    explored: Mapping[str, ExplorationExtent]
    same_as: str = ""

    @property
    def properties(self) -> list[str]:
        """All properties that were checked, in the model's order."""
        return list(dict.fromkeys(name for cells in self.cells.values() for name in cells))

    def verdict(self, name: str, configurations: Collection[str] | None = None) -> Cell | None:
        """A property's verdict over those of these configurations (or all) that checked it; `None` if none of them did."""
        looked_at = self.cells if configurations is None else configurations
        cells = [cells[name] for one, cells in self.cells.items() if one in looked_at and name in cells]
        if not cells:
            return None
        runs = [cell.run for cell in cells if cell.run is not None]
        if runs:
            return Cell(False, min(runs, key=lambda run: run.steps))
        return Cell(True if all(cell.holds for cell in cells) else None)

    @property
    def runs(self) -> list[ViolatingRun]:
        """The shortest runs, each once."""
        found = (cell.run for cells in self.cells.values() for cell in cells.values() if cell.run is not None)
        return list({(run.row, run.number): run for run in found}.values())


def configurations_of(release: str) -> Mapping[str, Mapping[str, Any]]:
    """The configurations in which a release can be explored."""
    brokers = release.count(",") + 1
    return {name: bounds for name, bounds in CONFIGURATIONS.items() if brokers in (1, bounds["brokers"])}


# ---- rules


def rules_in(release: str) -> tuple[Any, ...]:
    """The rules of all brokers and of the controller; releases with the same rules are the same model.

    The model has no transactions, so releases that differ in these alone are the same.
    """
    parameters = MODELS["kafka"].build({"release": release, "brokers": 3}).parameters
    known = {protocol.name: protocol for protocol in BROKER_RELEASES}
    brokers = [known[name] for name in releases_of(dict(parameters))]
    controller = controller_of(releases_of(dict(parameters)), dict(parameters)).protocol
    alike = (replace(broker, name="", transactions=TRANSACTIONS_NEXT) for broker in brokers)
    return (*alike, replace(controller, name=""))


class ChangedRule(NamedTuple):
    """A rule of broker or controller that a release has replaced."""

    party: str
    name: str
    before: Callable[..., Any]
    after: Callable[..., Any]


def changed_rules(before: str, after: str) -> list[ChangedRule]:
    """The rules in which two releases differ: those of their first broker and those of the controller.

    Controllers of two kinds have no rule in common.
    """
    changes = []
    was_rules, now_rules = rules_in(before), rules_in(after)
    for party, was, now in (("broker", was_rules[0], now_rules[0]), ("controller", was_rules[-1], now_rules[-1])):
        for rule in names_of_rules(now) if type(was) is type(now) else ():
            if getattr(was, rule) != getattr(now, rule):
                changes.append(ChangedRule(party, rule, getattr(was, rule), getattr(now, rule)))
    return changes


# ---- exploring


def rows(names: Iterable[str], time_limit: float, report: Callable[[Progress], None] | None = None) -> Iterator[Row]:
    """The rows of these names, in the order of `ROWS`."""
    done: dict[tuple[Any, ...], Row] = {}
    before: Row | None = None
    for name in [name for name in ROWS if name in set(names)]:
        rules = rules_in(ROWS[name])
        if rules in done:
            known = done[rules]
            current = known._replace(name=name, release=ROWS[name], same_as=known.name)
        else:
            current = _explored(name, before, time_limit, report)
            done[rules] = current
        before = current
        yield current


def _explored(name: str, before: Row | None, time_limit: float, report: Callable[[Progress], None] | None) -> Row:
    cells: dict[str, Mapping[str, Cell]] = {}
    explored: dict[str, ExplorationExtent] = {}
    runs: list[ViolatingRun] = []
    for configuration, bounds in configurations_of(ROWS[name]).items():
        model = MODELS["kafka"].build({**bounds, "release": ROWS[name]})
        properties = [prop for prop in model.properties if prop.kind == "always" and prop.by_default]
        symmetry = Symmetry(model) if model.interchangeable else None
        limits = Limits(stop_at_first=False, max_seconds=time_limit, report=report)
        result = uninterrupted(explorer(symmetry=symmetry)(model, properties, limits))
        explored[configuration] = ExplorationExtent(result.distinct_states, result.depth, result.complete)
        found = {}
        for verdict in result.verdicts:
            run = None
            if verdict.violated and verdict.trace:
                found_here = ViolatingRun(name, configuration, bounds, len(runs) + 1, model, verdict.trace)
                run = _known(found_here, verdict.prop.name, before, runs)
                if run is found_here:
                    runs.append(run)
            found[verdict.prop.name] = Cell(verdict.holds, run)
        cells[configuration] = found
    return Row(name, ROWS[name], cells, explored)


def _known(run: ViolatingRun, prop: str, before: Row | None, runs: list[ViolatingRun]) -> ViolatingRun:
    """A run that shows the same as this one: from the previous release if it still does, or another of this release."""
    cells = before.cells.get(run.configuration, {}) if before else {}
    earlier = cells[prop].run if prop in cells else None
    candidates = [*([earlier] if earlier else []), *runs]
    for other in candidates:
        same_bounds = other.configuration == run.configuration and other.steps == run.steps
        if same_bounds and violates(other, run.model, prop):
            return other
    return run


def violates(run: ViolatingRun, model: Model, prop: str) -> bool:
    """Whether all steps of a run are possible in a model, and the run violates the property in the end."""
    state = retrace(run.trace, run.model, model).state
    claim = model.property_named(prop)
    assert claim is not None
    return state is not None and not claim.bind()(state)


# ---- in words, as JSON


def verdict_in_words(cell: Cell | None) -> str:
    """A cell of the table; empty if the property was not checked."""
    if cell is None:
        return ""
    if cell.run is not None:
        return f"violated ({cell.run.steps})"
    return "holds" if cell.holds else "open"


def explored_in_words(explored: ExplorationExtent) -> str:
    """The extent of an exploration."""
    return f"{explored.states:,}" if explored.complete else f"{explored.states:,}, stopped after {explored.depth} levels"


def line(entry: Row) -> str:
    """A release in one line, or a few if the terminal is narrow: what is violated, and after how many steps."""
    if entry.same_as:
        return f"  {entry.name:<18} as {entry.same_as}: no rule differs"
    verdicts = {name: entry.verdict(name) for name in entry.properties}
    broken = [f"{name} ({cell.run.steps})" for name, cell in verdicts.items() if cell and cell.run is not None]
    still_open = [name for name, cell in verdicts.items() if cell and cell.holds is None]
    told = ", ".join(broken) or ("nothing found" if still_open else "all hold")
    return "\n".join(row(f"  {entry.name}", f"{told}{'; the rest is open' if still_open else ''}", 21))


def as_json(done: list[Row]) -> dict[str, Any]:
    """All rows. States are counted up to renaming of brokers; `steps` is -1 where no run was found."""
    return {
        "configurations": {name: dict(bounds) for name, bounds in CONFIGURATIONS.items()},
        "releases": [
            {
                "name": entry.name,
                "release": entry.release,
                "same_as": entry.same_as or None,
                "explored": {name: explored._asdict() for name, explored in entry.explored.items()},
                "properties": [_cell_as_json(name, entry.verdict(name)) for name in entry.properties],
                "by_configuration": {
                    configuration: [_cell_as_json(name, cell) for name, cell in cells.items()]
                    for configuration, cells in entry.cells.items()
                },
            }
            for entry in done
        ],
    }


def _cell_as_json(name: str, cell: Cell | None) -> dict[str, Any]:
    assert cell is not None
    run = cell.run
    actions = [step.action.label for step in run.trace if step.action] if run else []
    return {
        "property": name,
        "holds": False if run else cell.holds,
        "steps": run.steps if run else -1,
        "configuration": run.configuration if run else "",
        "run": actions,
    }
