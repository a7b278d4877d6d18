"""The slots of the model, and how the coordinator's effects are carried out on them.

A record of the coordinator is committed or refused by an action of its own; records of partitions are committed at once.
Time is a choice: an action says that a transaction has taken too long.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kspec.model_check.core.model import COORDINATOR, Model, Slot, TransactionalClient
from kspec.model_check.models.transactions.values import (
    PartitionLog,
    SentMarker,
    TransactionalProducer,
    TransactionExchange,
    WriteRequest,
    late_number,
    live_number,
)
from kspec.model_check.traces.encode import in_words
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnResponse
from kspec.spec.mutation import weaken
from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.effects import (
    NO_REQUEST,
    AnswerTransaction,
    AppendTransaction,
    CoordinatedTransaction,
    SendMarkers,
    TransactionStep,
)
from kspec.spec.transactions.metadata import TransactionMetadata
from kspec.spec.transactions.protocol import TransactionCoordinator, TransactionProtocol, TransactionSettings
from kspec.spec.transactions.records import TransactionRecord, record_of
from kspec.spec.values import (
    NO_TIMESTAMP,
    Epoch,
    Instant,
    MonotonicMs,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TransactionalId,
)

ID = TransactionalId("id")
TIMEOUT_MS = 1
NOW = Instant(MonotonicMs(0), TimestampMs(0))
"""The time of every action but one."""

TOO_LATE = Instant(MonotonicMs(2), TimestampMs(2))
"""The time at which a transaction has taken too long."""

BUDGETS = (
    "late_requests",
    "disconnects",
    "timeouts",
    "moves",
    "refusals",
    "unknown_appends",
    "late_markers",
    "leader_changes",
)

Values = dict[Slot, Any]
"""The values of some slots, which an action changes."""


def place_of(partition: int) -> TopicPartition:
    """The name of a partition."""
    return TopicPartition("topic", partition)


class Slots(NamedTuple):
    """`exchange` and `late` are by producer: its connection, and one that it has given up. `append` is the record of the
    coordinator that is being written, `log` its last committed one; `left`: budgets.
    """

    producer: dict[int, Slot]
    exchange: dict[int, Slot]
    late: dict[int, Slot]
    coordinator: Slot
    append: Slot
    log: Slot
    marker: dict[int, Slot]
    late_marker: dict[int, Slot]
    partition: dict[int, Slot]
    left: dict[str, Slot]


class Board:
    """The model under construction."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.model = Model(name, parameters)
        self.parameters = parameters
        self.level = int(parameters["transaction_version"])
        self.client_level = self.level if self.level > 1 else 0
        self.producers = [TransactionalClient(number) for number in range(1, parameters["producers"] + 1)]
        self.partitions = range(parameters["topic_partitions"])
        settings = TransactionSettings(cluster_level=self.level)
        self.coordinator = TransactionCoordinator(_protocol(parameters), settings)
        self.slots = self._slots()

    def leader_of(self, partition: int) -> int:
        """The number of the broker that leads a partition; no producer has it."""
        return len(self.producers) + 1 + partition

    @property
    def protocol(self) -> TransactionProtocol:
        """The rules of coordinator and leaders."""
        return self.coordinator.protocol

    @property
    def of_coordinator(self) -> list[Slot]:
        """The slots that a step of the coordinator may change."""
        slots = self.slots
        channels = [*slots.exchange.values(), *slots.late.values()]
        return [slots.coordinator, slots.append, *slots.marker.values(), *slots.late_marker.values(), *channels]

    def _slots(self) -> Slots:
        model, parameters = self.model, self.parameters
        nothing = (0,) * len(self.partitions)
        begun = _begun(parameters["first_epoch"])
        known = CoordinatedTransaction(ID, Epoch(0), begun)
        record = None if begun is None else record_of(begun, self.level)

        def optional(name: str, holds: Any, key: int | None, party: Any) -> Slot:
            broker = None if party == COORDINATOR else party
            return model.slot(name, None, key, broker, holds=holds | None, party=party, words=_in_words_if_any)

        return Slots(
            producer={
                one: model.slot("producer", TransactionalProducer(written=nothing, sequences=nothing), one, one)
                for one in self.producers
            },
            exchange={one: optional("exchange", TransactionExchange, one, one) for one in self.producers},
            late={
                one: optional("late", TransactionExchange, one, one) for one in self.producers if parameters["late_requests"]
            },
            coordinator=model.slot("coordinator", known, party=COORDINATOR),
            append=optional("append", AppendTransaction, None, COORDINATOR),
            log=model.slot("stateLog", record, holds=TransactionRecord | None, party=COORDINATOR, words=_in_words_if_any),
            marker={one: optional(f"marker {one}", SentMarker, None, COORDINATOR) for one in self.partitions},
            late_marker={
                one: optional(f"lateMarker {one}", SentMarker, None, COORDINATOR)
                for one in self.partitions
                if parameters["late_markers"]
            },
            partition={one: model.slot("partition", PartitionLog(), one, self.leader_of(one)) for one in self.partitions},
            left={
                name: model.slot(f"{name}_left", parameters[name], bookkeeping=True) for name in BUDGETS if parameters[name]
            },
        )

    # ---- the coordinator's effects

    def take(self, values: Values, step: TransactionStep) -> None:
        """Carry out a step of the coordinator."""
        slots = self.slots
        values[slots.coordinator] = settled(step.state)
        for effect in step.effects:
            match effect:
                case AppendTransaction():
                    assert values[slots.append] is None, "one record of a transactional id is under way at a time"
                    values[slots.append] = settled_append(effect)
                case SendMarkers(marker):
                    for partition in self.partitions:
                        if place_of(partition) in marker.partitions:
                            self._send(values, partition, SentMarker(marker_for(marker, partition)))
                case AnswerTransaction(number, response):
                    self._answer(values, number, response)

    def _send(self, values: Values, partition: int, sent: SentMarker) -> None:
        """Send a marker; one that is under way is overtaken, and may arrive late."""
        slot = self.slots.marker[partition]
        late = self.slots.late_marker.get(partition)
        if values[slot] is not None and late is not None and values[late] is None:
            values[late] = values[slot]
        values[slot] = sent

    def _answer(self, values: Values, number: int, response: Any) -> None:
        for producer in self.producers:
            if number == live_number(producer):
                answer_on(values, self.slots.exchange[producer], response)
            elif number == late_number(producer) and producer in self.slots.late:
                answer_on(values, self.slots.late[producer], response)


def answer_on(values: Values, slot: Slot, response: Any) -> None:
    """Give an answer to whoever waits on a connection: a producer, or a leader that has asked for it."""
    found: TransactionExchange | None = values[slot]
    if found is None or not found.is_taken:
        return
    match found.request, response:
        case WriteRequest(), AddPartitionsToTxnResponse(((_, error),)):
            values[slot] = found._replace(verified=error)
        case _:
            values[slot] = found._replace(answer=response)


def marker_for(marker: Any, partition: int) -> Any:
    """The marker for one of its partitions."""
    return type(marker)(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.committed,
        frozenset({place_of(partition)}),
        marker.client_level,
    )


def fresh_id(state: CoordinatedTransaction) -> ProducerId:
    """A producer id that nobody has had."""
    known = state.metadata
    used = (0,) if known is None else (known.producer_id, known.previous_producer_id, known.next_producer_id)
    return ProducerId(max(used) + 1)


def settled(state: CoordinatedTransaction) -> CoordinatedTransaction:
    """The state without times that no rule compares."""
    completion = state.completion
    return state._replace(
        metadata=None if state.metadata is None else _settled(state.metadata),
        completion=None if completion is None else completion._replace(target=_settled(completion.target)),
    )


def settled_append(append: AppendTransaction) -> AppendTransaction:
    """The record that is being written without such times."""
    return AppendTransaction(_settled(append.target), append.coordinator_epoch, append.number, append.request, append.raised)


def unanswered(append: AppendTransaction | None, number: int, other: Any = NO_REQUEST) -> AppendTransaction | None:
    """The record that is being written, if who waits for it under this number waits under another one, or nobody does."""
    if append is None or append.number != number:
        return append
    return AppendTransaction(append.target, append.coordinator_epoch, other, append.request, append.raised)


def _settled(metadata: TransactionMetadata) -> TransactionMetadata:
    start = NO_TIMESTAMP if metadata.start_ms == NO_TIMESTAMP else TimestampMs(0)
    return metadata._replace(start_ms=start, updated_ms=TimestampMs(0))


def _begun(first_epoch: int) -> TransactionMetadata | None:
    """A transactional id whose next epoch is this one."""
    if not first_epoch:
        return None
    return TransactionMetadata(ID, ProducerId(1), TIMEOUT_MS, producer_epoch=ProducerEpoch(first_epoch - 1))


def _protocol(parameters: Mapping[str, Any]) -> TransactionProtocol:
    (protocol,) = (release for release in TRANSACTION_RELEASES if release.name == parameters["release"])
    for mutant in TRANSACTION_MUTANTS:
        if mutant.name == parameters["mutant"]:
            return weaken(protocol, mutant)
    return protocol


def _in_words_if_any(value: object) -> str:
    return "none" if value is None else in_words(value)
