"""Creating, growing and deleting topics: the controller of `spec` decides, and its records are stored before the answer."""

import random
import uuid

from impl.broker.administered import Administered
from impl.broker.calls import Call, Effect, Then
from impl.broker.core import Core
from impl.wire.schema import NO_UUID
from impl.wire.values import Message
from spec.controller.topics.creation import handle_create_partitions, handle_create_topics
from spec.controller.topics.deletion import handle_delete_topics
from spec.controller.topics.names import CONSUMER_OFFSETS
from spec.controller.topics.topic_configs import TOPIC_CONFIGS
from spec.messages.topics.create_partitions import CreatePartitionsRequest, MorePartitions
from spec.messages.topics.create_topics import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
    ReplicaAssignment,
)
from spec.messages.topics.delete_topics import DeletedTopic, DeleteTopicsRequest, TopicName
from spec.values import BrokerId, Error, TopicId

DEFAULT_SOURCE, TOPIC_SOURCE = 5, 1
"""Kafka: `DescribeConfigsResponse.ConfigSource`."""

FIRST_WITH_DELETION_ERROR = 3


def new_topic_id() -> TopicId:
    """A topic id that nobody has. Kafka: `Uuid.randomUuid`, which has no id that begins with a dash."""
    while True:
        topic_id = uuid.uuid4().bytes
        if topic_id[0] >> 2 != 62:
            return TopicId(topic_id)


def _seed() -> int:
    return random.getrandbits(48)


def create(
    core: Administered, topics: list[NewTopic], validate_only: bool, now: int
) -> tuple[CreateTopicsResponse, list[Effect]]:
    """Have topics created: the answer, and the effects that must come before it."""
    request = CreateTopicsRequest(tuple(topics), validate_only, _seed())
    answer, records = core.deciding.decide_topics(handle_create_topics, core.topic_settings, request, now)
    return answer, core.change_metadata(records)


def create_offsets_topic(core: Core, now: int) -> list[Effect]:
    """Create `__consumer_offsets`. **Kafka:** `AutoTopicCreationManager`, `OffsetConfig`."""
    topic = NewTopic(
        CONSUMER_OFFSETS,
        new_topic_id(),
        core.config["offsets.topic.num.partitions"],
        core.config["offsets.topic.replication.factor"],
        configs=(
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(core.config["offsets.topic.segment.bytes"])),
        ),
    )
    return _create_unasked(core, [topic], now)


def _create_unasked(core: Core, topics: list[NewTopic], now: int) -> list[Effect]:
    """Create topics that no request of a client is about."""
    if core.elsewhere is not None:
        return core.elsewhere.create_topics(topics, now)
    return create(core, topics, False, now)[1]


def create_missing(core: Core, names: list[str], now: int) -> list[Effect]:
    """Create topics that a client has asked for, with the broker's defaults. **Kafka:** `AutoTopicCreationManager`."""
    effects = create_offsets_topic(core, now) if CONSUMER_OFFSETS in names else []
    others = [NewTopic(name, new_topic_id()) for name in names if name != CONSUMER_OFFSETS]
    return [*effects, *_create_unasked(core, others, now)] if others else effects


def create_topics(core: Administered, call: Call, now: int) -> list[Effect]:
    """Create topics. **Kafka:** `ControllerApis.handleCreateTopics`."""
    request = call.message
    topics = [
        NewTopic(
            topic.name,
            new_topic_id(),
            topic.num_partitions,
            topic.replication_factor,
            tuple(ReplicaAssignment(one.partition_index, tuple(map(BrokerId, one.broker_ids))) for one in topic.assignments),
            tuple((one.name, one.value) for one in topic.configs),
        )
        for topic in request.topics
    ]
    given = {topic.name: dict(topic.configs) for topic in topics}
    answer, effects = create(core, topics, request.validate_only, now)
    results = [_created(core, one, given[one.name], request.validate_only) for one in answer.topics]
    return [*effects, call.respond(topics=results)]


def _created(core: Administered, result: CreatedTopic, given: dict[str, str | None], validate_only: bool) -> Message:
    if result.error != Error.NONE:
        return Message(name=result.name, error_code=result.error.value, error_message=result.message)
    defaults = core.default_topic_settings()
    configs = [
        Message(
            name=key.name,
            value=given[key.name] if key.name in given else defaults[key.name],
            read_only=False,
            config_source=TOPIC_SOURCE if key.name in given else DEFAULT_SOURCE,
            is_sensitive=False,
        )
        for key in TOPIC_CONFIGS
    ]
    return Message(
        name=result.name,
        topic_id=NO_UUID if validate_only else result.topic_id,
        error_code=0,
        error_message=None,
        num_partitions=result.partitions,
        replication_factor=result.replication_factor,
        configs=configs,
    )


def create_partitions(core: Administered, call: Call, now: int) -> list[Effect]:
    """Give topics more partitions. **Kafka:** `ControllerApis.handleCreatePartitions`."""
    wanted = tuple(
        MorePartitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else tuple(tuple(map(BrokerId, one.broker_ids)) for one in topic.assignments),
        )
        for topic in call.message.topics
    )
    request = CreatePartitionsRequest(wanted, call.message.validate_only, _seed())
    answer, records = core.deciding.decide_topics(handle_create_partitions, core.topic_settings, request, now)
    results = [Message(name=one.name, error_code=one.error.value, error_message=one.message) for one in answer.topics]
    return [*core.change_metadata(records), call.respond(results=results)]


def delete_topics(core: Administered, call: Call, now: int) -> list[Effect]:
    """Delete topics. **Kafka:** `ControllerApis.handleDeleteTopics`."""
    if call.version < 6:
        topics = [TopicName(name) for name in call.message.topic_names]
    else:
        topics = [TopicName(topic.name, TopicId(bytes(topic.topic_id))) for topic in call.message.topics]
    if not core.config["delete.topic.enable"]:
        error = Error.INVALID_REQUEST if call.version < FIRST_WITH_DELETION_ERROR else Error.TOPIC_DELETION_DISABLED
        return [call.respond(responses=[_deleted(DeletedTopic(one.name, one.topic_id, error)) for one in topics])]
    request = DeleteTopicsRequest(tuple(topics))
    answer, records = core.deciding.decide_topics(handle_delete_topics, core.topic_settings, request, now)
    known = core.cluster.image.topics
    gone = [known[one.name] for one in answer.topics if one.error == Error.NONE and one.name in known]

    def tell() -> list[Effect]:
        return [
            effect
            for topic in gone
            for told in core.topic_deleted
            for effect in told(topic.name, TopicId(topic.topic_id), now)
        ]

    return [*core.change_metadata(records), Then(tell), call.respond(responses=list(map(_deleted, answer.topics)))]


def _deleted(result: DeletedTopic) -> Message:
    return Message(name=result.name, topic_id=result.topic_id, error_code=result.error.value, error_message=result.message)
