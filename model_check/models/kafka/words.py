"""The model's values in the words of traces, without usual values.

`kspec check --itf` and `--json` have every detail.
"""

from collections.abc import Iterable

from kspec.model_check.models.kafka.kraft.reading import NOT_READING, Reading
from kspec.model_check.models.kafka.reductions import LATER
from kspec.model_check.models.kafka.values import (
    FIRST_CONTROLLER,
    NO_EXCHANGE,
    NO_TOPIC,
    NOTHING_LATE,
    NOTHING_SEEN,
    AlterPartitionExchange,
    ClientKnowledge,
    Image,
    Inbox,
    LateFetch,
    Memory,
    ModelController,
    Order,
    PlacedRecord,
    Process,
    RequestKind,
    RequestState,
    TopicRegistration,
    ZkCluster,
)
from kspec.model_check.models.words import leader_in_words, record_in_words
from kspec.model_check.traces.encode import in_words
from kspec.spec.broker.rules.followers import Follower
from kspec.spec.broker.rules.lifecycle import BrokerState
from kspec.spec.log.batch import records_of
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.fetch import FetchResponse
from kspec.spec.metadata import BrokerRegistration, LeaderRecoveryState
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Error,
)

FIRST = BrokerEpoch(1)
"""Of a broker that has not been started again; it is left out."""


def _some(title: str, brokers: Iterable[BrokerId]) -> list[str]:
    ids = frozenset(brokers)
    return [f"{title} {in_words(ids)}"] if ids else []


@in_words.register
def _(topic: TopicRegistration) -> str:
    if topic == NO_TOPIC:
        return "no partition"
    parts = [
        leader_in_words(topic.leader, topic.leader_epoch),
        f"ISR {in_words(topic.isr)}",
        f"partition epoch {topic.partition_epoch}",
    ]
    parts += _some("eligible", topic.elr)
    parts += _some("last known", topic.last_known_elr)
    parts += _some("adding", topic.adding)
    parts += _some("removing", topic.removing)
    parts += ["recovering"] if topic.recovery == LeaderRecoveryState.RECOVERING else []
    return ", ".join(parts)


def _brokers(brokers: frozenset[BrokerRegistration], fenced: str = "fenced") -> list[str]:
    ordered = sorted(brokers)
    parts = _some(fenced, (entry.broker for entry in ordered if entry.fenced))
    parts += _some("shutting down", (entry.broker for entry in ordered if entry.in_controlled_shutdown))
    return parts + [
        f"broker epoch of {entry.broker} is {entry.broker_epoch}" for entry in ordered if entry.broker_epoch != FIRST
    ]


@in_words.register
def _(cluster: ModelController) -> str:
    return ", ".join([in_words(cluster.topic), *_brokers(cluster.brokers), *_some("leaving", cluster.leaving)])


@in_words.register
def _(cluster: ZkCluster) -> str:
    parts = [in_words(cluster.topic), *_brokers(cluster.brokers, "without a session")]
    there = frozenset(entry.broker for entry in cluster.brokers if not entry.fenced)
    known = frozenset(entry.broker for entry in cluster.live)
    parts += _some("the controller has not noticed", known ^ there)
    parts += _some("leaving", cluster.leaving)
    parts += [f"controller epoch {cluster.controller_epoch}"] if cluster.controller_epoch != FIRST_CONTROLLER else []
    return ", ".join(parts)


@in_words.register
def _(order: Order) -> str:
    sender = "" if order.controller_epoch == FIRST_CONTROLLER else f" (of controller epoch {order.controller_epoch})"
    addressee = f" (to broker epoch {order.broker_epoch})" if order.broker_epoch > FIRST else ""
    if order.told == RequestKind.LEAD_OR_FOLLOW:
        topic = order.topic
        told = in_words(topic) if topic.isr else leader_in_words(topic.leader, topic.leader_epoch)
    else:
        told = "stop fetching" if order.told == RequestKind.STOP_FETCHING else "give the replica up"
    return told + addressee + sender


@in_words.register
def _(inbox: Inbox) -> str:
    stray = [f"still under way: {in_words(order)}" for order in inbox.stray]
    return "; ".join(["; then ".join(map(in_words, inbox.orders)) or "none", *stray])


@in_words.register
def _(image: Image) -> str:
    """The parts of an image that the broker uses: see `model_check.models.kafka.reductions`."""
    topic = image.topic
    if topic == NO_TOPIC or topic.partition_epoch < LATER:
        return ", ".join([in_words(topic), *_brokers(image.brokers)])
    hosts = "" if topic.replicas else ", no replica here"
    return ", ".join([leader_in_words(topic.leader, topic.leader_epoch) + hosts, *_brokers(image.brokers)])


def reading_in_words(reading: Reading) -> str:
    """The metadata that a broker has still to read."""
    if reading == NOT_READING:
        return "none"
    return "; then ".join(["to read: " + in_words(reading[1]), *map(in_words, reading[2:])]) if reading[1:] else "all read"


def _follower(follower: Follower) -> str:
    state = follower.state
    fetched_in = f" (broker epoch {state.broker_epoch})" if state.broker_epoch > FIRST else ""
    return f"{follower.broker} ends at {'?' if state.end_offset == UNKNOWN_OFFSET else state.end_offset}{fetched_in}"


@in_words.register
def _(memory: Memory) -> str:
    parts = [_follower(follower) for follower in sorted(memory.followers)]
    parts += [f"producer waits for offset {waiting.appended.required_offset}" for waiting in sorted(memory.waiting)]
    return ", ".join(parts) or "none"


@in_words.register
def _(log: LocalLog) -> str:  # type: ignore[type-arg]
    return f"{in_words(log.log)}, high watermark {log.high_watermark}"


@in_words.register
def _(process: Process) -> str:
    life = process.life
    if not process.up:
        return "down" if process.noted == NO_BROKER_EPOCH else f"down, stopped in order in broker epoch {process.noted}"
    epoch = "" if life.broker_epoch == FIRST else f", broker epoch {life.broker_epoch}"
    doing = "" if life.state == BrokerState.RUNNING and process.published else f", {life.state.value}"
    return f"up{epoch}{doing}"


@in_words.register
def _(exchange: AlterPartitionExchange) -> str:
    if exchange == NO_EXCHANGE:
        return "none"
    request, response = exchange.request, exchange.response
    asked = (
        f"ISR {in_words(frozenset(member.broker for member in request.isr))} on partition epoch {request.partition_epoch}"
    )
    if exchange.state == RequestState.SENT:
        return f"{asked} is under way"
    if exchange.state == RequestState.WRITTEN:
        return f"{asked} is written, and the confirmation lost"
    if response.error != Error.NONE:
        return f"{asked} was refused: {response.error.name}"
    return f"{asked} was granted, partition epoch {response.partition_epoch}"


@in_words.register
def _(late: LateFetch) -> str:
    if late == NOTHING_LATE:
        return "none"
    asked = f"{late.leader} in epoch {late.asked_in} from offset {late.request.fetch.fetch_offset}"
    awaited = "" if late.awaited else ", nobody waits for it"
    if late.state == RequestState.SENT:
        return f"asked {asked}{awaited}"
    return f"answer of {asked}: {_answer(late.answer)}{awaited}"


def _answer(answer: FetchResponse) -> str:
    if answer.error != Error.NONE:
        return answer.error.name
    if answer.diverging != UNDEFINED_EPOCH_END:
        return f"logs part after epoch {answer.diverging.leader_epoch} at {answer.diverging.end_offset}"
    records = " ".join(record_in_words(record) for record in records_of(answer.records))
    return f"{records or 'no records'}, high watermark {answer.high_watermark}"


def _placed(title: str, places: frozenset[PlacedRecord]) -> list[str]:
    return (
        [title + " " + " ".join(f"{record_in_words(one.record)} at {one.offset}" for one in sorted(places))]
        if places
        else []
    )


@in_words.register
def _(clients: ClientKnowledge) -> str:
    if clients == NOTHING_SEEN:
        return "none"
    return ", ".join([*_placed("acknowledged", clients.told), *_placed("readable", clients.read)])
