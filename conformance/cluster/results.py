"""Results of a case of level 1: the anomalies in the clients' history, and the properties that these break."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.cluster.cases import ClusterCase, ScheduledCase
from kspec.conformance.wire.run.results import Status
from kspec.trials.faults.plans.steps import LEADER
from kspec.trials.history.anomalies import MEANINGS, Anomaly, count_by_name, may_be_without_waiting

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
    "lost-commit": "CommittedOffsetStays",
    "torn-transaction": "OneEnd",
    "g1c": "OnlyCommittedIsRead",
    "consumed-twice": "EachInputOnce",
    "passed-over": "NoInputSkipped",
    "unbalanced": "OneEnd",
}
"""The property of a model (`kafka`, `group`, `transactions`) that each anomaly shows to be violated."""

WHOLE = "ActiveReplicaJoinsIsr"
"""The liveness property of a cluster that becomes healthy again when all faults are over."""


class CaseOutcome(NamedTuple):
    """A case with its verdict.

    `counts`: of records sent, acknowledged, polled. `done`: the steps taken, each with its time and whether its condition
    was met. `folder`: of the history. `broken`: whether the cluster is not healthy again, and of no use to other cases.
    """

    case: ClusterCase
    status: Status
    reason: str
    seconds: float = 0.0
    scheduled: ScheduledCase | None = None
    counts: Mapping[str, int] | None = None
    anomalies: tuple[Anomaly, ...] = ()
    done: tuple[str, ...] = ()
    folder: Path | None = None
    broken: bool = False

    @property
    def name(self) -> str:
        """The name of the case."""
        return self.case.name


def verdict_of(case: ClusterCase, anomalies: Sequence[Anomaly]) -> tuple[Status, str]:
    """Whether the anomalies are a failure, and their names, each behind the property that it breaks."""
    waits = case.acks != LEADER
    wrong = [one for one in anomalies if waits or not may_be_without_waiting(one)]
    if wrong:
        return Status.FAIL, in_words(wrong)
    return Status.PASS, f"found, as acks=1 may lose it: {in_words(anomalies)}" if anomalies else ""


def in_words(anomalies: Sequence[Anomaly]) -> str:
    """The number of anomalies of each name, behind the property that they break."""
    counts = count_by_name(anomalies)
    told = {name: [one for one in counts if PROPERTIES[one] == name] for name in dict.fromkeys(PROPERTIES.values())}
    return "; ".join(f"{name}: {', '.join(f'{one} {counts[one]}' for one in ones)}" for name, ones in told.items() if ones)


def firsts(anomalies: Sequence[Anomaly]) -> list[Anomaly]:
    """The first anomaly of each name."""
    by_name = {one.name: one for one in reversed(anomalies)}
    return [by_name[name] for name in MEANINGS if name in by_name]
