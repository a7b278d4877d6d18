"""Batches as vectors write them, and limits that keep a vector from asking for too much."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

from kspec.spec.log.batch import Batch
from kspec.spec.values import Epoch
from tests.conformance.outcomes import UnsupportedError

LIMIT = 100_000
"""Kafka's tests have no longer loops or logs."""

Placed: TypeAlias = tuple[int, int, int]
"""A batch's base offset, its number of records, and its leader epoch."""

NAMES = {
    "base": ("base_offset", "base", "offset", "first_offset", "start_offset"),
    "count": ("count", "records", "num_records", "record_count"),
    "epoch": ("leader_epoch", "epoch", "partition_leader_epoch"),
}
TRIPLE, PAIR = 3, 2


def at_most(limit: int, number: int) -> int:
    if number > limit:
        raise UnsupportedError(f"{number} of something, of which Kafka's tests have at most {limit}")
    return number


def batch_of(count: int, leader_epoch: int) -> Batch:
    if count < 1 or leader_epoch < 0:
        raise UnsupportedError(f"a batch of {count} records in epoch {leader_epoch}")
    return Batch(at_most(LIMIT, count), Epoch(leader_epoch))


def batches_of(given: Any, end: int) -> list[Placed]:
    """Batches in a row, the first of which lies at `end` unless it says where.

    A batch is an object, a triple [base offset, count, epoch], or a pair of count and epoch. In which order a pair has them
    is seen from all pairs: there are no batches without records, and epochs do not go back.
    """
    if not isinstance(given, list):
        raise UnsupportedError(f"batches {given!r}")
    rows = [_fields(batch) if isinstance(batch, dict) else batch for batch in given]
    if not all(isinstance(row, list) and all(type(number) is int for number in row[-PAIR:]) for row in rows):
        raise UnsupportedError(f"batches {given!r}")
    sizes = {len(row) for row in rows}
    if sizes <= {TRIPLE}:
        return _placed(rows, end)
    if sizes != {PAIR}:
        raise UnsupportedError(f"batches {given!r}")
    readings: list[Callable[[list[int]], list[Any]]] = [lambda row: [None, *row], lambda row: [None, *reversed(row)]]
    read = [[reading(row) for row in rows] for reading in readings]
    possible = [batches for batches in read if _is_log(batches)]
    if not possible or (len(possible) > 1 and read[0] != read[1]):
        raise UnsupportedError(f"batches {given!r}: pairs of count and epoch in an order that cannot be told")
    return _placed(possible[0], end)


def _fields(batch: dict[str, Any]) -> list[Any]:
    """[base offset or null, count, epoch] of a batch that is an object; by default one record, in epoch 0."""
    found: dict[str, Any] = {"base": None, "count": 1, "epoch": 0}
    for name, value in batch.items():
        field = next((field for field, names in NAMES.items() if name in names), None)
        if field is None:
            raise UnsupportedError(f"a batch's {name}")
        found[field] = value
    return list(found.values())


def _is_log(batches: list[list[Any]]) -> bool:
    epochs = [epoch for _, _, epoch in batches]
    grows = all(earlier <= later for earlier, later in pairwise(epochs))
    return grows and all(epoch >= 0 for epoch in epochs) and all(count > 0 for _, count, _ in batches)


def _placed(rows: list[list[Any]], end: int) -> list[Placed]:
    placed: list[Placed] = []
    for base, count, epoch in rows:
        placed.append((end if base is None else base, count, epoch))
        end = placed[-1][0] + count
    return placed
