"""Brokers come, stay and go: registration, heartbeats, their log directories, their blocks of producer ids."""

from impl.broker.calls import Call, Effect
from impl.controller.core import ControllerCore
from impl.metadata.image import ClusterImage
from impl.metadata.records import LogRecord, PartitionKey, with_introduction
from impl.wire.values import Message
from spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration, handle_unregister_broker
from spec.controller.rules.brokers import check_broker_epoch
from spec.controller.rules.directories import assigned_directories, check_assignment_to_directory
from spec.controller.rules.features import FeatureRange, check_introduction
from spec.controller.topics.producer_ids import handle_allocate_producer_ids
from spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from spec.messages.broker_registration import BrokerRegistrationRequest
from spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest
from spec.metadata import NO_LEADER_CHANGE, broker_of, partition_of
from spec.values import BrokerEpoch, BrokerId, Error, Incarnation, Offset


def ranges_of(features: list[Message]) -> tuple[FeatureRange, ...]:
    """What a node says that it can work with."""
    return tuple(FeatureRange(one.name, one.min_supported_version, one.max_supported_version) for one in features)


def broker_registration(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """A broker registers. **Kafka:** `ControllerApis.handleBrokerRegistration`, `ClusterControlManager.registerBroker`."""
    asked = call.message
    same = asked.cluster_id == core.cluster_id
    error = check_introduction(same, core.finalized_features, ranges_of(asked.features))
    if error != Error.NONE:
        return [call.respond(error_code=error.value, broker_epoch=-1)]
    incarnation = Incarnation(int.from_bytes(asked.incarnation_id, "big"))
    request = BrokerRegistrationRequest(BrokerId(asked.broker_id), incarnation, BrokerEpoch(asked.previous_broker_epoch))
    answer, records = core.decide(handle_broker_registration, request, now)
    introduced = [_introduced(record, asked) if record.name == "RegisterBrokerRecord" else record for record in records]
    answered = call.respond(error_code=answer.error.value, broker_epoch=answer.broker_epoch)
    return [*core.change_metadata(introduced), answered]


def _introduced(record: LogRecord, asked: Message) -> LogRecord:
    """The registration with what no rule looks at: listeners, features, log directories, rack."""
    told = Message(end_points=asked.listeners, features=asked.features, log_dirs=list(asked.log_dirs))
    found = with_introduction(record, told)
    found.message.__dict__["rack"] = asked.rack
    return found


def broker_heartbeat(core: ControllerCore, call: Call, now: int) -> list[Effect]:
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
    answer, records = core.decide(handle_broker_heartbeat, request, now)
    answered = call.respond(
        error_code=answer.error.value,
        is_caught_up=answer.is_caught_up,
        is_fenced=answer.is_fenced,
        should_shut_down=answer.should_shut_down,
    )
    return [*core.change_metadata(records), answered]


def unregister_broker(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """Remove a broker's registration. **Kafka:** `ControllerApis.handleUnregisterBroker`."""
    answer, records = core.decide(handle_unregister_broker, UnregisterBrokerRequest(BrokerId(call.message.broker_id)), now)
    return [*core.change_metadata(records), call.respond(error_code=answer.error.value, error_message=None)]


def allocate_producer_ids(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """Give a broker a block of producer ids. **Kafka:** `ControllerApis.handleAllocateProducerIdsRequest`."""
    request = AllocateProducerIdsRequest(BrokerId(call.message.broker_id), BrokerEpoch(call.message.broker_epoch))
    answer, records = core.decide_topics(handle_allocate_producer_ids, request, now)
    answered = call.respond(error_code=answer.error.value, producer_id_start=answer.first, producer_id_len=answer.size)
    return [*core.change_metadata(records), answered]


def assign_replicas_to_dirs(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """A broker says in which directories its replicas lie. **Kafka:** `ControllerApis.handleAssignReplicasToDirs`."""
    request, image = call.message, core.image
    broker = BrokerId(request.broker_id)
    error = check_broker_epoch(broker_of(image.spec.brokers, broker), BrokerEpoch(request.broker_epoch))
    if error != Error.NONE:
        return [call.respond(error_code=error.value, directories=[])]
    records: list[LogRecord] = []
    answers = [
        Message(
            id=directory.id,
            topics=[
                Message(
                    topic_id=topic.topic_id,
                    partitions=[
                        _assigned(
                            image, PartitionKey(bytes(topic.topic_id), one.partition_index), broker, directory.id, records
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in directory.topics
            ],
        )
        for directory in request.directories
    ]
    return [*core.change_metadata(records), call.respond(error_code=0, directories=answers)]


def _assigned(
    image: ClusterImage, key: PartitionKey, broker: BrokerId, directory: bytes, records: list[LogRecord]
) -> Message:
    if key.topic_id not in image.topics_by_id:
        return Message(partition_index=key.partition, error_code=Error.UNKNOWN_TOPIC_ID.value)
    partition_id = image.partition_id(key)
    registration = None if partition_id is None else partition_of(image.spec, partition_id)
    error = check_assignment_to_directory(None if registration is None else registration.replicas, broker)
    if error == Error.NONE and registration is not None and partition_id is not None:
        known = image.directories.get(partition_id, (bytes(16),) * len(registration.replicas))
        after = assigned_directories(registration.replicas, known, broker, bytes(directory))
        if after != known:
            fields = {"partition_id": key.partition, "topic_id": key.topic_id, "leader": NO_LEADER_CHANGE}
            records.append(LogRecord("PartitionChangeRecord", Message(**fields, directories=list(after))))
    return Message(partition_index=key.partition, error_code=error.value)
