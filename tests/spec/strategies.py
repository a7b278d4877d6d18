"""Hypothesis strategies for small logs, roles and fetches: small, so that everything collides with everything."""

from typing import NamedTuple

from hypothesis import strategies as st

from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, LeaderAndIsr, Offset, Record

MAX_EPOCH = 4
MAX_RECORDS = 5

Pairs = tuple[tuple[int, int], ...]

epochs = st.integers(0, MAX_EPOCH).map(Epoch)
epochs_or_none = st.integers(NO_EPOCH, MAX_EPOCH).map(Epoch)
offsets = st.integers(0, MAX_RECORDS + 3).map(Offset)
brokers = st.integers(1, 4).map(BrokerId)
isrs = st.frozensets(brokers, max_size=4)


def _pairs(draw: st.DrawFn, most: int) -> list[tuple[int, int]]:
    return draw(st.lists(st.tuples(st.integers(0, MAX_EPOCH), st.integers(0, 1)), max_size=most))


@st.composite
def record_logs(draw: st.DrawFn, in_order: bool = False) -> RecordLog:
    """A log of few records; `in_order`: epochs never go back. The latest epoch may be opened only."""
    pairs = _pairs(draw, MAX_RECORDS)
    written = tuple(Record(value, Epoch(epoch)) for epoch, value in (sorted(pairs) if in_order else pairs))
    log = RecordLog(written, draw(st.integers(0, 2).map(Offset)))
    return log.open_epoch(Epoch(log.latest_epoch + draw(st.integers(1, 2)))) if draw(st.booleans()) else log


@st.composite
def roles(draw: st.DrawFn) -> LeaderAndIsr:
    leader = draw(st.sampled_from([NO_LEADER, BrokerId(1), BrokerId(2), BrokerId(3)]))
    return LeaderAndIsr(leader, draw(epochs), draw(isrs))


@st.composite
def fetches(draw: st.DrawFn) -> FetchPosition:
    return FetchPosition(draw(epochs_or_none), draw(offsets), draw(epochs_or_none))


class ReplicaLog(NamedTuple):
    """A log as (epoch, value) pairs from a start offset, and an epoch opened at its end (`NO_EPOCH`: none)."""

    pairs: Pairs
    start_offset: int
    opened_epoch: int


@st.composite
def any_log(draw: st.DrawFn, in_order: bool) -> ReplicaLog:
    pairs = _pairs(draw, MAX_RECORDS)
    if in_order:
        pairs.sort()
    opened = (pairs[-1][0] if pairs else -1) + draw(st.integers(1, 2)) if draw(st.booleans()) else -1
    return ReplicaLog(tuple(pairs), draw(st.integers(0, 2)), opened)


@st.composite
def another_log(draw: st.DrawFn, log: ReplicaLog, in_order: bool) -> ReplicaLog:
    """Any log, or one that begins as `log` does, or one that holds the same records later on."""
    fresh = draw(any_log(in_order))
    match draw(st.sampled_from(["fresh", "common beginning", "later start"])):
        case "common beginning":
            common = log.pairs[: draw(st.integers(0, len(log.pairs)))]
            lowest = common[-1][0] if in_order and common else 0
            rest = tuple((epoch, value) for epoch, value in fresh.pairs if epoch >= lowest)
            return ReplicaLog(common + rest, log.start_offset, -1)
        case "later start":
            removed = draw(st.integers(0, len(log.pairs)))
            return ReplicaLog(log.pairs[removed:], log.start_offset + removed, -1)
    return fresh


@st.composite
def appendable(draw: st.DrawFn, latest_epoch: int, in_order: bool) -> Pairs:
    """Records that may follow in a log of this latest epoch."""
    pairs = _pairs(draw, 3)
    if in_order:
        pairs = sorted((epoch + max(latest_epoch, 0), value) for epoch, value in pairs)
    return tuple(pairs)


@st.composite
def replica_logs(draw: st.DrawFn) -> tuple[ReplicaLog, ReplicaLog]:
    """Logs of two replicas that one series of leaders has written.

    Leaders' histories form a tree, for the leader of an epoch starts from a part of what an earlier one had, and alone
    writes in its epoch. Two replicas hold two paths in it: a common beginning, then records of epochs that only one of
    the two has. Either may have led without writing, and then has an epoch open that no other log knows.
    """
    start = draw(st.integers(0, 2))
    common = tuple((epoch, draw(st.integers(0, 1))) for epoch in sorted(draw(st.lists(st.integers(0, 1), max_size=3))))
    parted_in = common[-1][0] if common else 0
    pairs, opened = [common, common], [-1, -1]
    for epoch, owner in enumerate(draw(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=4)), start=parted_in):
        written = draw(st.sampled_from([(0,), (1, 0), ()]))
        pairs[owner] += tuple((epoch, value) for value in written)
        opened[owner] = -1 if written or epoch == parted_in else epoch
    return ReplicaLog(pairs[0], start, opened[0]), ReplicaLog(pairs[1], start, opened[1])
