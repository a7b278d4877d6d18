"""Consumer groups (KIP-848): heartbeats, descriptions, and the regular expressions that members subscribe to."""

from functools import partial

from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, aside, ends_turn
from kspec.impl.requests.group_offsets import GROUP_OPERATIONS
from kspec.impl.requests.groups import Groups
from kspec.impl.requests.modern.expressions import is_expression, matching
from kspec.impl.storage.small_files import new_uuid
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.modern.regexes import regexes_due
from kspec.spec.coordinator.modern.state import ResolvedRegularExpression
from kspec.spec.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumer,
)
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import Error, GroupEpoch, GroupId, Instant, MemberId, TimestampMs, TopicId

FIRST_REQUIRING_MEMBER_ID = 1

CONSUMER_MEMBER, CLASSIC_MEMBER = 1, 0
"""Kinds of members in a description. Kafka: `ConsumerGroupDescribeResponseData.Member.memberType`."""


def consumer_group_heartbeat(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """A member joins, is alive, or leaves. **Kafka:** `KafkaApis.handleConsumerGroupHeartbeat`."""
    message = call.message
    names, regex, owned = message.subscribed_topic_names, message.subscribed_topic_regex, message.topic_partitions
    request = ConsumerGroupHeartbeatRequest(
        GroupId(message.group_id),
        MemberId(message.member_id),
        GroupEpoch(message.member_epoch),
        message.instance_id,
        message.rack_id,
        message.rebalance_timeout_ms,
        None if names is None else frozenset(names),
        regex,
        message.server_assignor,
        None if owned is None else frozenset(_places(owned)),
        call.header.client_id or "",
        f"/{call.peer.host}",
        MemberId(new_uuid()),
        call.version >= FIRST_REQUIRING_MEMBER_ID,
        not regex or is_expression(regex),
    )

    def shown(answer: ConsumerGroupHeartbeatResponse) -> dict[str, object]:
        given = answer.assignment
        return {
            "error_code": answer.error.value,
            "error_message": None if answer.error == Error.NONE else answer.error.name,
            "member_id": answer.member_id if answer.error == Error.NONE else None,
            "member_epoch": answer.member_epoch,
            "heartbeat_interval_ms": answer.heartbeat_interval_ms,
            "assignment": None if given is None else Message(topic_partitions=_by_topic(sorted(given))),
        }

    effects = groups.ask(call, request, ConsumerGroupHeartbeatResponse, shown, now)
    return [*effects, *_resolve(groups, request.group_id, now)]


def _places(topics: list[Message]) -> list[TopicIdPartition]:
    return [TopicIdPartition(TopicId(bytes(topic.topic_id)), index) for topic in topics for index in topic.partitions]


def _by_topic(partitions: list[TopicIdPartition]) -> list[Message]:
    by_topic: dict[TopicId, list[int]] = {}
    for one in partitions:
        by_topic.setdefault(one.topic_id, []).append(one.partition)
    return [Message(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_topic.items()]


def _resolve(groups: Groups, group_id: GroupId, now: Instant) -> list[Effect]:
    """Find out what a group's expressions match, in a thread and one at a time, if that is due.

    **Kafka:** `GroupMetadataManager.maybeUpdateRegularExpressions`.
    """
    shard = groups.log.shard_of(group_id)
    group = None if shard is None else shard.group(group_id).latest.consumer
    if group is None or group_id in groups.resolving:
        return []
    newest = groups.newest_topic()
    due = regexes_due(group, newest, now)
    if not due:
        return []
    groups.resolving.add(group_id)

    def take(found: tuple[ResolvedRegularExpression, ...], later: Instant) -> list[Effect]:
        groups.resolving.discard(group_id)
        return groups.take_resolved(group_id, found, later)

    names = tuple(groups.core.cluster.image.topics)
    return [aside(None, partial(_resolved, sorted(due), names, newest, now.timestamp), take)]


def _resolved(
    expressions: list[str], names: tuple[str, ...], newest: int, now: TimestampMs
) -> tuple[ResolvedRegularExpression, ...]:
    found = matching(expressions, names)
    return tuple(ResolvedRegularExpression(regex, found[regex], newest, now) for regex in expressions)


def consumer_group_describe(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """Consumer groups' epochs and members. **Kafka:** `KafkaApis.handleConsumerGroupDescribe`."""
    return [InTurns(call, _describe(groups, call, now))]


def _describe(groups: Groups, call: Call, now: Instant) -> Steps:
    described: list[Message] = []

    def answer(reply: ConsumerGroupDescribeResponse) -> list[Effect]:
        described.append(_described(groups, call, reply))
        return []

    effects: list[Effect] = []
    for number, group_id in enumerate(call.message.group_ids):
        effects += groups.decide(ConsumerGroupDescribeRequest(GroupId(group_id)), ConsumerGroupDescribeResponse, answer, now)
        if ends_turn(number):
            yield effects
            effects = []
    return [*effects, call.respond(groups=described).long_if(len(described) > TURN_SIZE)]


def _described(groups: Groups, call: Call, reply: ConsumerGroupDescribeResponse) -> Message:
    missing = reply.error == Error.GROUP_ID_NOT_FOUND
    message = Message(
        error_code=reply.error.value,
        error_message=f"group {reply.group_id} is not found" if missing else None,
        group_id=reply.group_id,
        group_state=reply.group_state,
        group_epoch=reply.group_epoch,
        assignment_epoch=reply.assignment_epoch,
        assignor_name=reply.assignor,
        members=[_member(groups, member) for member in reply.members],
    )
    if call.message.include_authorized_operations and reply.error == Error.NONE:
        message.__dict__["authorized_operations"] = GROUP_OPERATIONS
    return message


def _member(groups: Groups, member: DescribedConsumer) -> Message:
    return Message(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=Message(topic_partitions=_named(groups, member.assignment)),
        target_assignment=Message(topic_partitions=_named(groups, member.target)),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _named(groups: Groups, partitions: tuple[TopicIdPartition, ...]) -> list[Message]:
    known = groups.core.cluster.image.topics_by_id
    found = _by_topic(list(partitions))
    return [
        Message(topic_id=one.topic_id, topic_name=known[one.topic_id].name, partitions=one.partitions)
        for one in found
        if one.topic_id in known
    ]
