"""The mutants of group coordinator and consumers: the model `group` with one rule weakened, and the property that fails."""

from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any

from kspec.model_check.core.exploration import Limits, Progress, uninterrupted
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.models import MODELS
from kspec.model_check.reports.mutants import Hunt, LivenessHunt, hunt_infinite_run, table_of_hunts
from kspec.spec.mutation import Mutant
from kspec.spec.releases.group_mutants import CONSUMER_MUTANTS, COORDINATOR_MUTANTS, HEARTBEAT_MUTANTS

ALL_MUTANTS: Mapping[str, Mutant] = {
    mutant.name: mutant for mutant in (*COORDINATOR_MUTANTS, *CONSUMER_MUTANTS, *HEARTBEAT_MUTANTS)
}

COOPERATIVE = {"protocol": "cooperative", "topic_partitions": 2, "generations": 3}

MODERN = {"protocol": "consumer-next", "records": 0}
"""Consumers of a consumer group, with the repair that connections which break need."""

KAFKAS = {"protocol": "consumer", "records": 0}

HUNTS: dict[str, tuple[dict[str, Any], str, int]] = {
    "lost-update": ({"topic_partitions": 2}, "AcknowledgedCommitsKept", 17),
    "answer-before-commit": ({}, "AcknowledgedCommitsKept", 14),
    "read-what-is-known": ({"moves": 1, "lags": 1}, "AcknowledgedCommitsKept", 16),
    "any-generation": ({"moves": 1}, "OnlyMembersCommit", 21),
    "same-generation": ({"moves": 1}, "ExclusiveOwnership", 20),
    "keeps-while-joining": ({}, "ExclusiveOwnership", 19),
    "keeps-when-out": ({"expiries": 1, "lives": 2}, "OwnsWhatIsAssigned", 25),
    "keeps-what-others-get": (COOPERATIVE, "OwnsWhatIsAssigned", 17),
    "hands-out-what-is-owned": (COOPERATIVE, "ExclusiveOwnership", 19),
    "says-what-is-assigned": (KAFKAS, "OwnsOnlyWhatIsAssigned", 17),
    "free-though-owned": (MODERN, "ExclusiveAssignment", 4),
    "silence-releases": (MODERN, "OwnsOnlyWhatIsAssigned", 13),
    "keeps-when-fenced": ({**MODERN, "expiries": 1, "generations": 4}, "OwnsOnlyWhatIsAssigned", 18),
    "given-back-forgotten": ({**MODERN, "leaves": 1, "generations": 4}, "ExclusiveAssignment", 13),
    "known-member-fenced": ({**MODERN, "disconnects": 2}, "WhoJoinsIsLetIn", 11),
    "told-its-id": ({**MODERN, "disconnects": 1, "lives": 2}, "OneMemberEach", 5),
    "commits-of-any-epoch": ({"protocol": "consumer-next"}, "OnlyMembersCommit", 26),
}
"""Mutants that violate a property of states: the bounds, the property, and the steps of the shortest run."""

LIVENESS_HUNTS: dict[str, dict[str, Any]] = {
    "step-on-committed": {},
    "keeps-unknown-id": {"moves": 1, "lives": 2, "generations": 4},
    "lost-answer-forgotten": {**MODERN, "disconnects": 1},
}
"""Mutants with which a rebalance may never end: the bounds."""

NOT_CAUGHT = {
    "uncommitted-read": (
        "a member reads offsets once it has its assignment, which stands behind all earlier commits in the log and is"
        " committed before it is handed out: nothing that a member could read then is uncommitted. Others may read it"
    ),
    "nobody-left-behind": "costs time: the next generation waits for a member that does not come, until its time ends",
    "waiting-member-out": "costs time: the member joins once more, and sessions end finitely often in the model",
    "commit-before-assignment": "a consumer commits only what it owns, so never before it has its assignment",
    "late-error-counts": "a consumer of the model has one request under way, so no error comes from an earlier generation",
    "any-epoch": "on one connection no heartbeat of another epoch arrives; a late one takes a partition by any rule",
    "previous-epoch-owns-more": (
        "a consumer that asks in its previous epoch has missed an answer, and reads no more than it was to read before"
    ),
    "own-epoch-only": "costs time: a consumer that has missed an answer joins once more",
    "old-epoch-refused": "costs a commit, which its consumer is told",
    "own-pending-not-free": "costs a heartbeat",
    "forgets-known-id": "costs time: the group waits for the old id until its session ends",
}
"""Mutants that no run of the model tells apart by what it violates, and why."""


def is_listed(name: str) -> bool:
    """Whether a hunt, or a reason why none catches it, is listed for a mutant."""
    return name in HUNTS or name in LIVENESS_HUNTS or name in NOT_CAUGHT


def hunt(name: str, report: Callable[[Progress], None] | None = None) -> Hunt:
    """Explore one mutant up to a violation of the property that is known to fail. One that is not caught is not explored."""
    mutant = ALL_MUTANTS[name]
    if name in LIVENESS_HUNTS:
        return hunt_infinite_run(mutant, LivenessHunt(LIVENESS_HUNTS[name], "RebalanceEnds"), report, "group")
    if name not in HUNTS:
        return Hunt(mutant, {}, {}, 0, 0.0, NOT_CAUGHT[name])
    bounds, prop, _ = HUNTS[name]
    return hunt_one_property("group", mutant, bounds, prop, report)


def hunt_one_property(
    model_name: str,
    mutant: Mutant,
    bounds: Mapping[str, Any],
    prop: str,
    report: Callable[[Progress], None] | None = None,
) -> Hunt:
    """Explore a model with a mutant up to a violation of the property that is known to fail."""
    model, began = MODELS[model_name].build({**bounds, "mutant": mutant.name}), monotonic()
    properties = [one for one in model.properties if one.name == prop]
    result = uninterrupted(explorer()(model, properties, Limits(report=report)))
    found = {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in result.verdicts if verdict.violated}
    return Hunt(mutant, bounds, found, result.distinct_states, monotonic() - began)


def hunts(names: tuple[str, ...], report: Callable[[Progress], None] | None = None) -> Iterator[Hunt]:
    """The hunts for these mutants, one after the other."""
    for name in names or tuple(ALL_MUTANTS):
        yield hunt(name, report)


GROUP_SECTION = "In the model of a group"
"""The title of the section of the page of mutants that is about the model `group`."""


def as_markdown(done: list[Hunt]) -> str:
    """The section of `docs/mutants.md` about the model of a group."""
    caught = [entry for entry in done if entry.caught]
    lines = [
        f"## {GROUP_SECTION}",
        "",
        "Each rule of the group coordinator and of consumers weakened by itself, in the model [`group`](group-model.md).",
        "Written by `kspec mutants --model group --write docs/mutants.md`, which leaves the other sections.",
        "",
        f"{len(caught)} of {len(done)} are caught.",
        "",
        *table_of_hunts(done),
    ]
    return "\n".join(lines) + "\n"
