"""The mutants of group coordinator and consumers: the model `group` with one rule weakened, and the property that fails."""

from collections.abc import Mapping
from typing import Any

from kspec.model_check.reports.catalogues.catalogue import MutantCatalogue
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


GROUP_SECTION = "In the model of a group"
"""The title of the section of the page of mutants that is about the model `group`."""

CATALOGUE = MutantCatalogue(
    model="group",
    mutants=ALL_MUTANTS,
    hunted=HUNTS,
    not_caught=NOT_CAUGHT,
    title=GROUP_SECTION,
    about="Each rule of the group coordinator and of consumers weakened by itself, in the model [`group`](group-model.md).",
    hunted_for_ever=LIVENESS_HUNTS,
    liveness="RebalanceEnds",
)
"""All of them."""
