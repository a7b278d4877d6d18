"""Three brokers in virtual time, many partitions that nobody touches, and a count of the partitions that are looked at."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from kspec.impl.broker.replica import Replica
from kspec.impl.wire.values import Message
from kspec.spec.controller.protocol import Controller
from kspec.spec.metadata import PartitionRegistration, partition_of
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.topics import TopicPartition
from kspec.trials.simulated.clients.client import ClientEnvironment
from kspec.trials.simulated.clients.operator import Operator
from kspec.trials.simulated.clients.partitions import ProducerClient
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.ids import CONTROLLER_ID, FIRST_CLIENT_ID
from kspec.trials.simulated.network import Network
from kspec.trials.simulated.nodes import BrokerNode, ControllerNode
from kspec.trials.simulated.setup import SETTINGS
from tests.limits.turns import Turns

BROKERS = (1, 2, 3)
BUSY, IDLE = "busy", "idle"
LAG_MS = 2_000


class Looks:
    """Counts who looks at a partition's state: each read of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: Counter[TopicPartition] = Counter()
        slot: Any = Replica.__dict__["partition"]

        def get(replica: Replica) -> Any:
            self.found[replica.place] += 1
            return slot.__get__(replica)

        def put(replica: Replica, state: Any) -> None:
            slot.__set__(replica, state)

        monkeypatch.setattr(Replica, "partition", property(get, put))


class QuietCluster:
    """A controller and brokers. Topic `busy` has one partition, topic `idle` has many."""

    def __init__(self, idle: int, session_ms: int = 600_000, **settings: str) -> None:
        self.clock, self.random = VirtualClock(), Random(1)
        self.network = Network(self.clock, self.random)
        own = {
            **SETTINGS,
            "replica.lag.time.max.ms": str(LAG_MS),
            "min.insync.replicas": "1",
            "broker.session.timeout.ms": str(session_ms),
            "broker.heartbeat.interval.ms": "1000",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        rules = Controller(KRAFT_NEXT)
        self.controller = ControllerNode(CONTROLLER_ID, self.clock, self.network, self.random, rules, own)
        self.brokers = {
            one: BrokerNode(one, self.clock, self.network, self.random, BROKER_NEXT, own, [CONTROLLER_ID]) for one in BROKERS
        }
        self.controller.start()
        for node in self.brokers.values():
            node.start()
        self.until(lambda: all(node.serves for node in self.brokers.values()))
        self.create(IDLE, idle)
        self.create(BUSY, 1)
        self.until(self.is_in_sync)

    # ---- time

    def run(self, ms: int) -> None:
        """Let so much time go by."""
        end = self.clock.now_ms + ms
        reached: list[bool] = []
        self.clock.at(end, lambda: reached.append(True))
        turns = Turns()
        while not reached:
            turns.go()
            assert self.clock.next_event()

    def until(self, holds: Any, limit_ms: int = 120_000) -> None:
        """Let time go by until something holds."""
        end = self.clock.now_ms + limit_ms
        turns = Turns()
        while not holds():
            turns.go()
            assert self.clock.now_ms < end, "it does not come to hold"
            assert self.clock.next_event()

    # ---- what is there

    def around(self, topic: str) -> ClientEnvironment:
        """The world of a client."""
        return ClientEnvironment(self.clock, self.network, self.random, list(BROKERS), topic, (20, 60), 0.0)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic that each broker has, and leads in turn."""
        done: list[Message | None] = []
        replicas = [[BROKERS[(index + place) % 3] for place in range(3)] for index in range(partitions)]
        Operator(self.around(topic)).create_topic(replicas, False, done.append)
        self.until(lambda: bool(done))
        assert done[0] is not None
        assert done[0].topics[0].error_code == 0

    def producer(self, topic: str, index: int = 0) -> ProducerClient:
        """A producer that sends until it is told to stop."""
        made = ProducerClient(FIRST_CLIENT_ID, self.around(topic), index, None)
        made.start()
        return made

    def produce(self, topic: str, index: int = 0, batches: int = 5) -> None:
        """Produce some batches with acks=all."""
        producer = self.producer(topic, index)
        self.until(lambda: producer.acknowledged >= batches)
        producer.stopped = True
        self.run(100)

    def registration(self, topic: str, index: int = 0) -> PartitionRegistration:
        """The controller's registration of a partition."""
        image = self.controller.core.image
        found = image.topics[topic].partitions[index]
        registration = partition_of(image.spec, found)
        assert registration is not None
        return registration

    def is_in_sync(self) -> bool:
        """Whether all replicas of all partitions are in sync, and the brokers know the topics."""
        partitions = self.controller.core.image.spec.partitions
        wanted = sum(len(topic.partitions) for topic in self.controller.core.image.topics.values())
        return (
            len(partitions) == wanted
            and all(set(one.registration.isr) == set(BROKERS) for one in partitions)
            and all(len(node.core.replicas) == wanted for node in self.brokers.values())
        )

    def replicas(self, topic: str, index: int = 0) -> list[Replica]:
        """The replicas of a partition on all brokers."""
        return [node.core.replicas[TopicPartition(topic, index)] for node in self.brokers.values()]
