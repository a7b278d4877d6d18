"""Faults of the network: nodes do not reach each other, and messages are late or lost."""

from kspec.trials.simulated.kinds.operators import LeaderMove
from kspec.trials.simulated.kinds.site import SimulatedFault
from kspec.trials.simulated.kinds.stops import BrokerKill, BrokerPause, PowerLoss
from kspec.trials.simulated.network import SimulatedConnection
from kspec.trials.simulated.nodes import BrokerNode

PURPOSES = ("fetch", "isr", "metadata", "lifecycle")
"""The purposes of brokers' connections."""

MOST_LOST = 4
"""The largest number of connections that are lost at once."""

MOST_HELD = 3
"""The largest number of kinds of connections that are delayed at once."""

SOON_MS = 400
"""The largest delay of a copy that is to arrive while its sender's next transaction goes on (ms)."""

MOST_SLOWER_MS = 600
"""The largest extra delay of a frame on a slow connection (ms)."""


class Separation(SimulatedFault):
    """Two brokers do not reach each other."""

    words, weight = "brokers {node} and {other} do not reach each other", 4.0

    def _pairs(self) -> set[frozenset[int]]:
        return {frozenset((self.fault.node, self.fault.other))}

    def act(self) -> bool:
        """Block their connections."""
        self.network.blocked |= self._pairs()
        return True

    def undo(self) -> None:
        """Open them."""
        self.network.blocked -= self._pairs()
        self.cluster.tell(f"no more: {self.fault.in_words()}")


class LoneBroker(Separation):
    """A broker reaches no other node."""

    words, weight = "broker {node} reaches no other node", 2.0

    def _pairs(self) -> set[frozenset[int]]:
        others = [*self.cluster.brokers, self.cluster.controller.node_id]
        return {frozenset((self.fault.node, other)) for other in others if other != self.fault.node}


class ControllerOutOfReach(Separation):
    """A broker does not reach the controller."""

    words, weight = "broker {node} does not reach the controller", 2.0

    def _pairs(self) -> set[frozenset[int]]:
        return {frozenset((self.fault.node, self.cluster.controller.node_id))}


class BrokenConnections(SimulatedFault):
    """Connections are lost, with the messages in flight or before these arrive."""

    words = "connections of broker {node} are lost, with the messages in flight or before these arrive"
    weight, is_undone = 10.0, False

    def act(self) -> bool:
        """Lose some now, and some with their next request."""
        random = self.random
        lines = self.network.lines_of(self.fault.node)
        if not lines:
            return False
        for line in random.sample(lines, random.randint(1, min(MOST_LOST, len(lines)))):
            after_ms = random.randint(0, self.fault.lasts_ms) if random.random() < 0.7 else None
            if random.random() < 0.4:
                self.network.lose(line, after_ms)
            else:
                line.lost_with_next = (after_ms,)
        return True


class LateMessages(SimulatedFault):
    """Messages on some connections arrive when the fault is over."""

    words, weight, is_undone = "messages on some connections of broker {node} arrive late", 6.0, False

    def act(self) -> bool:
        """Delay them."""
        random, until_ms = self.random, self.end_ms
        purposes = (*PURPOSES, *self.cluster.more_purposes)
        for purpose in random.sample(purposes, random.randint(1, MOST_HELD)):
            for forth in random.choice(((True,), (False,), (True, False))):
                self.network.late[self.fault.node, purpose, forth] = until_ms
        return True


class RequestCopy(SimulatedFault):
    """A request loses its connection, and its sender sends it again on another; two copies arrive, in any order."""

    words = "the next request of broker {node} for one purpose, or of a client, loses its connection, and arrives late"
    weight, is_undone = 5.0, False

    def act(self) -> bool:
        """Choose the request; where brokers have more purposes, one of each broker for each of them, too."""
        random, node = self.random, self.fault.node
        client = random.choice(self.cluster.client_ids())
        whose = random.choice(((node, "isr"), (node, "lifecycle"), (client, f"client {client}")))
        self.network.lost_with_next[whose] = random.randint(0, random.choice((60, self.fault.lasts_ms)))
        for purpose in self.cluster.more_purposes:
            for broker in self.cluster.brokers:
                self.network.lost_with_next[broker, purpose] = random.randint(0, SOON_MS)
        return True


class Interruption(SimulatedFault):
    """A leader's proposal of an ISR, or a follower's fetch, is interrupted by a fault of another broker at that moment."""

    words = "the next proposal of an ISR, or the next fetch of broker {node}, is delayed while a broker stops or leads"
    weight, is_undone = 5.0, False

    def act(self) -> bool:
        """Wait for the proposal or the fetch."""
        if self.random.random() < 0.6:
            for node in self.cluster.brokers:
                self.network.on_next_request[node, "isr"] = self._isr_is_proposed
        else:
            self.network.on_next_request[self.fault.node, "fetch"] = self._records_are_fetched
        return True

    def _isr_is_proposed(self, line: SimulatedConnection) -> None:
        """Delay the proposal, or the response, and perhaps the leader's metadata; and stop another broker."""
        random, node = self.random, line.client.node_id
        self.network.hold(line, random.random() < 0.5, self.fault.lasts_ms)
        if random.random() < 0.6:
            until_ms = self.end_ms
            self.network.late[node, "metadata", random.random() < 0.5] = until_ms
        self._stop_one(random.choice([one for one in self.cluster.brokers.values() if one.node_id != node]))

    def _records_are_fetched(self, line: SimulatedConnection) -> None:
        """Delay the response; and stop the follower, or make another broker the leader."""
        fault = self.fault
        self.network.hold(line, False, fault.lasts_ms)
        if self.random.random() < 0.5:
            self._stop_one(self.broker)
        else:
            self.site.happen(fault._replace(kind=LeaderMove, node=fault.other, lasts_ms=fault.lasts_ms // 3))

    def _stop_one(self, node: BrokerNode) -> None:
        """Kill, pause or delay a broker, or cut its power.

        The awaited moment may come with the event that ends all faults: then no fault happens any more.
        """
        if not self.site.is_active:
            return
        kind = self.random.choice((BrokerKill, PowerLoss, BrokerPause, LateMessages))
        lasts_ms = 1 + self.fault.lasts_ms // self.random.choice((1, 4))
        struck = self.fault._replace(kind=kind, node=node.node_id, lasts_ms=lasts_ms)
        if self.site.happen(struck):
            self.cluster.tell(struck.in_words())


class SlowLinks(SimulatedFault):
    """Messages on some connections take longer."""

    words, weight = "messages to and from broker {node} on some connections take longer", 5.0

    def act(self) -> bool:
        """Choose the connections."""
        purposes = (*PURPOSES, *self.cluster.more_purposes)
        ways = [(self.fault.node, purpose, forth) for purpose in purposes for forth in (True, False)]
        self._chosen = self.random.sample(ways, self.random.randint(1, MOST_HELD))
        for way in self._chosen:
            self.network.slow_links[way] = self.random.randint(10, MOST_SLOWER_MS)
        return True

    def undo(self) -> None:
        """Let them be quick."""
        for way in self._chosen:
            self.network.slow_links.pop(way, None)
