"""The history of Kafka's transactions: each release is the one before with some rules replaced.

Read for these differences were `TransactionCoordinator`, `TransactionMetadata`, `TransactionMarkerChannelManager` and
`UnifiedLog` of 2.3.0 to 3.8.0, and of 4.0.0, 4.1.0, 4.2.0 and 4.3.1 with `ProducerAppendInfo` altogether. The version of
transactions is no release: a cluster has one (`transaction.version`), and each client says which it knows.
"""

from dataclasses import replace

from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.transactions.rules import coordination, partitions
from kspec.spec.values import Error

TRANSACTIONS_0_11 = TransactionProtocol(
    name="0.11",
    named_by=coordination.names_nobody,
    may_end=coordination.ends_not_below,
    fence=coordination.next_fence,
    bumps_from=coordination.bumps_from_fence,
    epoch_after=coordination.following_epoch,
    rotates=coordination.rotates_for_clients,
    forgets_markers=coordination.forgets_by_id,
    pending_first=False,
    unverified=Error.INVALID_TXN_STATE,
    is_verified=partitions.never_verified,
    epoch_before_guard=False,
    takes_marker=partitions.ends_not_later,
)
"""Up to 2.4 (KIP-98). Rules of version 2 are those of 4.0, which has it first."""

TRANSACTIONS_2_5 = replace(TRANSACTIONS_0_11, name="2.5", named_by=coordination.names_itself)
"""2.5: a producer may say which id and epoch it had (KIP-360)."""

TRANSACTIONS_2_6 = replace(
    TRANSACTIONS_2_5, name="2.6", may_end=coordination.ends_its_own, fence=coordination.next_fence_once
)
"""2.6 to 3.5: nobody ends a transaction of an earlier epoch (KAFKA-9600); a refused fence uses up no epoch (KAFKA-9666)."""

TRANSACTIONS_3_6 = replace(TRANSACTIONS_2_6, name="3.6", is_verified=partitions.verified_at_first)
"""3.6: no batch begins a transaction in a log that the coordinator does not know of (KIP-890, part 1)."""

TRANSACTIONS_3_8 = replace(
    TRANSACTIONS_3_6,
    name="3.8",
    forgets_markers=coordination.forgets_by_epoch,
    unverified=Error.TRANSACTION_ABORTABLE,
)
"""3.8: late answers to markers of an earlier coordinator epoch end nothing (KAFKA-16352), and `TRANSACTION_ABORTABLE`."""

TRANSACTIONS_4_0 = replace(TRANSACTIONS_3_8, name="4.0", pending_first=True)
"""4.0: version 2, in which each transaction has an epoch of its own (KIP-890, part 2; KAFKA-18464, KAFKA-18660)."""

TRANSACTIONS_4_1 = replace(TRANSACTIONS_4_0, name="4.1", bumps_from=coordination.bumps_from_epoch)
"""4.1: a fence raises the epoch once (KAFKA-19367)."""

TRANSACTIONS_4_2 = replace(TRANSACTIONS_4_1, name="4.2", epoch_before_guard=True, takes_marker=partitions.ends_earlier)
"""4.2: a marker of version 2 has a later epoch than its transaction (KIP-1228, KAFKA-19999; KAFKA-19690)."""

TRANSACTIONS_4_3 = replace(
    TRANSACTIONS_4_2,
    name="4.3",
    fence=coordination.next_fence_within_bounds,
    epoch_after=coordination.next_epoch_of_producer,
    rotates=coordination.rotates_always,
    takes_marker=partitions.ends_earlier_or_last,
)
"""4.3 and 4.4: a producer gets another id also if its last epoch is fenced (KAFKA-20090)."""

TRANSACTIONS_NEXT = replace(
    TRANSACTIONS_4_3,
    name="next",
    overtaken_commit=coordination.is_fenced_by_abort,
    keeps_guard=partitions.keeps_guard_of_later,
    may_coordinate=coordination.coordinates_what_is_committed,
)
"""The newest with known defects repaired: who commits what the coordinator has aborted is fenced (KAFKA-20785), a marker
that is repeated leaves the verification of a later producer, and a coordinator acts on its log once that is committed."""

TRANSACTION_RELEASES: tuple[TransactionProtocol, ...] = tuple(
    release for name, release in vars().items() if name.startswith("TRANSACTIONS_")
)
"""The releases above, the oldest first."""
