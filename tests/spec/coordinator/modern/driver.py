"""A coordinator of one consumer group for tests, and consumers that send heartbeats to it as a client does."""

from dataclasses import replace
from typing import Any

from kspec.spec.coordinator.group import Group
from kspec.spec.coordinator.loading import load
from kspec.spec.coordinator.modern.state import ConsumerGroup, ConsumerGroupMember, consumer_of
from kspec.spec.coordinator.rules.consumer_protocol import write_assignment
from kspec.spec.coordinator.runtime import on_due, take_resolved
from kspec.spec.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.messages.groups.join_group import GroupProtocol
from kspec.spec.releases.names import NEWEST_RELEASE
from kspec.spec.topics import NO_TOPICS, TopicIdPartition, TopicImage, TopicsImage, with_topic
from kspec.spec.values import Error, GroupEpoch, MemberId, PartitionId, TopicId
from tests.spec.coordinator_driver import GROUP, CoordinatorDriver, subscription
from tests.times import at_ms

REBALANCE_MS = 30_000


def topic_id(name: str) -> TopicId:
    """The id of a topic of this name."""
    return TopicId(name.encode().rjust(16, b"\1"))


def topics(**counts: int) -> TopicsImage:
    """Topics with so many partitions."""
    found = NO_TOPICS
    for name, count in counts.items():
        found = with_topic(found, TopicImage(name, topic_id(name), tuple(PartitionId(one) for one in range(count))))
    return found


def held(text: str) -> frozenset[TopicIdPartition]:
    """`a:0,1 b:2` as partitions."""
    pairs = (one.split(":") for one in text.split())
    return frozenset(TopicIdPartition(topic_id(name), int(index)) for name, some in pairs for index in some.split(","))


def without_timers(group: Group) -> Group:
    """The group as a load of its log has it."""
    if group.consumer is None:
        return group
    members = tuple(
        one._replace(
            session_deadline_ms=None,
            rebalance_deadline_ms=None,
            rebalance_epoch=GroupEpoch(0),
            join_deadline_ms=None,
            sync_deadline_ms=None,
        )
        for one in group.consumer.members
    )
    return group._replace(consumer=group.consumer._replace(members=members))


class ConsumerDriver(CoordinatorDriver):
    """Sends heartbeats; after each step the group is what its log says.

    Groups begin in epoch 0, as up to 4.2, so that numbers are the same for all releases; unless `first_epoch` is that of the
    release, which is `None`.
    """

    def __init__(
        self,
        release: str = NEWEST_RELEASE,
        known: TopicsImage = NO_TOPICS,
        first_epoch: int | None = 0,
        **settings: Any,
    ) -> None:
        super().__init__(release, **{"consumer_assignment_interval_ms": 0, "initial_rebalance_delay_ms": 0, **settings})
        if first_epoch is not None:
            rules = replace(self.coordinator.protocol, first_epoch=GroupEpoch(first_epoch))
            self.coordinator = replace(self.coordinator, protocol=rules)
        self.know(known)

    def know(self, known: TopicsImage) -> None:
        """The broker has read of these topics."""
        self.coordinator = replace(self.coordinator, topics=known)

    @property
    def consumers(self) -> ConsumerGroup:
        """The consumer group."""
        assert self.group.consumer is not None
        return self.group.consumer

    def consumer(self, name: str) -> ConsumerGroupMember:
        """A member of it."""
        found = consumer_of(self.consumers, MemberId(name))
        assert found is not None, name
        return found

    def carry_out(self, step: Any) -> Any:
        """Take the step, and compare the group with its log."""
        reply = super().carry_out(step)
        if self.group.consumer is not None:
            (loaded,) = load(self.log)
            assert loaded == without_timers(self.group)
        return reply

    def beat(self, name: str, epoch: int, owned: str | None = None, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat; the answer."""
        given = {"owned": None if owned is None else held(owned), "client_id": "c", "client_host": "/h", **fields}
        answer = self.send(ConsumerGroupHeartbeatRequest(GROUP, MemberId(name), GroupEpoch(epoch), **given))
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def come(self, name: str, *names: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A consumer of these topics joins; the answer."""
        asked = {"rebalance_timeout_ms": REBALANCE_MS, "topics": frozenset(names), **fields}
        return self.beat(name, 0, "", **asked)

    def go(self, name: str, epoch: int = -1, **fields: Any) -> Error:
        """A consumer leaves; the error."""
        return self.beat(name, epoch, **fields).error

    def described(self) -> ConsumerGroupDescribeResponse:
        """The group as clients are told of it."""
        answer = self.send(ConsumerGroupDescribeRequest(GROUP))
        assert isinstance(answer, ConsumerGroupDescribeResponse)
        return answer

    def wait(self, ms: int) -> None:
        """Time goes by, and what is due is done."""
        self.now += ms
        self.happen(on_due(self.coordinator, self.state_of_group, self.position, at_ms(self.now)))

    def resolve(self, *found: Any) -> None:
        """Regular expressions are resolved."""
        self.happen(take_resolved(self.coordinator, self.state_of_group, found, self.position, at_ms(self.now)))


def embedded(*names: str, owned: str = "", layout: int = 1) -> bytes:
    """The subscription of a consumer of these topics that has some partitions, as classic clients write it."""
    if layout == 0:
        return subscription(*names)
    had = frozenset((place.topic_id.strip(b"\1").decode(), place.partition) for place in held(owned))
    return layout.to_bytes(2, "big") + subscription(*names)[2:] + write_assignment(layout, had)[2:-4]


def classic(*names: str, owned: str = "", layout: int = 1, protocol: str = "range") -> tuple[GroupProtocol, ...]:
    """The one protocol of such a consumer."""
    return (GroupProtocol(protocol, embedded(*names, owned=owned, layout=layout)),)
