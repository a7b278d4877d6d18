"""The visible state of the real broker's replica: its log on disk, its end, its high watermark, its epoch, its role.

Appended records can be read from the files at once. A fetch that changes no state shows the high watermark, of a follower
too; it reads no further than that.
"""

import asyncio
import time
from typing import Any, NamedTuple

from kspec.conformance.world.environment.world import POLL_SECONDS
from kspec.conformance.world.replay.model_state import ModelState
from kspec.conformance.world.replay.parties import (
    DEBUGGING_CONSUMER,
    EPOCH_END_VERSION,
    FETCH_VERSION,
    LIST_OFFSETS_VERSION,
    Parties,
    records_in,
)
from kspec.impl.wire.values import Message
from kspec.spec.values import NO_EPOCH, Record

SETTLE_SECONDS = 2.0
"""The longest wait (s) until the replica is as expected; its state after it counts."""

LATEST = -1


class ObservedReplica(NamedTuple):
    """The visible state of a replica. `log`: the records in its files."""

    log: tuple[Record, ...]
    end_offset: int
    high_watermark: int
    leader_epoch: int
    leads: bool


class ProduceAnswer(NamedTuple):
    """The response to a produce request: the error's number, and the offset."""

    error: int
    offset: int


def expected_replica(state: ModelState, real: int) -> ObservedReplica | None:
    """The replica in the model; `None` while nothing of it is visible."""
    role, local = state.role(real), state.log(real)
    if not state.has_replica(real) or role.leader_epoch == NO_EPOCH:
        return None
    records = tuple(local.log.records)
    return ObservedReplica(records, len(records), local.high_watermark, role.leader_epoch, role.leader == real)


async def seen_replica(parties: Parties, epoch: int) -> ObservedReplica:
    """The visible state of the real replica now. `epoch`: the leader epoch in which it is expected."""
    world = parties.world
    offsets = Message(partition_index=0, current_leader_epoch=-1, timestamp=LATEST)
    end = Message(
        replica_id=DEBUGGING_CONSUMER, isolation_level=0, topics=[Message(name=parties.topic, partitions=[offsets])]
    )
    listed = await world.ask("ListOffsets", LIST_OFFSETS_VERSION, end)
    found = listed.topics[0].partitions[0]
    looked = await world.ask("Fetch", FETCH_VERSION, parties.look())
    part = looked.responses[0].partitions[0]
    asked = Message(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    ends = Message(replica_id=DEBUGGING_CONSUMER, topics=[Message(topic=parties.topic, partitions=[asked])])
    answer = await world.ask("OffsetForLeaderEpoch", EPOCH_END_VERSION, ends)
    error = answer.topics[0].partitions[0].error_code
    return ObservedReplica(
        on_disk(parties),
        found.offset,
        part.high_watermark,
        found.leader_epoch,
        error == 0,
    )


def on_disk(parties: Parties) -> tuple[Record, ...]:
    """The records in the segments of the real replica."""
    folder = parties.world.data / f"{parties.topic}-0"
    found: tuple[Record, ...] = ()
    for segment in sorted(folder.glob("*.log")):
        found += records_in(segment.read_bytes())
    return found


def difference(expected: Any, observed: Any) -> tuple[str, str, str] | None:
    """The first field in which two of the same kind differ: its name, what is expected, what is observed."""
    for name, wanted, got in zip(expected._fields, expected, observed, strict=True):
        if wanted != got:
            return name.replace("_", " "), in_words(wanted), in_words(got)
    return None


def in_words(value: Any) -> str:
    """A value for readers."""
    if isinstance(value, tuple) and value and isinstance(value[0], Record):
        return " ".join(f"m{record.value}/{record.leader_epoch}" for record in value)
    return "nothing" if value in ((), None) else str(value)


def replica_in_words(replica: ObservedReplica) -> str:
    """A replica in one line."""
    role = "leads" if replica.leads else "follows"
    return f"{role} in epoch {replica.leader_epoch}, log {in_words(replica.log)}, high watermark {replica.high_watermark}"


async def settled_replica(parties: Parties, expected: ObservedReplica) -> ObservedReplica:
    """The real replica once it is as expected, or its state when the time is over."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        seen = await seen_replica(parties, expected.leader_epoch)
        if seen == expected or time.monotonic() > deadline:
            return seen
        await asyncio.sleep(POLL_SECONDS)
