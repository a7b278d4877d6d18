"""What came of a case of level 1: what clients saw, and which property that breaks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from conformance.cluster.cases import Case, Played
from conformance.cluster.losses import LEADER
from conformance.wire.run.results import Status
from impl.history.anomalies import MEANINGS, Anomaly, count_by_name, may_be_without_waiting

PROPERTIES: Mapping[str, str] = {
    "lost-write": "AcknowledgedOnNextLeader",
    "unseen": "AcknowledgedOnNextLeader",
    "duplicate": "OnceAndInOrder",
    "nonmonotonic-send": "OnceAndInOrder",
    "inconsistent-offsets": "ConsistentRead",
    "poll-skip": "ConsistentRead",
    "int-poll-skip": "ConsistentRead",
    "nonmonotonic-poll": "ConsistentRead",
    "int-nonmonotonic-poll": "ConsistentRead",
    "aborted-read": "ConsistentRead",
    "phantom": "ConsistentRead",
}
"""The property of the model `kafka` that each anomaly breaks, as far as clients can see it."""

WHOLE = "ActiveReplicaJoinsIsr"
"""The liveness property of a cluster that comes to be whole again when all faults are over."""


class Outcome(NamedTuple):
    """A case with its verdict.

    `counts`: how many records were sent, acknowledged, polled. `told`: what was done, each with its time and whether what
    was waited for came. `folder`: where the history is. `broken`: the cluster is not whole again, and of no use to
    other cases.
    """

    case: Case
    status: Status
    reason: str
    seconds: float = 0.0
    played: Played | None = None
    counts: Mapping[str, int] | None = None
    anomalies: tuple[Anomaly, ...] = ()
    told: tuple[str, ...] = ()
    folder: Path | None = None
    broken: bool = False

    @property
    def name(self) -> str:
        """The name of the case."""
        return self.case.name


def verdict_of(case: Case, anomalies: Sequence[Anomaly]) -> tuple[Status, str]:
    """Whether the anomalies are a failure, and what they are: each by its name and the property that it breaks."""
    waits = case.acks != LEADER
    wrong = [one for one in anomalies if waits or not may_be_without_waiting(one)]
    if wrong:
        return Status.FAIL, in_words(wrong)
    return Status.PASS, f"found, as acks=1 may lose it: {in_words(anomalies)}" if anomalies else ""


def in_words(anomalies: Sequence[Anomaly]) -> str:
    """How many anomalies there are of each name, behind the property that they break."""
    counts = count_by_name(anomalies)
    told = {name: [one for one in counts if PROPERTIES[one] == name] for name in dict.fromkeys(PROPERTIES.values())}
    return "; ".join(f"{name}: {', '.join(f'{one} {counts[one]}' for one in ones)}" for name, ones in told.items() if ones)


def firsts(anomalies: Sequence[Anomaly]) -> list[Anomaly]:
    """The first anomaly of each name."""
    by_name = {one.name: one for one in reversed(anomalies)}
    return [by_name[name] for name in MEANINGS if name in by_name]
