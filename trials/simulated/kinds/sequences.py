"""Sequences of faults, each at the moment of another, which seldom come together by chance alone.

No step of a node is decided here: connections are slow or lost, brokers are paused or shut down, and an operator elects
leaders, each at a moment at which a rule is needed. `trials.faults.plans` has them as plans, too, for both stages, in a
cluster without other faults: `hand-over`, `late-fetch`, `late-news`, `second-registration`. Of `DelayedHeartbeats` there is
none: its messages arrive after their connection is lost, which a proxy between processes does not bring about.
"""

from collections.abc import Callable

from kspec.spec.values import NO_LEADER, BrokerId
from kspec.trials.simulated.kinds.site import FewSeeds, SimulatedFault
from kspec.trials.simulated.kinds.stops import BrokerRestart
from kspec.trials.simulated.network import SimulatedConnection

WAITS_MS = 400
"""The longest time in which a follower does not fetch while another one gets ahead of it."""

LOOKS_EVERY_MS = 50
"""The time (ms) between two looks at who is fenced."""

LATE_MS, LATER_MS = range(250, 450), 1_500
"""The delays (ms) of heartbeats that have lost their connection, and of the answer to the one after them."""

COPY_MS, COPY_SPREAD_MS = 150, 500
"""The least delay of a registration behind its second copy, and the spread of the delay."""


class LeaderSequence(SimulatedFault):
    """A sequence in which another broker leads for a while."""

    is_undone = False

    def lead(self, index: int) -> None:
        """Make the broker the preferred leader of a partition, and the present leader the next one; elect it."""
        cluster = self.cluster
        first = (BrokerId(self.fault.node), cluster.leader_of(index))
        others = [replica for replica in cluster.replicas_of(index) if replica not in first]
        cluster.operator.reassign(index, [*first, *others])
        cluster.operator.prefer([index])

    def stop(self) -> None:
        """Shut the broker down, and start it again later."""
        self.site.happen(self.fault._replace(kind=BrokerRestart))


class HandOver(LeaderSequence):
    """The leader gets no metadata, while a follower that is a little behind is elected, and then shut down."""

    words = "a leader gets no metadata while broker {node}, which is behind, is elected and then shut down"
    few_seeds = FewSeeds("hand-overs", 4, 6.0)

    def act(self) -> bool:
        """Keep metadata from the leader, and delay the follower's fetches."""
        random, network, node = self.random, self.network, self.fault.node
        index = random.randrange(self.cluster.partitions)
        leader, now_ms = self.cluster.leader_of(index), self.clock.now_ms
        if leader in (NO_LEADER, node) or self.victim() is None:
            return False
        moves_ms, stops_ms = random.randint(20, 200), random.randint(20, 400)
        for line in network.lines_from(leader, "metadata"):
            network.lose(line, None)
        network.late[leader, "metadata", True] = now_ms + moves_ms + stops_ms + random.randint(20, 400)
        network.late[node, "fetch", True] = now_ms + 2 * moves_ms
        self.site.after(moves_ms, lambda: self.lead(index))
        self.site.after(moves_ms + stops_ms, self.stop)
        return True


class DelayedFetch(LeaderSequence):
    """A fetch is delayed until its leader, which has been deposed and gets metadata but does not fetch, leads again.

    The fetch's follower has records that the leader in between lacks: it has fetched twice while that one has not.
    """

    words = "a fetch arrives at a leader that has been deposed and elected again, while broker {node} led"
    few_seeds = FewSeeds("late fetches", 10, 6.0)

    def act(self) -> bool:
        """Delay the broker's fetches, and wait for the second one of another follower."""
        random, network, node = self.random, self.network, self.fault.node
        index = random.randrange(self.cluster.partitions)
        leader = self.cluster.leader_of(index)
        ahead = [replica for replica in self.cluster.replicas_of(index) if replica not in (leader, node)]
        if leader in (NO_LEADER, node) or not ahead or self.victim() is None:
            return False
        stops_ms = random.randint(20, 200)
        late_ms = stops_ms + random.randint(10, 100)
        network.late[node, "fetch", True] = self.clock.now_ms + WAITS_MS

        def move(line: SimulatedConnection) -> None:
            network.hold(line, True, late_ms)
            network.late[leader, "fetch", True] = self.clock.now_ms + late_ms
            self.lead(index)
            self.site.after(stops_ms, self.stop)

        def await_second(line: SimulatedConnection) -> None:
            network.on_next_request[ahead[0], "fetch"] = move

        network.on_next_request[ahead[0], "fetch"] = await_second
        return True


class DelayedNews(SimulatedFault):
    """The leader's metadata of a smaller ISR are delayed until it waits for the response to a larger one, or has it."""

    words = "broker {node} leaves an ISR, and the leader, which admits it again, learns late of the first change"
    few_seeds = FewSeeds("late news", 10, 6.0)

    def act(self) -> bool:
        """Pause the broker until the leader proposes the smaller ISR."""
        random, network, node = self.random, self.network, self.victim()
        leader = self.cluster.leader_of(random.randrange(self.cluster.partitions))
        if leader in (NO_LEADER, self.fault.node) or node is None:
            return False
        news_ms, answer_ms = random.randint(40, 250), random.choice((0, 300))
        node.pause()

        def is_dropped(line: SimulatedConnection) -> None:
            network.late[leader, "metadata", False] = self.clock.now_ms + news_ms
            network.on_next_request[leader, "isr"] = is_admitted
            node.go_on()

        def is_admitted(line: SimulatedConnection) -> None:
            network.hold(line, False, answer_ms)

        network.on_next_request[leader, "isr"] = is_dropped
        return True

    def undo(self) -> None:
        """Resume the broker."""
        self.broker.go_on()


class SecondRegistration(BrokerRestart):
    """A broker is shut down; when it starts, its first registration gets no response, and arrives after the second."""

    words, weight = "broker {node} is shut down, and then registers twice, the first time late", 0.5
    few_seeds = FewSeeds("second registrations", 10, 4.0)

    def act(self) -> bool:
        """Lose the connection of the registration, and shut the broker down."""
        late_ms = COPY_MS + self.fault.number % COPY_SPREAD_MS
        self.network.lost_with_next[self.fault.node, "BrokerRegistration"] = late_ms
        return super().act()


class DelayedHeartbeats(LeaderSequence):
    """All others stand still until they are fenced. The last one is told to stop, and two of its heartbeats of before,
    which have lost their connection, arrive after the one that says so, whose answer takes longer.
    """

    words = "broker {node} is the last that is not fenced, and two of its heartbeats arrive while it waits to stop"
    few_seeds = FewSeeds("heartbeats late", 20, 6.0)

    def act(self) -> bool:
        """Pause the others, and look until they are fenced."""
        network, node = self.network, self.victim()
        others = [one for one in self.cluster.brokers.values() if one.node_id != self.fault.node and one.up]
        if node is None or (self.fault.node, "lifecycle") in network.on_next_request:
            return False
        until_ms = self.clock.now_ms + 2 * self.fault.lasts_ms

        def go_on() -> None:
            for other in others:
                other.go_on()

        def look() -> None:
            if self.cluster.is_alone(node):
                self._on_next(self._is_sent)
                self.site.after(LATER_MS, go_on)
            elif self.clock.now_ms < until_ms:
                self.site.after(LOOKS_EVERY_MS, look)
            else:
                go_on()

        for other in others:
            other.pause()
        look()
        return True

    def _on_next(self, heartbeat: Callable[[SimulatedConnection], None]) -> None:
        self.network.on_next_request[self.fault.node, "lifecycle"] = heartbeat

    def _is_sent(self, line: SimulatedConnection) -> None:
        self.network.lose(line, self.random.choice(LATE_MS))
        self._on_next(self._is_sent_again)

    def _is_sent_again(self, line: SimulatedConnection) -> None:
        self.network.lose(line, self.random.choice(LATE_MS))
        self._on_next(lambda asks_to_stop: self.network.hold(asks_to_stop, False, LATER_MS))
        self.stop()
