"""The core: partitions, sessions and waiting requests of one broker. Requests and the time go in, effects come out."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Protocol, TypeVar

from impl.broker.calls import AppendMetadata, Call, Effect, Note, Store, Then
from impl.broker.cluster import Cluster, ClusterView
from impl.broker.fetch_sessions import FetchSessions
from impl.broker.pending import Pending, answer_of, refusal
from impl.broker.replica import Place, Replica, Waiting, not_again
from impl.broker.throttle import FOLLOWER, LEADER, Throttle
from impl.broker.timers import Timers, nothing
from impl.broker.topic_settings import topic_settings
from impl.config.broker import SETTINGS, BrokerConfig
from impl.metadata.image import ClusterImage
from impl.metadata.records import LogRecord
from impl.records.batch import BatchHeader
from impl.wire.apis import APIS
from impl.wire.values import Message
from spec.broker.clients.named_partitions import NO_TOPIC, check_named_partition
from spec.broker.effects import AnswerProducer, BatchesAppended, CloseConnection, Persist, RebuildProducers
from spec.broker.leader.produce import handle_produce
from spec.broker.partition import Broker, expire_waiting, leads, min_isr_of, role_of
from spec.broker.protocol import BrokerProtocol
from spec.broker.roles import producers_rebuilt
from spec.broker.rules.isr.request import WriteIsr
from spec.broker.rules.produce import check_produce
from spec.controller.topics.config_types import items_of
from spec.controller.topics.description import topic_values
from spec.controller.topics.names import INTERNAL
from spec.controller.topics.producer_ids import ProducerIds
from spec.log.batch import Batch
from spec.messages.alter_partition import AlterPartitionRequest
from spec.messages.produce import ACKS_ALL, ProduceRequest, ProduceResponse
from spec.messages.topics.alter_configs import ConfigResource, ResourceType
from spec.messages.topics.create_topics import NewTopic
from spec.metadata import broker_of
from spec.step import Reply, Send, SendToController, Step
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, Error, TopicId

OWN_TIMEOUT_MS = 5_000
"""How long this broker waits for its own records to be committed. Kafka: `offsets.commit.timeout.ms`."""


OF_REPLICAS = ("producer.id.expiration.ms", "replica.lag.time.max.ms", "replica.fetch.backoff.ms")
"""Settings of the broker that its partitions need."""


StepT = TypeVar("StepT")


class Ran(NamedTuple):
    """What came of a handler: its reply, if it has one, and the effects to be carried out."""

    reply: Any
    effects: list[Effect]
    sent: Any = None
    """The request of a follower to its leader."""


class Elsewhere(Protocol):
    """The controller where it is another process."""

    def ask_for_isr(self, replica: Replica, request: AlterPartitionRequest, now: int) -> list[Effect]:
        """A leader wants another ISR."""

    def forward(self, call: Call, now: int) -> list[Effect]:
        """A client's request is for the controller."""

    def create_topics(self, topics: list[NewTopic], now: int) -> list[Effect]:
        """Topics are wanted that are not there; nobody waits for them."""

    def producer_ids(self, then: Callable[[int], list[Effect]], now: int) -> list[Effect]:
        """Go on once there are producer ids, or it is clear that there are none."""


def _not_stored(pending: Pending, place: int, replica: Replica) -> None:
    pending.fail(place, refusal(replica.place.partition, Error.KAFKA_STORAGE_ERROR))


class Core:
    """One broker. All of its state is here, and in the files and the metadata log that it is built from."""

    def __init__(self, config: BrokerConfig, protocol: BrokerProtocol, cluster: ClusterView) -> None:
        self.config = config
        self.protocol = protocol
        self.cluster = cluster
        self.topic_settings = topic_settings(config, SETTINGS, cluster.self_id)
        self.replicas: dict[Place, Replica] = {}
        self.replicas_by_id: dict[tuple[bytes, int], Replica] = {}
        self.sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"])
        self.shutting_down = False
        self.apis = APIS
        """The APIs that this broker offers."""
        self.elsewhere: Elsewhere | None = None
        """The controller, if it is not in this process."""
        self.role_changed: list[Callable[[Replica, int], list[Effect]]] = []
        """Called when a partition leads, follows or is gone, by new metadata."""
        self.note: Note | None = None
        """Called with each step of a handler, if somebody records what happened."""
        self.topic_deleted: list[Callable[[str, TopicId, int], list[Effect]]] = []
        """Called when a topic is deleted, with its name, its id and the time."""
        self._brokers: tuple[Any, dict[Any, Broker]] = (None, {})
        self._produces: dict[int, tuple[Replica, Pending, int]] = {}
        self._numbers = count(1)
        self.timers: Timers[Effect] = Timers()
        self._collecting: list[Effect] = []
        self._settings: dict[str, dict[str, str]] = {}
        """Of topics, as they were at `_settings_at`: in that image, after so many changes."""
        self._settings_at: tuple[ClusterImage | None, int] = (None, 0)
        self._configured_at: tuple[ClusterImage | None, int] = (None, 0)
        self.producer_ids = ProducerIds()
        self.leader_throttle, self.follower_throttle = (Throttle(side, config, cluster) for side in (LEADER, FOLLOWER))
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
    def deciding(self) -> Cluster:
        """The controller in this process."""
        assert isinstance(self.cluster, Cluster), "the controller is another process"
        return self.cluster

    @property
    def image(self) -> ClusterImage:
        """What the metadata log says, as far as this broker has read it."""
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
        replica = self.replicas_by_id.get((topic_id, index)) if by_id else self.replicas.get(Place(name or "", index))
        if replica is not None:
            return (replica, Error.NONE) if not replica.offline else (None, Error.KAFKA_STORAGE_ERROR)
        topic = self.cluster.topic(name, topic_id, by_id)
        error = check_named_partition(NO_TOPIC if topic is None else len(topic.partitions), index, by_id)
        return None, Error.NOT_LEADER_OR_FOLLOWER if error == Error.NONE else error

    def is_internal(self, topic: str) -> bool:
        """Whether clients may not write to a topic."""
        return topic in INTERNAL

    def takes_records(self, replica: Replica, acks: int) -> bool:
        """Whether a leader would look at a batch at all; otherwise `handle_produce` says why not."""
        broker, partition = self.broker(replica), replica.partition
        return (
            leads(broker, partition) and check_produce(role_of(partition), acks, min_isr_of(broker, partition)) == Error.NONE
        )

    def leaders_elsewhere(self, replicas: Iterable[Replica | None]) -> list[Message]:
        """Where the leaders of these partitions are reached."""
        leaders = {replica.partition.leader for replica in replicas if replica is not None}
        if not leaders:
            return []
        endpoints = self.cluster.image.endpoints
        return [
            Message(node_id=leader, host=endpoints[leader].host, port=endpoints[leader].port, rack=None)
            for leader in sorted(leaders & endpoints.keys())
        ]

    # ---- calling `spec`

    def run(
        self,
        handler: Callable[..., Step[Any, Any]],
        replica: Replica,
        *given: Any,
        now: int,
        payloads: tuple[Any, ...] = (),
    ) -> Ran:
        """Call a handler of a partition, take its new state, and turn what it asks for into effects, in its order."""
        broker, before = self.broker(replica), replica.partition
        step = handler(broker, before, *given)
        if self.note is not None:
            self.note(handler, broker, before, given, step)
        return self.take(replica, step, now, payloads)

    def take(self, replica: Replica, step: Step[Any, Any], now: int, payloads: tuple[Any, ...] = ()) -> Ran:
        """Take a partition's new state, and turn what its handler asks for into effects."""
        before, replica.partition = replica.partition, step.state
        reply: Any = None
        sent: Any = None
        effects: list[Effect] = []
        for effect in step.effects:
            if isinstance(effect, Reply):
                reply = effect.message
            elif isinstance(effect, AnswerProducer):
                effects += self._answer_producer(effect.request, effect.response)
            elif isinstance(effect, Persist):
                change = effect.change
                given = payloads[: len(change.batches)] if isinstance(change, BatchesAppended) else ()
                effects.append(Store(replica, effect.change, given))
            elif isinstance(effect, CloseConnection):
                effects += self._answer_producer(effect.request, ProduceResponse(Error.UNKNOWN_SERVER_ERROR))
            elif isinstance(effect, Send):
                sent = effect.message
            elif isinstance(effect, RebuildProducers):
                effects.append(Then(partial(self._rebuild_producers, replica)))
            elif isinstance(effect, (SendToController, WriteIsr)) and self.elsewhere is not None:
                request = effect.message if isinstance(effect, SendToController) else effect.request
                effects += self.elsewhere.ask_for_isr(replica, request, now)
        if replica.waiting and before.local is not step.state.local:
            effects.append(Then(lambda: self._look_again(replica, replica.waiting, now)))
        if replica.watching and before is not step.state:
            effects.append(Then(lambda: self._look_again(replica, replica.watching, now)))
        return Ran(reply, effects, sent)

    def _rebuild_producers(self, replica: Replica) -> list[Effect]:
        """The log has been cut: the producers are those of the batches that are left."""
        if not replica.offline:
            replica.partition = producers_rebuilt(replica.partition, replica.files.producer_batches())
        return []

    def ask(self, question: Callable[..., Any], replica: Replica, request: Any) -> Any:
        """Call a function of `spec` that changes nothing."""
        broker = self.broker(replica)
        answer = question(broker, replica.partition, request)
        if self.note is not None:
            self.note(question, broker, replica.partition, (request,), answer)
        return answer

    def step(self, handler: Callable[..., StepT], party: Any, state: Any, *given: Any) -> StepT:
        """Call a handler of something else than a partition. `party`: who handles, if the handler asks that."""
        step = handler(state, *given) if party is None else handler(party, state, *given)
        if self.note is not None:
            self.note(handler, party, state, given, step)
        return step

    def begin_collecting(self) -> list[Effect]:
        """Effects of what is called from now on are gathered by `add`, until `collected`."""
        before, self._collecting = self._collecting, []
        return before

    def add(self, effects: list[Effect]) -> None:
        """Gather effects of a call inside a call."""
        self._collecting += effects

    def collected(self, before: list[Effect]) -> list[Effect]:
        """The effects that were gathered."""
        found, self._collecting = self._collecting, before
        return found

    # ---- waiting producers

    def expect_produce(self, replica: Replica, pending: Pending, place: int) -> int:
        """A number under which `spec` will answer this partition of a produce request."""
        number = next(self._numbers)
        self._produces[number] = (replica, pending, place)
        return number

    def after_produce(self, number: int, replica: Replica, request: ProduceRequest) -> list[Effect]:
        """`spec` has not answered yet: with acks=0 it never will, with acks=all it may do so later."""
        if number not in self._produces:
            return []
        if request.acks == ACKS_ALL:
            self._wait_for_producers(replica, request.deadline)
            return []
        return self._answer_producer(number, ProduceResponse(Error.NONE))

    def _answer_producer(self, number: int, response: ProduceResponse) -> list[Effect]:
        replica, pending, place = self._produces.pop(number)
        return pending.take(place, answer_of(replica, response))

    def _wait_for_producers(self, replica: Replica, deadline: int) -> None:
        def expire(now: int) -> list[Effect]:
            return self.take(replica, self.step(expire_waiting, None, replica.partition, now), now).effects

        self.timers.at(deadline, expire)

    # ---- waiting fetches and deletions

    def wait(self, waiting: Waiting) -> None:
        """Keep a request until a partition changes or its time is over."""
        for replica in waiting.replicas:
            (replica.watching if waiting.any_change else replica.waiting)[waiting] = None
        waiting.timer = self.timers.at(waiting.deadline, lambda now: [] if waiting.done else waiting.complete(now))

    def stop_waiting(self, waiting: Waiting) -> None:
        """Forget a request that has been answered, or whose client has gone."""
        waiting.done = True
        if waiting.timer is not None:
            self.timers.cancel(waiting.timer)
            waiting.timer = None
        for replica in waiting.replicas:
            (replica.watching if waiting.any_change else replica.waiting).pop(waiting, None)
        waiting.look_again, waiting.complete = not_again, nothing  # no circle is left, so its memory is free at once

    def _look_again(self, replica: Replica, those: Iterable[Waiting], now: int) -> list[Effect]:
        waiting = [one for one in those if not one.done]
        return [effect for one in waiting for effect in one.look_again(replica, now)]

    # ---- the metadata

    def settings_of(self, topic: str) -> Mapping[str, str]:
        """A topic's settings, with the broker's for those that it does not set: worked out when some have changed."""
        image = self.cluster.image
        if self._settings_at != (image, image.settings_changes):
            self._settings, self._settings_at = {}, (image, image.settings_changes)
        if topic not in self._settings:
            self._settings[topic] = self._new_settings_of(topic)
        return self._settings[topic]

    def _new_settings_of(self, topic: str) -> dict[str, str]:
        own = dict(self.cluster.view.configs(ConfigResource(ResourceType.TOPIC, topic)))
        found = {**self.default_topic_settings(), **own}
        found["cleanup.policy"] = ",".join(items_of(found["cleanup.policy"]))
        for name in OF_REPLICAS:
            found[name] = str(self.config[name])
        return found

    def default_topic_settings(self) -> dict[str, str]:
        """The settings of a topic that sets none itself."""
        return topic_values(self.topic_settings, self.cluster.view)

    def configure_replicas(self) -> None:
        """Take the topics' settings as they are now."""
        now = (self.cluster.image, self.cluster.image.settings_changes)
        if self._configured_at == now:
            return
        self._configured_at = now
        for place, replica in self.replicas.items():
            settings = self.settings_of(place.topic)
            if settings != replica.topic_config:
                replica.configure(settings)

    def change_metadata(self, records: list[LogRecord]) -> list[Effect]:
        """Write records to the metadata log, and then act on them."""
        return [AppendMetadata(tuple(records))] if records else []

    def next_number(self) -> int:
        """A number that no request has had."""
        return next(self._numbers)

    def append_own(
        self, replica: Replica, pending: Pending, header: BatchHeader, records: memoryview, now: int
    ) -> list[Effect]:
        """Append a batch of this broker's own, with acks=all."""
        return self.append(replica, pending, 0, header, records, now, ACKS_ALL, now + OWN_TIMEOUT_MS)

    def append(
        self,
        replica: Replica,
        pending: Pending,
        place: int,
        header: BatchHeader,
        records: memoryview,
        now: int,
        acks: int,
        deadline: int,
    ) -> list[Effect]:
        """Hand one checked batch to `spec`, and carry on with what it says."""
        batch = Batch(
            header.last_offset_delta + 1,
            payload=0,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            first_sequence=header.base_sequence,
        )
        number = self.expect_produce(replica, pending, place)
        request = ProduceRequest(number, acks, batch, deadline)
        effects = self.run(handle_produce, replica, request, now, now=now, payloads=(records,)).effects
        for effect in effects:
            if isinstance(effect, Store):
                effect.on_failure = partial(_not_stored, pending, place, replica)
        return effects + self.after_produce(number, replica, request)
