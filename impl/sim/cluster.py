"""One simulated cluster: a controller, brokers, clients, faults, and what is held against the promises while it runs."""

from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any

from impl.broker.replica import Place, Replica
from impl.sim.clients import Consumer, Producer, SimClient, Surroundings, values_in
from impl.sim.clock import START_MS, Clock
from impl.sim.faults import Faults
from impl.sim.history import BrokenPromiseError, PartitionHistory, Value
from impl.sim.network import Network
from impl.sim.nodes import BrokerNode, ControllerNode
from impl.sim.operator import Operator
from impl.sim.plan import Fault
from impl.sim.promises import Promises
from impl.sim.setup import CONTROLLER_ID, FIRST_CLIENT_ID, TOPIC, Setup
from impl.wire.values import Message
from spec.messages.produce import ACKS_LEADER
from spec.metadata import PartitionRegistration
from spec.values import Offset

CALM_MS = 120_000
"""How long a cluster without faults may take until all is well again."""


class SimulatedCluster:
    """The cluster of one seed."""

    kind_of_promises: type[Promises] = Promises
    """Who holds it against the promises."""

    def __init__(self, setup: Setup, planned: Iterable[Fault] = ()) -> None:
        self.setup = setup
        weather = setup.surroundings
        self.partitions, self.least_replicas = weather.partitions, max(2, weather.min_isr)
        self.random = Random(setup.seed)
        self.clock = Clock()
        self.network = Network(self.clock, self.random, weather.delays, weather.stragglers, setup.is_coded)
        self.steps = 0
        """Steps of handlers so far."""
        settings = setup.settings()
        self.controller = ControllerNode(CONTROLLER_ID, self.clock, self.network, self.random, setup.controller, settings)
        self.brokers = {
            node: BrokerNode(node, self.clock, self.network, self.random, protocol, settings, CONTROLLER_ID)
            for node, protocol in sorted(setup.protocols.items())
        }
        for node in (self.controller, *self.brokers.values()):
            node.note = self.note
        self.histories = {index: PartitionHistory() for index in range(weather.partitions)}
        self._promises = self.kind_of_promises(setup, self.controller, self.brokers, self.histories)
        for index, history in self.histories.items():
            history.on_acknowledged = partial(self._promises.acknowledged, index)
        self._around = Surroundings(self.clock, self.network, self.random, list(self.brokers), TOPIC, weather.think)
        self.operator = Operator(self._around)
        self.clients: list[SimClient] = []
        self.told: list[str] = []
        self._incomplete = False
        """Whether a broker has lost power, and not all replicas are in sync again."""
        self.faults = Faults(self, planned)

    # ---- running

    def run(self, most_steps: int) -> None:
        """Start everything, and let it run with faults for so many steps; then calm it, and look at all logs.

        Raises: `BrokenPromiseError`.
        """
        self.controller.start()
        for node in self.brokers.values():
            node.start()
        self._until(self._is_formed, "start")
        self._create_topic()
        self._start_clients()
        self.faults.begin()
        while self.steps < most_steps:
            self._next()
        self.calm()

    def _is_formed(self) -> bool:
        """Whether all brokers serve and are unfenced; older releases serve before they are."""
        unfenced = [one for one in self.controller.core.image.spec.brokers if not one.fenced]
        return all(node.serves for node in self.brokers.values()) and len(unfenced) == len(self.brokers)

    def calm(self) -> None:
        """End all faults, wait until all replicas are in sync and producers have come through, and look at all logs."""
        self.faults.end()
        self._promises.look()
        for client in self.clients:
            client.stopped = True
        self._until(self._is_well, "be well again")
        last = self._new_producer(0)
        last.start()
        self._until(lambda: last.acknowledged > 0, "acknowledge a new record")
        last.stopped = True
        self._until(self._is_well, "be well again")
        self._check_logs()
        self._promises.look_at_all()

    def _next(self) -> None:
        if not self.clock.next_event():
            raise BrokenPromiseError("NeverReady", "nothing is left to happen")
        self._promises.look()

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = self.clock.now_ms + CALM_MS
        while not condition():
            if self.clock.now_ms > deadline:
                what = f"the cluster does not {what} within {CALM_MS // 1000} s: {self.in_words()}"
                raise BrokenPromiseError("NeverReady", what)
            self._next()

    def _is_well(self) -> bool:
        return self.all_in_sync() and all(self._same_ends(index) for index in self.histories)

    def all_in_sync(self) -> bool:
        """Whether the controller counts all replicas as in sync."""
        partitions = self.controller.core.image.spec.partitions
        return all(one.registration.isr == frozenset(one.registration.replicas) for one in partitions)

    def may_lose_power(self) -> bool:
        """Whether all that was acknowledged is on every broker, so that one may lose some of it.

        With eligible leader replicas, fewer replicas than min.insync.replicas may lose records at a time, and every unclean
        stop counts as a loss (KIP-966).
        """
        full = any(node.disk.condition.full for node in self.brokers.values())
        return self.setup.surroundings.min_isr > 1 and not full and self._is_at_full_strength()

    def may_stop_uncleanly(self) -> bool:
        """Whether no broker lacks what it has lost."""
        if self._incomplete and self._is_at_full_strength():
            self._incomplete = False
        return not self._incomplete

    def _is_at_full_strength(self) -> bool:
        """Whether all brokers serve, and are in sync by the controller's word on their incarnations."""
        if not self.controller.up or not all(node.serves for node in self.brokers.values()):
            return False
        registered = {int(one.broker): one.broker_epoch for one in self.controller.core.image.spec.brokers}
        known = {node.node_id: node.member.membership.lifecycle.broker_epoch for node in self.brokers.values()}
        return self.all_in_sync() and all(registered.get(one) == epoch for one, epoch in known.items())

    def _same_ends(self, index: int) -> bool:
        registration = self._registration(index)
        replicas = self._replicas(index)
        ends = {replica.partition.local.log.end_offset for replica in replicas}
        marks = {replica.partition.local.high_watermark for replica in replicas}
        settled = not registration.adding and not registration.removing
        return settled and len(replicas) == len(registration.replicas) and len(ends) == 1 and marks == ends

    def lost_power(self, node: BrokerNode) -> None:
        """A broker loses power, and may have lost records."""
        self._incomplete = True
        self._promises.lossy[node.node_id] = node.member.membership.lifecycle.broker_epoch

    # ---- topics and clients

    def _create_topic(self) -> None:
        factor, brokers = self.setup.replication_factor, list(self.brokers)
        assignments = [
            [brokers[(index + place) % len(brokers)] for place in range(factor)] for index in range(self.partitions)
        ]
        done: list[Message | None] = []
        self.operator.create_topic(assignments, self.setup.unclean_elections, done.append)
        self._until(lambda: bool(done), "create a topic")
        assert done[0] is not None, "the controller answers"
        error = done[0].topics[0].error_code
        assert error == 0, f"the topic is not created: error {error}"

    def _new_producer(self, index: int) -> Producer:
        history = self.histories[index] if not self.setup.unclean_elections else None
        return Producer(self._new_id(), self._around, index, history, self.setup.acks)

    def _new_id(self) -> int:
        return FIRST_CLIENT_ID + len(self.clients)

    def _start_clients(self) -> None:
        for index, history in self.histories.items():
            self.clients.append(self._new_producer(index))
            self.clients.append(self._new_producer(index))
            if self.setup.surroundings.hasty:
                self.clients.append(Producer(self._new_id(), self._around, index, None, ACKS_LEADER))
            self.clients.append(Consumer(self._new_id(), self._around, index, history))
        for client in self.clients:
            client.start()

    # ---- promises

    def note(self, handler: Any, party: Any, state: Any, given: Any, outcome: Any) -> None:
        """A handler has made a step."""
        self.steps += 1
        node = getattr(party, "self_id", None)
        if node is not None:
            self._promises.stepped.add(node)

    def _registration(self, index: int) -> PartitionRegistration:
        image = self.controller.core.image
        found = {image.key_of(one.partition_id).partition: one.registration for one in image.spec.partitions}
        return found[index]

    def _replicas(self, index: int) -> list[Replica]:
        """The replicas of a partition by the controller's word, as far as they are up."""
        nodes = [self.brokers[one] for one in self._registration(index).replicas]
        found = [node.core.replicas.get(Place(TOPIC, index)) for node in nodes if node.up]
        return [one for one in found if one is not None]

    def _check_logs(self) -> None:
        """All logs in the end."""
        for index, history in self.histories.items():
            replicas = self._registration(index).replicas
            logs = {node: self._log(node, index) for node in replicas}
            first = next(iter(logs))
            for node, log in logs.items():
                if log != logs[first]:
                    found, known = min(set(log) ^ set(logs[first])), (len(logs[first]), len(log))
                    what = f"brokers {first} and {node} of partition {index}, with {known} records, differ at {found}"
                    raise BrokenPromiseError("Diverged", what)
                history.check_log(f"broker {node}, partition {index},", log)

    def _log(self, node: int, index: int) -> list[tuple[Offset, Value]]:
        replica = self.brokers[node].core.replicas[Place(TOPIC, index)]
        found: list[tuple[Offset, Value]] = []
        log = replica.partition.local.log
        offset = log.start_offset
        while offset < log.end_offset:
            piece = replica.files.read(offset, log.end_offset, 1 << 20, at_least_one=True)
            found += values_in(piece.bytes())
            offset = piece.next_offset
        return found

    # ---- telling

    def tell(self, what: str) -> None:
        """Note what has happened, with the time and the steps so far."""
        self.told.append(f"{(self.clock.now_ms - START_MS) / 1000:9.3f} s {self.steps:8} {what}")

    def in_words(self) -> str:
        """The cluster in a line."""
        found = []
        for node in self.brokers.values():
            found.append(f"broker {node.node_id} {'serves' if node.serves else 'starts' if node.up else 'is down'}")
        for record in self.controller.core.image.spec.partitions:
            known = record.registration
            state = f"leader {known.leader}, epoch {known.leader_epoch}, ISR {sorted(known.isr)}"
            found.append(f"partition {record.partition_id} has {state}")
        return "; ".join(found)
