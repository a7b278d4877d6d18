"""Plans of rounds."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from kspec.trials.faults.plans.plan_run import PlanRun
from kspec.trials.faults.plans.steps import ALL


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a round, in order; `meaning` says so in a line.

    `rules`: the fields of the protocols (`spec/`) without which records are lost in it. `settings`: of the round's topic.
    `acks`: of the producers; with 1 acknowledged records may be lost, and only a loss of polled ones is one. `one_by_one`:
    producers put one record in a batch. `mutants`: those of its rules by which it loses records; all, if it names none.
    `not_simulated`: the reason why it runs on processes only, if so.
    """

    name: str
    meaning: str
    rules: tuple[str, ...]
    carry_out: Callable[[PlanRun], Awaitable[None]]
    settings: Mapping[str, str] = field(default_factory=dict)
    not_simulated: str = ""
    acks: str = ALL
    one_by_one: bool = False
    mutants: tuple[str, ...] = ()
