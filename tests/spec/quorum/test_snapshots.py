"""Answers of the leader of the metadata log to a fetch of it."""

import pytest

from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.quorum.rules.snapshots import (
    IN_PLACE,
    FetchPlace,
    check_snapshot_position,
    has_everything,
    lacks_records,
    may_take_snapshot,
    place_fetch,
)
from kspec.spec.values import Epoch, EpochEndOffset, Error, Offset

HISTORY = EpochHistory().assign(Epoch(1), Offset(0)).assign(Epoch(2), Offset(5)).assign(Epoch(4), Offset(8))
WHOLE = EpochLog(HISTORY, Offset(0), Offset(10))
CUT = WHOLE.start_at(Offset(6))
SNAPSHOT = SnapshotId(Offset(6), Epoch(2))
EMPTY = EpochLog().restart_at(Offset(6))


def fetch(offset: int, last_epoch: int, epoch: int = 4) -> FetchPosition:
    return FetchPosition(Epoch(epoch), Offset(offset), Epoch(last_epoch))


def diverging(epoch: int, end: int) -> FetchPlace:
    return FetchPlace(diverging=EpochEndOffset(Epoch(epoch), Offset(end)))


TAKES_SNAPSHOT = FetchPlace(snapshot=SNAPSHOT)


@pytest.mark.parametrize(
    ("log", "snapshot", "asked", "place"),
    [
        (WHOLE, NO_SNAPSHOT, fetch(0, 0), IN_PLACE),
        (WHOLE, NO_SNAPSHOT, fetch(5, 1), IN_PLACE),
        (WHOLE, NO_SNAPSHOT, fetch(10, 4), IN_PLACE),
        (WHOLE, NO_SNAPSHOT, fetch(6, 1), diverging(1, 5)),
        (WHOLE, NO_SNAPSHOT, fetch(8, 3), diverging(2, 8)),
        (WHOLE, NO_SNAPSHOT, fetch(11, 4), diverging(4, 10)),
        (WHOLE, NO_SNAPSHOT, fetch(10, 5), diverging(4, 10)),
        (CUT, SNAPSHOT, fetch(0, 0), TAKES_SNAPSHOT),
        (CUT, SNAPSHOT, fetch(5, 1), TAKES_SNAPSHOT),
        (CUT, SNAPSHOT, fetch(6, 1), TAKES_SNAPSHOT),
        (CUT, SNAPSHOT, fetch(7, 1), TAKES_SNAPSHOT),
        (CUT, SNAPSHOT, fetch(6, 2), IN_PLACE),
        (CUT, SNAPSHOT, fetch(9, 4), IN_PLACE),
        (CUT, SNAPSHOT, fetch(9, 2), diverging(2, 8)),
        (EMPTY, SNAPSHOT, fetch(6, 2), IN_PLACE),
        (EMPTY, SNAPSHOT, fetch(7, 3), diverging(2, 6)),
        (EMPTY, SNAPSHOT, fetch(0, 0), TAKES_SNAPSHOT),
        (EMPTY.open_epoch(Epoch(5)), SNAPSHOT, fetch(6, 2), IN_PLACE),
        (EMPTY.open_epoch(Epoch(5)), SNAPSHOT, fetch(7, 3), diverging(2, 6)),
    ],
)
def test_places(log: EpochLog, snapshot: SnapshotId, asked: FetchPosition, place: FetchPlace) -> None:
    assert place_fetch(log, snapshot, asked) == place


def test_a_fetcher_with_the_end_of_the_log_has_everything() -> None:
    assert [has_everything(WHOLE, fetch(offset, 4)) for offset in (9, 10)] == [False, True]


def test_a_snapshot_has_nothing_that_is_not_committed() -> None:
    assert may_take_snapshot(Offset(6), Offset(6))
    assert not may_take_snapshot(Offset(7), Offset(6))


def test_positions_in_a_snapshot() -> None:
    assert [check_snapshot_position(position, 3) for position in (0, 2)] == [Error.NONE] * 2
    assert [check_snapshot_position(position, 3) for position in (-1, 3)] == [Error.POSITION_OUT_OF_RANGE] * 2


@pytest.mark.parametrize(
    ("log_start", "snapshot_end", "lacks"), [(0, -1, False), (1, -1, True), (7, 7, False), (8, 7, True), (0, 7, False)]
)
def test_records_are_lacking_between_a_snapshot_and_the_start_of_the_log(
    log_start: int, snapshot_end: int, lacks: bool
) -> None:
    assert lacks_records(Offset(log_start), SnapshotId(Offset(snapshot_end), Epoch(1))) is lacks
