"""Compaction of transactions: what was aborted goes, and a marker after it."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from kspec.spec.log.producers import ProducerBatch
from kspec.spec.mutation import weaken
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT
from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS
from kspec.spec.transactions.log.compaction import (
    CleanedTransactions,
    is_last_of_producer,
    read_batch,
    read_marker,
    with_aborted,
)
from kspec.spec.transactions.log.partition import (
    AbortedTransaction,
    LoggedBatch,
    LoggedMarker,
    PartitionTransactions,
    TransactionalEntry,
    rebuilt_transactions,
)
from kspec.spec.transactions.log.reading import aborted_between, committed_batches, last_stable_offset
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.values import Epoch, Offset, ProducerEpoch, ProducerId, TimestampMs

ONE, TWO, THREE = ProducerId(1), ProducerId(2), ProducerId(3)


def aborted(producer: ProducerId, first: int, last: int) -> AbortedTransaction:
    return AbortedTransaction(producer, Offset(first), Offset(last), Offset(last + 1))


FIRST, LATER = aborted(ONE, 2, 4), aborted(ONE, 6, 8)


def test_batches_of_an_aborted_transaction_go_up_to_its_marker() -> None:
    state = with_aborted(CleanedTransactions(), (LATER, FIRST))
    before = read_batch(state, ONE, Offset(1), True)
    assert not before.may_go, "it is of a transaction before"
    ended = read_marker(TRANSACTIONS_NEXT, before.state, ONE, True, Offset(1))
    assert not ended.may_go, "a batch of its transaction is there"
    within = read_batch(ended.state, ONE, Offset(2), True)
    assert within.may_go
    assert not read_batch(within.state, ONE, Offset(3), False).may_go
    assert not read_batch(within.state, TWO, Offset(3), True).may_go
    marked = read_marker(TRANSACTIONS_NEXT, within.state, ONE, False, Offset(4))
    assert (marked.may_go, marked.noted) == (False, FIRST)
    assert not read_batch(marked.state, ONE, Offset(5), True).may_go, "the next transaction"
    assert read_batch(marked.state, ONE, Offset(7), True).may_go


def test_a_marker_goes_whose_transaction_is_gone() -> None:
    state = with_aborted(CleanedTransactions(), (FIRST,))
    assert read_marker(TRANSACTIONS_NEXT, state, ONE, False, Offset(4)).may_go
    assert read_marker(TRANSACTIONS_NEXT, state, ONE, False, Offset(4)).noted is None
    assert read_marker(TRANSACTIONS_NEXT, state, TWO, True, Offset(4)).may_go
    assert read_marker(TRANSACTIONS_NEXT, state, TWO, False, Offset(4)).may_go
    assert read_marker(TRANSACTIONS_NEXT, state, ONE, None, Offset(4)).may_go, "it was emptied before"


def test_a_transaction_that_a_later_segment_names_again() -> None:
    state = with_aborted(CleanedTransactions(), (FIRST,))
    state = with_aborted(read_batch(state, ONE, Offset(2), True).state, (FIRST, LATER))
    assert state.waiting == (LATER,)
    assert len(read_batch(state, THREE, Offset(7), True).state.aborting) == 1, "of one producer one is open at a time"


def test_a_marker_waits_for_its_time() -> None:
    assert not TRANSACTIONS_NEXT.empties_marker(True, -1, TimestampMs(10))
    assert not TRANSACTIONS_NEXT.empties_marker(True, 11, TimestampMs(10))
    assert TRANSACTIONS_NEXT.empties_marker(True, 10, TimestampMs(10))
    assert not TRANSACTIONS_NEXT.empties_marker(False, 10, TimestampMs(10))


def test_the_last_batch_that_tells_of_a_producer() -> None:
    new, old = ProducerEpoch(1), ProducerEpoch(0)
    assert is_last_of_producer(False, Offset(3), new, Offset(3), new)
    assert not is_last_of_producer(False, Offset(2), new, Offset(3), new)
    assert not is_last_of_producer(True, Offset(4), new, Offset(3), new), "its records tell of it"
    assert is_last_of_producer(True, Offset(4), new, Offset(-1), new)
    assert not is_last_of_producer(True, Offset(4), old, Offset(-1), new)
    assert not is_last_of_producer(False, Offset(4), new, Offset(-1), new)


# ---- logs at random, compacted again and again


class CompactedLog(NamedTuple):
    """A log with its index of aborted transactions; of each entry the delete horizon (ms), -1 if it has none."""

    entries: tuple[tuple[TransactionalEntry, int], ...]
    aborted: tuple[AbortedTransaction, ...]


RETENTION_MS, TIMES = 100, (TimestampMs(10), TimestampMs(20), TimestampMs(200))
"""`delete.retention.ms`, and the times at which a log is compacted: twice before that is over, and once after."""


def log_at_random(rng: random.Random) -> CompactedLog:
    """Batches of two producers, and the ends of their transactions."""
    entries: list[TransactionalEntry] = []
    open_now: set[ProducerId] = set()
    for number in range(12):
        producer, offset = rng.choice((ONE, TWO)), Offset(number)
        if producer in open_now and rng.random() < 0.5:
            open_now.remove(producer)
            entries.append(LoggedMarker(producer, ProducerEpoch(0), Epoch(0), rng.random() < 0.5, offset))
        else:
            open_now.add(producer)
            entries.append(LoggedBatch(ProducerBatch(producer, ProducerEpoch(0), number, 1, offset)))
    known = rebuilt_transactions(TRANSACTIONS_NEXT, tuple(entries))
    return CompactedLog(tuple((one, -1) for one in entries), known.aborted)


def compacted(protocol: TransactionProtocol, log: CompactedLog, now_ms: TimestampMs) -> CompactedLog:
    """The log after a compaction; no record has a later one of its key."""
    state, left, noted = with_aborted(CleanedTransactions(), log.aborted), list[tuple[TransactionalEntry, int]](), []
    for entry, known in log.entries:
        horizon = known
        match entry:
            case LoggedMarker():
                read = read_marker(protocol, state, entry.producer_id, entry.committed, entry.offset)
                goes = protocol.empties_marker(read.may_go, horizon, now_ms)
                horizon = now_ms + RETENTION_MS if read.may_go and horizon < 0 else horizon
            case LoggedBatch(batch):
                read = read_batch(state, batch.producer_id, batch.last_offset, True)
                goes = read.may_go
        state = read.state
        left += [] if goes else [(entry, horizon)]
        noted += [] if read.noted is None else [read.noted]
    return CompactedLog(tuple(left), tuple(noted))


def is_kept(protocol: TransactionProtocol, log: CompactedLog) -> bool:
    """Whether consumers of each compacted log get what is committed, and replicas that read on in it know what is open."""
    versions = [log]
    for now_ms in TIMES:
        versions.append(compacted(protocol, versions[-1], now_ms))
    open_now = {one.producer_id for one in known_of(log.entries).ongoing}
    read = {committed_of(one) for one in versions}
    for before, after in ((0, 0), (0, 1), (0, 2), (1, 2), (2, 3)):
        for split in range(13):
            begun = [one for one in versions[before].entries if one[0].last_offset < split]
            rest = [one for one in versions[after].entries if one[0].last_offset >= split]
            if {one.producer_id for one in known_of((*begun, *rest)).ongoing} != open_now:
                return False
    return len(read) == 1


def known_of(entries: Sequence[tuple[TransactionalEntry, int]]) -> PartitionTransactions:
    return rebuilt_transactions(TRANSACTIONS_NEXT, tuple(entry for entry, _ in entries))


def committed_of(log: CompactedLog) -> tuple[Offset, ...]:
    """The offsets that a consumer gets below the last stable one."""
    known = known_of(log.entries)
    end = last_stable_offset(TRANSACTIONS_NEXT, known._replace(unreplicated=()), Offset(0), Offset(12))
    below = tuple(entry for entry, _ in log.entries if entry.last_offset < end)
    aborted = aborted_between(TRANSACTIONS_NEXT, log.aborted, Offset(0), end)
    return tuple(one.batch.base_offset for one in committed_batches(below, aborted))


LOGS = tuple(log_at_random(random.Random(f"compaction {seed}")) for seed in range(60))


def test_compaction_changes_nothing_of_what_is_committed_and_open() -> None:
    assert all(is_kept(TRANSACTIONS_NEXT, log) for log in LOGS)
    assert any(len(compacted(TRANSACTIONS_NEXT, log, TIMES[0]).entries) < len(log.entries) for log in LOGS)


@pytest.mark.parametrize("name", ["marker-goes-with-batches", "marker-goes-at-once"])
def test_a_mutant_of_compaction_leaves_a_transaction_open(name: str) -> None:
    (mutant,) = (one for one in TRANSACTION_MUTANTS if one.name == name)
    assert not all(is_kept(weaken(TRANSACTIONS_NEXT, mutant), log) for log in LOGS)
