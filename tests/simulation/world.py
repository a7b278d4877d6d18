"""A simulated cluster with everything that may happen to it, and runs of it.

A move is a name and a number, from which the move draws its choices. So a run is a setup and a list of moves, and any part
of the list is a run, too: that is how a failing run is cut.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeAlias

from spec.broker.lifecycle import begin_controlled_shutdown, start_again, stop
from spec.broker.recovery import (
    Checkpoints,
    Survived,
    after_clean_stop,
    after_kill,
    after_power_loss,
    opened,
    previous_broker_epoch,
    recover,
)
from spec.broker.rules.lifecycle import BrokerState
from spec.controller.brokers import handle_unregister_broker, on_session_check
from spec.controller.partitions import (
    handle_alter_partition_reassignments,
    handle_create_topics,
    handle_elect_leaders,
    on_balance_check,
    on_unclean_election_check,
)
from spec.controller.state import activate
from spec.log.local_log import LocalLog
from spec.log.record_log import RecordLog
from spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from spec.messages.administration.create_topics import CreateTopicsRequest
from spec.messages.administration.elect_leaders import ElectLeadersRequest
from spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from spec.metadata import is_active
from spec.values import NO_BROKER_EPOCH, Epoch, Offset
from tests.simulation.client_moves import Clients
from tests.simulation.parties import PARTITION, Node
from tests.simulation.properties import check_cluster
from tests.simulation.setup import Setup
from tests.simulation.state import Violation
from tests.simulation.storage.records import idempotent_batches

Move: TypeAlias = tuple[str, int]

MOST_ROUNDS = 20
"""Requests and answers after which a broker that starts must be unfenced, where nothing is lost."""


class World(Clients):
    """The whole: brokers, clients, operators, failures."""

    def __init__(self, setup: Setup, first: int = 0) -> None:
        super().__init__(setup)
        self.moves = 0
        self.drawn = first
        for node in self.nodes:
            self.start(node)
            rounds = 0
            while not is_active(self.image.brokers, node.id):
                rounds += 1
                if rounds > MOST_ROUNDS:
                    raise Violation("ClusterForms", f"broker {node.id} is not unfenced: {self.image}")
                self.communicate(node)
                while self.flight:
                    self.deliver(node)
                self.publish(node)
        shift = self.pick(len(self.nodes))
        order = [node.id for node in (*self.nodes[shift:], *self.nodes[:shift])][: max(2, min(3, len(self.nodes)))]
        self.decide(handle_create_topics, CreateTopicsRequest(PARTITION, tuple(order)))
        if self.topic is None:
            raise Violation("ClusterForms", f"there is no partition: {self.image}")
        for node in self.nodes:
            self.publish(node)

    def take(self, move: Move) -> None:
        """Make one move by a broker that can, and look at everything; if none can, it counts for nothing."""
        name, self.drawn = move
        happens, nodes = getattr(self, name), self.nodes
        first, left = self.pick(len(nodes)), self.drawn
        try:
            for turn in range(len(nodes)):
                self.drawn = left
                if happens(nodes[first - turn]):
                    self.moves += 1
                    check_cluster(self)
                    return
        except AssertionError as wrong:
            raise Violation("OwnAssertion", str(wrong)) from wrong

    # ---- life and death

    def start(self, node: Node) -> bool:
        """The broker starts: it has opened its log, and knows nothing else."""
        if node.up:
            return False
        node.life = start_again(node.life, node.previous_epoch)
        node.previous_epoch = NO_BROKER_EPOCH
        node.up, node.is_new = True, True
        node.run += 1
        node.now = self.pick(10) * 1000
        node.end_at_start = self.images[-1].end_offset
        if self.say:
            self.say(f"{node.id} starts with {node.partition.local}")
        return True

    def _stop(self, node: Node, survived: Survived[RecordLog], how: str) -> None:
        """What is stored is what is left; the log is opened again at once, for the next start."""
        if self.say:
            self.say(f"{node.id} {how}: {survived}")
        node.stop()
        recovered = recover(survived)
        self.look_at_recovery(node, survived, recovered)
        node.disk.replace(recovered.local.log)
        checkpoints = survived.checkpoints
        node.disk.flushed = min(node.disk.flushed, node.disk.end)
        node.disk.checkpoints = Checkpoints(
            Offset(min(checkpoints.high_watermark, recovered.local.high_watermark)),
            Offset(min(checkpoints.recovery_point, node.disk.end)),
            checkpoints.log_start,
        )
        batches = idempotent_batches(node.disk.records, node.disk.start)
        node.partition = opened(PARTITION, recovered, batches)
        self.learn_producers(node)
        self.flight = [
            message
            for message in self.flight
            if not (message.source == node.id and message.answer is not None)
            and not (message.channel == node.id and message.answer is not None)
        ]

    def look_at_recovery(self, node: Node, survived: Survived[RecordLog], recovered: object) -> None:
        """A place for oracles."""

    def shut_down(self, node: Node) -> None:
        """The broker stops in order, and notes its broker epoch with the clean-shutdown file."""
        node.previous_epoch = previous_broker_epoch((node.epoch,))
        local = LocalLog(node.disk.as_log(), node.partition.local.high_watermark)
        node.disk.flushed = node.disk.end
        self._stop(node, after_clean_stop(local), "stops")

    def kill(self, node: Node) -> bool:
        """The process is killed: what it has stored stays, its checkpoints are old."""
        if not node.up or not self._may_lose(node):
            return False
        node.previous_epoch = previous_broker_epoch((NO_BROKER_EPOCH,))
        node.lossy = self.setup.eligible_leader_replicas
        local = LocalLog(node.disk.as_log(), node.partition.local.high_watermark)
        self.reached["unclean stops"] += 1
        self._stop(node, after_kill(local, node.disk.checkpoints), "is killed")
        return True

    def lose_power(self, node: Node) -> bool:
        """The machine loses its power: what was not flushed is gone, or only a part of it is readable."""
        if not node.up or not self.setup.power_losses or not self._may_lose(node):
            return False
        node.previous_epoch = previous_broker_epoch((NO_BROKER_EPOCH, NO_BROKER_EPOCH))
        node.lossy = True
        disk = node.disk
        log, lowest = disk.as_log(), max(disk.start, disk.checkpoints.recovery_point)
        end = Offset(lowest + (self.pick(disk.end - lowest + 1) if self.pick(10) < 7 and disk.end > lowest else 0))
        self.reached["unclean stops"] += 1
        if self.pick(2) and end < disk.end:
            survived = Survived(log, disk.checkpoints, first_invalid=end)
        else:
            survived = after_power_loss(LocalLog(log, node.partition.local.high_watermark), disk.checkpoints, end)
        disk.flushed = min(disk.flushed, end)
        self._stop(node, survived, "loses power")
        return True

    def _may_lose(self, node: Node) -> bool:
        """With eligible leader replicas, fewer replicas than min ISR may lose records at a time; without them, none."""
        setup, topic = self.setup, self.topic
        if setup.unlimited_losses or setup.unclean_elections or not setup.eligible_leader_replicas:
            return True
        if topic is None:
            return False
        for one in self.nodes:
            back = one.up and (one.id in topic.isr or one.id in topic.elr) and self.is_present(one)
            if one.lossy and (back or one.id not in topic.replicas):
                one.lossy = False
        return sum(one.lossy for one in self.nodes) + (not node.lossy) < setup.min_isr

    def leave(self, node: Node) -> bool:
        """The broker shall stop: it asks for a controlled shutdown."""
        if not self.setup.clean_stops or not node.up or not node.registered:
            return False
        self._end(node, False)
        return True

    def stop_cleanly(self, node: Node) -> bool:
        """The broker stops without leave, because it has waited long enough."""
        if not self.setup.clean_stops or not node.up or node.life.state != BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return False
        self._end(node, True)
        return True

    def _end(self, node: Node, at_once: bool) -> None:
        step = stop(node.life) if at_once else begin_controlled_shutdown(node.life)
        self.look_at("stop" if at_once else "begin shutdown", node)
        self.seen(step)
        node.life = step.state
        for _ in step.effects:
            self.shut_down(node)

    # ---- the controller and its operators

    def expire(self, node: Node) -> bool:
        """The session of this broker is over, and no other's; the controller looks at once, or later."""
        timeout = self.party.settings.session_timeout_ms
        self.time += timeout + 1
        sessions = [
            session if session.broker == node.id else session._replace(last_contact_ms=self.time)
            for session in self.controller.sessions
        ]
        self.controller = self.controller._replace(sessions=tuple(sessions))
        if self.pick(2):
            self.decide(on_session_check)
        return True

    def check_sessions(self, node: Node) -> bool:
        """Time passes for the controller."""
        self.time += (1, 1000, 4000)[self.pick(3)]
        self.decide(on_session_check)
        return True

    def prefer(self, node: Node) -> bool:
        """An operator asks for the preferred leader."""
        self.decide(handle_elect_leaders, ElectLeadersRequest(PARTITION, self.setup.unclean_elections and self.pick(2) > 0))
        return True

    def balance(self, node: Node) -> bool:
        """The controller looks for preferred leaders that do not lead."""
        self.decide(on_balance_check)
        return True

    def elect_uncleanly(self, node: Node) -> bool:
        """The controller looks for partitions without a leader."""
        self.decide(on_unclean_election_check)
        return True

    def reassign(self, node: Node) -> bool:
        """An operator moves the partition, or cancels a move."""
        if not self.setup.reassigns:
            return False
        replicas = None
        if self.pick(5):
            fewest = min(len(self.nodes), self.setup.min_isr) if self.setup.eligible_leader_replicas else 1
            left = [one.id for one in self.nodes]
            wanted = fewest + self.pick(len(left) - fewest + 1)
            replicas = tuple([left.pop(self.pick(len(left))) for _ in range(wanted)])
        self.decide(handle_alter_partition_reassignments, AlterPartitionReassignmentsRequest(PARTITION, replicas))
        return True

    def unregister(self, node: Node) -> bool:
        """An operator removes a broker that is down. It then counts as one that may have lost all, however it stopped."""
        if node.up or not self._may_lose(node):
            return False
        node.lossy = True
        self.decide(handle_unregister_broker, UnregisterBrokerRequest(node.id))
        return True

    def fail_over(self, node: Node) -> bool:
        """Another controller takes over; the old one does not know it yet."""
        self.deposed = self.controller
        self.controller = activate(Epoch(self.controller.controller_epoch + 1), self.image, self.time)
        self.look_at_failover()
        return True

    def look_at_failover(self) -> None:
        """A place for oracles."""

    # ---- in the end

    def heal(self) -> None:
        """Everybody is up and nothing is lost any more; then all must come to hold the same."""
        self.deposed = None
        for _ in range(60):
            self.time += 2000
            self.decide(on_session_check)
            for node in self.nodes:
                self.drawn = 99
                self.start(node)
                self.communicate(node)
                self.propose(node)
                node.now += 2000
                self.ask(node)
                while self.flight:
                    self.drawn = 99
                    self.deliver(node)
                self.drawn = 0
                self.publish(node)
            check_cluster(self)


def moves_of(setup: Setup, seed: int, count: int) -> Iterator[Move]:
    """The moves of a seed."""
    random = Random(f"moves {seed}")
    names = [name for name, _ in setup.weights]
    numbers = random.getrandbits
    for name in random.choices(names, [weight for _, weight in setup.weights], k=count):
        yield name, numbers(64)


def run(setup: Setup, moves: Sequence[Move] | Iterator[Move], world: World | None = None) -> World:
    """Make the moves; `Violation` if a property does not hold."""
    world = world or World(setup)
    for move in moves:
        world.take(move)
    return world
