"""Requests about groups and offsets, each to the broker that answers it: a coordinator, a leader, any."""

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from kspec.cli.broker.asking import AGAIN, PAUSE_S, ClusterAdmin, Place, TopicAndPartition, error_name
from kspec.impl.wire.requests import sent
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.rules.consumer_protocol import read_assignment
from kspec.spec.values import Error
from kspec.trials.cluster.asking import by_topic

LATEST, EARLIEST = -1, -2
"""Times of ListOffsets. Kafka: `ListOffsetsRequest.LATEST_TIMESTAMP`, `EARLIEST_TIMESTAMP`."""

MISSING = {Error.GROUP_ID_NOT_FOUND.value, Error.UNSUPPORTED_VERSION.value}


class ShownListing(NamedTuple):
    """A group as a broker lists it."""

    name: str
    kind: str
    state: str


class ShownMember(NamedTuple):
    """A member of a group; `None` for what the classic protocol does not have."""

    name: str
    instance: str
    client: str
    host: str
    assigned: tuple[TopicAndPartition, ...]
    target: tuple[TopicAndPartition, ...] = ()
    epoch: int | None = None
    upgraded: bool | None = None


class ShownGroup(NamedTuple):
    """A group as its coordinator describes it; `None` for what the classic protocol does not have."""

    name: str
    state: str
    assignor: str
    members: tuple[ShownMember, ...]
    coordinator: str
    epoch: int | None = None
    target_epoch: int | None = None


class OffsetOfGroup(NamedTuple):
    """An offset that a group has committed."""

    offset: int
    leader_epoch: int


class GroupAdmin(ClusterAdmin):
    """Requests about groups. Each call has until `seconds` are over. Raises: `RefusedError`."""

    # ---- groups

    def listed(self, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[ShownListing]:
        """All groups of consumers, by name; of these states and kinds, if any are given."""
        found = []
        wanted = set(kinds) or {"classic", "consumer"}
        for broker in self.metadata([]).brokers:
            filters = {"states_filter": list(states), "types_filter": sorted(wanted)}
            answer = self.asked((broker.host, broker.port), "ListGroups", 5, **filters)
            found += [one for one in self.good(answer, "groups").groups if one.protocol_type in {"", "consumer"}]
        listed = {ShownListing(one.group_id, _kind(one), getattr(one, "group_state", "Unknown")) for one in found}
        return sorted(one for one in listed if one.kind.lower() in wanted)

    def described(self, group: str) -> ShownGroup | None:
        """A group; nothing if there is none."""
        node, place = self.coordinator(group)
        shown = f"{place[0]}:{place[1]}  ({node})"
        if sent("ConsumerGroupDescribe").key in self.known(place):
            one = self._of_group(group, "ConsumerGroupDescribe", 1, "groups", group_ids=[group])
            if one.error_code not in MISSING:
                return _modern(self.good(one, group), shown)
        one = self._of_group(group, "DescribeGroups", 6, "groups", groups=[group])
        if one.error_code == Error.GROUP_ID_NOT_FOUND.value or one.group_state == "Dead":
            return None
        return _classic(self.good(one, group), shown)

    def delete(self, group: str) -> str | None:
        """Delete a group; the name of the error, if it is refused."""
        one = self._of_group(group, "DeleteGroups", 2, "results", groups_names=[group])
        return error_name(one.error_code) if one.error_code else None

    # ---- offsets of a group

    def committed(self, group: str) -> dict[TopicAndPartition, OffsetOfGroup]:
        """The offsets that a group has committed."""
        asked = {"groups": [Message(group_id=group, topics=None)], "group_id": group, "topics": None}
        answer = self._of_group(group, "OffsetFetch", 9, "groups", **asked)
        return {
            TopicAndPartition(topic.name, one.partition_index): OffsetOfGroup(
                one.committed_offset, getattr(one, "committed_leader_epoch", -1)
            )
            for topic in self.good(answer, group).topics or ()
            for one in topic.partitions
            if one.committed_offset >= 0
        }

    def commit(self, group: str, offsets: dict[TopicAndPartition, int]) -> None:
        """Set offsets of a group that has no members."""
        topics = by_topic(
            [
                (one.topic, Message(partition_index=one.partition, committed_offset=offset, committed_metadata=""))
                for one, offset in offsets.items()
            ]
        )
        wanted = [Message(name=name, partitions=partitions) for name, partitions in topics.items()]
        answer = self._of_group(group, "OffsetCommit", 9, None, group_id=group, member_id="", topics=wanted)
        for topic in answer.topics:
            for one in topic.partitions:
                self.good(one, f"{topic.name}-{one.partition_index}")

    def delete_offsets(self, group: str, partitions: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, str | None]:
        """Delete offsets of a group; for each partition the name of the error, if it is refused."""
        topics = by_topic([(one.topic, Message(partition_index=one.partition)) for one in partitions])
        wanted = [Message(name=name, partitions=indexes) for name, indexes in topics.items()]
        answer = self._of_group(group, "OffsetDelete", 0, None, group_id=group, topics=wanted)
        return {
            TopicAndPartition(topic.name, one.partition_index): error_name(one.error_code) if one.error_code else None
            for topic in self.good(answer, group).topics
            for one in topic.partitions
        }

    # ---- partitions

    def partitions_of(self, topics: Iterable[str]) -> dict[TopicAndPartition, Place | None]:
        """The partitions of topics that there are, each with its leader, if it has one."""
        answer = self.metadata(sorted(set(topics)))
        places = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return {
            TopicAndPartition(topic.name, one.partition_index): places.get(one.leader_id)
            for topic in answer.topics
            for one in topic.partitions
        }

    def offsets(self, partitions: Iterable[TopicAndPartition], timestamp: int) -> dict[TopicAndPartition, int]:
        """The offsets at a time (ms, `LATEST`, `EARLIEST`), of partitions that have a leader; -1 where none is so late."""
        wanted, end = set(partitions), time.monotonic() + self.seconds
        found: dict[TopicAndPartition, int] = {}
        while True:
            leaders = self.partitions_of(one.topic for one in wanted) if wanted else {}
            for place in {leaders[one] for one in wanted if leaders.get(one) is not None} - {None}:
                assert place is not None
                found |= self._listed_offsets(place, [one for one in wanted if leaders[one] == place], timestamp)
            wanted = {one for one in wanted - set(found) if leaders.get(one) is not None}
            if not wanted or time.monotonic() > end:
                return found
            time.sleep(PAUSE_S)

    def _listed_offsets(
        self, place: Place, partitions: list[TopicAndPartition], timestamp: int
    ) -> dict[TopicAndPartition, int]:
        asked = [(one.topic, Message(partition_index=one.partition, timestamp=timestamp)) for one in sorted(partitions)]
        topics = [Message(name=name, partitions=indexes) for name, indexes in by_topic(asked).items()]
        answer = self.asked(place, "ListOffsets", 9, replica_id=-1, isolation_level=0, topics=topics)
        return {
            TopicAndPartition(topic.name, one.partition_index): self.good(one, topic.name).offset
            for topic in answer.topics
            for one in topic.partitions
            if one.error_code not in AGAIN
        }

    def _of_group(self, group: str, api: str, version: int, within: str | None, **fields: Any) -> Message:
        """The answer of a group's coordinator, or the first part of it that is about the group."""
        end = time.monotonic() + self.seconds
        while True:
            answer = self.asked(self.coordinator(group)[1], api, version, **fields)
            part: Message = getattr(answer, within)[0] if within is not None and getattr(answer, within, None) else answer
            if getattr(part, "error_code", 0) not in AGAIN or time.monotonic() > end:
                return part
            time.sleep(PAUSE_S)


def _kind(listed: Message) -> str:
    return str(getattr(listed, "group_type", "")).capitalize() or "Classic"


def _modern(group: Any, coordinator: str) -> ShownGroup:
    members = tuple(
        ShownMember(
            one.member_id,
            one.instance_id or "",
            one.client_id,
            one.client_host,
            _partitions(one.assignment),
            _partitions(one.target_assignment),
            one.member_epoch,
            {0: False, 1: True}.get(getattr(one, "member_type", -1)),
        )
        for one in group.members
    )
    return ShownGroup(
        group.group_id,
        group.group_state,
        group.assignor_name,
        members,
        coordinator,
        group.group_epoch,
        group.assignment_epoch,
    )


def _classic(group: Any, coordinator: str) -> ShownGroup:
    members = tuple(
        ShownMember(
            one.member_id,
            getattr(one, "group_instance_id", None) or "",
            one.client_id,
            one.client_host,
            _in_bytes(bytes(one.member_assignment or b"")),
        )
        for one in group.members
    )
    return ShownGroup(group.group_id, group.group_state, group.protocol_data, members, coordinator)


def _partitions(assignment: Any) -> tuple[TopicAndPartition, ...]:
    found = [TopicAndPartition(one.topic_name, index) for one in assignment.topic_partitions for index in one.partitions]
    return tuple(sorted(found))


def _in_bytes(assignment: bytes) -> tuple[TopicAndPartition, ...]:
    read = read_assignment(assignment)
    return tuple(sorted(TopicAndPartition(*one) for one in read.partitions)) if read else ()
