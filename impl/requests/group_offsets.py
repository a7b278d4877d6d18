"""Committed offsets, and looking at groups."""

from typing import Any

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.requests.groups import Groups
from impl.wire.schema import NO_UUID
from impl.wire.values import Message
from spec.broker.clients.named_partitions import NO_TOPIC, check_named_partition
from spec.coordinator.administration import handle_delete_groups, handle_describe_groups, handle_list_groups
from spec.coordinator.offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from spec.messages.groups.delete_groups import DeleteGroupsRequest
from spec.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from spec.messages.groups.list_groups import ListGroupsRequest
from spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, OffsetToCommit
from spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from spec.messages.groups.offset_fetch import FetchedOffset, OffsetFetchRequest, OffsetFetchResponse, TopicPartition
from spec.values import Epoch, Error, Generation, GroupId, MemberId, Offset, TopicId

FIRST_WITH_TOPIC_IDS = 10
FIRST_WITH_MANY_GROUPS = 8
FIRST_WITH_ERROR_OF_ALL = 2
FIRST_REPORTING_MISSING_GROUP = 9
FIRST_DESCRIBING_MISSING_GROUP = 6
GROUP_OPERATIONS = 3400
"""What can be done with a group, as bits. Kafka: `AclEntry.supportedOperations`."""


def _topic(core: Core, topic: Message, by_id: bool) -> tuple[str, bytes, int, Error]:
    """A topic's name, id and number of partitions, or the error for one that there is not."""
    known = core.cluster.topic(None if by_id else topic.name, bytes(topic.topic_id) if by_id else NO_UUID, by_id)
    if known is None:
        missing = Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION
        return ("" if by_id else topic.name), (bytes(topic.topic_id) if by_id else NO_UUID), NO_TOPIC, missing
    return known.name, known.topic_id, len(known.partitions), Error.NONE


def offset_commit(groups: Groups, call: Call, now: int) -> list[Effect]:
    """A group commits offsets. **Kafka:** `KafkaApis.handleOffsetCommitRequest`."""
    message = call.message
    by_id = call.version >= FIRST_WITH_TOPIC_IDS
    taken: list[OffsetToCommit] = []
    errors: dict[tuple[int, int], Error] = {}
    places: list[tuple[int, int]] = []
    unknown: set[int] = set()
    for number, topic in enumerate(message.topics):
        name, topic_id, count, _ = _topic(groups.core, topic, by_id)
        if count == NO_TOPIC:
            unknown.add(number)
        for place, one in enumerate(topic.partitions):
            error = check_named_partition(count, one.partition_index, by_id)
            if error != Error.NONE:
                errors[number, place] = error
                continue
            places.append((number, place))
            offset, epoch = Offset(one.committed_offset), Epoch(one.committed_leader_epoch)
            taken.append(OffsetToCommit(name, one.partition_index, offset, epoch, one.committed_metadata, TopicId(topic_id)))

    def answered() -> dict[str, Any]:
        named = "topic_id" if by_id else "name"
        return {
            "topics": [
                Message(
                    **{named: getattr(topic, named)},
                    partitions=[
                        Message(partition_index=one.partition_index, error_code=errors[number, place].value)
                        for place, one in enumerate(topic.partitions)
                    ],
                )
                for number, topic in enumerate(message.topics)
                if topic.partitions or number in unknown
            ]
        }

    def shown(answer: OffsetCommitResponse) -> dict[str, Any]:
        errors.update(zip(places, (one.error for one in answer.partitions), strict=True))
        return answered()

    if not taken:
        return [call.respond(**answered())]
    request = OffsetCommitRequest(
        GroupId(message.group_id),
        tuple(taken),
        Generation(message.generation_id_or_member_epoch),
        MemberId(message.member_id),
        message.group_instance_id,
        message.retention_time_ms,
        call.version >= FIRST_REPORTING_MISSING_GROUP,
    )
    return groups.ask(handle_offset_commit, call, request, shown, now)


def offset_fetch(groups: Groups, call: Call, now: int) -> list[Effect]:
    """How far groups have read. **Kafka:** `KafkaApis.handleOffsetFetchRequest`."""
    message = call.message
    many = call.version >= FIRST_WITH_MANY_GROUPS
    wanted = message.groups if many else [message]
    found: list[Message] = []
    for group in wanted:
        _fetch_one(groups, call, group, message.require_stable, found, now)
    if many:
        return [call.respond(groups=found)]
    return [call.respond(topics=found[0].topics, error_code=found[0].error_code)]


def _fetch_one(groups: Groups, call: Call, group: Message, require_stable: bool, found: list[Message], now: int) -> None:
    by_id = call.version >= FIRST_WITH_TOPIC_IDS
    asked: list[TopicPartition] | None = None
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
                if by_id and error != Error.NONE:
                    unknown.append(FetchedOffset(name, index, error, metadata="", topic_id=TopicId(topic_id)))
                else:
                    asked.append(TopicPartition(name, index, TopicId(topic_id) if by_id else TopicId(NO_UUID)))

    def answer(reply: OffsetFetchResponse) -> list[Effect]:
        offsets = [*reply.partitions, *unknown]
        if call.version < FIRST_WITH_ERROR_OF_ALL and reply.error != Error.NONE and asked is not None:
            offsets = [FetchedOffset(one.topic, one.partition, reply.error) for one in asked]
        topics = [*_topics(groups.core, offsets, by_id), *without_partitions]
        found.append(Message(group_id=reply.group_id, topics=topics, error_code=reply.error.value))
        return []

    request = OffsetFetchRequest(GroupId(group.group_id), None if asked is None else tuple(asked), require_stable)
    for effect in groups.decide(handle_offset_fetch, request, answer, now):
        raise AssertionError(f"a fetch of offsets changes nothing, and asks for {effect}")


def _topics(core: Core, offsets: list[FetchedOffset], by_id: bool) -> list[Message]:
    by_topic: dict[Any, list[Message]] = {}
    for one in offsets:
        key: Any = one.topic
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


def offset_delete(groups: Groups, call: Call, now: int) -> list[Effect]:
    """A group forgets offsets. **Kafka:** `KafkaApis.handleOffsetDeleteRequest`."""
    topics = call.message.topics
    known: list[TopicPartition] = []
    errors: dict[tuple[str, int], Error] = {}
    unknown: set[str] = set()
    for topic in topics:
        _, _, count, _ = _topic(groups.core, topic, False)
        if count == NO_TOPIC:
            unknown.add(topic.name)
        for one in topic.partitions:
            error = check_named_partition(count, one.partition_index, by_id=False)
            if error == Error.NONE:
                known.append(TopicPartition(topic.name, one.partition_index))
            else:
                errors[topic.name, one.partition_index] = error

    def shown(answer: OffsetDeleteResponse) -> dict[str, Any]:
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
    return groups.ask(handle_offset_delete, call, request, shown, now)


# ---- looking at groups


def describe_groups(groups: Groups, call: Call, now: int) -> list[Effect]:
    """The states and members of groups. **Kafka:** `KafkaApis.handleDescribeGroupsRequest`."""
    described: list[Message] = []

    def answer(reply: DescribeGroupsResponse) -> list[Effect]:
        described.append(_described(call, reply))
        return []

    effects: list[Effect] = []
    for group_id in call.message.groups:
        request = DescribeGroupsRequest(GroupId(group_id), call.version >= FIRST_DESCRIBING_MISSING_GROUP)
        effects += groups.decide(handle_describe_groups, request, answer, now)
    return [*effects, call.respond(groups=described)]


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


def list_groups(groups: Groups, call: Call, now: int) -> list[Effect]:
    """All groups of this broker. **Kafka:** `KafkaApis.handleListGroupsRequest`."""
    request = ListGroupsRequest(tuple(call.message.states_filter), tuple(call.message.types_filter))
    listed = []
    for group in groups.log.all_groups():
        for effect in groups.run(handle_list_groups, group, request, now).effects:
            reply = getattr(effect, "message", None)
            listed += [
                Message(
                    group_id=one.group_id,
                    protocol_type=one.protocol_type,
                    group_state=one.group_state,
                    group_type=one.group_type,
                )
                for one in (reply.groups if reply is not None else ())
            ]
    return [call.respond(error_code=0, groups=listed)]


def delete_groups(groups: Groups, call: Call, now: int) -> list[Effect]:
    """Forget groups. **Kafka:** `KafkaApis.handleDeleteGroupsRequest`."""
    results: dict[str, Message] = {}

    def answer(reply: Any) -> list[Effect]:
        results[reply.group_id] = Message(group_id=reply.group_id, error_code=reply.error.value)
        return [call.respond(results=list(results.values()))] if len(results) == len(wanted) else []

    wanted = list(dict.fromkeys(call.message.groups_names))
    effects: list[Effect] = []
    for group_id in wanted:
        effects += groups.decide(handle_delete_groups, DeleteGroupsRequest(GroupId(group_id)), answer, now)
    return effects if wanted else [call.respond(results=[])]
