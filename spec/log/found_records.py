"""Findings of a reader in a batch: the words in which rules about records are stated."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.values import NO_TIMESTAMP


class ReaderEnding(Enum):
    """The ending of a reader of a batch's records.

    `COMPLETE`: there are as many records as the header says, and nothing behind them. `MALFORMED`: there are not, or one of
    them is no record. `UNREADABLE`: the records cannot be decompressed, or the length of an uncompressed one is no number.
    """

    COMPLETE = "complete"
    MALFORMED = "malformed"
    UNREADABLE = "unreadable"


class RecordsFound(NamedTuple):
    """All records of a batch together, as a reader found them.

    How many there are, how many of them have no key, and how many no timestamp; the oldest and the newest timestamp (ms) of
    the others, `NO_TIMESTAMP` if there are none. `consecutive`: the offsets count from 0 within the batch. `shortest` and
    `longest` are the lengths (bytes) that records say they have.
    """

    reading: ReaderEnding
    record_count: int = 0
    without_key: int = 0
    without_time: int = 0
    oldest: int = NO_TIMESTAMP
    newest: int = NO_TIMESTAMP
    consecutive: bool = True
    shortest: int = 0
    longest: int = 0


class FoundRecord(NamedTuple):
    """One record: its place in the batch from 0 on, its offset as the batch says, its timestamp (ms), if it has a key."""

    place: int
    offset: int
    timestamp: int
    has_key: bool
