"""The metadata log that the world keeps for the one broker that reads it, and how far it may be seen.

A broker applies what lies below the high watermark that an answer tells it, as one difference, however many batches that
are. So the high watermark is the knob: one step of it is one difference.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from conformance.kafka.codec import LEADER_CHANGE, Codec
from impl.wire.values import Message

CONTROLLER_NODE = 100
CONTROLLER_EPOCH = 1

RECORD_VERSIONS = {
    "RegisterBrokerRecord": 3,
    "BrokerRegistrationChangeRecord": 2,
    "PartitionRecord": 1,
    "PartitionChangeRecord": 1,
    "FeatureLevelRecord": 0,
}
"""Versions that all releases under test read, and that have all fields that are used."""


class Entry(NamedTuple):
    """A batch of the log: its first offset, the offset after its last record, its bytes."""

    base: int
    end: int
    data: bytes


class MetadataLog:
    """The batches of the metadata log. `shown` is the high watermark that the broker is told: what it may apply."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._entries: list[Entry] = []
        self.end = 0
        self.shown = 0
        self.told = -1
        self.frozen = False
        self._changed = asyncio.Event()
        voter = [Message(voter_id=CONTROLLER_NODE)]
        leader = Message(version=0, leader_id=CONTROLLER_NODE, voters=voter, granting_voters=voter)
        value = codec.write("LeaderChangeMessage", 0, leader)
        self._add(codec.control_batch(0, CONTROLLER_EPOCH, _now(), LEADER_CHANGE, value), 1)
        self.show()

    def append(self, records: Sequence[tuple[str, Message]]) -> int:
        """Append records as one batch, which nobody sees yet. Returns the offset of the first."""
        base = self.end
        values = [self._codec.metadata_record(name, message, RECORD_VERSIONS.get(name)) for name, message in records]
        self._add(self._codec.metadata_batch(base, CONTROLLER_EPOCH, _now(), values), len(values))
        return base

    def _add(self, data: bytes, count: int) -> None:
        self._entries.append(Entry(self.end, self.end + count, data))
        self.end += count

    def show(self, end: int | None = None) -> None:
        """Let the broker see the log up to an offset, in one step; by default all of it."""
        self.shown = max(self.shown, self.end if end is None else end)
        self.wake()

    def wake(self) -> None:
        """Let a fetch that waits look again."""
        self._changed.set()

    def new_reader(self) -> None:
        """A new incarnation of the broker reads, and has not been told anything."""
        self.told = -1

    async def fetch(self, offset: int, wait_ms: int) -> tuple[int, bytes]:
        """The high watermark and the batches from an offset on, once there is news or the time is over."""
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
