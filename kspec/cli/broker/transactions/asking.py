"""Requests about transactions, each to the broker that answers it: a coordinator, a leader, all."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kspec.cli.broker.asking import AGAIN, PAUSE_S, ClusterAdmin, Place, TopicAndPartition
from kspec.cli.statuses import RefusedError
from kspec.impl.wire.requests import sent
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.administration import TRANSACTION_KEY
from kspec.spec.values import Error

NO_OFFSET = NO_TIME = -1

FENCE_TIMEOUT_MS = 1
"""The timeout of the producer that takes the place of another one. Kafka: `FenceProducersHandler`."""


class ShownTransaction(NamedTuple):
    """A transactional id as a coordinator lists it."""

    name: str
    coordinator: int
    producer_id: int
    state: str


class DescribedTransactionalId(NamedTuple):
    """A transactional id as its coordinator describes it; times in milliseconds."""

    coordinator: int
    name: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicAndPartition, ...]


class ShownProducer(NamedTuple):
    """A producer as a partition remembers it; `start_offset`: of its open transaction."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp: int
    start_offset: int


class TransactionAdmin(ClusterAdmin):
    """Requests about transactions. Each call has until `seconds` are over. Raises: `RefusedError`."""

    # ---- transactional ids

    def listed(self, duration_ms: int | None, pattern: str | None, producers: Iterable[int] = ()) -> list[ShownTransaction]:
        """All transactional ids, by name; longer open, matching the pattern, and of these producers, if that is said."""
        needed = 2 if pattern is not None else 1 if duration_ms is not None else 0
        found = []
        for broker in self.metadata([]).brokers:
            place = (broker.host, broker.port)
            self._check_knows(place, "ListTransactions", needed)
            fields = {
                "state_filters": [],
                "producer_id_filters": sorted(producers),
                "duration_filter": -1 if duration_ms is None else duration_ms,
                "transactional_id_pattern": pattern,
            }
            answer = self._until_ready(lambda place=place, fields=fields: self.asked(place, "ListTransactions", 2, **fields))
            found += [
                ShownTransaction(one.transactional_id, broker.node_id, one.producer_id, one.transaction_state)
                for one in self.good(answer, "transactions").transaction_states
            ]
        return sorted(found)

    def described(self, name: str) -> DescribedTransactionalId | None:
        """A transactional id; none if there is none."""

        def ask() -> Message:
            node, place = self.coordinator(name, TRANSACTION_KEY)
            answer = self.asked(place, "DescribeTransactions", 0, transactional_ids=[name])
            one: Message = answer.transaction_states[0]
            one.__dict__["coordinator"] = node
            return one

        one: Any = self._until_ready(ask)
        if one.error_code == Error.TRANSACTIONAL_ID_NOT_FOUND.value:
            return None
        self.good(one, name)
        places = (TopicAndPartition(topic.topic, index) for topic in one.topics for index in topic.partitions)
        return DescribedTransactionalId(
            one.coordinator,
            name,
            one.producer_id,
            one.producer_epoch,
            one.transaction_state,
            one.transaction_timeout_ms,
            one.transaction_start_time_ms,
            tuple(sorted(places)),
        )

    def fence(self, name: str) -> None:
        """Take the place of a producer, so that its open transaction is aborted, and wait until that is done."""
        asked = {
            "transactional_id": name,
            "transaction_timeout_ms": FENCE_TIMEOUT_MS,
            "producer_id": -1,
            "producer_epoch": -1,
        }

        def ask() -> Message:
            return self.asked(self.coordinator(name, TRANSACTION_KEY)[1], "InitProducerId", 5, **asked)

        self.good(self._until_ready(ask, {Error.CONCURRENT_TRANSACTIONS.value}), name)

    # ---- partitions

    def partitions(self, topics: Sequence[str] | None, broker: int | None) -> list[TopicAndPartition]:
        """The partitions of topics, or of all; those that a broker has, if one is named."""
        asked = None if topics is None else [Message(name=name) for name in topics]
        answer = self.somewhere("Metadata", 12, topics=asked, allow_auto_topic_creation=False)
        return sorted(
            TopicAndPartition(topic.name, one.partition_index)
            for topic in answer.topics
            for one in self.good(topic, topic.name).partitions
            if broker is None or broker in one.replica_nodes
        )

    def producers(
        self, partitions: Iterable[TopicAndPartition], broker: int | None
    ) -> dict[TopicAndPartition, list[ShownProducer]]:
        """The producers that partitions remember: at their leaders, or at one broker."""
        found: dict[TopicAndPartition, list[ShownProducer]] = {}
        for place, those in self._where(partitions, broker).items():
            topics: dict[str, list[int]] = {}
            for one in those:
                topics.setdefault(one.topic, []).append(one.partition)
            wanted = [Message(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
            answer = self.asked(place, "DescribeProducers", 0, topics=wanted)
            for topic in answer.topics:
                for one in topic.partitions:
                    named = TopicAndPartition(topic.name, one.partition_index)
                    found[named] = [
                        ShownProducer(
                            producer.producer_id,
                            producer.producer_epoch,
                            producer.coordinator_epoch,
                            producer.last_sequence,
                            producer.last_timestamp,
                            producer.current_txn_start_offset,
                        )
                        for producer in self.good(one, str(named)).active_producers
                    ]
        return found

    def abort(self, partition: TopicAndPartition, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """Write an abort marker to one partition, which ends a transaction that nobody else ends."""
        marker = Message(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=[Message(name=partition.topic, partition_indexes=[partition.partition])],
            coordinator_epoch=coordinator_epoch,
            transaction_version=0,
        )

        def ask() -> Message:
            (place,) = self._where([partition], None)
            answer = self.asked(place, "WriteTxnMarkers", 2, markers=[marker])
            found: Message = answer.markers[0].topics[0].partitions[0]
            return found

        self.good(self._until_ready(ask), str(partition))

    # ---- who is asked

    def _where(self, partitions: Iterable[TopicAndPartition], broker: int | None) -> dict[Place, list[TopicAndPartition]]:
        """The brokers that are asked about partitions: their leaders, or one broker. Raises: `RefusedError`."""
        wanted = list(partitions)
        answer = self.metadata(sorted({one.topic for one in wanted}))
        places = {one.node_id: (one.host, one.port) for one in answer.brokers}
        if broker is not None and broker not in places:
            raise RefusedError(f"there is no broker {broker}")
        leaders = {
            TopicAndPartition(topic.name, one.partition_index): one.leader_id
            for topic in answer.topics
            for one in topic.partitions
        }
        found: dict[Place, list[TopicAndPartition]] = {}
        for one in wanted:
            if one not in leaders:
                raise RefusedError(f"{one}: {Error.UNKNOWN_TOPIC_OR_PARTITION.name}")
            node = leaders[one] if broker is None else broker
            if node not in places:
                raise RefusedError(f"{one}: {Error.LEADER_NOT_AVAILABLE.name}")
            found.setdefault(places[node], []).append(one)
        return found

    def _until_ready(self, ask: Any, others: Iterable[int] = ()) -> Message:
        """The first answer with no error that passes, or the last one when the time is over."""
        end = time.monotonic() + self.seconds
        while True:
            answer: Message = ask()
            if answer.error_code not in {*AGAIN, *others} or time.monotonic() > end:
                return answer
            time.sleep(PAUSE_S)

    def _check_knows(self, place: Place, api: str, version: int) -> None:
        if self.known(place).get(sent(api).key, (0, -1))[1] < version:
            raise RefusedError(f"{place[0]}:{place[1]} knows {api} without this filter")
