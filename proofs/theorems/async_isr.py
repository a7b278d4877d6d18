"""KIP-497 (Kafka 2.7): every member of the controller's ISR has all records below the leader's high watermark.

The model is the checker's `async-isr` with its bounds lifted: any offsets and partition epochs, any number of requests and
announcements in flight, late, repeated or lost. The high watermark is the smallest end offset of the *maximal* ISR, so the
proof shows that it always contains the controller's ISR.
"""

from math import inf
from typing import Any

from kspec.model_check.core.model import Model
from kspec.model_check.core.parameters import resolve
from kspec.model_check.models.published import async_isr
from kspec.model_check.models.published.async_isr import LEADER, PARAMETERS
from kspec.proofs.induction.invariant import StateView, Theorem, Witness, conjunct, weakened_rules
from kspec.proofs.settings import Replicas
from kspec.proofs.symbolic.logic import all_of, among, any_of, implies, member
from kspec.proofs.symbolic.values import Name
from kspec.spec.published.mutants import ISR_MUTANTS
from kspec.spec.published.versions import ASYNC_ISR
from kspec.spec.values import BrokerId, PartitionEpoch

ANY_PARTITION_EPOCH, NEXT_PARTITION_EPOCH = (
    Name("partition epoch", PartitionEpoch),
    Name("next partition epoch", PartitionEpoch),
)
"""The partition epoch that an action is about, any, and the one after it."""


def unbounded(replicas: Replicas, mutant: str | None = None) -> Model:
    """The model for a proof: nothing but the number of replicas is bounded."""
    given = {"replicas": replicas, "max_offset": inf, "max_partition_epoch": inf, "mutant": mutant}
    partition_epochs: Any = [ANY_PARTITION_EPOCH, NEXT_PARTITION_EPOCH]
    return async_isr.build(ASYNC_ISR.name, ASYNC_ISR, resolve(ASYNC_ISR.name, PARAMETERS, given), partition_epochs)


def bounded(replicas: int, max_offset: int, max_partition_epoch: int, mutant: str | None = None) -> Model:
    """The model for exploration."""
    given = {"replicas": replicas, "max_offset": max_offset, "max_partition_epoch": max_partition_epoch, "mutant": mutant}
    return async_isr.build(ASYNC_ISR.name, ASYNC_ISR, resolve(ASYNC_ISR.name, PARAMETERS, given))


class AsyncIsrView(StateView):
    """A state as the conjuncts read it."""

    @property
    def leader(self) -> Any:
        """The leader's side: the ISR that it knows of, and what it has proposed."""
        return self.at("leaderIsr", None)

    @property
    def partition(self) -> Any:
        """The controller's ISR and partition epoch."""
        return self.at("partition", None)

    def requested(self, isr: Any, partition_epoch: Any) -> Any:
        """Whether the leader has asked for `isr` on top of `partition_epoch`."""
        return among(isr, self.at("requested", partition_epoch))

    def announced(self, isr: Any, partition_epoch: Any) -> Any:
        """Whether the controller has announced `isr` as `partition_epoch`."""
        return among(isr, self.at("announced", partition_epoch))

    def counts(self, replica: Any) -> Any:
        """Whether the leader's high watermark waits for the replica: it is in the maximal ISR."""
        return any_of(member(replica, self.leader.isr), member(replica, self.leader.pending_isr))


@conjunct("LeaderIsMember", "The leader is never removed from an ISR.")
def leader_is_member(s: AsyncIsrView) -> Any:
    return all_of(member(LEADER, s.leader.isr), member(LEADER, s.partition.isr))


@conjunct("LeaderNotAhead", "The leader knows no partition epoch that the controller has not reached.")
def leader_not_ahead(s: AsyncIsrView) -> Any:
    return all_of(s.leader.partition_epoch >= 0, s.leader.partition_epoch <= s.partition.partition_epoch)


@conjunct("RequestsNotAhead", "A proposal of the leader is based on the partition epoch that it knows.")
def requests_not_ahead(s: AsyncIsrView, isr: frozenset[BrokerId], partition_epoch: PartitionEpoch) -> Any:
    return implies(s.requested(isr, partition_epoch), partition_epoch <= s.leader.partition_epoch)


@conjunct("RequestsCounted", "Until the controller answers, every proposed member counts as possibly in sync.")
def requests_counted(s: AsyncIsrView, isr: frozenset[BrokerId], partition_epoch: PartitionEpoch, replica: BrokerId) -> Any:
    current = all_of(s.requested(isr, partition_epoch), partition_epoch == s.leader.partition_epoch)
    return implies(all_of(current, member(replica, isr)), s.counts(replica))


@conjunct("AnnouncementsNotAhead", "The controller announces its decisions.")
def announcements_not_ahead(s: AsyncIsrView, isr: frozenset[BrokerId], partition_epoch: PartitionEpoch) -> Any:
    return implies(s.announced(isr, partition_epoch), partition_epoch <= s.partition.partition_epoch)


@conjunct(
    "AnnouncedIsrCoversTrueIsr",
    "After an announcement that the leader has not seen, none of its requests is granted: the true ISR can only shrink.",
)
def announced_isr_covers_true_isr(
    s: AsyncIsrView, isr: frozenset[BrokerId], partition_epoch: PartitionEpoch, replica: BrokerId
) -> Any:
    unread = all_of(s.announced(isr, partition_epoch), partition_epoch > s.leader.partition_epoch)
    return implies(all_of(unread, member(replica, s.partition.isr)), member(replica, isr))


@conjunct("MaximalIsrCoversTrueIsr", "So the high watermark waits for every member of the true ISR.")
def maximal_isr_covers_true_isr(s: AsyncIsrView, replica: BrokerId) -> Any:
    return implies(member(replica, s.partition.isr), s.counts(replica))


def committed_after_expansion(s: AsyncIsrView) -> bool:
    """A witness: the ISR has shrunk and grown again, and its two members hold a record."""
    isr = s.partition.isr
    held = min(s.at("endOffset", replica) for replica in isr)
    return bool(s.partition.partition_epoch >= 2 and s.leader.isr == isr and len(isr) > 1 and held > 0)


ASYNC_ISR_THEOREM = Theorem(
    name=ASYNC_ISR.name,
    summary="every member of the controller's ISR holds all records below the leader's high watermark",
    model=unbounded,
    bounded=bounded,
    view=AsyncIsrView,
    conjuncts=(
        leader_is_member,
        leader_not_ahead,
        requests_not_ahead,
        requests_counted,
        announcements_not_ahead,
        announced_isr_covers_true_isr,
        maximal_isr_covers_true_isr,
    ),
    properties=("ValidHighWatermark", "CommittedOnNextLeader"),
    witness=Witness(committed_after_expansion, (1, 2)),
    mutants=weakened_rules(ASYNC_ISR, ISR_MUTANTS),
    premises=(ANY_PARTITION_EPOCH >= 0, NEXT_PARTITION_EPOCH - 1 == ANY_PARTITION_EPOCH + 0),  # type: ignore[arg-type]
)
