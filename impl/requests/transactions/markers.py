"""Markers on their way to the leaders of partitions: one request to a broker is under way, and the next one has all that
came meanwhile. To the partitions of this broker they go on the same way.

Kafka: `TransactionMarkerChannelManager`, `TxnMarkerQueue`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kspec.impl.broker.calls import Ask, ChannelKey, Effect
from kspec.impl.broker.core import BrokerCore
from kspec.impl.wire.values import Message
from kspec.spec.messages.transactions.write_txn_markers import MarkersWritten, TransactionMarker
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.markers import NOT_NAMED
from kspec.spec.values import BrokerId, Error, Instant, TransactionalId

PURPOSE = "markers"
TIMEOUT_MS = 60_000
"""The longest wait for an answer. A leader that waits for its followers says so after 30 s."""

RETRY_MS = 100
"""The pause before a marker is sent again, or a leader is looked for again."""


class QueuedMarker(NamedTuple):
    """A marker for partitions of one leader."""

    transactional_id: TransactionalId
    marker: TransactionMarker


class MarkerReceiver(NamedTuple):
    """Those who are told what has become of markers."""

    answered: Callable[[QueuedMarker, MarkersWritten, Instant], list[Effect]]
    lost: Callable[[QueuedMarker, Instant], list[Effect]]
    deleted: Callable[[TransactionalId, frozenset[TopicPartition], Instant], list[Effect]]
    is_wanted: Callable[[QueuedMarker], bool]
    """Whether this broker still coordinates the transactional id, in the epoch of the marker."""


class MarkerSender:
    """The markers that wait to be sent, by the broker that leads their partitions."""

    def __init__(self, core: BrokerCore, receiver: MarkerReceiver) -> None:
        self._core = core
        self._receiver = receiver
        self._waiting: dict[BrokerId, list[QueuedMarker]] = {}
        self._asking: set[BrokerId] = set()

    def send(self, sent: QueuedMarker, now: Instant) -> list[Effect]:
        """Send a marker to those who lead its partitions now. A partition that there is not has been deleted; one without a
        leader is looked at again later.

        **Kafka:** `TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue`.
        """
        by_leader: dict[BrokerId, set[TopicPartition]] = {}
        deleted: set[TopicPartition] = set()
        homeless: set[TopicPartition] = set()
        for place in sorted(sent.marker.partitions):
            topic = self._core.cluster.image.topics.get(place.topic)
            if topic is None or not 0 <= place.partition < len(topic.partitions):
                deleted.add(place)
                continue
            leader, _ = self._core.leader_named(place.topic, place.partition)
            if leader in self._core.cluster.image.endpoints:
                by_leader.setdefault(leader, set()).add(place)
            else:
                homeless.add(place)
        if homeless:
            self.send_later(_part(sent, homeless), now)
        effects: list[Effect] = []
        for leader, places in by_leader.items():
            self._waiting.setdefault(leader, []).append(_part(sent, places))
            effects += self._ask(leader)
        if deleted:
            effects += self._receiver.deleted(sent.transactional_id, frozenset(deleted), now)
        return effects

    def send_later(self, sent: QueuedMarker, now: Instant) -> None:
        """Send a marker again after a while, if that is still this broker's task."""

        def go(later: Instant) -> list[Effect]:
            return self.send(sent, later) if self._receiver.is_wanted(sent) else []

        self._core.timers.at(now.after(RETRY_MS), go)

    def _ask(self, leader: BrokerId) -> list[Effect]:
        if leader in self._asking:
            return []
        asked = [one for one in self._waiting.pop(leader, ()) if self._receiver.is_wanted(one)]
        if not asked:
            return []
        self._asking.add(leader)
        message = Message(markers=[_in_wire_words(one.marker) for one in asked])

        def take(answer: Message | None, now: Instant) -> list[Effect]:
            self._asking.discard(leader)
            effects = self._taken(asked, answer, now)
            return [*effects, *self._ask(leader)]

        return [Ask(ChannelKey(leader, PURPOSE), "WriteTxnMarkers", message, take, TIMEOUT_MS)]

    def _taken(self, asked: list[QueuedMarker], answer: Message | None, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if answer is None:
            for one in asked:
                effects += self._receiver.lost(one, now)
            return effects
        errors: dict[tuple[int, TopicPartition], Error] = {}
        for marker in answer.markers:
            for topic in marker.topics:
                for part in topic.partitions:
                    place = TopicPartition(topic.name, part.partition_index)
                    errors[marker.producer_id, place] = Error(part.error_code)
        for one in asked:
            producer_id = one.marker.producer_id
            told = ((place, errors.get((producer_id, place), NOT_NAMED)) for place in sorted(one.marker.partitions))
            effects += self._receiver.answered(one, MarkersWritten(tuple(told)), now)
        return effects


def _part(sent: QueuedMarker, places: set[TopicPartition]) -> QueuedMarker:
    return sent._replace(marker=replace(sent.marker, partitions=frozenset(places)))


def _in_wire_words(marker: TransactionMarker) -> Message:
    topics: dict[str, list[int]] = {}
    for place in sorted(marker.partitions):
        topics.setdefault(place.topic, []).append(place.partition)
    return Message(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.committed,
        topics=[Message(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.client_level,
    )
