"""A transaction coordinator of one transactional id for tests, with a log that takes or refuses what it is told."""

from typing import Any

from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.messages.transactions.write_txn_markers import MarkersWritten, TransactionMarker
from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.adding import handle_add_offsets_to_txn, handle_add_partitions_to_txn
from kspec.spec.transactions.appending import on_appended
from kspec.spec.transactions.effects import (
    AnswerTransaction,
    AppendTransaction,
    CoordinatedTransaction,
    SendMarkers,
    TransactionEffect,
    TransactionStep,
)
from kspec.spec.transactions.ending import handle_end_txn, on_timeout
from kspec.spec.transactions.loading import load_transaction, on_expiry
from kspec.spec.transactions.markers import on_markers_answered, on_markers_lost
from kspec.spec.transactions.metadata import TransactionMetadata, TransactionState
from kspec.spec.transactions.producers import handle_init_producer_id
from kspec.spec.transactions.protocol import TransactionCoordinator, TransactionSettings
from kspec.spec.transactions.records import TransactionRecord, record_of
from kspec.spec.values import Epoch, Error, GroupId, ProducerEpoch, ProducerId, RequestNumber, TransactionalId
from tests.times import at_ms

ID = TransactionalId("id")
TIMEOUT_MS = 60_000
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class TransactionDriver:
    """Sends requests as the present producer, and remembers answers and markers. The log commits at once."""

    def __init__(self, release: str = "4.4", level: int = 2, cluster_level: int = 2) -> None:
        name = "4.3" if release == "4.4" else release
        (protocol,) = (one for one in TRANSACTION_RELEASES if one.name == name)
        self.coordinator = TransactionCoordinator(protocol, TransactionSettings(cluster_level=cluster_level))
        self.level = level
        self.state = CoordinatedTransaction(ID, Epoch(0))
        self.log: list[TransactionRecord | None] = []
        self.answers: list[Any] = []
        self.markers: list[TransactionMarker] = []
        self.waiting: list[AppendTransaction] = []
        self.commits = True
        """Whether the log commits a record as soon as it has it."""
        self.refuses = Error.NONE
        self.fresh = 10
        self.now = 0

    @property
    def metadata(self) -> TransactionMetadata:
        assert self.state.metadata is not None
        return self.state.metadata

    @property
    def epoch(self) -> ProducerEpoch:
        return self.metadata.producer_epoch

    @property
    def phase(self) -> Any:
        """The state, of no narrow type: it changes between two looks."""
        return self.metadata.state

    def take(self, step: TransactionStep) -> None:
        """Carry out the effects of a step."""
        self.state = step.state
        for effect in step.effects:
            self._carry_out(effect)

    def _carry_out(self, effect: TransactionEffect) -> None:
        match effect:
            case AnswerTransaction(_, response):
                self.answers.append(response)
            case SendMarkers(marker):
                self.markers.append(marker)
            case AppendTransaction():
                self.waiting.append(effect)
                if self.commits:
                    self.commit()

    def commit(self) -> None:
        """The log says what became of the record that waits: committed, or refused."""
        append = self.waiting.pop(0)
        error, self.refuses = self.refuses, Error.NONE
        if error == Error.NONE:
            is_gone = append.target.state == TransactionState.DEAD
            self.log.append(None if is_gone else record_of(append.target, self.coordinator.settings.cluster_level))
        self.take(on_appended(self.coordinator, self.state, append, error, at_ms(self.now)))

    def answer(self) -> Any:
        """The last answer."""
        return self.answers[-1]

    def error(self) -> Error:
        """The error of the last answer."""
        answer = self.answers[-1]
        found: Error = answer.partitions[0][1] if hasattr(answer, "partitions") else answer.error
        return found

    def initialise(self, **fields: Any) -> Any:
        request = InitProducerIdRequest(**{"transactional_id": ID, "timeout_ms": TIMEOUT_MS, **fields})
        self.fresh += 1
        fresh = ProducerId(self.fresh)
        step = handle_init_producer_id(self.coordinator, self.state, RequestNumber(1), request, fresh, at_ms(self.now))
        self.take(step)
        return self.answers[-1] if self.answers else None

    def add(self, *partitions: TopicPartition, **fields: Any) -> None:
        known = self.state.metadata
        request = AddPartitionsToTxnRequest(
            **{
                "transactional_id": ID,
                "producer_id": known.producer_id if known else ProducerId(0),
                "producer_epoch": known.producer_epoch if known else ProducerEpoch(0),
                "partitions": frozenset(partitions),
                "client_level": self.level,
                **fields,
            }
        )
        self.take(handle_add_partitions_to_txn(self.coordinator, self.state, RequestNumber(2), request, at_ms(self.now)))

    def add_offsets(self, group: str) -> None:
        known = self.metadata
        request = AddOffsetsToTxnRequest(ID, known.producer_id, known.producer_epoch, GroupId(group))
        self.take(handle_add_offsets_to_txn(self.coordinator, self.state, RequestNumber(3), request, at_ms(self.now)))

    def end(self, committed: bool, **fields: Any) -> None:
        known = self.state.metadata
        request = EndTxnRequest(
            **{
                "transactional_id": ID,
                "producer_id": known.producer_id if known else ProducerId(0),
                "producer_epoch": known.producer_epoch if known else ProducerEpoch(0),
                "committed": committed,
                "client_level": self.level,
                **fields,
            }
        )
        self.fresh += 1
        fresh = ProducerId(self.fresh)
        self.take(handle_end_txn(self.coordinator, self.state, RequestNumber(4), request, fresh, at_ms(self.now)))

    def written(self, error: Error = Error.NONE, marker: TransactionMarker | None = None) -> None:
        """The leaders answer the last marker, or the one given, with this error for each partition."""
        answered = marker or self.markers[-1]
        answer = MarkersWritten(tuple((one, error) for one in sorted(answered.partitions)))
        self.take(on_markers_answered(self.coordinator, self.state, answered, answer))

    def lose_markers(self) -> None:
        self.take(on_markers_lost(self.coordinator, self.state, self.markers[-1]))

    def time_out(self) -> None:
        self.fresh += 1
        self.take(on_timeout(self.coordinator, self.state, ProducerId(self.fresh), at_ms(self.now)))

    def expire(self) -> None:
        self.take(on_expiry(self.coordinator, self.state, at_ms(self.now)))

    def move(self) -> None:
        """Another broker takes over: it knows what is in the log."""
        self.waiting.clear()
        record = self.log[-1] if self.log else None
        epoch = Epoch(self.state.coordinator_epoch + 1)
        self.take(load_transaction(ID, record, epoch, at_ms(self.now)))

    def force(self, **fields: Any) -> None:
        """Set fields of the state."""
        self.state = self.state._replace(metadata=self.metadata._replace(**fields))
