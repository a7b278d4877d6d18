"""Faults that are several events, one at the moment of another: what chance alone seldom brings together.

Nothing is decided here for a node: connections are slow or lost, brokers stand still or are told to stop, and an operator
asks for leaders, each at a moment at which a rule is needed.
"""

from collections.abc import Callable
from random import Random
from typing import Protocol

from impl.sim.clients import Operator
from impl.sim.clock import Clock
from impl.sim.network import Line, Network
from impl.sim.nodes import BrokerNode, ControllerNode
from impl.sim.plan import Fault
from impl.storage.simulated_disk import Survives
from spec.values import NO_LEADER, BrokerId

WAITS_MS = 400
"""How long a follower does not fetch, at most, while another one gets ahead of it."""

COPY_MS, COPY_SPREAD_MS = 150, 500
"""How long after its second copy a registration arrives at the earliest, and how much later at most."""


class Cluster(Protocol):
    """What faults happen to."""

    clock: Clock
    network: Network
    controller: ControllerNode
    brokers: dict[int, BrokerNode]
    operator: Operator
    partitions: int
    least_replicas: int
    """How many replicas an operator leaves to a partition at least."""

    def may_lose_power(self, node: BrokerNode) -> bool:
        """Whether enough others have all that was acknowledged, so that this broker may lose some of it."""

    def may_stop_uncleanly(self, node: BrokerNode) -> bool:
        """Whether no other broker lacks what it has lost."""

    def is_displaced(self, node: BrokerNode) -> bool:
        """Whether the controller has another incarnation of this broker, and this one has registered."""

    def stops_uncleanly(self, node: BrokerNode, survives: Survives) -> None:
        """A broker stops without leave, and may lose records."""

    def replicas_of(self, index: int) -> tuple[BrokerId, ...]:
        """The replicas of a partition in their order, by the controller's word."""

    def leader_of(self, index: int) -> BrokerId:
        """The leader of a partition, by the controller's word."""

    def client_ids(self) -> list[int]:
        """The ids of all clients."""

    def tell(self, what: str) -> None:
        """Note what has happened."""


class Means(Protocol):
    """What single faults offer to sequences of them."""

    def victim(self, fault: Fault) -> BrokerNode | None:
        """The broker that is meant, if it is up, and one other at least."""

    def after(self, fault: Fault, action: Callable[[], None]) -> bool:
        """Let something happen when a fault is over."""

    def restart(self, fault: Fault) -> bool:
        """Tell a broker to stop, and start it again when the fault is over."""


class Sequences:
    """The sequences of events that may happen to a cluster."""

    def __init__(self, cluster: Cluster, means: Means) -> None:
        self._cluster = cluster
        self._means = means

    def hand_over(self, fault: Fault) -> bool:
        """The leader goes on, and hears of nothing; a follower that is a little behind leads, and then stops in order."""
        cluster, random = self._cluster, Random(fault.number)
        index = random.randrange(cluster.partitions)
        leader, now_ms = cluster.leader_of(index), cluster.clock.now_ms
        if leader in (NO_LEADER, fault.node) or self._means.victim(fault) is None:
            return False
        moves_ms, stops_ms = random.randint(20, 200), random.randint(20, 400)
        for line in cluster.network.lines_from(leader, "metadata"):
            cluster.network.lose(line, None)
        cluster.network.late[leader, "metadata", True] = now_ms + moves_ms + stops_ms + random.randint(20, 400)
        cluster.network.late[fault.node, "fetch", True] = now_ms + 2 * moves_ms
        self._means.after(fault._replace(lasts_ms=moves_ms), lambda: self._lead(fault.node, index))
        return self._means.after(fault._replace(lasts_ms=moves_ms + stops_ms), lambda: self._stop(fault))

    def _lead(self, node: int, index: int) -> None:
        """Make a broker the preferred leader of a partition, and the present leader the next one; elect it."""
        cluster = self._cluster
        first = (BrokerId(node), cluster.leader_of(index))
        others = [replica for replica in cluster.replicas_of(index) if replica not in first]
        cluster.operator.reassign(index, [*first, *others])
        cluster.operator.prefer([index])

    def _stop(self, fault: Fault) -> None:
        """Tell a broker to stop, and start it again later."""
        self._means.restart(fault)

    def late_fetch(self, fault: Fault) -> bool:
        """The leader before hears of everything, but does not fetch; and a fetch of a follower arrives when it leads again.

        That follower had records which the leader in between did not have: it has fetched twice while the other did not.
        """
        cluster, random = self._cluster, Random(fault.number)
        network, index = cluster.network, random.randrange(cluster.partitions)
        leader = cluster.leader_of(index)
        ahead = [replica for replica in cluster.replicas_of(index) if replica not in (leader, fault.node)]
        if leader in (NO_LEADER, fault.node) or not ahead or self._means.victim(fault) is None:
            return False
        stops_ms = random.randint(20, 200)
        late_ms = stops_ms + random.randint(10, 100)
        network.late[fault.node, "fetch", True] = cluster.clock.now_ms + WAITS_MS

        def move(line: Line) -> None:
            network.hold(line, True, late_ms)
            network.late[leader, "fetch", True] = cluster.clock.now_ms + late_ms
            self._lead(fault.node, index)
            self._means.after(fault._replace(lasts_ms=stops_ms), lambda: self._stop(fault))

        def await_second(line: Line) -> None:
            network.told_of_next[ahead[0], "fetch"] = move

        network.told_of_next[ahead[0], "fetch"] = await_second
        return True

    def late_news(self, fault: Fault) -> bool:
        """The news of the first change arrive while the leader waits for the answer to the second, or after that."""
        cluster, random = self._cluster, Random(fault.number)
        network, node = cluster.network, self._means.victim(fault)
        leader = cluster.leader_of(random.randrange(cluster.partitions))
        if leader in (NO_LEADER, fault.node) or node is None:
            return False
        news_ms, answer_ms = random.randint(40, 250), random.choice((0, 300))
        node.pause()

        def is_dropped(line: Line) -> None:
            network.late[leader, "metadata", False] = cluster.clock.now_ms + news_ms
            network.told_of_next[leader, "isr"] = is_admitted
            node.go_on()

        def is_admitted(line: Line) -> None:
            network.hold(line, False, answer_ms)

        network.told_of_next[leader, "isr"] = is_dropped
        return self._means.after(fault, node.go_on)

    def register_twice(self, fault: Fault) -> bool:
        """A broker stops in order; when it starts, its first registration has no answer, and arrives after the second."""
        self._cluster.network.lost_with_next[fault.node, "BrokerRegistration"] = COPY_MS + fault.number % COPY_SPREAD_MS
        return self._means.restart(fault)
