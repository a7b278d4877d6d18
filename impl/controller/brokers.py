"""Brokers come, stay and go: registration, heartbeats, their log directories, their blocks of producer ids."""

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.controller.core import ControllerCore, ranges_of
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord, with_directories, with_introduction
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.metadata_requests import check_missing_topic
from kspec.spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration
from kspec.spec.controller.rules.brokers import check_broker_epoch
from kspec.spec.controller.rules.directories import assigned_directories, check_assignment_to_directory, check_directories
from kspec.spec.controller.rules.features import check_introduction
from kspec.spec.controller.topics.producer_ids import handle_allocate_producer_ids
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kspec.spec.metadata import PartitionChangeRecord, broker_of, partition_of
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import BrokerEpoch, BrokerId, Error, Incarnation, Instant, Offset, PartitionId, TopicId


def broker_registration(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A broker registers. **Kafka:** `ControllerApis.handleBrokerRegistration`, `ClusterControlManager.registerBroker`."""
    asked = call.message
    same = asked.cluster_id == core.cluster_id
    error = check_introduction(same, core.finalized_features, ranges_of(asked.features))
    if error == Error.NONE:
        registered = {BrokerId(broker): tuple(map(bytes, one.log_dirs)) for broker, one in core.image.registered.items()}
        own = tuple(map(bytes, asked.log_dirs))
        error = check_directories(core.finalized_features, BrokerId(asked.broker_id), own, registered)
    if error != Error.NONE:
        return [call.respond(error_code=error.value, broker_epoch=-1)]
    incarnation = Incarnation(int.from_bytes(asked.incarnation_id, "big"))
    broker, previous = BrokerId(asked.broker_id), BrokerEpoch(asked.previous_broker_epoch)
    request = BrokerRegistrationRequest(broker, incarnation, previous, asked.rack)
    answer, records = core.deciding.decide(handle_broker_registration, request, now, BrokerRegistrationResponse)
    introduced = [_introduced(record, asked) if record.name == "RegisterBrokerRecord" else record for record in records]
    answered = call.respond(error_code=answer.error.value, broker_epoch=answer.broker_epoch)
    return [*core.change_metadata(introduced), answered]


def _introduced(record: LogRecord, asked: Message) -> LogRecord:
    """The registration with what no rule looks at: listeners, features, log directories."""
    told = Message(end_points=asked.listeners, features=asked.features, log_dirs=list(map(bytes, asked.log_dirs)))
    return with_introduction(record, told)


def broker_heartbeat(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A broker is alive. **Kafka:** `ControllerApis.handleBrokerHeartBeatRequest`.

    **Leaves out:** log directories that are offline or cordoned.
    """
    asked = call.message
    request = BrokerHeartbeatRequest(
        BrokerId(asked.broker_id),
        BrokerEpoch(asked.broker_epoch),
        Offset(asked.current_metadata_offset),
        asked.want_fence,
        asked.want_shut_down,
    )
    answer, records = core.deciding.decide(handle_broker_heartbeat, request, now, BrokerHeartbeatResponse)
    answered = call.respond(
        error_code=answer.error.value,
        is_caught_up=answer.is_caught_up,
        is_fenced=answer.is_fenced,
        should_shut_down=answer.should_shut_down,
    )
    return [*core.change_metadata(records), answered]


def allocate_producer_ids(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """Give a broker a block of producer ids. **Kafka:** `ControllerApis.handleAllocateProducerIdsRequest`."""
    request = AllocateProducerIdsRequest(BrokerId(call.message.broker_id), BrokerEpoch(call.message.broker_epoch))
    answer, records = core.deciding.decide(handle_allocate_producer_ids, request, now, AllocateProducerIdsResponse)
    block = {"producer_id_start": answer.first, "producer_id_len": answer.size} if answer.error == Error.NONE else {}
    answered = call.respond(error_code=answer.error.value, **block)
    return [*core.change_metadata(records), answered]


def assign_replicas_to_dirs(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A broker says in which directories its replicas lie. **Kafka:** `ControllerApis.handleAssignReplicasToDirs`."""
    request, image = call.message, core.image
    broker = BrokerId(request.broker_id)
    error = check_broker_epoch(broker_of(image.spec.brokers, broker), BrokerEpoch(request.broker_epoch))
    if error != Error.NONE:
        return [call.respond(error_code=error.value, directories=[])]
    assigned: list[tuple[PartitionId, tuple[bytes, ...]]] = []
    answers = [
        Message(
            id=directory.id,
            topics=[
                Message(
                    topic_id=topic.topic_id,
                    partitions=[
                        _assigned(
                            image,
                            TopicIdPartition(TopicId(bytes(topic.topic_id)), one.partition_index),
                            broker,
                            directory.id,
                            assigned,
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in directory.topics
            ],
        )
        for directory in request.directories
    ]
    changes = core.deciding.add(tuple(PartitionChangeRecord(partition_id) for partition_id, _ in assigned))
    records = [with_directories(record, after) for record, (_, after) in zip(changes, assigned, strict=True)]
    return [*core.change_metadata(records), call.respond(error_code=0, directories=answers)]


def _assigned(
    image: ClusterImage,
    key: TopicIdPartition,
    broker: BrokerId,
    directory: bytes,
    assigned: list[tuple[PartitionId, tuple[bytes, ...]]],
) -> Message:
    if key.topic_id not in image.topics_by_id:
        return Message(partition_index=key.partition, error_code=check_missing_topic(by_id=True, has_valid_name=True).value)
    partition_id = image.partition_id(key)
    registration = None if partition_id is None else partition_of(image.spec, partition_id)
    error = check_assignment_to_directory(None if registration is None else registration.replicas, broker)
    if error == Error.NONE and registration is not None and partition_id is not None:
        known = image.directories.get(partition_id, (bytes(16),) * len(registration.replicas))
        after = assigned_directories(registration.replicas, known, broker, bytes(directory))
        if after != known:
            assigned.append((partition_id, after))
    return Message(partition_index=key.partition, error_code=error.value)
