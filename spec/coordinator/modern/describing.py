"""The handler of ConsumerGroupDescribe (KIP-848)."""

from kspec.spec.coordinator.group import Group, GroupStep
from kspec.spec.coordinator.modern.state import ConsumerGroup, ConsumerGroupMember, places, target_of
from kspec.spec.coordinator.modern.targets import preferred_assignor
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rules.consumers import Places
from kspec.spec.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumer,
)
from kspec.spec.step import Reply, Step
from kspec.spec.topics import TopicIdPartition, topic_with_id
from kspec.spec.values import Error, Instant


def handle_consumer_group_describe(
    coordinator: Coordinator, group: Group, request: ConsumerGroupDescribeRequest, now: Instant
) -> GroupStep:
    """A consumer group's epochs and members; from 4.3 on a member is responsible for what it has to give up until it has.

    Errors: `GROUP_ID_NOT_FOUND`, also for a classic group.

    **Kafka:** `GroupMetadataManager.consumerGroupDescribe`, `ConsumerGroup.asDescribedGroup`.
    """
    consumer = group.consumer
    if consumer is None:
        return Step(group, (Reply(ConsumerGroupDescribeResponse(Error.GROUP_ID_NOT_FOUND, request.group_id)),))
    answer = ConsumerGroupDescribeResponse(
        Error.NONE,
        request.group_id,
        group.state.value,
        consumer.epoch,
        consumer.assignment_epoch,
        preferred_assignor(coordinator, consumer),
        tuple(_described(coordinator, consumer, member) for member in consumer.members),
    )
    return Step(group, (Reply(answer),))


def _described(coordinator: Coordinator, group: ConsumerGroup, member: ConsumerGroupMember) -> DescribedConsumer:
    described = coordinator.protocol.described(places(member.assigned), places(member.pending))
    return DescribedConsumer(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.topics)),
        member.regex,
        _of_topics_there(coordinator, described),
        _of_topics_there(coordinator, target_of(group, member.member_id)),
        member.classic is not None,
    )


def _of_topics_there(coordinator: Coordinator, partitions: Places) -> tuple[TopicIdPartition, ...]:
    there = (one for one in partitions if topic_with_id(coordinator.topics, one.topic_id) is not None)
    return tuple(sorted(there))
