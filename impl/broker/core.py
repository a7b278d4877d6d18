"""The core: partitions, sessions and waiting requests of one broker. Requests and the time go in, effects come out."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, count
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar, TypeVarTuple, assert_never, overload

from kspec.impl.broker.calls import Call, DelayedOperation, Effect, Store, Then
from kspec.impl.broker.cluster import ClusterKnowledge
from kspec.impl.broker.fetch_sessions import FetchSessions
from kspec.impl.broker.pending import CommitWaiter, OwnBatch, PendingBatch
from kspec.impl.broker.replica import Changes, Replica
from kspec.impl.broker.throttle import FOLLOWER, LEADER, Throttle
from kspec.impl.broker.timers import Timers
from kspec.impl.broker.topic_settings import topic_settings
from kspec.impl.broker.verification import TransactionVerifier
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.metadata.active import StepRecorder
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.records.batch import BatchHeader, Buffer
from kspec.impl.records.markers import batch_for_spec
from kspec.impl.wire.apis import APIS
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.named_partitions import NO_TOPIC, check_hosted_partition
from kspec.spec.broker.effects import (
    AnswerProducer,
    BatchesAppended,
    CloseConnection,
    FollowerRequest,
    LeaderAnswer,
    LogChange,
    Persist,
    RebuildProducers,
)
from kspec.spec.broker.leader.fetch import concerns_others, handle_fetch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import (
    Broker,
    BrokerSettings,
    Handled,
    Partition,
    expire_waiting,
    leads,
    min_isr_of,
    role_of,
)
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.roles import producers_rebuilt
from kspec.spec.broker.rules.isr.request import WriteIsr
from kspec.spec.broker.rules.produce import check_produce
from kspec.spec.controller.topics.config_types import items_of
from kspec.spec.controller.topics.description import topic_values
from kspec.spec.controller.topics.names import INTERNAL, TRANSACTION_STATE
from kspec.spec.controller.topics.producer_ids import ProducerIds
from kspec.spec.coordinator.rules.hashing import partition_for
from kspec.spec.log.batch import EndMarker
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ProduceRequest, ProduceResponse
from kspec.spec.messages.topics.create_topics import NewTopic
from kspec.spec.metadata import broker_of, rack_of
from kspec.spec.releases.features import features_supported
from kspec.spec.step import Reply, Send, SendToController
from kspec.spec.topics import ConfigResource, ResourceType, TopicPartition, configs_of
from kspec.spec.transactions.log.partition import NO_GUARD
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Instant,
    MonotonicMs,
    RequestNumber,
    TopicId,
    TransactionalId,
)

OF_REPLICAS = ("producer.id.expiration.ms", "replica.lag.time.max.ms", "replica.fetch.backoff.ms")
"""Settings of the broker that its partitions need."""

VERIFIES = "transaction.partition.verification.enable"


StepT = TypeVar("StepT")
StateT = TypeVar("StateT")
PartyT = TypeVar("PartyT")
RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)
RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")
Given = TypeVarTuple("Given")


class PartitionHandler(Protocol[*Given]):
    """A handler of `spec` that a broker calls for one of its partitions."""

    def __call__(self, broker: Broker, partition: Partition[EpochLog], /, *given: *Given) -> Handled[EpochLog]:
        """Handle a message or an event."""


class PartitionQuestion(Protocol[RequestT_contra, AnswerT_co]):
    """A function of `spec` that answers a question about a partition, and changes nothing."""

    def __call__(self, broker: Broker, partition: Partition[EpochLog], request: RequestT_contra, /) -> AnswerT_co:
        """Answer."""


class CoordinatorMarker(NamedTuple):
    """A marker that a transaction coordinator has sent, and the version of transactions with which it ends one."""

    marker: EndMarker
    transaction_version: int


class HandlerResult(NamedTuple):
    """The result of a handler: its reply, if it has one, and the effects to be carried out."""

    reply: LeaderAnswer | None
    effects: list[Effect]
    sent: FollowerRequest | None = None
    """The request of a follower to its leader."""


class ControllerAccess(Protocol):
    """The controller, as a broker reaches it."""

    def ask_for_isr(self, replica: Replica, request: AlterPartitionRequest, now: Instant) -> list[Effect]:
        """A leader wants another ISR."""

    def forward(self, call: Call, now: Instant) -> list[Effect]:
        """A client's request is for the controller."""

    def create_topics(self, topics: list[NewTopic], now: Instant) -> list[Effect]:
        """Topics are wanted that are not there; nobody waits for them."""

    def producer_ids(self, then: Callable[[Instant], list[Effect]], now: Instant) -> list[Effect]:
        """Go on once there are producer ids, or it is clear that there are none."""


class BrokerCore:
    """One broker. All of its state is here, and in the files and the metadata log that it is built from."""

    controller: ControllerAccess
    """The controller. Who makes the broker a member of a cluster sets it."""

    def __init__(
        self,
        config: BrokerConfig,
        protocol: BrokerProtocol,
        cluster: ClusterKnowledge,
    ) -> None:
        self.config = config
        self.protocol = protocol
        self.cluster = cluster
        self.topic_settings = topic_settings(config)
        self.replicas: dict[TopicPartition, Replica] = {}
        self.replicas_by_id: dict[tuple[bytes, int], Replica] = {}
        slots = config.number("max.incremental.fetch.session.cache.slots")
        self.sessions = FetchSessions(slots, before_change=self.handle_postponed)
        self.changes = Changes()
        """The partitions that have changed, for those who look at them from time to time."""
        self.shutting_down = False
        self.apis = APIS
        """The APIs that this broker offers."""
        self.features = features_supported("next")
        """The features that clients are told of: a broker reads the metadata of all releases."""
        self.role_changed: list[Callable[[Replica, Instant], list[Effect]]] = []
        """Called when a partition leads, follows or is gone, by new metadata."""
        self.note: StepRecorder | None = None
        """Called with each step of a handler, if somebody records what happened."""
        self.topic_deleted: list[Callable[[str, TopicId, Instant], list[Effect]]] = []
        """Called when a topic is deleted, with its name, its id and the time."""
        self._brokers: tuple[object, dict[BrokerSettings, Broker]] = (None, {})
        self._numbers = count(1)
        self._came = count(1)
        self.timers: Timers[Effect] = Timers()
        self._settings: dict[str, dict[str, str]] = {}
        """Of topics, as `_settings_of` says."""
        self._settings_of: object = None
        self._configured_by: object = None
        self.producer_ids = ProducerIds()
        self.leader_throttle, self.follower_throttle = (Throttle(side, config, cluster) for side in (LEADER, FOLLOWER))
        self.verifier = TransactionVerifier(config, self.timers, self.transaction_coordinator)
        """The questions to the coordinators of transactions."""
        self.cluster_id = ""
        self.log_dir = ""
        self.disk_space: Callable[[], tuple[int, int]] = lambda: (-1, -1)

    # ---- what this broker knows

    def broker(self, replica: Replica) -> Broker:
        """This broker as the handlers of `spec` know it, with the settings of a partition."""
        known, cached = self._brokers
        image = self.cluster.image.spec.brokers
        if known is not image:
            self._brokers = known, cached = image, {}
        found = cached.get(replica.settings)
        if found is None:
            registration = broker_of(image, self.cluster.self_id)
            epoch = registration.broker_epoch if registration is not None else NO_BROKER_EPOCH
            found = cached[replica.settings] = Broker(
                self.cluster.self_id, self.protocol, epoch, image, replica.settings, self.shutting_down
            )
        return found

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self.cluster.self_id

    @property
    def image(self) -> ClusterImage:
        """The image of the metadata log, as far as this broker has read it."""
        return self.cluster.image

    @property
    def broker_epoch(self) -> BrokerEpoch:
        """The epoch of this broker's registration, as its metadata show it."""
        registration = self.cluster.registration
        return registration.broker_epoch if registration is not None else NO_BROKER_EPOCH

    def begin_shutdown(self) -> None:
        """From now on the handlers know that this broker stops."""
        self.shutting_down = True
        self._brokers = (None, {})

    def find(self, name: str | None, topic_id: bytes, index: int, by_id: bool) -> tuple[Replica | None, Error]:
        """A partition that this broker has, or the error for one that it does not have."""
        topic_id = bytes(topic_id)
        replica = (
            self.replicas_by_id.get((topic_id, index)) if by_id else self.replicas.get(TopicPartition(name or "", index))
        )
        if replica is not None and not replica.offline:
            return replica, Error.NONE
        topic = self.cluster.topic(name, topic_id, by_id)
        partitions = NO_TOPIC if topic is None else len(topic.partitions)
        return None, check_hosted_partition(partitions, index, by_id, offline=replica is not None)

    def is_internal(self, topic: str) -> bool:
        """Whether clients may not write to a topic."""
        return topic in INTERNAL

    def takes_records(self, replica: Replica, acks: int) -> bool:
        """Whether a leader would look at a batch at all; otherwise `handle_produce` says why not."""
        broker, partition = self.broker(replica), replica.partition
        return (
            leads(broker, partition) and check_produce(role_of(partition), acks, min_isr_of(broker, partition)) == Error.NONE
        )

    def leader_of(self, name: str | None, topic_id: bytes, index: int, by_id: bool) -> tuple[BrokerId, Epoch]:
        """The leader of a partition and its epoch, as this broker knows it: by its own replica, else by the metadata.

        **Kafka:** `KafkaApis.getCurrentLeader`.
        """
        topic_id = bytes(topic_id)
        replica = (
            self.replicas_by_id.get((topic_id, index)) if by_id else self.replicas.get(TopicPartition(name or "", index))
        )
        if replica is not None:
            return replica.partition.leader, replica.partition.leader_epoch
        topic = self.cluster.topic(name, topic_id, by_id)
        if topic is None or not 0 <= index < len(topic.partitions):
            return NO_LEADER, NO_EPOCH
        known = self.cluster.registrations()[topic.partitions[index]]
        return known.leader, known.leader_epoch

    def leader_named(self, topic: str | bytes, index: int) -> tuple[BrokerId, Epoch]:
        """The leader of a partition of a topic, of which this is the name or the id."""
        match topic:
            case bytes():
                return self.leader_of(None, topic, index, True)
            case _:
                return self.leader_of(topic, NO_TOPIC_ID, index, False)

    def transaction_coordinator(self, transactional_id: TransactionalId) -> BrokerId:
        """The broker that coordinates a producer's transactions, `NO_LEADER` if there is none.

        **Kafka:** `AddPartitionsToTxnManager.getTransactionCoordinator`.
        """
        topic = self.cluster.image.topics.get(TRANSACTION_STATE)
        if topic is None or not topic.partitions:
            return NO_LEADER
        index = partition_for(transactional_id, len(topic.partitions))
        return self.leader_of(TRANSACTION_STATE, NO_TOPIC_ID, index, False)[0]

    def endpoints_of(self, leaders: Iterable[BrokerId]) -> list[Message]:
        """The addresses of brokers, for clients that are sent to them."""
        image = self.cluster.image
        return [
            Message(
                node_id=leader,
                host=image.endpoints[leader].host,
                port=image.endpoints[leader].port,
                rack=rack_of(image.spec, leader),
            )
            for leader in sorted(set(leaders) & image.endpoints.keys())
        ]

    # ---- calling `spec`

    def run(
        self,
        handler: PartitionHandler[*Given],
        replica: Replica,
        *given: *Given,
        now: Instant,
        payloads: tuple[Buffer, ...] = (),
        on_failure: Callable[[], None] | None = None,
    ) -> HandlerResult:
        """Call a handler of a partition, take its new state, and turn what it asks for into effects, in its order.

        `payloads`: the bytes of the batches that it appends. `on_failure` is called if they cannot be stored.
        """
        if replica.postponed:
            self.handle_postponed(replica)
        broker, before = self.broker(replica), replica.partition
        step = handler(broker, before, *given)
        if self.note is not None:
            self.note(handler, broker, before, given, step)
        return self.take(replica, step, now, payloads, on_failure)

    def take(
        self,
        replica: Replica,
        step: Handled[EpochLog],
        now: Instant,
        payloads: tuple[Buffer, ...] = (),
        on_failure: Callable[[], None] | None = None,
    ) -> HandlerResult:
        """Take a partition's new state, and turn what its handler asks for into effects."""
        before = replica.partition
        self.become(replica, step.state)
        reply: LeaderAnswer | None = None
        sent: FollowerRequest | None = None
        effects: list[Effect] = []
        for effect in step.effects:
            match effect:
                case Reply():
                    reply = effect.message
                case AnswerProducer():
                    effects += self._answer_producer(effect.request, effect.response)
                case Persist():
                    effects.append(Store(replica, effect.change, payloads_of(effect.change, payloads), on_failure))
                case CloseConnection():
                    effects += self._answer_producer(effect.request, ProduceResponse(Error.UNKNOWN_SERVER_ERROR))
                case Send():
                    sent = effect.message
                case RebuildProducers():
                    effects.append(Then(partial(self._rebuild_producers, replica)))
                case SendToController():
                    effects += self.controller.ask_for_isr(replica, effect.message, now)
                case WriteIsr():
                    effects += self.controller.ask_for_isr(replica, effect.request, now)
                case _:
                    assert_never(effect)
        listener = replica.on_high_watermark
        if listener is not None and before.local.high_watermark != step.state.local.high_watermark:
            effects.append(Then(partial(listener, now)))
        if before.local is not step.state.local and any(self._waiting_for(replica)):
            effects.append(Then(lambda: self._look_again(replica, chain.from_iterable(self._waiting_for(replica)), now)))
        if replica.watching and before is not step.state:
            effects.append(Then(lambda: self._look_again(replica, replica.watching, now)))
        return HandlerResult(reply, effects, sent)

    def become(self, replica: Replica, state: Partition[EpochLog]) -> None:
        """A partition's new state; who has to know of it is told."""
        before, replica.partition = replica.partition, state
        if before is state:
            return
        self.changes.note(replica)
        if replica.observers and concerns_others(before, state):
            replica.tell_observers()

    def handle_postponed(self, replica: Replica) -> None:
        """Handle the fetches of sessions that were not worth a look, as of the time at which the last of each came."""
        for one in list(replica.postponed):
            noted = one.take_note()
            if noted is not None:
                broker, request, last_used = noted
                step = self.step(handle_fetch, broker, replica.partition, request, last_used)
                replica.partition = step.state  # times alone are others: nobody has to know

    def _rebuild_producers(self, replica: Replica) -> list[Effect]:
        """The log has been cut: the producers are those of the batches that are left."""
        if not replica.offline:
            self.become(replica, producers_rebuilt(replica.partition, replica.files.transactions_left()))
        return []

    def ask(self, question: PartitionQuestion[RequestT, AnswerT], replica: Replica, request: RequestT) -> AnswerT:
        """Call a function of `spec` that changes nothing."""
        broker = self.broker(replica)
        answer = question(broker, replica.partition, request)
        if self.note is not None:
            self.note(question, broker, replica.partition, (request,), answer)
        return answer

    @overload
    def step(self, handler: Callable[[StateT, *Given], StepT], party: None, state: StateT, *given: *Given) -> StepT: ...

    @overload
    def step(
        self, handler: Callable[[PartyT, StateT, *Given], StepT], party: PartyT, state: StateT, *given: *Given
    ) -> StepT: ...

    def step(self, handler: Callable[..., StepT], party: object, state: object, *given: object) -> StepT:
        """Call a handler of something else than a partition. `party`: who handles, if the handler asks that."""
        step = handler(state, *given) if party is None else handler(party, state, *given)
        if self.note is not None:
            self.note(handler, party, state, given, step)
        return step

    # ---- waiting producers

    @staticmethod
    def _answer_producer(request: int, response: ProduceResponse) -> list[Effect]:
        assert isinstance(request, PendingBatch)
        return request.answer(response)

    def _wait_for_producers(self, replica: Replica, deadline: MonotonicMs) -> None:
        def expire(now: Instant) -> list[Effect]:
            return self.take(replica, self.step(expire_waiting, None, replica.partition, now.monotonic), now).effects

        self.timers.at(deadline, expire)

    # ---- waiting fetches and deletions

    def wait(self, waiting: DelayedOperation, those: Iterable[dict[DelayedOperation, None]]) -> None:
        """Keep a request until something changes, or its time is over. `those`: the lists in which it waits with others."""
        waiting.number = next(self._came)
        waiting.wait_in(those)
        waiting.timer = self.timers.at(waiting.deadline, lambda now: [] if waiting.done else waiting.complete(now))

    def stop_waiting(self, waiting: DelayedOperation) -> None:
        """Forget a request that has been answered, or whose client has gone."""
        if waiting.timer is not None:
            self.timers.cancel(waiting.timer)
            waiting.timer = None
        waiting.leave()

    @staticmethod
    def _waiting_for(replica: Replica) -> list[Mapping[DelayedOperation, None]]:
        """The fetches that wait for more of a partition: those that name it, and those of sessions that have it."""
        return [replica.waiting, *(one.waiting for one in replica.observers)]

    def _look_again(self, replica: Replica, those: Iterable[DelayedOperation], now: Instant) -> list[Effect]:
        waiting = sorted((one for one in those if not one.done), key=attrgetter("number"))
        return [effect for one in waiting for effect in one.look_again(replica, now)]

    # ---- the metadata

    def settings_of(self, topic: str) -> Mapping[str, str]:
        """A topic's settings, with the broker's for those that it does not set: worked out when some have changed."""
        configs = self.image.spec.configs
        if self._settings_of is not configs:
            self._settings, self._settings_of = {}, configs
        if topic not in self._settings:
            self._settings[topic] = self._new_settings_of(topic)
        return self._settings[topic]

    def _new_settings_of(self, topic: str) -> dict[str, str]:
        own = dict(configs_of(self.image.spec.configs, ConfigResource(ResourceType.TOPIC, topic)))
        found = {**self.default_topic_settings(), **own}
        found["cleanup.policy"] = ",".join(items_of(found["cleanup.policy"]))
        for name in OF_REPLICAS:
            found[name] = str(self.config.number(name))
        found[VERIFIES] = str(self.config.flag(VERIFIES)).lower()
        return found

    def default_topic_settings(self) -> dict[str, str]:
        """The settings of a topic that sets none itself."""
        return topic_values(self.topic_settings, self.image.spec)

    def configure_replicas(self) -> None:
        """Take the topics' settings as they are now."""
        if self._configured_by is self.image.spec.configs:
            return
        self._configured_by = self.image.spec.configs
        for place, replica in self.replicas.items():
            settings = self.settings_of(place.topic)
            if settings != replica.topic_config:
                self.handle_postponed(replica)
                replica.configure(settings)
                self.changes.note(replica)

    def next_number(self) -> RequestNumber:
        """A number that no request has had."""
        return RequestNumber(next(self._numbers))

    def append_own(
        self, replica: Replica, header: BatchHeader, records: memoryview, now: Instant, guard: int = NO_GUARD
    ) -> tuple[Error, list[Effect]]:
        """Append a batch of this broker's own: whether the log takes it is known at once, whether it is committed later.

        `guard`: the one under which its transaction was verified.

        **Kafka:** `CoordinatorPartitionWriter.append`.
        """
        own = OwnBatch()
        effects = self.append(replica, own, 0, header, records, now, ACKS_LEADER, now.monotonic, guard)
        return own.error, effects

    def append(
        self,
        replica: Replica,
        waiter: CommitWaiter,
        place: int,
        header: BatchHeader,
        records: Buffer,
        now: Instant,
        acks: int,
        deadline: MonotonicMs,
        guard: int = NO_GUARD,
        marker: CoordinatorMarker | None = None,
    ) -> list[Effect]:
        """Hand one checked batch to `spec`, and carry on with what it says.

        `guard`: the one under which its transaction was verified. `marker`: what it holds, if it is a control batch.
        """
        batch = batch_for_spec(header, None if marker is None else marker.marker).in_epoch(NO_EPOCH)
        pending = PendingBatch(next(self._numbers), replica, waiter, place)
        version = 0 if marker is None else marker.transaction_version
        request = ProduceRequest(pending, acks, batch, deadline, guard, version)
        effects = self.run(
            handle_produce, replica, request, now.monotonic, now=now, payloads=(records,), on_failure=pending.fail
        ).effects
        if pending.is_answered:
            return effects
        if acks == ACKS_ALL:
            self._wait_for_producers(replica, deadline)
            return effects
        return effects + pending.answer(ProduceResponse(Error.NONE))  # with acks=0 `spec` does not answer


def payloads_of(change: LogChange, payloads: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """The bytes of the batches that a change appends, if it appends any."""
    match change:
        case BatchesAppended():
            return payloads[: len(change.batches)]
        case _:
            return ()
