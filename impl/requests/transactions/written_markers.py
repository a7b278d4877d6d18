"""WriteTxnMarkers: the coordinator of a transaction has leaders end it in the logs of its partitions."""

from dataclasses import dataclass, field

from kspec.impl.broker.calls import Call, Effect, Then
from kspec.impl.broker.core import BrokerCore, CoordinatorMarker
from kspec.impl.broker.replica import Replica
from kspec.impl.records.batch import header_at
from kspec.impl.records.markers import marker_batch
from kspec.impl.requests.group_log import TOPIC as GROUPS_TOPIC
from kspec.impl.requests.groups import Groups
from kspec.impl.wire.values import Message
from kspec.spec.log.batch import EndMarker
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.log.partition import check_marked_partition
from kspec.spec.values import Epoch, Error, Instant, ProducerEpoch, ProducerId

TIMEOUT = "request.timeout.ms"


@dataclass(slots=True)
class PendingMarkers:
    """A request with markers, and the errors of their partitions so far, by the producer; it is answered with the last."""

    call: Call
    missing: int
    places: list[tuple[int, TopicPartition]] = field(default_factory=list)
    """The producer and the partition of each place."""
    errors: dict[int, dict[TopicPartition, int]] = field(default_factory=dict)

    def note(self, place: int, error: int) -> None:
        """The error of a partition."""
        producer_id, partition = self.places[place]
        self.errors.setdefault(producer_id, {})[partition] = error

    def take(self, place: int, answer: Message) -> list[Effect]:
        """A marker is committed, or refused."""
        self.note(place, answer.error_code)
        self.missing -= 1
        return [Then(self.finish)] if not self.missing else []

    def fail(self, place: int, answer: Message) -> None:
        """A marker was taken, and could not be stored."""
        self.note(place, answer.error_code)

    def finish(self) -> list[Effect]:
        """Answer the request."""
        markers = []
        for producer_id, errors in self.errors.items():
            topics: dict[str, list[Message]] = {}
            for partition, error in errors.items():
                told = Message(partition_index=partition.partition, error_code=error)
                topics.setdefault(partition.topic, []).append(told)
            told_topics = [Message(name=name, partitions=partitions) for name, partitions in topics.items()]
            markers.append(Message(producer_id=producer_id, topics=told_topics))
        return [self.call.respond(markers=markers)]


def write_txn_markers(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """Append markers, with acks=all. Those in `__consumer_offsets` end what groups have of the transaction, too.

    **Kafka:** `KafkaApis.handleWriteTxnMarkersRequest`.
    """
    core = groups.core
    named = [
        (marker, TopicPartition(topic.name, index))
        for marker in call.message.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    pending = PendingMarkers(call, len(named), [(marker.producer_id, partition) for marker, partition in named])
    effects: list[Effect] = []
    for place, (marker, partition) in enumerate(named):
        replica, found = core.find(partition.topic, b"", partition.partition, by_id=False)
        error = check_marked_partition(found)
        is_of_groups = partition.topic == GROUPS_TOPIC
        if replica is not None and error == Error.NONE and is_of_groups:
            error = groups.check_marker(replica)
        if replica is None or error != Error.NONE:
            effects += pending.take(place, Message(error_code=error.value))
            continue
        before = replica.partition.local.log
        effects += _append(core, replica, pending, place, marker, now)
        if is_of_groups and replica.partition.local.log is not before:
            effects += groups.transaction_ended(replica, ProducerId(marker.producer_id), marker.transaction_result, now)
    return effects if named else pending.finish()


def _append(
    core: BrokerCore, replica: Replica, pending: PendingMarkers, place: int, marker: Message, now: Instant
) -> list[Effect]:
    """Append one marker to one log."""
    ends = EndMarker(marker.transaction_result, Epoch(marker.coordinator_epoch))
    whose = ProducerId(marker.producer_id), ProducerEpoch(marker.producer_epoch)
    batch = marker_batch(*whose, ends, now.timestamp)
    deadline = now.after(core.config.number(TIMEOUT))
    sent = CoordinatorMarker(ends, marker.transaction_version)
    return core.append(replica, pending, place, header_at(batch), batch, now, ACKS_ALL, deadline, marker=sent)
