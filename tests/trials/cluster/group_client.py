"""A client of groups that speaks the wire format field by field, and keeps several requests on their way."""

import asyncio
from typing import Any

from kspec.impl.wire.requests import read_response, request_parts, sent
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import joined
from kspec.trials.cluster.asking import ask_once
from tests.limits.turns import Turns

RETRIED = {14, 15, 16}
"""The coordinator is loading, is not available, or is another one."""

LIMIT_S = 90.0
"""An emergency stop for one request, far away."""


class Line:
    """A connection to one broker."""

    def __init__(self, place: tuple[str, int]) -> None:
        self.place = place
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._sent = 0

    async def ask(self, api: str, version: int, **fields: Any) -> Message:
        """The answer to a request. Raises: `OSError`, `IncompleteReadError`, `TimeoutError`."""
        async with asyncio.timeout(LIMIT_S):
            if self._streams is None:
                self._streams = await asyncio.open_connection(*self.place)
            reader, writer = self._streams
            self._sent += 1
            writer.write(joined(request_parts(sent(api), version, self._sent, Message(**fields))))
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            return read_response(api, version, memoryview(frame))[1]

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def coordinator_of(places: dict[int, tuple[str, int]], group: str) -> tuple[str, int]:
    """The address of a group's coordinator, as soon as there is one."""
    async with asyncio.timeout(LIMIT_S):
        turns = Turns()
        while True:
            turns.go()
            for place in places.values():
                try:
                    answer = await ask_once(place, "FindCoordinator", 4, key_type=0, coordinator_keys=[group])
                except (OSError, TimeoutError, asyncio.IncompleteReadError):
                    continue
                (found,) = answer.coordinators
                if found.error_code == 0:
                    return found.host, found.port
            await asyncio.sleep(0.1)


class GroupMember:
    """One member of a group, on a connection of its own."""

    def __init__(self, line: Line, group: str, topic: str, session_ms: int = 30_000) -> None:
        self.line = line
        self.group, self.topic, self.session_ms = group, topic, session_ms
        self.member_id, self.generation, self.leads = "", -1, False
        self.assignment = b""
        self._others: list[Any] = []

    async def join(self) -> int:
        """Join, and join again where it is told its id first; the error."""
        name = self.topic.encode()
        subscription = b"\0\0\0\0\0\1" + len(name).to_bytes(2, "big") + name + b"\xff\xff\xff\xff"
        turns = Turns()
        while True:
            turns.go()
            answer = await self.line.ask(
                "JoinGroup",
                9,
                group_id=self.group,
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=60_000,
                member_id=self.member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=[Message(name="range", metadata=subscription)],
                reason=None,
            )
            if answer.error_code != 79:
                break
            self.member_id = answer.member_id
        if answer.error_code == 0:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.leads, self._others = answer.leader == answer.member_id, answer.members
        return int(answer.error_code)

    async def sync(self) -> int:
        """Ask for the assignment, which the leader brings; the error."""
        assigned = [one.member_id for one in self._others] if self.leads else []
        answer = await self.line.ask(
            "SyncGroup",
            5,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[Message(member_id=one, assignment=one.encode()) for one in assigned],
        )
        self.assignment = bytes(answer.assignment)
        return int(answer.error_code)

    async def settle(self) -> None:
        """Join and ask for the assignment until it is there. Raises: `AssertionError`."""
        async with asyncio.timeout(LIMIT_S):
            turns = Turns()
            while True:
                turns.go()
                error = await self.join()
                error = await self.sync() if error == 0 else error
                if error == 0:
                    assert self.assignment == self.member_id.encode(), "it has another member's assignment"
                    return
                assert error in RETRIED | {27, 22, 25}, f"error {error}"
                if error == 25:
                    self.member_id = ""
                await asyncio.sleep(0.1)

    async def heartbeat(self) -> int:
        """Say that it is alive; the error."""
        answer = await self.line.ask(
            "Heartbeat",
            4,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=None,
        )
        return int(answer.error_code)

    async def commit(self, partition: int, offset: int) -> int:
        """Commit an offset; the error."""
        return await commit(self.line, self.group, self.topic, partition, offset, self.generation, self.member_id)


async def commit(
    line: Line, group: str, topic: str, partition: int, offset: int, generation: int = -1, member_id: str = ""
) -> int:
    """Commit an offset; the error."""
    one = Message(
        partition_index=partition, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=f"at {offset}"
    )
    answer = await line.ask(
        "OffsetCommit",
        8,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        topics=[Message(name=topic, partitions=[one])],
    )
    return int(answer.topics[0].partitions[0].error_code)


async def committed(line: Line, group: str, topic: str, partitions: int, stable: bool = False) -> dict[int, int] | None:
    """The offsets of a group, or none if the broker does not say."""
    topics = [Message(name=topic, partition_indexes=list(range(partitions)))]
    asked = Message(group_id=group, member_id=None, member_epoch=-1, topics=topics)
    answer = await line.ask("OffsetFetch", 9, groups=[asked], require_stable=stable)
    (found,) = answer.groups
    if found.error_code != 0:
        return None
    return {one.partition_index: one.committed_offset for topic in found.topics for one in topic.partitions}
