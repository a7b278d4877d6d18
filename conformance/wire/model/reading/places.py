"""Places in a log, and promises about what is read there."""

from collections.abc import Callable

from kspec.conformance.wire.model.partition import (
    Led,
)
from kspec.spec.values import Offset

MOST_RECORDS = 3

ACKNOWLEDGED = "what is acknowledged can be read, with the leader epoch in which it was written"
SAME_LOG = "a reader that has lost its place is told so, and never reads from another log than it thinks"
FENCED = "whoever acts on an older leader epoch is refused, and whoever is ahead asks again"
TRUNCATES = "a reader whose records were replaced learns where its log parts from the leader's"
MONOTONIC = "an offset that a client was told does not go back"
NO_STRANGERS = "only its replicas are counted for a partition, so only they fetch as such"
DELETED = "deleted records are not read again, and records that are not committed are not deleted"

Place = Callable[[Led], Offset | None]


def _before_start(partition: Led) -> Offset | None:
    start = partition.local.log.start_offset
    return Offset(start - 1) if start > 0 else None


def _at_start(partition: Led) -> Offset | None:
    return partition.local.log.start_offset if partition.local.log.records else None


def _inside(partition: Led) -> Offset | None:
    log = partition.local.log
    return Offset(log.start_offset + 1) if log.start_offset + 1 < log.end_offset else None


PLACES: tuple[tuple[str, str, Place], ...] = (
    ("negative", "a negative offset", lambda partition: Offset(-7)),
    ("before-start", "an offset before the log start", _before_start),
    ("start", "the log start", _at_start),
    ("inside", "an offset inside the log", _inside),
    ("end", "the log end", lambda partition: partition.local.log.end_offset),
    ("past-end", "an offset past the log end", lambda partition: Offset(partition.local.log.end_offset + 1)),
)
"""Places in a log where an offset may lie."""

LARGEST_PLACE: tuple[str, str, Place] = ("largest", "the largest offset there is", lambda partition: Offset(2**63 - 1))
FIRST_WITH_EPOCH, FIRST_WITH_LAST_EPOCH = 9, 12


WHICH = {
    "current": "the current",
    "older": "an older",
    "newer": "a newer",
    "first": "the first",
    "second": "the second",
    "third": "the third",
    "largest": "the largest possible",
}


def claims(epoch: str) -> str:
    """The claim of a leader epoch, in words."""
    return f", claiming {WHICH[epoch]} leader epoch" if epoch else ""


def shape_of(partition: Led) -> str:
    """The history of a log in short: an offset of it is another matter then."""
    log = partition.local.log
    if log.start_offset == 0:
        return ""
    return ", of a log that was cut" if log.records else ", of a log that was emptied"
