"""The core: partitions, sessions and waiting requests of one broker. Requests and the time go in, effects come out."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, NamedTuple

from impl.broker.calls import AppendMetadata, Effect, Store
from impl.broker.cluster import Cluster
from impl.broker.fetch import WaitingFetch, complete, wake
from impl.broker.fetch_sessions import FetchSessions
from impl.broker.pending import PendingProduce
from impl.broker.produce import answer_of
from impl.broker.replica import Place, Replica
from impl.broker.topics import plan
from impl.config.broker import BrokerConfig
from impl.metadata.records import LogRecord
from impl.wire.values import Message
from spec.broker.effects import AnswerProducer, BatchesAppended, CloseConnection, Persist, RebuildProducers
from spec.broker.partition import Broker, expire_waiting, leads, min_isr_of, role_of
from spec.broker.protocol import BrokerProtocol
from spec.broker.roles import producers_rebuilt
from spec.broker.rules.produce import check_produce
from spec.messages.produce import ACKS_ALL, ProduceRequest, ProduceResponse
from spec.metadata import broker_of
from spec.step import Reply, Step
from spec.values import NO_BROKER_EPOCH, Error

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that clients do not write. Kafka: `Topic.INTERNAL_TOPICS`."""

Note = Callable[[Any, Any, Any, Any, Any], None]


class Ran(NamedTuple):
    """What came of a handler: its reply, if it has one, and the effects to be carried out."""

    reply: Any
    effects: list[Effect]


class Core:
    """One broker. All of its state is here, and in the files and the metadata log that it is built from."""

    def __init__(self, config: BrokerConfig, protocol: BrokerProtocol, cluster: Cluster, defaults: Mapping[str, str]) -> None:
        self.config = config
        self.protocol = protocol
        self.cluster = cluster
        self.defaults = dict(defaults)
        self.replicas: dict[Place, Replica] = {}
        self.replicas_by_id: dict[tuple[bytes, int], Replica] = {}
        self.sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"])
        self.shutting_down = False
        self.note: Note | None = None
        """Called with each step of a handler, if somebody records what happened."""
        self._brokers: tuple[Any, dict[Any, Broker]] = (None, {})
        self._produces: dict[int, tuple[Replica, PendingProduce, int]] = {}
        self._numbers = count(1)
        self._deadlines: list[tuple[int, int, Callable[[int], list[Effect]]]] = []
        self._collecting: list[Effect] = []
        self._producer_ids = (0, 0)
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

    def begin_shutdown(self) -> None:
        """From now on the handlers know that this broker stops."""
        self.shutting_down = True
        self._brokers = (None, {})

    def find(self, name: str | None, topic_id: bytes, index: int, by_id: bool) -> tuple[Replica | None, Error]:
        """A partition that this broker has, or the error for one that it does not have."""
        replica = self.replicas_by_id.get((bytes(topic_id), index)) if by_id else self.replicas.get(Place(name or "", index))
        if replica is not None:
            return (replica, Error.NONE) if not replica.offline else (None, Error.KAFKA_STORAGE_ERROR)
        topic = self.cluster.topic(name, bytes(topic_id), by_id)
        if topic is None:
            return None, Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION
        if index in range(len(topic.partitions)):
            return None, Error.NOT_LEADER_OR_FOLLOWER
        return None, Error.UNKNOWN_TOPIC_OR_PARTITION

    def is_internal(self, topic: str) -> bool:
        """Whether clients may not write to a topic."""
        return topic in INTERNAL

    def takes_records(self, replica: Replica, acks: int) -> bool:
        """Whether a leader would look at a batch at all; otherwise `handle_produce` says why not."""
        broker, partition = self.broker(replica), replica.partition
        return leads(broker, partition) and check_produce(role_of(partition), acks, min_isr_of(broker, partition)) == Error.NONE

    def leaders_elsewhere(self, replicas: Iterable[Replica | None]) -> list[Message]:
        """Where the leaders of these partitions are reached."""
        leaders = {replica.partition.leader for replica in replicas if replica is not None}
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
        reply, effects = None, []
        for effect in step.effects:
            if isinstance(effect, Persist):
                given = payloads if isinstance(effect.change, BatchesAppended) else ()
                effects.append(Store(replica, effect.change, given))
            elif isinstance(effect, AnswerProducer):
                effects += self._answer_producer(effect.request, effect.response)
            elif isinstance(effect, CloseConnection):
                effects += self._answer_producer(effect.request, ProduceResponse(Error.UNKNOWN_SERVER_ERROR))
            elif isinstance(effect, Reply):
                reply = effect.message
            elif isinstance(effect, RebuildProducers):
                replica.partition = producers_rebuilt(replica.partition, replica.files.producer_batches())
        if replica.waiting and before.local is not step.state.local:
            effects.append(wake(self, replica, now))
        return Ran(reply, effects)

    def ask(self, question: Callable[..., Any], replica: Replica, request: Any) -> Any:
        """Call a function of `spec` that changes nothing."""
        broker = self.broker(replica)
        answer = question(broker, replica.partition, request)
        if self.note is not None:
            self.note(question, broker, replica.partition, (request,), answer)
        return answer

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

    def expect_produce(self, replica: Replica, pending: PendingProduce, place: int) -> int:
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
        self.at(deadline, lambda now: self.take(replica, expire_waiting(replica.partition, now), now).effects)

    # ---- waiting fetches

    def wait(self, waiting: WaitingFetch) -> None:
        """Keep a fetch until a partition changes or its time is over."""
        for replica in waiting.sizes:
            replica.waiting.add(waiting)
        self.at(waiting.deadline, lambda now: [] if waiting.done else complete(self, waiting, now))

    def stop_waiting(self, waiting: WaitingFetch) -> None:
        """Forget a fetch that has been answered, or whose client has gone."""
        for replica in waiting.sizes:
            replica.waiting.discard(waiting)

    # ---- time

    def at(self, deadline: int, action: Callable[[int], list[Effect]]) -> None:
        """Do something when the time has come (ms)."""
        heapq.heappush(self._deadlines, (deadline, next(self._numbers), action))

    def next_deadline(self) -> int | None:
        """When `on_time` has something to do next (ms)."""
        return self._deadlines[0][0] if self._deadlines else None

    def on_time(self, now: int) -> list[Effect]:
        """Do what is due."""
        effects: list[Effect] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            effects += heapq.heappop(self._deadlines)[2](now)
        return effects

    # ---- the metadata

    def settings_of(self, topic: str) -> dict[str, str]:
        """A topic's settings, with the broker's for those that it does not set."""
        return {**self.defaults, **self.cluster.topic_settings(topic)}

    def change_metadata(self, records: list[LogRecord]) -> list[Effect]:
        """Write records to the metadata log, and then act on them."""
        return [AppendMetadata(tuple(records))] if records else []

    def create_missing_topics(self, names: list[str], now: int) -> list[Effect]:
        """Create topics that a client has asked for, with the broker's defaults."""
        records = [record for name in names for record in plan(self, name, self.config["num.partitions"], {}, now)]
        return self.change_metadata(records)

    def next_producer_id(self, now: int) -> tuple[list[Effect], int]:
        """A producer id that nobody has had. Ids are taken from the metadata log in blocks."""
        effects: list[Effect] = []
        if self._producer_ids[0] >= self._producer_ids[1]:
            first = self.cluster.image.next_producer_id
            self._producer_ids = (first, first + 1000)
            record = Message(broker_id=self.cluster.self_id, broker_epoch=0, next_producer_id=first + 1000)
            effects = self.change_metadata([LogRecord("ProducerIdsRecord", record)])
        taken, end = self._producer_ids
        self._producer_ids = (taken + 1, end)
        return effects, taken
