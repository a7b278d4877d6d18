"""The values that the handlers of `spec` get, built from a broker's slots, and the slots after a step.

Time is a choice here. By the clock every lag is too long (`LATE`), so a follower counts as caught up only if it has all
records. The action that shrinks an ISR is the exception: it chooses which followers lag. With `--endless-lag` no lag is ever
too long: a follower that was caught up once in an epoch stays caught up. Every back-off is over at the next request.
"""

from typing import NamedTuple

from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.kafka.reductions import ALL_REDUCTIONS, Reduction, isr_in_role, without_unread_answer
from kspec.model_check.models.kafka.values import (
    NO_EXCHANGE,
    NO_MEMORY,
    AlterPartitionExchange,
    ClientKnowledge,
    Memory,
    PlacedRecord,
    Process,
    RequestState,
)
from kspec.model_check.models.parts import LATE, PARTITION, Role, following
from kspec.spec.broker.effects import AnswerProducer, Effect, FollowerRequest
from kspec.spec.broker.follower import fetch_or_truncate
from kspec.spec.broker.leader.offsets import handle_list_offsets
from kspec.spec.broker.partition import Broker, BrokerSettings, Handled, Partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.fetcher import NOT_DELAYED, FetchState
from kspec.spec.broker.rules.followers import UNKNOWN_FOLLOWER, Follower, FollowerState
from kspec.spec.broker.rules.isr.proposal import PartitionIsr, is_pending
from kspec.spec.broker.rules.isr.request import WriteIsr
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.producers import ProducerBatch, Producers, rebuilt_from
from kspec.spec.messages.fetch import Isolation
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.step import Reply, Send, SendToController
from kspec.spec.values import NO_LEADER, NO_VALUE, BrokerId, Error, Incarnation, Offset, ProducerEpoch, ProducerId

PRODUCER_ID = ProducerId(0)
"""The one idempotent producer of the model."""


Log = LocalLog[ModelLog]


STRANGER = Process(True, BrokerLifecycle(NO_LEADER, Incarnation(0)))
"""A broker, for rules that do not ask which."""


class PartyRules(NamedTuple):
    """A broker's rules and settings."""

    protocol: BrokerProtocol
    min_isr: int
    endless_lag: bool = False
    reductions: frozenset[Reduction] = ALL_REDUCTIONS


class PartyState(NamedTuple):
    """A broker's state of the partition as leader or follower, and the knowledge of clients: see `Board.held`."""

    log: Log
    role: Role
    memory: Memory
    exchange: AlterPartitionExchange
    clients: ClientKnowledge
    fetcher: FetchState


def broker(rules: PartyRules, self_id: BrokerId, process: Process, known: frozenset[BrokerRegistration]) -> Broker:
    """The handlers' view of their broker."""
    return Broker(
        self_id,
        rules.protocol,
        process.life.broker_epoch,
        tuple(sorted(known)),
        BrokerSettings(rules.min_isr, max_lag=1, back_off=0),
        shutting_down=process.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    )


def is_asking(exchange: AlterPartitionExchange, process: Process) -> bool:
    """Whether a broker's present incarnation has asked for an ISR and has no answer yet."""
    return exchange.state != RequestState.NOTHING and exchange.request.broker_epoch == process.life.broker_epoch


def leading(log: Log, role: Role, memory: Memory, *, asking: bool = False) -> Partition[ModelLog]:
    """The partition of a replica that answers requests; `asking`: see `is_asking`."""
    return Partition(
        PARTITION,
        log,
        role.leader,
        role.leader_epoch,
        role.isr,
        role.epoch_start,
        tuple(sorted(memory.followers)),
        tuple(sorted(memory.waiting)),
        request_in_flight=asking,
    )


def seen_by_fetchers(log: Log, role: Role, memory: Memory) -> Partition[ModelLog]:
    """As `leading`, without the parts on which answers do not depend: one value for many states of the leader.

    In 1.0 and 1.1 they do, see `BrokerProtocol.answers_after_fetch`.
    """
    followers = tuple(sorted(Follower(follower.broker) for follower in memory.followers))
    return Partition(PARTITION, log, role.leader, role.leader_epoch, epoch_start=role.epoch_start, followers=followers)


def partition_of(held: PartyState) -> Partition[ModelLog]:
    """The partition of a replica that may change its role."""
    return leading(held.log, held.role, held.memory)._replace(fetcher=held.fetcher)


def producers_of(log: Log) -> Producers:
    """The state of the idempotent producer: it follows from the log, as after a truncation."""
    held = enumerate(log.log.records)
    return rebuilt_from(tuple(batch_of(record.value, Offset(offset)) for offset, record in held if record.value != NO_VALUE))


def batch_of(value: int, offset: Offset) -> ProducerBatch:
    """The batch in which the idempotent producer sends its `value`-th record, once it lies at this offset."""
    return ProducerBatch(PRODUCER_ID, ProducerEpoch(0), value - 1, 1, offset)


def role_of(rules: PartyRules, partition: Partition[ModelLog], replica: BrokerId) -> Role:
    """A replica's role."""
    isr = partition.isr
    if Reduction.UNREAD_FIELDS in rules.reductions:
        isr = isr_in_role(isr, partition.leader == replica)
    return Role(partition.leader, partition.leader_epoch, isr, partition.epoch_start)


def memory_of(rules: PartyRules, partition: Partition[ModelLog]) -> Memory:
    """A leader's memory, without times and without values that follow from times."""
    followers = frozenset(Follower(follower.broker, _timeless(rules, follower.state)) for follower in partition.followers)
    memory = Memory(followers, frozenset(partition.waiting))
    return NO_MEMORY if memory == NO_MEMORY else memory


def _timeless(rules: PartyRules, state: FollowerState) -> FollowerState:
    caught_up_time = state.caught_up_time if rules.endless_lag else UNKNOWN_FOLLOWER.caught_up_time
    nothing = UNKNOWN_FOLLOWER
    return state._replace(
        start_offset=nothing.start_offset,
        leader_end_offset=nothing.leader_end_offset,
        fetch_time=nothing.fetch_time,
        caught_up_time=caught_up_time,
    )


def followed(rules: PartyRules, own: Broker, partition: Partition[ModelLog]) -> tuple[Log, FetchState]:
    """A follower's slots after a step. The fetcher may send its next request at any time."""
    if Reduction.LONE_TRUNCATION in rules.reductions and own.protocol.needs_no_answer(
        partition.fetcher, partition.local.log
    ):
        partition = fetch_or_truncate(own, partition, LATE).state
    fetcher = partition.fetcher._replace(delayed_until=NOT_DELAYED)
    if Reduction.UNREAD_FIELDS in rules.reductions:
        fetcher = without_unread_answer(fetcher, rules.protocol)
    return partition.local, fetcher


def seen(
    partition: Partition[ModelLog], leads: bool, effects: tuple[Effect, ...], before: ClientKnowledge
) -> ClientKnowledge:
    """The knowledge of clients after a step of a replica: its answers to producers, and the readable records."""
    records = partition.local.log.records
    told = {
        effect.response.base_offset
        for effect in effects
        if isinstance(effect, AnswerProducer) and effect.response.error == Error.NONE
    }
    shown = range(partition.local.high_watermark) if leads else ()
    return ClientKnowledge(
        before.told | {PlacedRecord(offset, records[offset]) for offset in told},
        before.read | {PlacedRecord(Offset(offset), records[offset]) for offset in shown},
    )


def exchange_after(
    rules: PartyRules, before: AlterPartitionExchange, partition: Partition[ModelLog], effects: tuple[Effect, ...]
) -> AlterPartitionExchange:
    """The AlterPartition request under way: a new one replaces an old one.

    An old one was based on an older partition epoch, and would be refused.
    """
    for effect in effects:
        if isinstance(effect, SendToController):
            return AlterPartitionExchange(RequestState.SENT, effect.message, NO_EXCHANGE.response)
        if isinstance(effect, WriteIsr):
            return AlterPartitionExchange(RequestState.SENT, effect.request, NO_EXCHANGE.response)
    drops = Reduction.IDLE_ANSWERS in rules.reductions and before.state == RequestState.ANSWERED
    if drops and not awaits(partition, before):
        return NO_EXCHANGE
    return before


def awaits(partition: Partition[ModelLog], exchange: AlterPartitionExchange) -> bool:
    """Whether the leader still waits for the answer to this request."""
    proposed = frozenset(member.broker for member in exchange.request.isr)
    return is_pending(partition.isr, PartitionIsr(proposed, exchange.request.partition_epoch))


def next_request(
    rules: PartyRules, follower: BrokerId, log: Log, fetcher: FetchState, process: Process
) -> Send[FollowerRequest] | None:
    """A follower's next request, and its receiver; `None` if there is none."""
    if not process.up:
        return None
    return sent(fetch_or_truncate(broker(rules, follower, process, frozenset()), following(log, fetcher), LATE))


def sent(step: Handled[ModelLog]) -> Send | None:  # type: ignore[type-arg]
    """The request that a follower sends, if it does."""
    return next((effect for effect in step.effects if isinstance(effect, Send)), None)


def reply(step: Handled[ModelLog]) -> object:
    """The answer that a leader gives."""
    return next(effect.message for effect in step.effects if isinstance(effect, Reply))


def latest_offset(rules: PartyRules, leader: BrokerId, log: Log, role: Role) -> ListOffsetsResponse:
    """A leader's answer to a consumer that asks for the latest offset."""
    own = broker(rules, leader, STRANGER, frozenset())
    request = ListOffsetsRequest(OffsetSpec.LATEST, role.leader_epoch, Isolation.HIGH_WATERMARK)
    answer = reply(handle_list_offsets(own, leading(log, role, NO_MEMORY), request, LATE))
    assert isinstance(answer, ListOffsetsResponse)
    return answer


def committed(log: Log) -> ModelLog:
    """The records that a replica knows to be committed."""
    return log.log.truncate_to(Offset(log.high_watermark))
