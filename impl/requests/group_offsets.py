"""Committed offsets, and looking at groups."""

from collections.abc import Callable

from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, ends_turn
from kspec.impl.broker.core import BrokerCore
from kspec.impl.requests.groups import Groups
from kspec.impl.wire.schema import NO_UUID
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.metadata_requests import check_missing_topic
from kspec.spec.broker.clients.named_partitions import NO_TOPIC, check_named_partition
from kspec.spec.coordinator.administration import check_listable
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kspec.spec.messages.groups.list_groups import ListGroupsRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, OffsetToCommit
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kspec.spec.messages.groups.offset_fetch import (
    FetchedOffset,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitResponse
from kspec.spec.values import Epoch, Error, Generation, GroupId, Instant, MemberId, Offset, TopicId

FIRST_WITH_TOPIC_IDS = 10
FIRST_WITH_MANY_GROUPS = 8
FIRST_WITH_ERROR_OF_ALL = 2
FIRST_WITH_MEMBER = 9
"""The version of OffsetFetch from which a member of a consumer group says that it is one."""

FIRST_REPORTING_MISSING_GROUP = 9
FIRST_DESCRIBING_MISSING_GROUP = 6
NAMED_AT_ONCE = 2_000
"""Partitions of a group whose names are looked up before others are served."""

GROUP_OPERATIONS = 3400
"""The operations on a group, as bits. Kafka: `AclEntry.supportedOperations`."""


def _topic(core: BrokerCore, topic: Message, by_id: bool) -> tuple[str, bytes, int, Error]:
    """A topic's name, id and number of partitions, or the error for one that there is not."""
    known = core.cluster.topic(None if by_id else topic.name, bytes(topic.topic_id) if by_id else NO_UUID, by_id)
    if known is None:
        missing = check_missing_topic(by_id, has_valid_name=True)
        return ("" if by_id else topic.name), (bytes(topic.topic_id) if by_id else NO_UUID), NO_TOPIC, missing
    return known.name, known.topic_id, len(known.partitions), Error.NONE


class NamedOffsets:
    """The offsets that a request commits, by its topics: those that are handed in, and the errors of the others."""

    def __init__(self, core: BrokerCore, topics: list[Message], by_id: bool) -> None:
        self._core = core
        self._topics = topics
        self._by_id = by_id
        self._errors: dict[tuple[int, int], Error] = {}
        self._places: list[tuple[int, int]] = []
        self._unknown: set[int] = set()
        self.taken: list[OffsetToCommit] = []
        self.count = 0
        """The number of partitions that are named."""

    @property
    def is_long(self) -> bool:
        """Whether the answer names very much."""
        return self.count > TURN_SIZE

    def read(self) -> Steps:
        """Look at all partitions, some in each step."""
        for number, topic in enumerate(self._topics):
            name, topic_id, count, _ = _topic(self._core, topic, self._by_id)
            if count == NO_TOPIC:
                self._unknown.add(number)
            for place, one in enumerate(topic.partitions):
                if ends_turn(self.count):
                    yield []
                self.count += 1
                error = check_named_partition(count, one.partition_index, self._by_id)
                if error != Error.NONE:
                    self._errors[number, place] = error
                    continue
                self._places.append((number, place))
                offset, epoch = Offset(one.committed_offset), Epoch(one.committed_leader_epoch)
                found = (name, one.partition_index, offset, epoch, one.committed_metadata, TopicId(topic_id))
                self.taken.append(OffsetToCommit(*found))
        return []

    def answered(self) -> dict[str, object]:
        """The answer, when each partition has its error."""
        named = "topic_id" if self._by_id else "name"
        return {
            "topics": [
                Message(
                    **{named: getattr(topic, named)},
                    partitions=[
                        Message(partition_index=one.partition_index, error_code=self._errors[number, place].value)
                        for place, one in enumerate(topic.partitions)
                    ],
                )
                for number, topic in enumerate(self._topics)
                if topic.partitions or number in self._unknown
            ]
        }

    def shown(self, answer: OffsetCommitResponse | TxnOffsetCommitResponse) -> dict[str, object]:
        """The answer of the group, with the errors of the other partitions."""
        self._errors.update(zip(self._places, (one.error for one in answer.partitions), strict=True))
        return self.answered()


def offset_commit(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """A group commits offsets. **Kafka:** `KafkaApis.handleOffsetCommitRequest`."""
    return [InTurns(call, _commit(groups, call, now))]


def _commit(groups: Groups, call: Call, now: Instant) -> Steps:
    message = call.message
    named = NamedOffsets(groups.core, message.topics, call.version >= FIRST_WITH_TOPIC_IDS)
    yield from named.read()
    if not named.taken:
        return [call.respond(**named.answered()).long_if(named.is_long)]
    request = OffsetCommitRequest(
        GroupId(message.group_id),
        tuple(named.taken),
        Generation(message.generation_id_or_member_epoch),
        MemberId(message.member_id),
        message.group_instance_id,
        message.retention_time_ms,
        call.version >= FIRST_REPORTING_MISSING_GROUP,
    )
    return groups.ask(call, request, OffsetCommitResponse, named.shown, now, named.is_long)


def offset_fetch(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """Committed offsets of groups. **Kafka:** `KafkaApis.handleOffsetFetchRequest`."""
    return [InTurns(call, _fetch(groups, call, now))]


def _fetch(groups: Groups, call: Call, now: Instant) -> Steps:
    message = call.message
    many = call.version >= FIRST_WITH_MANY_GROUPS
    wanted = message.groups if many else [message]
    found: dict[int, Message] = {}

    def answered() -> list[Effect]:
        if len(found) < len(wanted):
            return []
        partitions = sum(len(topic.partitions) for one in found.values() for topic in one.topics)
        is_long = max(partitions, len(found)) > TURN_SIZE
        if many:
            return [call.respond(groups=[found[place] for place in range(len(wanted))]).long_if(is_long)]
        return [call.respond(topics=found[0].topics, error_code=found[0].error_code).long_if(is_long)]

    effects: list[Effect] = []
    for place, group in enumerate(wanted):

        def take(answer: Message, place: int = place) -> list[Effect]:
            found[place] = answer
            return answered()

        effects += yield from _fetch_one(groups, call, group, message.require_stable, take, now)
        if ends_turn(place):
            yield effects
            effects = []
    return effects if wanted else answered()


def _fetch_one(
    groups: Groups, call: Call, group: Message, require_stable: bool, take: Callable[[Message], list[Effect]], now: Instant
) -> Steps:
    number = 0
    by_id = call.version >= FIRST_WITH_TOPIC_IDS
    asked: list[OffsetFetchPartition] | None = None
    unknown: list[FetchedOffset] = []
    without_partitions: list[Message] = []
    if group.topics is not None:
        asked = []
        for topic in group.topics:
            name, topic_id, _, error = _topic(groups.core, topic, by_id)
            if not topic.partition_indexes:
                named = {"topic_id": topic_id} if by_id else {"name": name}
                without_partitions.append(Message(**named, partitions=[]))
            for index in topic.partition_indexes:
                number += 1
                if ends_turn(number, NAMED_AT_ONCE):
                    yield []
                if by_id and error != Error.NONE:
                    unknown.append(FetchedOffset(name, index, error, metadata="", topic_id=TopicId(topic_id)))
                else:
                    asked.append(OffsetFetchPartition(name, index, TopicId(topic_id) if by_id else TopicId(NO_UUID)))

    def answer(reply: OffsetFetchResponse) -> list[Effect]:
        offsets = [*reply.partitions, *unknown]
        if call.version < FIRST_WITH_ERROR_OF_ALL and reply.error != Error.NONE and asked is not None:
            offsets = [FetchedOffset(one.topic, one.partition, reply.error) for one in asked]
        topics = [*_topics(groups.core, offsets, by_id), *without_partitions]
        return take(Message(group_id=reply.group_id, topics=topics, error_code=reply.error.value))

    is_member = call.version >= FIRST_WITH_MEMBER and group.member_id is not None
    request = OffsetFetchRequest(
        GroupId(group.group_id),
        None if asked is None else tuple(asked),
        require_stable,
        MemberId(group.member_id) if is_member else None,
        group.member_epoch if call.version >= FIRST_WITH_MEMBER else -1,
    )
    return groups.decide(request, OffsetFetchResponse, answer, now)


def _topics(core: BrokerCore, offsets: list[FetchedOffset], by_id: bool) -> list[Message]:
    by_topic: dict[str | bytes, list[Message]] = {}
    for one in offsets:
        key: str | bytes = one.topic
        if by_id:
            known = core.cluster.image.topics.get(one.topic)
            key = known.topic_id if known is not None else one.topic_id
        by_topic.setdefault(key, []).append(
            Message(
                partition_index=one.partition,
                committed_offset=one.offset,
                committed_leader_epoch=one.leader_epoch,
                metadata=one.metadata,
                error_code=one.error.value,
            )
        )
    named = "topic_id" if by_id else "name"
    return [Message(**{named: key}, partitions=partitions) for key, partitions in by_topic.items()]


def offset_delete(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """A group forgets offsets. **Kafka:** `KafkaApis.handleOffsetDeleteRequest`."""
    return [InTurns(call, _forget(groups, call, now))]


def _forget(groups: Groups, call: Call, now: Instant) -> Steps:
    topics, number = call.message.topics, 0
    known: list[OffsetFetchPartition] = []
    errors: dict[tuple[str, int], Error] = {}
    unknown: set[str] = set()
    for topic in topics:
        _, _, count, _ = _topic(groups.core, topic, False)
        if count == NO_TOPIC:
            unknown.add(topic.name)
        for one in topic.partitions:
            if ends_turn(number):
                yield []
            number += 1
            error = check_named_partition(count, one.partition_index, by_id=False)
            if error == Error.NONE:
                known.append(OffsetFetchPartition(topic.name, one.partition_index))
            else:
                errors[topic.name, one.partition_index] = error

    def shown(answer: OffsetDeleteResponse) -> dict[str, object]:
        if answer.error != Error.NONE:
            return {"error_code": answer.error.value, "topics": []}
        errors.update({(one.topic, one.partition): one.error for one in answer.partitions})
        listed = [
            Message(
                name=topic.name,
                partitions=[
                    Message(partition_index=one.partition_index, error_code=errors[topic.name, one.partition_index].value)
                    for one in topic.partitions
                ],
            )
            for topic in topics
            if topic.partitions or topic.name in unknown
        ]
        return {"error_code": 0, "topics": listed}

    request = OffsetDeleteRequest(GroupId(call.message.group_id), tuple(known))
    return groups.ask(call, request, OffsetDeleteResponse, shown, now, number > TURN_SIZE)


# ---- looking at groups


def describe_groups(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """The states and members of groups. **Kafka:** `KafkaApis.handleDescribeGroupsRequest`."""
    return [InTurns(call, _describe(groups, call, now))]


def _describe(groups: Groups, call: Call, now: Instant) -> Steps:
    described: list[Message] = []

    def answer(reply: DescribeGroupsResponse) -> list[Effect]:
        described.append(_described(call, reply))
        return []

    effects: list[Effect] = []
    for number, group_id in enumerate(call.message.groups):
        request = DescribeGroupsRequest(GroupId(group_id), call.version >= FIRST_DESCRIBING_MISSING_GROUP)
        effects += groups.decide(request, DescribeGroupsResponse, answer, now)
        if ends_turn(number):
            yield effects
            effects = []
    return [*effects, call.respond(groups=described).long_if(len(described) > TURN_SIZE)]


def _described(call: Call, reply: DescribeGroupsResponse) -> Message:
    members = [
        Message(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata,
            member_assignment=member.assignment,
        )
        for member in reply.members
    ]
    message = Message(
        error_code=reply.error.value,
        error_message=None if reply.error == Error.NONE else f"group {reply.group_id} is not found",
        group_id=reply.group_id,
        group_state=reply.group_state,
        protocol_type=reply.protocol_type,
        protocol_data=reply.protocol_name,
        members=members,
    )
    if call.message.include_authorized_operations and reply.error == Error.NONE:
        message.__dict__["authorized_operations"] = GROUP_OPERATIONS
    return message


def list_groups(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """All groups of this broker. **Kafka:** `KafkaApis.handleListGroupsRequest`."""
    request = ListGroupsRequest(tuple(call.message.states_filter), tuple(call.message.types_filter))
    listed = [
        Message(
            group_id=one.group_id,
            protocol_type=one.protocol_type,
            group_state=one.group_state,
            group_type=one.group_type,
        )
        for one in groups.listed(request, now)
    ]
    error = check_listable(groups.log.loads_any())
    return [call.respond(error_code=error.value, groups=listed if error == Error.NONE else [])]


def delete_groups(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """Forget groups. **Kafka:** `KafkaApis.handleDeleteGroupsRequest`."""
    return [InTurns(call, _delete(groups, call, now))]


def _delete(groups: Groups, call: Call, now: Instant) -> Steps:
    results: dict[str, Message] = {}

    def answer(reply: DeleteGroupsResponse) -> list[Effect]:
        results[reply.group_id] = Message(group_id=reply.group_id, error_code=reply.error.value)
        if len(results) < len(wanted):
            return []
        return [call.respond(results=list(results.values())).long_if(len(results) > TURN_SIZE)]

    wanted = list(dict.fromkeys(call.message.groups_names))
    effects: list[Effect] = []
    for number, group_id in enumerate(wanted):
        effects += groups.decide(DeleteGroupsRequest(GroupId(group_id)), DeleteGroupsResponse, answer, now)
        if ends_turn(number):
            yield effects
            effects = []
    return effects if wanted else [call.respond(results=[])]
