"""Requests, answers and metadata records of `spec` in Kafka's own messages, and back.

What `spec` leaves out is filled in on the way there (a topic's name, one log directory for each broker), and dropped on the
way back. A record of a type that no rule of `spec` writes stays as it is, so that it is seen as a departure.
"""

from typing import Any, NamedTuple

from kspec.conformance.kafka.codec import MetadataRecord as Written
from kspec.conformance.mirror.taking import NO_PARTITION, MirroredAnswer, MirroredRequest
from kspec.impl.metadata.records import LogRecord, encode_incarnation, to_spec
from kspec.impl.wire.apis import PREFERRED_ELECTION, UNCLEAN_ELECTION
from kspec.impl.wire.values import Message
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.messages.topics.create_topics import CreateTopicsRequest
from kspec.spec.metadata import LeaderRecoveryState, MetadataRecord, PartitionRecord
from kspec.spec.topics import NO_PLACE
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Error, PartitionEpoch, PartitionId

WAIT_MS = 30_000

LEFT_OUT = ("TopicRecord", "RemoveTopicRecord", "ConfigRecord", "ClearElrRecord", "NoOpRecord", "FeatureLevelRecord")
"""Records that are left out: about names, ids and settings of topics, and those that say nothing."""


class RequestContext(NamedTuple):
    """The context of a request: the topic under test, its settings, and the cluster."""

    cluster_id: str
    topic: str
    topic_id: bytes
    settings: tuple[tuple[str, str], ...]
    features: tuple[tuple[str, int, int], ...]


class WireRequest(NamedTuple):
    """A request as it goes over the wire."""

    api: str
    version: int
    message: Message


class OtherRecord(NamedTuple):
    """A record of a type that `spec` does not write."""

    name: str
    fields: str


def directory_id(broker: int) -> bytes:
    """The UUID of a broker's only log directory."""
    return b"\xd0" + bytes(11) + broker.to_bytes(4, "big")


# ---- requests


def on_the_wire(request: MirroredRequest, place: RequestContext) -> WireRequest:
    """A request of `spec` in Kafka's words."""
    match request:
        case CreateTopicsRequest():
            return WireRequest("CreateTopics", 7, _creation(request, place))
        case BrokerHeartbeatRequest(broker, broker_epoch, offset, want_fence, want_shutdown):
            beat = Message(
                broker_id=broker,
                broker_epoch=broker_epoch,
                current_metadata_offset=offset,
                want_fence=want_fence,
                want_shut_down=want_shutdown,
            )
            return WireRequest("BrokerHeartbeat", 1, beat)
        case BrokerRegistrationRequest():
            return WireRequest("BrokerRegistration", 4, _registration(request, place))
        case UnregisterBrokerRequest(broker):
            return WireRequest("UnregisterBroker", 0, Message(broker_id=broker))
        case AlterPartitionRequest():
            return WireRequest("AlterPartition", 3, _proposal(request, place))
        case ElectLeadersRequest(partition_id, unclean):
            chosen = [Message(topic=place.topic, partitions=[int(partition_id)])]
            kind = UNCLEAN_ELECTION if unclean else PREFERRED_ELECTION
            return WireRequest("ElectLeaders", 2, Message(election_type=kind, topic_partitions=chosen, timeout_ms=WAIT_MS))
        case AlterPartitionReassignmentsRequest(partition_id, replicas):
            moved = Message(partition_index=partition_id, replicas=None if replicas is None else list(replicas))
            topics = [Message(name=place.topic, partitions=[moved])]
            return WireRequest("AlterPartitionReassignments", 0, Message(timeout_ms=WAIT_MS, topics=topics))


def _creation(request: CreateTopicsRequest, place: RequestContext) -> Message:
    assigned = [
        Message(partition_index=one.partition, broker_ids=list(one.replicas)) for one in request.topics[0].assignments
    ]
    configs = [Message(name=name, value=value) for name, value in place.settings]
    topic = Message(name=place.topic, num_partitions=-1, replication_factor=-1, assignments=assigned, configs=configs)
    return Message(topics=[topic], timeout_ms=WAIT_MS)


def _registration(request: BrokerRegistrationRequest, place: RequestContext) -> Message:
    features = [
        Message(name=name, min_supported_version=first, max_supported_version=last) for name, first, last in place.features
    ]
    return Message(
        broker_id=request.broker,
        cluster_id=place.cluster_id,
        incarnation_id=encode_incarnation(request.incarnation),
        listeners=[Message(name="PLAINTEXT", host="127.0.0.1", port=1000 + request.broker, security_protocol=0)],
        features=features,
        rack=None,
        log_dirs=[directory_id(request.broker)],
        previous_broker_epoch=request.previous_broker_epoch,
    )


def _proposal(request: AlterPartitionRequest, place: RequestContext) -> Message:
    members = [Message(broker_id=member.broker, broker_epoch=member.broker_epoch) for member in sorted(request.isr)]
    partition = Message(
        partition_index=request.partition_id,
        leader_epoch=request.leader_epoch,
        new_isr_with_epochs=members,
        leader_recovery_state=request.recovery.value,
        partition_epoch=request.partition_epoch,
    )
    topics = [Message(topic_id=place.topic_id, partitions=[partition])]
    return Message(broker_id=request.broker, broker_epoch=request.broker_epoch, topics=topics)


# ---- answers


def answer_in_words_of_spec(request: MirroredRequest, answer: Message) -> MirroredAnswer:
    """Kafka's answer to a request, as `spec` has it."""
    match request:
        case CreateTopicsRequest():
            return ErrorResponse(Error(answer.topics[0].error_code))
        case BrokerHeartbeatRequest():
            error = Error(answer.error_code)
            return BrokerHeartbeatResponse(error, answer.is_caught_up, answer.is_fenced, answer.should_shut_down)
        case BrokerRegistrationRequest(_, incarnation):
            return BrokerRegistrationResponse(Error(answer.error_code), incarnation, BrokerEpoch(answer.broker_epoch))
        case UnregisterBrokerRequest():
            return ErrorResponse(Error(answer.error_code))
        case AlterPartitionRequest():
            return _decision(request, answer)
        case ElectLeadersRequest():
            return _first_error(answer, answer.replica_election_results, "partition_result")
        case AlterPartitionReassignmentsRequest():
            return _first_error(answer, answer.responses, "partitions")


def _decision(request: AlterPartitionRequest, answer: Message) -> AlterPartitionResponse:
    if answer.error_code:
        return AlterPartitionResponse(Error(answer.error_code), request.partition_id)
    partition = answer.topics[0].partitions[0]
    if partition.error_code:
        return AlterPartitionResponse(Error(partition.error_code), request.partition_id)
    return AlterPartitionResponse(
        Error.NONE,
        request.partition_id,
        BrokerId(partition.leader_id),
        Epoch(partition.leader_epoch),
        _ids(partition.isr),
        PartitionEpoch(partition.partition_epoch),
        LeaderRecoveryState(partition.leader_recovery_state),
    )


def _first_error(answer: Message, topics: Any, partitions: str) -> ErrorResponse:
    if answer.error_code:
        return ErrorResponse(Error(answer.error_code))
    return ErrorResponse(Error(getattr(topics[0], partitions)[0].error_code))


# ---- records


def _ids(brokers: Any) -> frozenset[BrokerId]:
    return frozenset(BrokerId(broker) for broker in brokers or ())


def record_in_words_of_spec(written: Written) -> MetadataRecord | OtherRecord | None:
    """A record of the metadata log as `spec` has it, `None` if `spec` leaves out what it says.

    The partition has the number that its topic gives it: a run has one topic.
    """
    if written.name in LEFT_OUT:
        return None
    partition_id = PartitionId(getattr(written.message, "partition_id", NO_PARTITION))
    found = to_spec(LogRecord(written.name, written.message), partition_id)
    if isinstance(found, PartitionRecord):
        return found._replace(place=NO_PLACE)
    return OtherRecord(written.name, repr(written.message)) if found is None else found
