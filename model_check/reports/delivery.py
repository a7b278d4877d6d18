"""The table of delivery: settings of a producer and of those who read, and what they keep in which disturbance.

Each cell is explored completely within its bounds, or has the steps of a shortest run that breaks a guarantee.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.engines.reference import explore as explore_with_reference_engine
from kspec.model_check.explorer.run import Run
from kspec.model_check.models import MODELS
from kspec.model_check.reports.studies.study import Configuration

RETRIES: dict[str, Any] = {"retries": True}
IDEMPOTENT: dict[str, Any] = {"retries": True, "idempotent": True}
ONE_PROCESS: dict[str, Any] = {"inputs": 2, "transactions": 2}
TWO_PROCESSES: dict[str, Any] = {"inputs": 1, "producers": 2, "own_ids": True, "rebalances": 1, "transactions": 1}


class DeliveryTable(NamedTuple):
    """A table of the page: the model, the names of both guarantees in it, its rows and columns with their parameters."""

    title: str
    model: str
    at_most_once: str
    at_least_once: str
    head: str
    rows: Mapping[str, Mapping[str, Any]]
    columns: Mapping[str, Mapping[str, Any]]


PRODUCERS = DeliveryTable(
    "From a producer into the log",
    "delivery",
    "AtMostOnce",
    "AtLeastOnce",
    "producer",
    {
        "`acks=0`": {"acks": "0"},
        "`acks=1`, `retries=0`": {"acks": "1"},
        "`acks=1`": {"acks": "1", **RETRIES},
        "`acks=all`, `retries=0`": {},
        "`acks=all`, not idempotent": RETRIES,
        "`enable.idempotence=true`": IDEMPOTENT,
    },
    {
        "nothing happens": {},
        "its connection breaks": {"disconnects": 1},
        "a request is late": {"late_requests": 1},
        "another leader": {"leader_changes": 1},
        "an unclean leader": {"leader_changes": 1, "unclean": True},
        "it starts again": {"restarts": 1},
    },
)

READERS = DeliveryTable(
    "From the log into work",
    "delivery",
    "AtMostOnce",
    "AtLeastOnce",
    "consumer",
    {"it commits before its work": {"commits": "before"}, "it commits after its work": {"commits": "after"}},
    {
        "nothing happens": {},
        "it ends, another takes over": {"rebalances": 1, "crashes": 1},
        "another takes over while it lives": {"rebalances": 1},
        "a commit is late": {"late_commits": 1},
        "a commit is late, another takes over": {"late_commits": 1, "rebalances": 1},
    },
)

WHOLE_WAYS = DeliveryTable(
    "From a producer into work",
    "delivery",
    "AtMostOnce",
    "AtLeastOnce",
    "producer, and consumer",
    {
        f"{producer}, commits {commits}": {**parameters, "commits": commits}
        for producer, parameters in (
            ("`acks=0`", {"acks": "0"}),
            ("`acks=all`", RETRIES),
            ("`enable.idempotence=true`", IDEMPOTENT),
        )
        for commits in ("before", "after")
    },
    {
        "nothing happens": {},
        "connection and leader": {"disconnects": 1, "leader_changes": 1},
        "… and the consumer ends": {"disconnects": 1, "leader_changes": 1, "rebalances": 1, "crashes": 1},
    },
)

TRANSACTIONS = DeliveryTable(
    "From a log into work, and its output into a log, in one transaction",
    "transactions",
    "EachInputOnce",
    "NoInputSkipped",
    "process",
    {
        "version 2": {},
        "version 1": {"transaction_version": "1"},
        "version 1, without KIP-447": {"transaction_version": "1", "unnamed_members": True, "unstable_reads": True},
    },
    {
        "nothing happens": ONE_PROCESS,
        "a request is late": {**ONE_PROCESS, "late_requests": 1},
        "its connection breaks": {**ONE_PROCESS, "disconnects": 1},
        "it takes too long": {**ONE_PROCESS, "timeouts": 1},
        "another coordinator": {**ONE_PROCESS, "moves": 1},
        "other leaders": {**ONE_PROCESS, "leader_changes": 1},
        "another process takes over": TWO_PROCESSES,
    },
)

TABLES = (PRODUCERS, READERS, WHOLE_WAYS, TRANSACTIONS)


class Guarantee(NamedTuple):
    """The verdict about a guarantee: the steps of a shortest run that breaks it, `None` if it holds; the states explored.

    `address`: that run, as `kspec explore` takes it.
    """

    configuration: Configuration
    prop: str
    steps: int | None
    states: int
    address: str = ""


class Cell(NamedTuple):
    """A cell: its row and column, and both guarantees."""

    table: DeliveryTable
    row: str
    column: str
    at_most_once: Guarantee
    at_least_once: Guarantee

    @property
    def verdict(self) -> str:
        """The guarantee that is left, and the steps in which the others fail, or the states in which none does."""
        twice, lost = self.at_most_once.steps, self.at_least_once.steps
        if twice is None and lost is None:
            return f"**exactly once** ({self.at_most_once.states:,} states)"
        if twice is None:
            return f"at most once: lost in {lost}"
        if lost is None:
            return f"at least once: twice in {twice}"
        return f"neither: lost in {lost}, twice in {twice}"


def check_guarantee(configuration: Configuration, prop: str) -> Guarantee:
    """Explore a configuration for one guarantee. The bounds are small, so nothing limits that."""
    model = MODELS[configuration.model].build(configuration.parameters)
    wanted = model.property_named(prop)
    assert wanted is not None, f"{configuration.model} has no {prop}"
    found = explore(model, [wanted], Limits())
    (verdict,) = found.verdicts
    if verdict.violated:
        address, steps = _address_of(configuration, prop)
        return Guarantee(configuration, prop, steps, found.distinct_states, address)
    assert found.complete, f"{configuration.command(prop)} is not explored completely"
    return Guarantee(configuration, prop, None, found.distinct_states)


def _address_of(configuration: Configuration, prop: str) -> tuple[str, int]:
    """The address of the first of the shortest runs that break a guarantee, and its steps."""
    model = MODELS[configuration.model].build(configuration.parameters)
    wanted = [one for one in model.properties if one.name == prop]
    (verdict,) = explore_with_reference_engine(model, wanted, Limits()).verdicts
    trace = verdict.trace
    assert trace is not None, f"two engines differ on {configuration.command(prop)}"
    run = Run(MODELS[configuration.model], configuration.parameters)
    return run.address(run.named(trace), trace[-1].state), len(trace) - 1


def cells_of(table: DeliveryTable) -> Iterator[Cell]:
    """The cells of a table, row by row."""
    for row, settings in table.rows.items():
        for column, disturbance in table.columns.items():
            configuration = Configuration(table.model, {**settings, **disturbance})
            names = (table.at_most_once, table.at_least_once)
            yield Cell(table, row, column, *(check_guarantee(configuration, name) for name in names))


def as_markdown(table: DeliveryTable, cells: list[Cell]) -> str:
    """The table, and below it the commands that show a shortest run for each guarantee that fails, step by step."""
    by_place = {(cell.row, cell.column): cell for cell in cells}
    columns = list(table.columns)
    lines = [
        f"## {table.title}",
        "",
        f"| {' | '.join((table.head, *columns))} |",
        f"|{'---|' * (len(columns) + 1)}",
        *(f"| {' | '.join((row, *(by_place[row, column].verdict for column in columns)))} |" for row in table.rows),
        "",
        "<details>",
        "<summary>The runs that break a guarantee</summary>",
        "",
        "| setting | disturbance | shortest run | step by step |",
        "|---|---|---|---|",
    ]
    for cell in cells:
        for guarantee in (cell.at_most_once, cell.at_least_once):
            if guarantee.steps is not None:
                command = guarantee.configuration.command(guarantee.prop)
                run = f"`{command}`: {guarantee.steps} steps"
                lines.append(f"| {cell.row} | {cell.column} | {run} | `kspec explore {guarantee.address}` |")
    return "\n".join((*lines, "", "</details>", ""))
