"""The cases of level 1: the shortest runs of the model `kafka` that show why a rule is needed, and walks by seed."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from kspec.conformance.cluster.translation import NotTranslatedError, schedule_of
from kspec.conformance.wire.cases.rules import Rule, rule_of
from kspec.model_check.core.exploration import Limits, Trace
from kspec.model_check.core.model import Model
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.engines.simulation.walks import trace_of, walks
from kspec.model_check.models import MODELS
from kspec.model_check.reports.mutants import ALL_MUTANTS, HUNTS, weakened
from kspec.model_check.reports.studies.catalogue import STUDIES
from kspec.spec.broker.rules.produce import check_produce
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.trials.faults.plans.losses import LOSSES
from kspec.trials.faults.plans.steps import ALL, LEADER, Schedule

LOST_BY_LEADER = "acks-1/leader-dies-alone"
RANDOM = "random/seed-"

WALK: Mapping[str, Any] = {
    "release": "next",
    "elections": 2,
    "isr_shrinks": 1,
    "fencings": 1,
    "clean_shutdowns": 1,
    "unclean_shutdowns": 1,
    "values": 4,
}
"""The bounds of random walks."""

DEPTH = 40
WEIGHTS: Mapping[str, int] = {"Fetch": 6, "ReplayMetadata": 6, "Produce": 12, "FetchUnanswered": 1, "CreatePartition": 50}
"""The weight of each action in a walk, beside 2 of all others."""

ORDINARY = 2


class ClusterCase(NamedTuple):
    """One case. `source`: a mutant of the rules, empty for a seed; `guards`: the properties of the model it is about.

    `acks`: of the producers. With 1 acknowledged records may be lost, and the case shows that such losses are found.
    """

    name: str
    title: str
    subject: str
    rule: Rule
    issues: tuple[str, ...]
    guards: tuple[str, ...]
    acks: str = ALL
    source: str = ""
    seed: int = 0
    by_hand: bool = False


class ScheduledCase(NamedTuple):
    """A case with its run: the model's steps in words, and the schedule for a cluster."""

    case: ClusterCase
    run: tuple[str, ...]
    schedule: Schedule


REFUSED: Mapping[str, str] = {
    "stale-broker-epoch-accepted": "a proposal must arrive after the broker that it admits has lost its records",
    "unclean-replica-keeps-its-place": "a broker must lose its records, which `losses/` has; a run of the model loses some",
    "fenced-replica-admitted": "a proposal must arrive after the broker that it admits has lost its records",
    "act-on-old-metadata": "needs a second mutant beside it",
    "act-before-registration": "a registration must be late, and no driver delays one",
    "no-sequence-check": "a request must arrive again behind five others, and clients here have one under way",
    "roll-back-on-any-error": "an answer of the controller must be lost, and no driver loses one",
    "latest-offset-goes-back": "no client asks for the latest offset while it polls",
    "take-old-announcement": "a model of older releases, whose controller writes to ZooKeeper",
    "no-epoch-entry": "a model of older releases",
    "epoch-lookup-by-end": "a model of older releases",
}
"""Mutants whose runs are no cases, beside those of which a step has no counterpart."""


@cache
def all_cases() -> tuple[ClusterCase, ...]:
    """All cases but the random ones, by name."""
    found = [_case_of(name) for name in HUNTS if name not in REFUSED and not _late(HUNTS[name])]
    return tuple(sorted([*found, *map(_loss_of, LOSSES), _of_acks_1()]))


def _late(bounds: Mapping[str, Any]) -> bool:
    """Whether a run needs an ability that no driver has: a message that is late, a reassignment."""
    return any(bounds.get(name) for name in ("late_fetches", "late_proposals", "late_registrations", "reassignments"))


def _case_of(mutant: str) -> ClusterCase:
    """The case of the shortest run of the model in which a weakened rule violates a property."""
    summary = ALL_MUTANTS[mutant].summary
    title = f"What happens in the shortest run of the model in which it goes wrong that {summary}."
    return _about(mutant, "rules", title)


def _loss_of(mutant: str) -> ClusterCase:
    """The case of a run written by hand, in which a weakened rule loses records of real processes."""
    return _about(mutant, "losses", LOSSES[mutant].title)._replace(acks=LOSSES[mutant].acks, by_hand=True)


def _about(mutant: str, family: str, title: str) -> ClusterCase:
    entry = ALL_MUTANTS[mutant]
    protocol = BROKER_NEXT if hasattr(BROKER_NEXT, entry.field) else KRAFT_NEXT
    rule = rule_of(getattr(protocol, entry.field))
    studies = [one for one in STUDIES if one.failing.parameters.get("mutant") == mutant]
    texts = [entry.summary, rule.doc, *(one.reference for one in studies)]
    issues = dict.fromkeys(name for text in texts for name in re.findall(r"(?:KIP|KAFKA)-\d+", text))
    return ClusterCase(
        f"{family}/{entry.field}/{mutant}", title, entry.field, rule, tuple(issues), _guards(mutant), source=mutant
    )


def _guards(mutant: str) -> tuple[str, ...]:
    return ("CommittedOnNextLeader", "AcknowledgedOnNextLeader") if mutant else ()


def _of_acks_1() -> ClusterCase:
    title = "A leader acknowledges by itself, and dies before its followers have fetched: what it acknowledged is lost."
    rule = rule_of(check_produce)
    return ClusterCase(LOST_BY_LEADER, title, "acks-1", rule, ("KIP-966",), ("AcknowledgedOnNextLeader",), LEADER)


def random_case(seed: int, acks: str = ALL) -> ClusterCase:
    """The case of a seed: a random walk through the model."""
    title = "A random walk through the model: elections, slow followers, sessions that end, brokers that stop."
    rule = rule_of(BROKER_NEXT.may_advance)
    return ClusterCase(f"{RANDOM}{seed}", title, "random", rule, (), _guards("any"), acks, seed=seed)


def scheduled(case: ClusterCase) -> ScheduledCase:
    """The case with its run. Raises: `NotTranslatedError`."""
    if case.by_hand:
        return ScheduledCase(case, (), LOSSES[case.source].schedule)
    model, trace = _run_of(case)
    run = tuple(step.action.label for step in trace if step.action is not None)
    return ScheduledCase(case, run, schedule_of(model, trace))


def _run_of(case: ClusterCase) -> tuple[Model, Trace]:
    if case.seed:
        return _walk(case.seed)
    if case.source:
        return _shortest({"release": "next", **HUNTS[case.source], "mutant": weakened(case.source)}, SAFETY)
    return _shortest({"release": "next", "acks": LEADER, "elections": 0}, ("AcknowledgedOnNextLeader",))


SAFETY = ("CommittedOnNextLeader", "AcknowledgedOnNextLeader", "QuorumSuperset", "LeaderInIsr", "StrongIsr", "LogMatching")
"""The properties whose shortest violation is taken, the first that is violated."""


def _shortest(parameters: Mapping[str, Any], names: Iterable[str]) -> tuple[Model, Trace]:
    model = MODELS["kafka"].build(parameters)
    properties = [found for name in names if (found := model.property_named(name)) is not None]
    for verdict in explore(model, properties, Limits(), symmetry=Symmetry(model)).verdicts:
        if verdict.trace is not None:
            return model, verdict.trace
    raise NotTranslatedError("the model has no run that violates a property within the bounds")


def _walk(seed: int) -> tuple[Model, Trace]:
    model = MODELS["kafka"].build(WALK)
    weights = {action.name: WEIGHTS.get(action.name, ORDINARY) for action in model.actions}
    (found,) = walks(model, [], seed, [0], DEPTH, weights)
    return model, trace_of(model, found.actions)
