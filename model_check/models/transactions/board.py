"""The slots of the model, and how the coordinator's effects are carried out on them.

A record of the coordinator is committed or refused by an action of its own; records of partitions are committed at once.
Time is a choice: an action says that a transaction has taken too long.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kspec.model_check.core.model import COORDINATOR, Model, Slot, TransactionalClient
from kspec.model_check.models.processes import FIRST_GROUP
from kspec.model_check.models.transactions.values import (
    OffsetsRequest,
    PartitionLog,
    Processor,
    SentMarker,
    TransactionalProducer,
    TransactionExchange,
    WriteRequest,
    late_number,
    live_number,
)
from kspec.model_check.traces.encode import in_words
from kspec.spec.coordinator.protocol import Coordinator, CoordinatorProtocol
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnResponse
from kspec.spec.mutation import weaken
from kspec.spec.releases.names import coordinator_of
from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS
from kspec.spec.releases.transactions.offset_mutants import OFFSET_MUTANTS
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.adding import CONSUMER_OFFSETS
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
COMMON = 0
"""The number of the transactional id that all producers have."""

IDS_APART = 100
"""The number of producer ids that are kept for each transactional id."""

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
    "uncommitted_loads",
    "refusals",
    "unknown_appends",
    "late_markers",
    "leader_changes",
    "rebalances",
)

Values = dict[Slot, Any]
"""The values of some slots, which an action changes."""


class IdSlots(NamedTuple):
    """The slots of one transactional id: what its coordinator knows, the record that is being written, the last one that is
    committed, and the markers to partitions. `producers` are those who have the id. `unsure`: the record behind the
    committed one by which a broker coordinates, if such a one may be lost.
    """

    transactional_id: TransactionalId
    first_producer_id: ProducerId
    arguments: dict[str, int]
    producers: tuple[int, ...]
    coordinator: Slot
    append: Slot
    log: Slot
    marker: dict[int, Slot]
    late_marker: dict[int, Slot]
    unsure: Slot | None


class Slots(NamedTuple):
    """`exchange` and `late` are by producer: its connection, and one that it has given up; `ids` by the number of the
    transactional id; `processor` by producer, and `group`, if there is a group; `left`: budgets.
    """

    producer: dict[int, Slot]
    exchange: dict[int, Slot]
    late: dict[int, Slot]
    ids: dict[int, IdSlots]
    partition: dict[int, Slot]
    processor: dict[int, Slot]
    group: Slot | None
    left: dict[str, Slot]


class Board:
    """The model under construction."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.model = Model(name, parameters)
        self.parameters = parameters
        self.level = int(parameters["transaction_version"])
        self.client_level = self.level if self.level > 1 else 0
        self.producers = [TransactionalClient(number) for number in range(1, parameters["producers"] + 1)]
        self.data_partitions = range(parameters["topic_partitions"])
        self.has_group = bool(parameters["inputs"])
        self.partitions = range(parameters["topic_partitions"] + self.has_group)
        self.group_partition = len(self.data_partitions)
        settings = TransactionSettings(cluster_level=self.level, offsets_partitions=1)
        self.coordinator = TransactionCoordinator(protocol_for(parameters), settings)
        self.groups = Coordinator(_group_protocol(parameters))
        self.slots = self._slots()

    def leader_of(self, partition: int) -> int:
        """The number of the broker that leads a partition; no producer has it."""
        return len(self.producers) + 1 + partition

    @property
    def protocol(self) -> TransactionProtocol:
        """The rules of coordinator and leaders."""
        return self.coordinator.protocol

    def of_coordinator(self, own: IdSlots) -> list[Slot]:
        """The slots that a step of the coordinator of a transactional id may change."""
        slots = self.slots
        channels = [kind[one] for kind in (slots.exchange, slots.late) for one in own.producers if one in kind]
        return [own.coordinator, own.append, *own.marker.values(), *own.late_marker.values(), *channels]

    def id_of(self, producer: int) -> IdSlots:
        """The slots of a producer's transactional id."""
        return self.slots.ids[producer if self.parameters["own_ids"] else COMMON]

    def of_group(self, partition: int) -> list[Slot]:
        """The slot of the group, if this is its partition."""
        group = self.slots.group
        return [group] if group is not None and partition == self.group_partition else []

    def place_of(self, partition: int) -> TopicPartition:
        """The name of a partition."""
        if partition in self.data_partitions:
            return TopicPartition("topic", partition)
        return TopicPartition(CONSUMER_OFFSETS, 0)

    def _slots(self) -> Slots:
        model, parameters = self.model, self.parameters
        nothing = (0,) * len(self.data_partitions)
        numbers = self.producers if parameters["own_ids"] else [COMMON]
        has_group = self.has_group
        return Slots(
            producer={
                one: model.slot("producer", TransactionalProducer(written=nothing, sequences=nothing), one, one)
                for one in self.producers
            },
            exchange={one: self._optional("exchange", TransactionExchange, one, one) for one in self.producers},
            late={
                one: self._optional("late", TransactionExchange, one, one)
                for one in self.producers
                if parameters["late_requests"]
            },
            ids={number: self._id_slots(number) for number in numbers},
            partition={one: model.slot("partition", PartitionLog(), one, self.leader_of(one)) for one in self.partitions},
            processor={
                one: model.slot("processor", Processor(FIRST_GROUP.generation if one == 1 else 0), one, one)
                for one in self.producers
                if has_group
            },
            group=model.slot("group", FIRST_GROUP, None, self.leader_of(self.group_partition)) if has_group else None,
            left={
                name: model.slot(f"{name}_left", parameters[name], bookkeeping=True) for name in BUDGETS if parameters[name]
            },
        )

    def _optional(self, name: str, holds: Any, key: int | None, party: Any) -> Slot:
        broker = None if party == COORDINATOR else party
        return self.model.slot(name, None, key, broker, holds=holds | None, party=party, words=_in_words_if_any)

    def _id_slots(self, number: int) -> IdSlots:
        model, parameters = self.model, self.parameters
        transactional_id = ID if number == COMMON else TransactionalId(f"id-{number}")
        key = None if number == COMMON else number
        begun = _begun(transactional_id, parameters["first_epoch"])
        known = CoordinatedTransaction(transactional_id, Epoch(0), begun)
        record = None if begun is None else record_of(begun, self.level)
        late = self.partitions if parameters["late_markers"] else ()
        return IdSlots(
            transactional_id,
            ProducerId(IDS_APART * number),
            {} if number == COMMON else {"id": number},
            tuple(self.producers) if number == COMMON else (number,),
            coordinator=model.slot("coordinator", known, key, party=COORDINATOR),
            append=self._optional("append", AppendTransaction, key, COORDINATOR),
            log=model.slot(
                "stateLog", record, key, holds=TransactionRecord | None, party=COORDINATOR, words=_in_words_if_any
            ),
            marker={one: self._optional(f"marker {one}", SentMarker, key, COORDINATOR) for one in self.partitions},
            late_marker={one: self._optional(f"lateMarker {one}", SentMarker, key, COORDINATOR) for one in late},
            unsure=self._optional("unsure", TransactionRecord, key, COORDINATOR)
            if parameters["uncommitted_loads"]
            else None,
        )

    # ---- the coordinator's effects

    def take(self, values: Values, own: IdSlots, step: TransactionStep) -> None:
        """Carry out a step of the coordinator of a transactional id."""
        values[own.coordinator] = settled(step.state)
        for effect in step.effects:
            match effect:
                case AppendTransaction():
                    assert values[own.append] is None, "one record of a transactional id is under way at a time"
                    values[own.append] = settled_append(effect)
                case SendMarkers(marker):
                    for partition in self.partitions:
                        if self.place_of(partition) in marker.partitions:
                            sent = SentMarker(marker_for(marker, self.place_of(partition)))
                            self._send(values, own, partition, sent)
                case AnswerTransaction(number, response):
                    self._answer(values, number, response)

    def _send(self, values: Values, own: IdSlots, partition: int, sent: SentMarker) -> None:
        """Send a marker; one that is under way is overtaken, and may arrive late."""
        slot = own.marker[partition]
        late = own.late_marker.get(partition)
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
        case WriteRequest() | OffsetsRequest(), AddPartitionsToTxnResponse(((_, error),)):
            values[slot] = found._replace(verified=error)
        case _:
            values[slot] = found._replace(answer=response)


def marker_for(marker: Any, place: TopicPartition) -> Any:
    """The marker for one of its partitions."""
    return type(marker)(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.committed,
        frozenset({place}),
        marker.client_level,
    )


def fresh_id(own: IdSlots, state: CoordinatedTransaction) -> ProducerId:
    """A producer id that nobody has had."""
    known = state.metadata
    used = (
        (own.first_producer_id,)
        if known is None
        else (known.producer_id, known.previous_producer_id, known.next_producer_id)
    )
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


def _begun(transactional_id: TransactionalId, first_epoch: int) -> TransactionMetadata | None:
    """A transactional id whose next epoch is this one."""
    if not first_epoch:
        return None
    return TransactionMetadata(transactional_id, ProducerId(1), TIMEOUT_MS, producer_epoch=ProducerEpoch(first_epoch - 1))


def protocol_for(parameters: Mapping[str, Any]) -> TransactionProtocol:
    """The rules of the release about transactions, one of them weakened if a mutant is given."""
    (protocol,) = (release for release in TRANSACTION_RELEASES if release.name == parameters["release"])
    for mutant in TRANSACTION_MUTANTS:
        if mutant.name == parameters["mutant"]:
            return weaken(protocol, mutant)
    return protocol


def _group_protocol(parameters: Mapping[str, Any]) -> CoordinatorProtocol:
    """The rules of the release about groups."""
    protocol = coordinator_of(parameters["release"])
    for mutant in OFFSET_MUTANTS:
        if mutant.name == parameters["mutant"]:
            return weaken(protocol, mutant)
    return protocol


def _in_words_if_any(value: object) -> str:
    return "none" if value is None else in_words(value)
