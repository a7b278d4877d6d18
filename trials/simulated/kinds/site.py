"""The place where faults happen: a simulated cluster, and the deeds that kinds of faults have in common."""

from collections.abc import Callable
from random import Random
from typing import ClassVar, NamedTuple, Protocol

from kspec.spec.values import BrokerId
from kspec.trials.fault_kind import FaultKind
from kspec.trials.simulated.clients.operator import Operator
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.controllers.several import SeveralControllers
from kspec.trials.simulated.controllers.voters import SimulatedVoterOperator
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.network import Network
from kspec.trials.simulated.nodes import BrokerNode, ControllerNode


class FaultyCluster(Protocol):
    """A cluster with faults."""

    more_purposes: tuple[str, ...]
    clock: VirtualClock
    network: Network
    controller: ControllerNode | SeveralControllers
    controllers: list[ControllerNode]
    voters: SimulatedVoterOperator | None
    """The operator of the voters, where they are in the log."""
    brokers: dict[int, BrokerNode]
    operator: Operator
    partitions: int
    least_replicas: int
    """The least number of replicas in an operator's reassignment."""

    def may_lose_power(self, node: BrokerNode) -> bool:
        """Whether enough other brokers have all acknowledged records, so that this one may lose some."""

    def may_stop_uncleanly(self, node: BrokerNode) -> bool:
        """Whether no other broker still lacks records that it has lost."""

    def is_displaced(self, node: BrokerNode) -> bool:
        """Whether this incarnation of the broker has registered, and the controller has another one registered now."""

    def stops_uncleanly(self, node: BrokerNode, survives: Survives) -> None:
        """Note an unclean stop of a broker, in which it may lose records."""

    def is_alone(self, node: BrokerNode) -> bool:
        """Whether all other brokers are fenced, and this one is not."""

    def replicas_of(self, index: int) -> tuple[BrokerId, ...]:
        """The replicas of a partition in their order, according to the controller."""

    def leader_of(self, index: int) -> BrokerId:
        """The leader of a partition according to the controller."""

    def client_ids(self) -> list[int]:
        """The ids of all clients."""

    def tell(self, what: str) -> None:
        """Note an event in words."""


class Fault(NamedTuple):
    """One fault of a plan: its beginning (ms after the first client), its nodes, and its length (ms)."""

    at_ms: int
    kind: type["SimulatedFault"]
    node: int
    other: int
    lasts_ms: int
    survives: Survives
    number: int = 0
    """The seed of all further choices."""

    def in_words(self) -> str:
        """The fault in words."""
        return self.kind.words.format(node=self.node, other=self.other, survives=self.survives.value)


class FaultSite:
    """A cluster in which faults happen, for as long as they may: `is_active`."""

    def __init__(self, cluster: FaultyCluster) -> None:
        self.cluster = cluster
        self.is_active = False
        self.is_rolling = False
        """Whether a rolling restart is under way."""

    def happen(self, fault: Fault) -> bool:
        """Let a fault happen now, and be undone at its end; whether it could happen."""
        found = fault.kind(self, fault)
        if not found.act():
            return False
        if found.is_undone:
            self.after(fault.lasts_ms, found.undo)
        return True

    def after(self, time_ms: int, action: Callable[[], None]) -> None:
        """Schedule an action, unless all faults are over by then."""
        self.cluster.clock.after(time_ms, lambda: action() if self.is_active else None)

    def victim(self, node: int) -> BrokerNode | None:
        """A broker, if it is up, and at least one other is."""
        brokers = self.cluster.brokers
        others = [other for one, other in brokers.items() if one != node]
        return brokers[node] if brokers[node].up and any(other.up for other in others) else None

    def start(self, node: BrokerNode) -> None:
        """Start a broker that is down."""
        if not node.up:
            node.start()
            self.cluster.tell(f"broker {node.node_id} starts")

    def kill(self, node: BrokerNode, survives: Survives = Survives.ALL, sent_arrives_ms: int | None = None) -> None:
        """Kill a broker. `survives`: the rest of what was not synced; `sent_arrives_ms`: the delay of its last messages."""
        self.cluster.stops_uncleanly(node, survives)
        node.kill(survives, sent_arrives_ms)

    def may_stop(self, node: BrokerNode) -> bool:
        """Whether a broker may be shut down."""
        return node.is_registered or self.cluster.may_stop_uncleanly(node)

    def stop_in_order(self, node: BrokerNode) -> None:
        """Shut a broker down. If it is not registered yet, its next incarnation cannot claim a clean shutdown.

        **Kafka:** `BrokerServer.shutdown`, which writes the broker epoch of `BrokerLifecycleManager`, -1 until then.
        """
        if not node.is_registered:
            self.cluster.stops_uncleanly(node, Survives.ALL)
        node.stop()


class FewSeeds(NamedTuple):
    """The seeds that have a fault: one in so many, drawn by this name, and its weight there."""

    name: str
    one_in: int
    weight: float


class SimulatedFault(FaultKind):
    """A fault in a simulated cluster. `words` may have the `node`, the `other` one, and what `survives`."""

    few_seeds: ClassVar[FewSeeds | None] = None
    """The seeds that have it, if these are few; other seeds stay the same runs then."""

    def __init__(self, site: FaultSite, fault: Fault) -> None:
        self.site, self.fault = site, fault
        self.cluster, self.network, self.clock = site.cluster, site.cluster.network, site.cluster.clock
        self.broker = site.cluster.brokers[fault.node]
        """The broker that it happens to."""
        self.random = Random(fault.number)

    @property
    def end_ms(self) -> int:
        """The end of the fault, if it begins now."""
        return self.clock.now_ms + self.fault.lasts_ms

    def victim(self) -> BrokerNode | None:
        """The fault's broker, if it is up, and at least one other is."""
        return self.site.victim(self.fault.node)
