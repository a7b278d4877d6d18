"""The metadata log of the world for the one broker that reads it, and its high watermark.

A broker applies the batches below the high watermark of a response as one delta, however many they are. So one step of the
high watermark is one delta.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from kspec.conformance.kafka.codec import LEADER_CHANGE, Codec
from kspec.impl.wire.values import Message

CONTROLLER_NODE = 100
CONTROLLER_EPOCH = 1

RECORD_VERSIONS = {
    "RegisterBrokerRecord": 3,
    "BrokerRegistrationChangeRecord": 2,
    "PartitionRecord": 1,
    "PartitionChangeRecord": 1,
    "FeatureLevelRecord": 0,
}
"""Versions that all releases under test read, with all fields that are used here."""


class LogEntry(NamedTuple):
    """A batch of the log: its first offset, the offset after its last record, its bytes."""

    base: int
    end: int
    data: bytes


class WorldMetadataLog:
    """The batches of the metadata log. `shown`: its high watermark; `told`: the one in the last response to the broker."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._entries: list[LogEntry] = []
        self.end = 0
        self.shown = 0
        self.told = -1
        self.frozen = False
        self._changed = asyncio.Event()
        voter = [Message(voter_id=CONTROLLER_NODE)]
        leader = Message(version=0, leader_id=CONTROLLER_NODE, voters=voter, granting_voters=voter)
        value = codec.write("LeaderChangeMessage", 0, leader)
        self._add(codec.control_batch(0, CONTROLLER_EPOCH, _now(), (LEADER_CHANGE, value)), 1)
        self.show()

    def append(self, records: Sequence[tuple[str, Message]]) -> int:
        """Append records as one batch above the high watermark. Returns the offset of the first."""
        base = self.end
        values = [self._codec.metadata_record(name, message, RECORD_VERSIONS.get(name)) for name, message in records]
        self._add(self._codec.metadata_batch(base, CONTROLLER_EPOCH, _now(), values), len(values))
        return base

    def _add(self, data: bytes, count: int) -> None:
        self._entries.append(LogEntry(self.end, self.end + count, data))
        self.end += count

    def show(self, end: int | None = None) -> None:
        """Raise the high watermark to an offset; by default to the end of the log."""
        self.shown = max(self.shown, self.end if end is None else end)
        self.wake()

    def wake(self) -> None:
        """Wake up a waiting fetch."""
        self._changed.set()

    def new_reader(self) -> None:
        """Reset the last response's high watermark for a new incarnation of the broker."""
        self.told = -1

    async def fetch(self, offset: int, wait_ms: int) -> tuple[int, bytes]:
        """The high watermark and the batches from an offset on, once the high watermark has risen or the time is over."""
        deadline = time.monotonic() + wait_ms / 1000
        while self.frozen or (offset >= self.shown and self.told >= self.shown):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                break
        if self.frozen:
            return self.told, b""
        self.told = self.shown
        return self.shown, b"".join(
            entry.data for entry in self._entries if entry.base >= offset and entry.end <= self.shown
        )


def _now() -> int:
    return int(time.time() * 1000)
