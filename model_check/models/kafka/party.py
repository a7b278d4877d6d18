"""The values that the handlers of `spec` get, built from a broker's slots, and the slots after a step.

Time is a choice here. By the clock every lag is too long (`LATE`), so a follower counts as caught up only if it has all
records. The action that shrinks an ISR is the exception: it chooses which followers lag. With `--endless-lag` no lag is ever
too long: a follower that was caught up once in an epoch stays caught up. Every back-off is over at the next request.
"""

from typing import NamedTuple

from model_check.models.kafka.reductions import ALL_REDUCTIONS, Reduction, isr_in_role, without_unread_answer
from model_check.models.kafka.values import NO_EXCHANGE, NO_MEMORY, Clients, Exchange, Memory, Placed, Process, Under
from model_check.models.parts import LATE, PARTITION, Role, following
from spec.broker.effects import AnswerProducer, Effect, FollowerRequest
from spec.broker.follower import fetch_or_truncate
from spec.broker.leader.offsets import handle_list_offsets
from spec.broker.partition import Broker, BrokerSettings, Handled, Partition
from spec.broker.protocol import BrokerProtocol
from spec.broker.rules.fetcher import NOT_DELAYED, FetchState, needs_no_answer
from spec.broker.rules.followers import UNKNOWN_FOLLOWER, Follower, FollowerState
from spec.broker.rules.isr.proposal import PartitionIsr, is_pending
from spec.broker.rules.isr.request import WriteIsr
from spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from spec.log.local_log import LocalLog
from spec.log.producers import ProducerBatch, Producers, rebuilt_from
from spec.log.record_log import RecordLog
from spec.messages.fetch import Isolation
from spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, Wanted
from spec.metadata import BrokerRegistration
from spec.step import Reply, Send, SendToController
from spec.values import NO_LEADER, NO_VALUE, BrokerId, Error, Incarnation, Offset, ProducerEpoch, ProducerId

PRODUCER_ID = ProducerId(0)
"""The one idempotent producer of the model."""


Log = LocalLog[RecordLog]


STRANGER = Process(True, BrokerLifecycle(NO_LEADER, Incarnation(0)))
"""A broker, for rules that do not ask which."""


class Rules(NamedTuple):
    """A broker's rules and settings."""

    protocol: BrokerProtocol
    min_isr: int
    endless_lag: bool = False
    reductions: frozenset[Reduction] = ALL_REDUCTIONS


class Held(NamedTuple):
    """A broker's state of the partition as leader or follower, and the knowledge of clients: see `Board.held`."""

    log: Log
    role: Role
    memory: Memory
    exchange: Exchange
    clients: Clients
    fetcher: FetchState


def broker(rules: Rules, self_id: BrokerId, process: Process, known: frozenset[BrokerRegistration]) -> Broker:
    """The handlers' view of their broker."""
    return Broker(
        self_id,
        rules.protocol,
        process.life.broker_epoch,
        tuple(sorted(known)),
        BrokerSettings(rules.min_isr, max_lag=1, back_off=0),
        shutting_down=process.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    )


def is_asking(exchange: Exchange, process: Process) -> bool:
    """Whether a broker's present incarnation has asked for an ISR and has no answer yet."""
    return exchange.state != Under.NOTHING and exchange.request.broker_epoch == process.life.broker_epoch


def leading(log: Log, role: Role, memory: Memory, *, asking: bool = False) -> Partition[RecordLog]:
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


def seen_by_fetchers(log: Log, role: Role, memory: Memory) -> Partition[RecordLog]:
    """As `leading`, without the parts on which answers do not depend: one value for many states of the leader."""
    followers = tuple(sorted(Follower(follower.broker) for follower in memory.followers))
    return Partition(PARTITION, log, role.leader, role.leader_epoch, epoch_start=role.epoch_start, followers=followers)


def partition_of(held: Held) -> Partition[RecordLog]:
    """The partition of a replica that may change its role."""
    return leading(held.log, held.role, held.memory)._replace(fetcher=held.fetcher)


def producers_of(log: Log) -> Producers:
    """The state of the idempotent producer: it follows from the log, as after a truncation."""
    held = enumerate(log.log.records)
    return rebuilt_from(tuple(batch_of(record.value, Offset(offset)) for offset, record in held if record.value != NO_VALUE))


def batch_of(value: int, offset: Offset) -> ProducerBatch:
    """The batch in which the idempotent producer sends its `value`-th record, once it lies at this offset."""
    return ProducerBatch(PRODUCER_ID, ProducerEpoch(0), value - 1, 1, offset)


def role_of(rules: Rules, partition: Partition[RecordLog], replica: BrokerId) -> Role:
    """A replica's role."""
    isr = partition.isr
    if Reduction.UNREAD_FIELDS in rules.reductions:
        isr = isr_in_role(isr, partition.leader == replica)
    return Role(partition.leader, partition.leader_epoch, isr, partition.epoch_start)


def memory_of(rules: Rules, partition: Partition[RecordLog]) -> Memory:
    """A leader's memory, without times and without values that follow from times."""
    followers = frozenset(Follower(follower.broker, _timeless(rules, follower.state)) for follower in partition.followers)
    memory = Memory(followers, frozenset(partition.waiting))
    return NO_MEMORY if memory == NO_MEMORY else memory


def _timeless(rules: Rules, state: FollowerState) -> FollowerState:
    caught_up_time = state.caught_up_time if rules.endless_lag else 0
    nothing = UNKNOWN_FOLLOWER
    return state._replace(
        start_offset=nothing.start_offset,
        leader_end_offset=nothing.leader_end_offset,
        fetch_time=nothing.fetch_time,
        caught_up_time=caught_up_time,
    )


def followed(rules: Rules, own: Broker, partition: Partition[RecordLog]) -> tuple[Log, FetchState]:
    """A follower's slots after a step. The fetcher may send its next request at any time."""
    if Reduction.LONE_TRUNCATION in rules.reductions and needs_no_answer(partition.fetcher, partition.local.log):
        partition = fetch_or_truncate(own, partition, LATE).state
    fetcher = partition.fetcher._replace(delayed_until=NOT_DELAYED)
    if Reduction.UNREAD_FIELDS in rules.reductions:
        fetcher = without_unread_answer(fetcher, rules.protocol)
    return partition.local, fetcher


def seen(partition: Partition[RecordLog], leads: bool, effects: tuple[Effect, ...], before: Clients) -> Clients:
    """The knowledge of clients after a step of a replica: its answers to producers, and the readable records."""
    records = partition.local.log.records
    told = {
        effect.response.base_offset
        for effect in effects
        if isinstance(effect, AnswerProducer) and effect.response.error == Error.NONE
    }
    shown = range(partition.local.high_watermark) if leads else ()
    return Clients(
        before.told | {Placed(offset, records[offset]) for offset in told},
        before.read | {Placed(Offset(offset), records[offset]) for offset in shown},
    )


def exchange_after(rules: Rules, before: Exchange, partition: Partition[RecordLog], effects: tuple[Effect, ...]) -> Exchange:
    """The AlterPartition request under way: a new one replaces an old one.

    An old one was based on an older partition epoch, and would be refused.
    """
    for effect in effects:
        if isinstance(effect, SendToController):
            return Exchange(Under.SENT, effect.message, NO_EXCHANGE.response)
        if isinstance(effect, WriteIsr):
            return Exchange(Under.SENT, effect.request, NO_EXCHANGE.response)
    drops = Reduction.IDLE_ANSWERS in rules.reductions and before.state == Under.ANSWERED
    if drops and not awaits(partition, before):
        return NO_EXCHANGE
    return before


def awaits(partition: Partition[RecordLog], exchange: Exchange) -> bool:
    """Whether the leader still waits for the answer to this request."""
    proposed = frozenset(member.broker for member in exchange.request.isr)
    return is_pending(partition.isr, PartitionIsr(proposed, exchange.request.partition_epoch))


def next_request(
    rules: Rules, follower: BrokerId, log: Log, fetcher: FetchState, process: Process
) -> Send[FollowerRequest] | None:
    """A follower's next request, and its receiver; `None` if there is none."""
    if not process.up:
        return None
    return sent(fetch_or_truncate(broker(rules, follower, process, frozenset()), following(log, fetcher), LATE))


def sent(step: Handled[RecordLog]) -> Send | None:  # type: ignore[type-arg]
    """The request that a follower sends, if it does."""
    return next((effect for effect in step.effects if isinstance(effect, Send)), None)


def reply(step: Handled[RecordLog]) -> object:
    """The answer that a leader gives."""
    return next(effect.message for effect in step.effects if isinstance(effect, Reply))


def latest_offset(rules: Rules, leader: BrokerId, log: Log, role: Role) -> ListOffsetsResponse:
    """A leader's answer to a consumer that asks for the latest offset."""
    own = broker(rules, leader, STRANGER, frozenset())
    request = ListOffsetsRequest(Wanted.LATEST, role.leader_epoch, Isolation.HIGH_WATERMARK)
    answer = reply(handle_list_offsets(own, leading(log, role, NO_MEMORY), request, LATE))
    assert isinstance(answer, ListOffsetsResponse)
    return answer


def committed(log: Log) -> RecordLog:
    """The records that a replica knows to be committed."""
    return log.log.truncate_to(Offset(log.high_watermark))
