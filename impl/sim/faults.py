"""Seeded faults: processes that are killed, lose power, stand still or are restarted; nodes that do not reach each other.

The plan is made before the run, and from numbers of its own. So a fault can be left out, and the others stay.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from random import Random
from typing import NamedTuple, Protocol

from impl.sim.clock import Clock
from impl.sim.network import Network
from impl.sim.nodes import BrokerNode, ControllerNode
from impl.storage.simulated_disk import Survives

LEAST_PAUSE_MS, MOST_PAUSE_MS = 100, 1_500
"""Between the begin of one fault and the next."""

REVIVED_EVERY_MS = 500
"""How often, after all faults, nodes that are down are started."""

LOSSES = (Survives.NOTHING, Survives.HALF, Survives.ZEROS)
ONE_HOUR_MS = 3_600_000


class Kind(Enum):
    """What can go wrong, with what is said of it."""

    KILL = "broker {node} is killed"
    POWER = "broker {node} loses power; of what was not synced, {survives} is left"
    PAUSE = "broker {node} stands still"
    RESTART = "broker {node} is told to stop"
    SEPARATE = "brokers {node} and {other} do not reach each other"
    ISOLATE = "broker {node} reaches no other node"
    HIDE_CONTROLLER = "broker {node} does not reach the controller"
    KILL_CONTROLLER = "the controller is killed; of what was not synced, {survives} is left"


WEIGHTS = {
    Kind.KILL: 4,
    Kind.POWER: 4,
    Kind.PAUSE: 3,
    Kind.RESTART: 3,
    Kind.SEPARATE: 4,
    Kind.ISOLATE: 2,
    Kind.HIDE_CONTROLLER: 2,
    Kind.KILL_CONTROLLER: 1,
}


class Fault(NamedTuple):
    """One fault: when it begins (ms after the first client), to whom it happens, how long it lasts (ms)."""

    at_ms: int
    kind: Kind
    node: int
    other: int
    lasts_ms: int
    survives: Survives

    def in_words(self) -> str:
        """What happens."""
        return self.kind.value.format(node=self.node, other=self.other, survives=self.survives.value)


def plan(seed: int, brokers: Sequence[int], until_ms: int = ONE_HOUR_MS) -> tuple[Fault, ...]:
    """The faults of a seed, in the order of their times."""
    random = Random(seed)
    found: list[Fault] = []
    at_ms = 0
    while at_ms < until_ms:
        at_ms += random.randint(LEAST_PAUSE_MS, MOST_PAUSE_MS)
        kind = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        node, other = random.sample(list(brokers), 2)
        lasts_ms, survives = random.randint(100, 5_000), random.choice(LOSSES)
        found.append(Fault(at_ms, kind, node, other, lasts_ms, survives))
    return tuple(found)


class Cluster(Protocol):
    """What faults happen to."""

    clock: Clock
    network: Network
    controller: ControllerNode
    brokers: dict[int, BrokerNode]

    def is_at_full_strength(self) -> bool:
        """Whether all that was acknowledged is on every broker, by the controller's word on their incarnations."""

    def tell(self, what: str) -> None:
        """Note what has happened."""


class Faults:
    """The faults of a run as they happen."""

    def __init__(self, cluster: Cluster, planned: Sequence[Fault]) -> None:
        self._cluster = cluster
        self._planned = planned
        self._active = False
        self.happened: list[Fault] = []
        self._actions: dict[Kind, Callable[[Fault], bool]] = {
            Kind.KILL: self._kill,
            Kind.POWER: self._lose_power,
            Kind.PAUSE: self._pause,
            Kind.RESTART: self._restart,
            Kind.SEPARATE: lambda fault: self._block(fault, {frozenset((fault.node, fault.other))}),
            Kind.ISOLATE: self._isolate,
            Kind.HIDE_CONTROLLER: lambda fault: self._block(fault, {frozenset((fault.node, self._controller_id))}),
            Kind.KILL_CONTROLLER: self._kill_controller,
        }

    @property
    def _controller_id(self) -> int:
        return self._cluster.controller.node_id

    def begin(self) -> None:
        """Faults happen from now on."""
        self._active = True
        self._set(0, self._cluster.clock.now_ms)

    def _set(self, place: int, start_ms: int) -> None:
        """Let the next fault come; each sets the one after it."""
        if place == len(self._planned):
            return
        fault = self._planned[place]

        def happen() -> None:
            if self._active:
                if self._actions[fault.kind](fault):
                    self.happened.append(fault)
                    self._cluster.tell(fault.in_words())
                self._set(place + 1, start_ms)

        self._cluster.clock.at(start_ms + fault.at_ms, happen)

    def end(self) -> None:
        """No more faults; what is down starts, what stands still goes on, everybody reaches everybody."""
        cluster = self._cluster
        self._active = False
        cluster.network.blocked.clear()
        for node in (cluster.controller, *cluster.brokers.values()):
            node.go_on()
        cluster.tell("all faults are over")
        self._revive()

    def _revive(self) -> None:
        """Start what is down, now and later: a broker that was told to stop may still be at it."""
        for node in (self._cluster.controller, *self._cluster.brokers.values()):
            if not node.up:
                node.start()
        self._cluster.clock.after(REVIVED_EVERY_MS, self._revive)

    def _after(self, fault: Fault, action: Callable[[], None]) -> bool:
        """The end of a fault."""
        self._cluster.clock.after(fault.lasts_ms, lambda: action() if self._active else None)
        return True

    def _victim(self, fault: Fault) -> BrokerNode | None:
        """The broker that is meant, if it is up, and one other at least."""
        brokers = self._cluster.brokers
        others = [node for one, node in brokers.items() if one != fault.node]
        return brokers[fault.node] if brokers[fault.node].up and any(node.up for node in others) else None

    def _start(self, node: BrokerNode) -> None:
        if not node.up:
            node.start()
            self._cluster.tell(f"broker {node.node_id} starts")

    # ---- processes

    def _kill(self, fault: Fault) -> bool:
        node = self._victim(fault)
        if node is None:
            return False
        node.kill()
        return self._after(fault, lambda: self._start(node))

    def _lose_power(self, fault: Fault) -> bool:
        """Only at full strength: nothing is promised about a second loss of power before the first is made good."""
        node = self._victim(fault)
        if node is None or not self._cluster.is_at_full_strength():
            return False
        node.kill(fault.survives)
        return self._after(fault, lambda: self._start(node))

    def _pause(self, fault: Fault) -> bool:
        node = self._victim(fault)
        if node is None:
            return False
        node.pause()
        return self._after(fault, node.go_on)

    def _restart(self, fault: Fault) -> bool:
        node = self._victim(fault)
        if node is None:
            return False
        node.stop()

        def start_again() -> None:
            if node.up:
                node.kill()
            self._start(node)

        return self._after(fault, start_again)

    def _kill_controller(self, fault: Fault) -> bool:
        controller = self._cluster.controller
        if not controller.up:
            return False
        controller.kill(fault.survives)

        def start_again() -> None:
            if not controller.up:
                controller.start()
                self._cluster.tell("the controller starts")

        return self._after(fault, start_again)

    # ---- the network

    def _block(self, fault: Fault, pairs: set[frozenset[int]]) -> bool:
        network = self._cluster.network
        network.blocked |= pairs

        def heal() -> None:
            network.blocked -= pairs
            self._cluster.tell(f"no more: {fault.in_words()}")

        return self._after(fault, heal)

    def _isolate(self, fault: Fault) -> bool:
        others = [*self._cluster.brokers, self._controller_id]
        return self._block(fault, {frozenset((fault.node, other)) for other in others if other != fault.node})
