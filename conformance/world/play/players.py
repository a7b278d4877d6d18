"""Everybody but the broker under test, by the handlers of `spec`: what they ask, what they answer, what they decide.

A run of model `kafka` says who acts when. Its states hold each party's own state, so that these questions are put to the
very functions that the checker explores.
"""

from typing import Any

from model_check.core.model import Model, State
from model_check.models.kafka.cluster import NOW
from model_check.models.kafka.kraft.state import answer_of, controller_state
from model_check.models.kafka.party import Rules, broker, is_asking, leading, next_request, reply
from model_check.models.kafka.settings import controller_of, releases_of, rules_of
from model_check.models.kafka.values import (
    Clients,
    Cluster,
    Exchange,
    Image,
    LateFetch,
    Memory,
    Process,
    Under,
)
from model_check.models.parts import LATE, Role
from spec.broker.leader.fetch import handle_fetch
from spec.broker.rules.fetcher import FetchState
from spec.controller.partitions import handle_alter_partition
from spec.controller.protocol import Controller
from spec.log.local_log import LocalLog
from spec.log.record_log import RecordLog
from spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from spec.messages.fetch import FetchRequest, FetchResponse
from spec.values import BrokerId


class Scene:
    """One state of the model, by the names of its slots."""

    def __init__(self, model: Model, state: State) -> None:
        self.model = model
        self._positions = {(slot.name, slot.key): slot.position for slot in model.slots}
        self.state = state

    def _get(self, name: str, key: int | None = None) -> Any:
        return self.state[self._positions[name, key]]

    @property
    def cluster(self) -> Cluster:
        """The controller's state."""
        found: Cluster = self._get("controller")
        return found

    @property
    def clients(self) -> Clients:
        """What clients know."""
        found: Clients = self._get("clients")
        return found

    @property
    def produced(self) -> int:
        """How many records have been produced: the number of the last one."""
        found: int = self._get("produced")
        return found

    def reading(self, one: int) -> tuple[Image, ...]:
        """The metadata that a broker has read last, and has still to read."""
        found: tuple[Image, ...] = self._get("metadata", one)
        return found

    def log(self, one: int) -> LocalLog[RecordLog]:
        """A replica's log and high watermark."""
        found: LocalLog[RecordLog] = self._get("log", one)
        return found

    def role(self, one: int) -> Role:
        """The leader that a replica knows."""
        found: Role = self._get("role", one)
        return found

    def memory(self, one: int) -> Memory:
        """What a leader remembers."""
        found: Memory = self._get("memory", one)
        return found

    def fetcher(self, one: int) -> FetchState:
        """A follower's fetcher."""
        found: FetchState = self._get("fetcher", one)
        return found

    def process(self, one: int) -> Process:
        """A broker's process."""
        found: Process = self._get("process", one)
        return found

    def exchange(self, one: int) -> Exchange:
        """A leader's AlterPartition request, or its answer."""
        found: Exchange = self._get("alterPartition", one)
        return found

    def late(self, one: int) -> LateFetch:
        """A follower's late fetch, where the bounds allow one."""
        found: LateFetch = self._get("lateFetch", one)
        return found

    def has_replica(self, one: int) -> bool:
        """Whether a broker that is up has taken metadata by which it has a replica of the partition."""
        reading = self.reading(one)
        return self.process(one).up and bool(reading) and one in reading[0].topic.replicas


class Players:
    """The parties of a run, by the rules of the releases that its parameters name."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        releases = releases_of(parameters)
        control = controller_of(releases, parameters)
        assert isinstance(control, Controller), "the world plays a KRaft controller"
        self.control = control
        self.rules: dict[int, Rules] = rules_of(releases, parameters)

    def answers(self, scene: Scene, one: int) -> bool:
        """Whether a broker is up, and has opened its ports."""
        process = scene.process(one)
        return process.up and self.rules[one].protocol.opens_ports(process.life)

    def next_fetch(self, scene: Scene, follower: int) -> tuple[int, FetchRequest] | None:
        """The leader that a follower fetches from next, and its request; `None` if it sends none."""
        log, fetcher = scene.log(follower), scene.fetcher(follower)
        sent = next_request(self.rules[follower], BrokerId(follower), log, fetcher, scene.process(follower))
        if sent is None or not isinstance(sent.message, FetchRequest):
            return None
        return sent.to, sent.message

    def fetch_answer(self, scene: Scene, leader: int, request: FetchRequest) -> FetchResponse:
        """A leader's answer to a fetch."""
        role, process, exchange = scene.role(leader), scene.process(leader), scene.exchange(leader)
        reading = scene.reading(leader)
        known = reading[0].brokers if reading and role.leader == leader else frozenset()
        own = broker(self.rules[leader], BrokerId(leader), process, known)
        before = leading(scene.log(leader), role, scene.memory(leader), asking=is_asking(exchange, process))
        answer = reply(handle_fetch(own, before, request, LATE))
        assert isinstance(answer, FetchResponse)
        return answer

    def isr_answer(self, cluster: Cluster, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """The controller's answer to a proposed ISR."""
        answer = answer_of(handle_alter_partition(self.control, controller_state(cluster), request, NOW))
        assert isinstance(answer, AlterPartitionResponse)
        return answer


def proposed(exchange: Exchange) -> AlterPartitionRequest | None:
    """The request of an exchange that is under way."""
    return exchange.request if exchange.state == Under.SENT else None
