"""Faults as they happen: to processes, their disks and clocks, and to the network; and what operators do meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from random import Random

from impl.sim.network import Line
from impl.sim.nodes import BrokerNode, Node
from impl.sim.plan import PURPOSES, Fault, Kind
from impl.sim.sequences import Cluster, Sequences
from impl.storage.simulated_disk import Survives

REVIVED_EVERY_MS = 500
"""How often, after all faults, nodes that are down are started."""

NOTICED_AFTER_MS = 10_000
"""After how long an operator restarts a broker that the controller refuses."""

LOOKS_EVERY_MS, DOWN_MS, LONGEST_ROLL_MS = 50, 200, 10_000
"""While brokers are restarted: how often somebody looks how far it is, how long each is down, and how long one may take."""

LONGEST_SYNC_MS = 120
MOST_SKEW = 3
"""How far a clock jumps at most, beside how long the fault lasts."""

MOST_LOST = 4
"""How many connections are lost at once at most."""

MOST_HELD = 3
"""For how many purposes at once what is carried may be late."""

MOST_SLUGGISH_MS = 600
"""How much longer a frame takes at most on a connection that is sluggish."""


class Faults:
    """The faults of a run as they happen."""

    def __init__(self, cluster: Cluster, planned: Iterable[Fault]) -> None:
        self._cluster = cluster
        self._planned: Iterator[Fault] = iter(planned)
        self._rolling = False
        self._active = False
        self.happened: list[Fault] = []
        self._displaced: dict[int, int] = {}
        """How often in turn each broker was found displaced, after all faults."""
        sequences = Sequences(cluster, self)
        self._actions: dict[Kind, Callable[[Fault], bool]] = {
            Kind.KILL: self._kill,
            Kind.POWER: self._lose_power,
            Kind.PAUSE: self._pause,
            Kind.RESTART: self.restart,
            Kind.SEPARATE: lambda fault: self._block(fault, {frozenset((fault.node, fault.other))}),
            Kind.ISOLATE: self._isolate,
            Kind.HIDE_CONTROLLER: lambda fault: self._block(fault, {frozenset((fault.node, self._controller_id))}),
            Kind.KILL_CONTROLLER: self._kill_controller,
            Kind.PAUSE_CONTROLLER: self._pause_controller,
            Kind.BREAK: self._break,
            Kind.HOLD: self._hold,
            Kind.SLOW_DISK: self._slow_disk,
            Kind.FULL_DISK: self._full_disk,
            Kind.CLOCK: self._jump,
            Kind.COPY: self._copy,
            Kind.STRIKE: self._strike,
            Kind.SLUGGISH: self._be_sluggish,
            Kind.REASSIGN: self._reassign,
            Kind.PREFER: self._prefer,
            Kind.MOVE_LEADER: self._move_leader,
            Kind.HAND_OVER: sequences.hand_over,
            Kind.LATE_FETCH: sequences.late_fetch,
            Kind.LATE_NEWS: sequences.late_news,
            Kind.REGISTER_TWICE: sequences.register_twice,
            Kind.ROLL: self._roll,
        }

    @property
    def _controller_id(self) -> int:
        return self._cluster.controller.node_id

    def begin(self) -> None:
        """Faults happen from now on."""
        self._active = True
        self._set(self._cluster.clock.now_ms)

    def _set(self, start_ms: int) -> None:
        """Let the next fault come; each sets the one after it."""
        fault = next(self._planned, None)
        if fault is None:
            return

        def happen() -> None:
            if self._active:
                if self._actions[fault.kind](fault):
                    self.happened.append(fault)
                    self._cluster.tell(fault.in_words())
                self._set(start_ms)

        self._cluster.clock.at(start_ms + fault.at_ms, happen)

    def end(self) -> None:
        """No more faults; what is down starts, what stands still goes on, everybody reaches everybody."""
        cluster = self._cluster
        self._active = False
        cluster.network.blocked.clear()
        cluster.network.sluggish.clear()
        cluster.network.lost_with_next.clear()
        cluster.network.told_of_next.clear()
        for node in (cluster.controller, *cluster.brokers.values()):
            was_full = node.disk.condition.full
            node.disk.condition.full, node.disk.condition.sync_ms = False, 0
            node.set_clock(0)
            node.go_on()
            if was_full and node.up:
                node.kill()
        cluster.tell("all faults are over")
        self._revive()

    def _revive(self) -> None:
        """Start what is down, now and later: a broker that was told to stop may still be at it.

        A broker in whose place an earlier incarnation is registered, by a request that arrived late, is restarted as an
        operator does: the controller refuses each of its heartbeats, and it has no way out by itself.
        """
        cluster = self._cluster
        for node in (cluster.controller, *cluster.brokers.values()):
            if not node.up:
                node.start()
        for broker in cluster.brokers.values():
            looks = self._displaced.get(broker.node_id, 0) + 1 if cluster.is_displaced(broker) else 0
            self._displaced[broker.node_id] = looks
            if looks * REVIVED_EVERY_MS >= NOTICED_AFTER_MS:
                cluster.tell(f"broker {broker.node_id} is restarted: the controller has an earlier incarnation in its place")
                self._kill_now(broker)
        cluster.clock.after(REVIVED_EVERY_MS, self._revive)

    def after(self, fault: Fault, action: Callable[[], None]) -> bool:
        """The end of a fault."""
        self._cluster.clock.after(fault.lasts_ms, lambda: action() if self._active else None)
        return True

    def victim(self, fault: Fault) -> BrokerNode | None:
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
        node = self.victim(fault)
        if node is None or not self._cluster.may_stop_uncleanly(node):
            return False
        self._kill_now(node, Survives.ALL, _sent_arrives_ms(fault))
        return self.after(fault, lambda: self._start(node))

    def _lose_power(self, fault: Fault) -> bool:
        """Only while no other broker lacks what it has lost: of two losses at a time nothing is promised."""
        node = self.victim(fault)
        if node is None or not self._cluster.may_lose_power(node):
            return False
        self._kill_now(node, fault.survives, _sent_arrives_ms(fault))
        return self.after(fault, lambda: self._start(node))

    def _kill_now(self, node: BrokerNode, survives: Survives = Survives.ALL, sent_arrives_ms: int | None = None) -> None:
        self._cluster.stops_uncleanly(node, survives)
        node.kill(survives, sent_arrives_ms)

    def _pause(self, fault: Fault) -> bool:
        node = self.victim(fault)
        if node is None:
            return False
        node.pause()
        return self.after(fault, node.go_on)

    def restart(self, fault: Fault) -> bool:
        """Tell a broker to stop, and start it again when the fault is over."""
        node = self.victim(fault)
        if node is None or not self._may_stop(node):
            return False
        self._stop_in_order(node)

        def start_again() -> None:
            if node.up and not self._cluster.may_stop_uncleanly(node):
                self.after(fault, start_again)
                return
            if node.up:
                self._kill_now(node)
            self._start(node)

        return self.after(fault, start_again)

    def _may_stop(self, node: BrokerNode) -> bool:
        return node.is_registered or self._cluster.may_stop_uncleanly(node)

    def _stop_in_order(self, node: BrokerNode) -> None:
        """Tell a broker to stop. If it is not registered yet, its next incarnation cannot say that it stopped in order.

        **Kafka:** `BrokerServer.shutdown`, which writes the broker epoch of `BrokerLifecycleManager`, -1 until then.
        """
        if not node.is_registered:
            self._cluster.stops_uncleanly(node, Survives.ALL)
        node.stop()

    def _kill_controller(self, fault: Fault) -> bool:
        controller = self._cluster.controller
        if not controller.up:
            return False
        controller.kill(fault.survives)

        def start_again() -> None:
            if not controller.up:
                controller.start()
                self._cluster.tell("the controller starts")

        return self.after(fault, start_again)

    def _pause_controller(self, fault: Fault) -> bool:
        controller = self._cluster.controller
        if not controller.up:
            return False
        controller.pause()
        return self.after(fault, controller.go_on)

    def _roll(self, fault: Fault) -> bool:
        """Stop each broker in order and start it again, once the one before serves."""
        if self._rolling:
            return False
        self._rolling = True
        brokers = iter(self._cluster.brokers.values())

        def go_on() -> None:
            node = next(brokers, None) if self._active else None
            if node is None:
                self._rolling = False
                return
            if node.up and self._may_stop(node):
                self._stop_in_order(node)
            self._cluster.clock.after(DOWN_MS, lambda: look(node, self._cluster.clock.now_ms + LONGEST_ROLL_MS))

        def look(node: BrokerNode, until_ms: int) -> None:
            too_long = self._cluster.clock.now_ms > until_ms
            if self._active and too_long and node.up and self._cluster.may_stop_uncleanly(node):
                self._kill_now(node)
            if self._active and not node.up:
                self._start(node)
                go_on_when_served(node, until_ms)
            else:
                self._cluster.clock.after(LOOKS_EVERY_MS, lambda: look(node, until_ms) if self._active else go_on())

        def go_on_when_served(node: BrokerNode, until_ms: int) -> None:
            if node.serves or self._cluster.clock.now_ms > until_ms or not self._active:
                go_on()
            else:
                self._cluster.clock.after(LOOKS_EVERY_MS, lambda: go_on_when_served(node, until_ms))

        go_on()
        return True

    # ---- disks and clocks

    def _slow_disk(self, fault: Fault) -> bool:
        condition = self._cluster.brokers[fault.node].disk.condition
        condition.sync_ms = 1 + fault.number % LONGEST_SYNC_MS

        def be_quick() -> None:
            condition.sync_ms = 0

        return self.after(fault, be_quick)

    def _full_disk(self, fault: Fault) -> bool:
        """Until there is space again, and the broker is restarted, as somebody does who has noticed."""
        node = self.victim(fault)
        if node is None or not self._cluster.may_stop_uncleanly(node):
            return False
        node.disk.condition.full = True

        def make_space() -> None:
            node.disk.condition.full = False
            if node.up:
                self._kill_now(node)
            else:  # it has ended by itself, since it could not write: that is no clean stop either
                self._cluster.stops_uncleanly(node, Survives.ALL)
            self._start(node)

        return self.after(fault, make_space)

    def _jump(self, fault: Fault) -> bool:
        random = Random(fault.number)
        cluster = self._cluster
        node: Node = cluster.controller if random.random() < 0.25 else cluster.brokers[fault.node]
        node.set_clock(random.randint(-fault.lasts_ms, fault.lasts_ms) * MOST_SKEW)
        return self.after(fault, lambda: node.set_clock(0))

    # ---- operators

    def _reassign(self, fault: Fault) -> bool:
        random = Random(fault.number)
        brokers = list(self._cluster.brokers)
        count = random.randint(self._cluster.least_replicas, len(brokers))
        replicas = random.sample(brokers, count) if random.random() < 0.9 else None
        index = random.randrange(self._cluster.partitions)
        before = self._cluster.replicas_of(index)
        self._cluster.operator.reassign(index, replicas)
        if random.random() < 0.5:
            return True
        return self.after(fault, lambda: self._cluster.operator.reassign(index, before))

    def _prefer(self, fault: Fault) -> bool:
        self._cluster.operator.prefer(range(self._cluster.partitions))
        return True

    def _move_leader(self, fault: Fault) -> bool:
        """Put a replica first, and ask for preferred leaders; later put the one before first again."""
        random = Random(fault.number)
        moved = [index for index in range(self._cluster.partitions) if random.random() < 0.8]
        before = {index: self._cluster.replicas_of(index) for index in moved}
        before = {index: replicas for index, replicas in before.items() if fault.node in replicas}
        if not before:
            return False
        for index, replicas in before.items():
            others = [replica for replica in replicas if replica != fault.node]
            random.shuffle(others)
            self._cluster.operator.reassign(index, [fault.node, *others])
        self._cluster.operator.prefer(list(before))
        if random.random() < 0.3:
            return True

        def move_back() -> None:
            there = {index: self._cluster.replicas_of(index) for index in before}
            for index, replicas in before.items():
                if set(there[index]) == set(replicas):
                    self._cluster.operator.reassign(index, replicas)
            self._cluster.operator.prefer(list(before))

        return self.after(fault, move_back)

    # ---- the network

    def _copy(self, fault: Fault) -> bool:
        """Who has sent it sends it again, at once on another connection; so two copies arrive, in any order, or later ones
        before the first.
        """
        random = Random(fault.number)
        client = random.choice(self._cluster.client_ids())
        whose = random.choice(((fault.node, "isr"), (fault.node, "lifecycle"), (client, f"client {client}")))
        self._cluster.network.lost_with_next[whose] = random.randint(0, random.choice((60, fault.lasts_ms)))
        return True

    def _strike(self, fault: Fault) -> bool:
        """Something happens to others just while a leader asks for an ISR, or a follower for records."""
        network, random = self._cluster.network, Random(fault.number)

        def isr_is_proposed(line: Line) -> None:
            self._hold_leader_up(line, fault, random)
            others = [node for node in self._cluster.brokers.values() if node.node_id != line.client.node_id]
            self._stop_one(random.choice(others), fault, random)

        def records_are_fetched(line: Line) -> None:
            network.hold(line, False, fault.lasts_ms)
            if random.random() < 0.5:
                self._stop_one(self._cluster.brokers[fault.node], fault, random)
            else:
                self._move_leader(fault._replace(node=fault.other, lasts_ms=fault.lasts_ms // 3))

        if random.random() < 0.6:
            for node in self._cluster.brokers:
                network.told_of_next[node, "isr"] = isr_is_proposed
        else:
            network.told_of_next[fault.node, "fetch"] = records_are_fetched
        return True

    def _hold_leader_up(self, line: Line, fault: Fault, random: Random) -> None:
        """The leader's proposal, or the answer, arrives late, and perhaps its metadata."""
        network, node = self._cluster.network, line.client.node_id
        network.hold(line, random.random() < 0.5, fault.lasts_ms)
        if random.random() < 0.6:
            until_ms = self._cluster.clock.now_ms + fault.lasts_ms
            network.late[node, "metadata", random.random() < 0.5] = until_ms

    def _stop_one(self, node: BrokerNode, fault: Fault, random: Random) -> None:
        """A broker is killed, loses power or stands still for a while; or what it says arrives late.

        What was waited for may come with the event that ends all faults: then nothing happens any more.
        """
        if not self._active:
            return
        kind = random.choice((Kind.KILL, Kind.POWER, Kind.PAUSE, Kind.HOLD))
        lasts_ms = 1 + fault.lasts_ms // random.choice((1, 4))
        struck = fault._replace(kind=kind, node=node.node_id, lasts_ms=lasts_ms)
        if self._actions[kind](struck):
            self._cluster.tell(struck.in_words())

    def _be_sluggish(self, fault: Fault) -> bool:
        random = Random(fault.number)
        sluggish = self._cluster.network.sluggish
        ways = [(fault.node, purpose, forth) for purpose in PURPOSES for forth in (True, False)]
        chosen = random.sample(ways, random.randint(1, MOST_HELD))
        for way in chosen:
            sluggish[way] = random.randint(10, MOST_SLUGGISH_MS)

        def be_quick() -> None:
            for way in chosen:
                sluggish.pop(way, None)

        return self.after(fault, be_quick)

    def _break(self, fault: Fault) -> bool:
        random = Random(fault.number)
        lines = self._cluster.network.lines_of(fault.node)
        if not lines:
            return False
        for line in random.sample(lines, random.randint(1, min(MOST_LOST, len(lines)))):
            after_ms = random.randint(0, fault.lasts_ms) if random.random() < 0.7 else None
            if random.random() < 0.4:
                self._cluster.network.lose(line, after_ms)
            else:
                line.lost_with_next = (after_ms,)
        return True

    def _hold(self, fault: Fault) -> bool:
        random = Random(fault.number)
        until_ms = self._cluster.clock.now_ms + fault.lasts_ms
        for purpose in random.sample(PURPOSES, random.randint(1, MOST_HELD)):
            for forth in random.choice(((True,), (False,), (True, False))):
                self._cluster.network.late[fault.node, purpose, forth] = until_ms
        return True

    def _block(self, fault: Fault, pairs: set[frozenset[int]]) -> bool:
        network = self._cluster.network
        network.blocked |= pairs

        def heal() -> None:
            network.blocked -= pairs
            self._cluster.tell(f"no more: {fault.in_words()}")

        return self.after(fault, heal)

    def _isolate(self, fault: Fault) -> bool:
        others = [*self._cluster.brokers, self._controller_id]
        return self._block(fault, {frozenset((fault.node, other)) for other in others if other != fault.node})


def _sent_arrives_ms(fault: Fault) -> int | None:
    """After how long what a dying process has sent last arrives: never, or late, perhaps after its next start."""
    random = Random(fault.number)
    return random.randint(0, 2 * fault.lasts_ms) if random.random() < 0.5 else None
