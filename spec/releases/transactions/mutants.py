"""Mutants of transactions: one rule of the coordinator or of leaders weakened, to show that the rule is needed."""

from kspec.spec.mutation import Mutant
from kspec.spec.transactions.rules import coordination, partitions
from kspec.spec.values import Offset, ProducerEpoch


def fences_without_epoch(epoch: ProducerEpoch, has_failed: bool) -> ProducerEpoch:
    """A transaction is aborted, and its producer keeps its epoch."""
    return epoch


def keeps_epoch(epoch: ProducerEpoch, aborts: bool) -> ProducerEpoch:
    """A transaction of version 2 leaves its producer the epoch."""
    return epoch


def any_guard(known: int, given: int) -> bool:
    """A batch counts as verified if it was once, and its producer is to be verified now."""
    return known != 0 and given != 0


def drops_guard(bumps_epoch: bool, is_marker: bool, epoch: int, guard_epoch: int) -> bool:
    """Every marker ends the verification of its producer."""
    return False


def begins_anywhere(first_sequence: int, lowest: int) -> bool:
    """A transaction may begin with any sequence number."""
    return True


def takes_any_marker(epoch: int, known: int, bumps_epoch: bool, is_open: bool) -> bool:
    """A marker of any epoch is taken."""
    return True


def takes_later_marker(epoch: int, known: int, bumps_epoch: bool, is_open: bool) -> bool:
    """A marker of version 2 has a later epoch, also if it is repeated."""
    return epoch > known or (not bumps_epoch and epoch == known)


def takes_any_coordinator(coordinator_epoch: int, known: int) -> bool:
    """A marker of an earlier coordinator is taken."""
    return True


def counts_any_append(written_epoch: int, epoch: int) -> bool:
    """A record counts that was written under another coordinator epoch."""
    return True


def stable_though_open(ongoing: tuple[Offset, ...], unreplicated: tuple[Offset, ...]) -> Offset | None:
    """The log counts as stable where a transaction is open."""
    return min(unreplicated, default=None)


def stable_when_ended(ongoing: tuple[Offset, ...], unreplicated: tuple[Offset, ...]) -> Offset | None:
    """The log counts as stable before the end of a transaction is committed."""
    return min(ongoing, default=None)


def goes_anyhow(has_batches: bool) -> bool:
    """A marker goes together with the batches of its transaction."""
    return True


def goes_at_once(may_go: bool, delete_horizon: int, now_ms: int) -> bool:
    """A marker goes as soon as the batches of its transaction have gone."""
    return may_go


def is_aborted_since(first: int, last: int, fetched: int, end: int) -> bool:
    """A consumer is told of aborted transactions alone that begin where it reads."""
    return fetched <= first < end


def ends_at_once(stable: int, end: int) -> bool:
    """The first aborted transaction that is found is the only one."""
    return True


TRANSACTION_MUTANTS = (
    Mutant(
        "late-end-counts",
        "epoch_after",
        keeps_epoch,
        "a transaction has no epoch of its own, so a late end ends the next one (KAFKA-17754)",
        traits=(("takes_marker", partitions.ends_not_later),),
    ),
    Mutant("fence-keeps-epoch", "fence", fences_without_epoch, "a fenced producer keeps its epoch (KAFKA-5231, KAFKA-6119)"),
    Mutant("fence-each-time", "fence", coordination.next_fence, "each fence that fails uses up an epoch (KAFKA-9666)"),
    Mutant("fence-bumps-twice", "bumps_from", coordination.bumps_from_fence, "a fence raises the epoch twice (KAFKA-19367)"),
    Mutant(
        "fence-never-rotates",
        "rotates",
        coordination.rotates_for_clients,
        "a fence of the last epoch leaves the id (KAFKA-20090)",
    ),
    Mutant(
        "end-of-later-epoch",
        "may_end",
        coordination.ends_not_below,
        "a client ends transactions of earlier epochs (KAFKA-9600)",
    ),
    Mutant("nobody-named", "named_by", coordination.names_nobody, "a producer that says who it was counts as new (KIP-360)"),
    Mutant(
        "markers-forgotten-by-id",
        "forgets_markers",
        coordination.forgets_by_id,
        "a late answer of an earlier coordinator epoch ends the sending of markers (KAFKA-16352)",
    ),
    Mutant("pending-last", "pending_first", False, "a pending step is looked at last (KAFKA-18464, KAFKA-18660)"),
    Mutant(
        "acts-before-committed",
        "may_coordinate",
        coordination.coordinates_at_once,
        "a coordinator acts on records of its log that are not committed",
    ),
    Mutant("stale-append-counts", "counts_append", counts_any_append, "a record of an earlier coordinator epoch counts"),
    Mutant(
        "overtaken-commit-invalid",
        "overtaken_commit",
        coordination.is_invalid_state,
        "a commit of what was aborted is told INVALID_TXN_STATE (KAFKA-20785)",
    ),
    Mutant("nothing-verified", "is_verified", partitions.never_verified, "a late batch begins a transaction (KIP-890)"),
    Mutant("any-guard", "passes_guard", any_guard, "a batch that was verified before counts as verified (KAFKA-14884)"),
    Mutant("guard-dropped", "keeps_guard", drops_guard, "the marker of one transaction ends the verification of the next"),
    Mutant(
        "guard-of-equal-epoch",
        "keeps_guard",
        partitions.keeps_guard,
        "a marker that is repeated ends the verification of a producer that has fenced another one",
    ),
    Mutant("begins-anywhere", "begins", begins_anywhere, "a transaction begins with a later batch (KAFKA-14920)"),
    Mutant(
        "guard-before-epoch", "epoch_before_guard", False, "a batch of an earlier epoch counts as unverified (KAFKA-19690)"
    ),
    Mutant("any-marker", "takes_marker", takes_any_marker, "a marker of any epoch is taken"),
    Mutant(
        "marker-not-earlier", "takes_marker", partitions.ends_not_later, "a late marker ends the next transaction (KIP-1228)"
    ),
    Mutant("marker-strictly-later", "takes_marker", takes_later_marker, "a marker is not taken twice (KAFKA-19999)"),
    Mutant("any-coordinator", "takes_coordinator", takes_any_coordinator, "a marker of an earlier coordinator is taken"),
    Mutant("marker-goes-with-batches", "marker_goes", goes_anyhow, "compaction removes a marker together with its batches"),
    Mutant("marker-goes-at-once", "empties_marker", goes_at_once, "compaction does not wait before it removes a marker"),
    Mutant(
        "aborted-begun-before",
        "is_aborted_within",
        is_aborted_since,
        "consumers are not told of aborted transactions that begin before the records which they fetch",
    ),
    Mutant("aborted-first-alone", "ends_search", ends_at_once, "consumers are told of one aborted transaction alone"),
    Mutant("stable-though-open", "first_unstable", stable_though_open, "consumers read what is not decided"),
    Mutant("stable-when-ended", "first_unstable", stable_when_ended, "consumers read ends that are not committed"),
)
"""The mutants of `next`."""
