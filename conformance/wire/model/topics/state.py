"""The controller's state in the model of topics, and how topics and brokers look on the wire."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Hole
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.state import AppendRecords, ControllerState, ControllerStep
from kspec.spec.metadata import (
    BrokerRegistration,
    ConfigRecord,
    MetadataImage,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
    partition_of,
    replay_all,
)
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.step import Reply
from kspec.spec.topics import TopicIdPartition, TopicImage, topic_named
from kspec.spec.values import (
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    MonotonicMs,
    Offset,
    PartitionId,
    TopicId,
)

WHOLE = "a topic is created, grown and deleted as a whole, or the client learns why not"
CONTROLLER = Controller(KRAFT_NEXT)
CONTROLLER_EPOCH = Epoch(1)
SELF, STRANGER = BrokerId(1), BrokerId(2_000_000)
PLAIN, DOTTED, UNDERSCORED = "topic", "a.b", "a_b"
HOLES = {PLAIN: Hole("topic"), DOTTED: Hole("topic_dotted"), UNDERSCORED: Hole("topic_underscored"), SELF: Hole("broker_id")}
IDS = {name: TopicId(bytes([number]) * 16) for number, name in enumerate((PLAIN, DOTTED, UNDERSCORED), start=1)}
MOST, MOST_MADE = 3, 2
ID_HOLES = (Hole("topic_id"), Hole("topic_id_2"))
SINCE_REFUSED = "4.4"
"""3.9.2 answers `UNKNOWN_SERVER_ERROR` to too many new partitions, and creates as many of them as one request may."""

NO_SUCH = TopicId(b"\x07" * 16)


class TopicsState(NamedTuple):
    """The controller's knowledge of topics, and how often the plain one was made."""

    image: MetadataImage
    made: int = 0

    @property
    def plain(self) -> TopicImage | None:
        """The plain topic, if it is there."""
        return topic_named(self.image.topics, PLAIN)

    @property
    def id_hole(self) -> Hole:
        """The id of the plain topic, as it was last made."""
        return ID_HOLES[max(self.made - 1, 0)]


class Decision(NamedTuple):
    """The controller's decision on a request: its answer, and what is known then if records are written."""

    answer: Any
    after: TopicsState
    writes: bool


def decide(handler: Callable[..., ControllerStep], state: TopicsState, request: Any) -> Decision:
    """The decision of a handler."""
    step = handler(CONTROLLER, ControllerState(CONTROLLER_EPOCH, state.image), request, MonotonicMs(0))
    (answer,) = (effect.message for effect in step.effects if isinstance(effect, Reply))
    writes = any(isinstance(effect, AppendRecords) for effect in step.effects)
    return Decision(answer, state._replace(image=counted_anew(step.state.image)), writes)


def counted_anew(image: MetadataImage) -> MetadataImage:
    """The image without what only grows: its topics as if they had just been created, in the order in which they were."""
    records: list[MetadataRecord] = []
    number = 0
    for topic in sorted(image.topics.by_name, key=lambda topic: topic.partitions):
        records.append(TopicRecord(topic.name, topic.topic_id))
        for index, partition in enumerate(topic.partitions):
            registration = partition_of(image, partition)
            assert registration is not None
            records.append(PartitionRecord(PartitionId(number), registration, TopicIdPartition(topic.topic_id, index)))
            number += 1
    for resource, values in image.configs:
        records += [ConfigRecord(resource, name, value) for name, value in values]
    empty = MetadataImage(brokers=image.brokers)
    return replay_all(empty, tuple(records))._replace(end_offset=Offset(0))


def registered() -> BrokerRegistration:
    """The one broker, unfenced. Kafka: `BrokerRegistration`."""
    return BrokerRegistration(SELF, BrokerEpoch(1), Incarnation(1), fenced=False)
