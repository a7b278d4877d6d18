"""Creating, growing and deleting topics: the controller of `spec` decides, and its records are stored before the answer."""

import random

from kspec.impl.broker.administered import AdministeredNode
from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, ends_turn
from kspec.impl.broker.core import BrokerCore
from kspec.impl.requests.configs import shown
from kspec.impl.storage.small_files import random_uuid
from kspec.impl.wire.schema import NO_UUID
from kspec.impl.wire.values import Message
from kspec.spec.controller.topics.creation import handle_create_partitions, handle_create_topics
from kspec.spec.controller.topics.deletion import check_deletion_enabled, handle_delete_topics
from kspec.spec.controller.topics.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from kspec.spec.controller.topics.topic_configs import TOPIC_CONFIGS
from kspec.spec.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse, MorePartitions
from kspec.spec.messages.topics.create_topics import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
    ReplicaAssignment,
)
from kspec.spec.messages.topics.delete_topics import DeletedTopic, DeleteTopicsRequest, DeleteTopicsResponse, TopicName
from kspec.spec.values import BrokerId, Error, Instant, TopicId

DEFAULT_SOURCE, TOPIC_SOURCE = 5, 1
"""Kafka: `DescribeConfigsResponse.ConfigSource`."""


def new_topic_id() -> TopicId:
    """A topic id that nobody has. Kafka: `Uuid.randomUuid`, which has no id that begins with a dash."""
    while True:
        topic_id = random_uuid().bytes
        if topic_id[0] >> 2 != 62:
            return TopicId(topic_id)


def _seed() -> int:
    return random.getrandbits(48)


def create_offsets_topic(core: BrokerCore, now: Instant) -> list[Effect]:
    """Create `__consumer_offsets`. **Kafka:** `AutoTopicCreationManager`, `OffsetConfig`."""
    topic = NewTopic(
        CONSUMER_OFFSETS,
        new_topic_id(),
        core.config.number("offsets.topic.num.partitions"),
        core.config.number("offsets.topic.replication.factor"),
        configs=(
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(core.config.number("offsets.topic.segment.bytes"))),
        ),
    )
    return core.controller.create_topics([topic], now)


def create_transactions_topic(core: BrokerCore, now: Instant) -> list[Effect]:
    """Create `__transaction_state`. **Kafka:** `TransactionStateManager.transactionTopicConfigs`."""
    topic = NewTopic(
        TRANSACTION_STATE,
        new_topic_id(),
        core.config.number("transaction.state.log.num.partitions"),
        core.config.number("transaction.state.log.replication.factor"),
        configs=(
            ("unclean.leader.election.enable", "false"),
            ("compression.type", "uncompressed"),
            ("cleanup.policy", "compact"),
            ("min.insync.replicas", str(core.config.number("transaction.state.log.min.isr"))),
            ("segment.bytes", str(core.config.number("transaction.state.log.segment.bytes"))),
        ),
    )
    return core.controller.create_topics([topic], now)


CREATED_FOR_COORDINATORS = {CONSUMER_OFFSETS: create_offsets_topic, TRANSACTION_STATE: create_transactions_topic}
"""The internal topics, each with settings of its own."""


def create_missing(core: BrokerCore, names: list[str], now: Instant) -> list[Effect]:
    """Create topics that a client has asked for, with the broker's defaults. **Kafka:** `AutoTopicCreationManager`."""
    effects = [
        one for name in names if name in CREATED_FOR_COORDINATORS for one in CREATED_FOR_COORDINATORS[name](core, now)
    ]
    others = [NewTopic(name, new_topic_id()) for name in names if name not in CREATED_FOR_COORDINATORS]
    return [*effects, *core.controller.create_topics(others, now)] if others else effects


def create_topics(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """Create topics. **Kafka:** `ControllerApis.handleCreateTopics`."""
    return [InTurns(call, _create(core, call, now))]


def _create(core: AdministeredNode, call: Call, now: Instant) -> Steps:
    """All topics of a request are decided on at once, and are one batch of the metadata log."""
    request = call.message
    topics: list[NewTopic] = []
    for topic in request.topics:
        replicas = (
            ReplicaAssignment(one.partition_index, tuple(map(BrokerId, one.broker_ids))) for one in topic.assignments
        )
        configs = tuple((one.name, shown(one)) for one in topic.configs)
        factor = topic.replication_factor
        topics.append(NewTopic(topic.name, new_topic_id(), topic.num_partitions, factor, tuple(replicas), configs))
        if ends_turn(len(topics) - 1):
            yield []
    given = {topic.name: dict(topic.configs) for topic in topics}
    decided = CreateTopicsRequest(tuple(topics), request.validate_only, _seed())
    answer, records = core.deciding.decide(handle_create_topics, decided, now, CreateTopicsResponse)
    yield core.change_metadata(records)
    results = []
    for number, one in enumerate(answer.topics):
        results.append(_created(core, one, given[one.name], request.validate_only))
        if ends_turn(number, CREATED_AT_ONCE):
            yield []
    return [call.respond(topics=results).long_if(len(results) > CREATED_AT_ONCE)]


CREATED_AT_ONCE = 20
"""Topics whose settings are put into an answer before others are served: each has some forty."""


def _created(core: AdministeredNode, result: CreatedTopic, given: dict[str, str | None], validate_only: bool) -> Message:
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


def create_partitions(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
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
    answer, records = core.deciding.decide(handle_create_partitions, request, now, CreatePartitionsResponse)
    results = [Message(name=one.name, error_code=one.error.value, error_message=one.message) for one in answer.topics]
    return [*core.change_metadata(records), call.respond(results=results).long_if(len(results) > TURN_SIZE)]


def delete_topics(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """Delete topics. **Kafka:** `ControllerApis.handleDeleteTopics`."""
    return [InTurns(call, _delete(core, call, now))]


def _delete(core: AdministeredNode, call: Call, now: Instant) -> Steps:
    if call.version < 6:
        topics = [TopicName(name) for name in call.message.topic_names]
    else:
        topics = [TopicName(topic.name, TopicId(bytes(topic.topic_id))) for topic in call.message.topics]
    error = check_deletion_enabled(core.config.flag("delete.topic.enable"), call.version)
    if error != Error.NONE:
        return [call.respond(responses=[_deleted(DeletedTopic(one.name, one.topic_id, error)) for one in topics])]
    yield []
    request = DeleteTopicsRequest(tuple(topics))
    answer, records = core.deciding.decide(handle_delete_topics, request, now, DeleteTopicsResponse)
    yield core.change_metadata(records)
    return [call.respond(responses=list(map(_deleted, answer.topics))).long_if(len(answer.topics) > TURN_SIZE)]


def _deleted(result: DeletedTopic) -> Message:
    return Message(name=result.name, topic_id=result.topic_id, error_code=result.error.value, error_message=result.message)
