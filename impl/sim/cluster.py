"""One simulated cluster: a controller, brokers, clients, faults, and what is held against the promises while it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from impl.broker.calls import Ask, Channel
from impl.broker.replica import Place, Replica
from impl.sim.clients import Consumer, Producer, SimClient, Surroundings, nothing, values_in
from impl.sim.clock import START_MS, Clock
from impl.sim.faults import Fault, Faults
from impl.sim.history import BrokenPromiseError, PartitionHistory, Value
from impl.sim.network import Network
from impl.sim.nodes import BrokerNode, ControllerNode
from impl.wire.values import Message
from spec.broker.partition import Partition
from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import Controller
from spec.messages.produce import ACKS_ALL
from spec.metadata import PartitionRegistration, partition_of
from spec.values import NO_LEADER, Offset, PartitionId

CONTROLLER_ID = 100
ADMIN_ID, FIRST_CLIENT_ID = 1_000, 1_001
TOPIC = "sim"
CALM_MS = 120_000
"""How long a cluster without faults may take until all is well again."""

SETTINGS: Mapping[str, str] = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "300",
    "replica.fetch.backoff.ms": "200",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    "log.segment.bytes": "4096",
    "log.retention.ms": "-1",
}
"""Shorter times than Kafka's, so that more happens in a run."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is made of. `protocols`: the rules of each broker by its id."""

    seed: int
    protocols: Mapping[int, BrokerProtocol]
    controller: Controller
    partitions: int = 2
    replication_factor: int = 3
    acks: int = ACKS_ALL
    settings: Mapping[str, str] = field(default_factory=lambda: SETTINGS)


class SimulatedCluster:
    """The cluster of one seed."""

    def __init__(self, setup: Setup, planned: Sequence[Fault] = ()) -> None:
        self.setup = setup
        self.random = Random(setup.seed)
        self.clock = Clock()
        self.network = Network(self.clock, self.random)
        self.steps = 0
        """Steps of handlers so far."""
        settings = dict(setup.settings)
        self.controller = ControllerNode(CONTROLLER_ID, self.clock, self.network, self.random, setup.controller, settings)
        self.brokers = {
            node: BrokerNode(node, self.clock, self.network, self.random, protocol, settings, CONTROLLER_ID)
            for node, protocol in sorted(setup.protocols.items())
        }
        for node in (self.controller, *self.brokers.values()):
            node.note = self._note
        self.histories = {index: PartitionHistory() for index in range(setup.partitions)}
        for index, history in self.histories.items():
            history.on_acknowledged = partial(self._check_acknowledged, index)
        self._around = Surroundings(self.clock, self.network, self.random, list(self.brokers), TOPIC)
        self.clients: list[SimClient] = []
        self.told: list[str] = []
        self._leaders: dict[int, tuple[int, int]] = {}
        self._seen: dict[tuple[int, int, Place], Partition[Any]] = {}
        self._stepped: set[int] = set()
        self._partitions: object = None
        self.faults = Faults(self, planned)

    # ---- running

    def run(self, most_steps: int) -> None:
        """Start everything, and let it run with faults for so many steps; then calm it, and look at all logs.

        Raises: `BrokenPromiseError`.
        """
        self.controller.start()
        for node in self.brokers.values():
            node.start()
        self._until(lambda: all(node.serves for node in self.brokers.values()), "start")
        self._create_topic()
        self._start_clients()
        self.faults.begin()
        while self.steps < most_steps:
            self._next()
        self.calm()

    def calm(self) -> None:
        """End all faults, wait until all replicas are in sync and producers have come through, and look at all logs."""
        self.faults.end()
        for client in self.clients:
            client.stopped = True
        before = [one.acknowledged for one in self._producers()]
        self._until(self._is_well, "be well again")
        last = self._new_producer(0)
        last.start()
        self._until(lambda: last.acknowledged > 0, "acknowledge a new record")
        last.stopped = True
        self._until(self._is_well, "be well again")
        assert len(before) == len(self._producers())
        self._check_logs()

    def _next(self) -> None:
        if not self.clock.next_event():
            raise BrokenPromiseError("NeverReady", "nothing is left to happen")
        self._check_stepped()

    def _until(self, condition: Any, what: str) -> None:
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

    def is_at_full_strength(self) -> bool:
        """Whether all that was acknowledged is on every broker, by the controller's word on their incarnations."""
        if not self.controller.up or not all(node.serves for node in self.brokers.values()):
            return False
        registered = {int(one.broker): one.broker_epoch for one in self.controller.core.image.spec.brokers}
        known = {node.node_id: node.member.membership.lifecycle.broker_epoch for node in self.brokers.values()}
        return self.all_in_sync() and all(registered.get(one) == epoch for one, epoch in known.items())

    def _same_ends(self, index: int) -> bool:
        replicas = self._replicas(index)
        ends = {replica.partition.local.log.end_offset for replica in replicas}
        marks = {replica.partition.local.high_watermark for replica in replicas}
        return len(replicas) == self.setup.replication_factor and len(ends) == 1 and marks == ends

    # ---- topics and clients

    def _create_topic(self) -> None:
        factor, brokers = self.setup.replication_factor, list(self.brokers)
        assignments = [
            Message(
                partition_index=index,
                broker_ids=[brokers[(index + place) % len(brokers)] for place in range(factor)],
            )
            for index in range(self.setup.partitions)
        ]
        topic = Message(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments)
        done: list[Message | None] = []
        admin = SimClient(ADMIN_ID, self._around, 0)
        asked = Ask(Channel(CONTROLLER_ID, "admin"), "CreateTopics", Message(topics=[topic], timeout_ms=30_000), nothing)
        self.network.ask(admin, asked, done.append)
        self._until(lambda: bool(done), "create a topic")
        assert done[0] is not None, "the controller answers"
        error = done[0].topics[0].error_code
        assert error == 0, f"the topic is not created: error {error}"

    def _new_producer(self, index: int) -> Producer:
        return Producer(self._new_id(), self._around, index, self.histories[index], self.setup.acks)

    def _new_id(self) -> int:
        return FIRST_CLIENT_ID + len(self.clients)

    def _start_clients(self) -> None:
        for index, history in self.histories.items():
            self.clients.append(self._new_producer(index))
            self.clients.append(self._new_producer(index))
            self.clients.append(Consumer(self._new_id(), self._around, index, history))
        for client in self.clients:
            client.start()

    def _producers(self) -> list[Producer]:
        return [one for one in self.clients if isinstance(one, Producer)]

    # ---- promises

    def _note(self, handler: Any, party: Any, state: Any, given: Any, outcome: Any) -> None:
        """A handler has made a step."""
        self.steps += 1
        node = getattr(party, "self_id", None)
        if node is not None:
            self._stepped.add(node)

    def _check_stepped(self) -> None:
        """What must hold after the steps of one event."""
        for node_id in self._stepped:
            node = self.brokers[node_id]
            if node.up:
                for replica in node.core.replicas.values():
                    self._check_replica(node, replica)
        self._stepped.clear()
        spec = self.controller.core.image.spec if self.controller.up else None
        if spec is not None and spec.partitions is not self._partitions:
            self._partitions = spec.partitions
            for record in spec.partitions:
                self._check_leader(record.partition_id, record.registration)

    def _check_replica(self, node: BrokerNode, replica: Replica) -> None:
        now = replica.partition
        process = (node.node_id, node.incarnation, replica.place)
        before = self._seen.get(process)
        if before is now:
            return
        self._seen[process] = now
        log, mark = now.local.log, now.local.high_watermark
        if not log.start_offset <= mark <= log.end_offset:
            raise BrokenPromiseError("TypeOk", f"broker {node.node_id}: {log.start_offset}, {mark}, {log.end_offset}")
        if now.leader == node.node_id and self.controller.up:
            self._check_isr(replica, node)
        same_leader = before is not None and before.leader == now.leader == node.node_id
        if same_leader and before is not None and mark < before.local.high_watermark:
            what = f"broker {node.node_id} from {before.local.high_watermark} to {mark}"
            raise BrokenPromiseError("HighWatermarkGrows", what)

    def _check_acknowledged(self, index: int, end_offset: int) -> None:
        """Whether enough brokers have what a producer was just told is safe; of a broker that is down nobody knows."""
        ends = [replica.partition.local.log.end_offset for replica in self._replicas(index)]
        down = self.setup.replication_factor - len(ends)
        wanted = int(self.setup.settings["min.insync.replicas"])
        if sum(end >= end_offset for end in ends) + down < wanted:
            what = f"records up to {end_offset} are acknowledged, logs of partition {index} end at {sorted(ends)}"
            raise BrokenPromiseError("AcknowledgedByEnough", what)

    def _check_isr(self, replica: Replica, node: BrokerNode) -> None:
        """Whether the members of the controller's ISR have what the leader calls committed."""
        image = self.controller.core.image
        known = partition_of(image.spec, replica.partition_id)
        now = replica.partition
        if known is None or (known.leader, known.leader_epoch) != (node.node_id, now.leader_epoch):
            return
        registered = {int(one.broker): one.broker_epoch for one in image.spec.brokers}
        for member in known.isr:
            other = self.brokers[member]
            found = other.core.replicas.get(replica.place) if other.up else None
            if found is not None and registered.get(member) == other.member.membership.lifecycle.broker_epoch:
                end, mark = found.partition.local.log.end_offset, now.local.high_watermark
                if end < mark:
                    what = f"leader {node.node_id} has high watermark {mark}, the log of broker {member} ends at {end}"
                    raise BrokenPromiseError("StrongIsr", what)

    def _check_leader(self, partition_id: int, registration: PartitionRegistration) -> None:
        """Whether a leader that has just been elected holds every acknowledged record."""
        leader, epoch = registration.leader, registration.leader_epoch
        if leader == NO_LEADER or self._leaders.get(partition_id) == (leader, epoch):
            return
        self._leaders[partition_id] = (leader, epoch)
        node = self.brokers[leader]
        index = self.controller.core.image.key_of(PartitionId(partition_id)).partition
        replica = node.core.replicas.get(Place(TOPIC, index)) if node.up else None
        if replica is None or self.setup.acks != ACKS_ALL:
            return
        known, end = self.histories[index].end_of_acknowledged, replica.partition.local.log.end_offset
        if end < known:
            what = f"broker {leader} is elected in epoch {epoch} with a log that ends at {end}, acknowledged are {known}"
            raise BrokenPromiseError("AcknowledgedOnNextLeader", what)

    def _replicas(self, index: int) -> list[Replica]:
        found = [node.core.replicas.get(Place(TOPIC, index)) for node in self.brokers.values() if node.up]
        return [one for one in found if one is not None]

    def _check_logs(self) -> None:
        """All logs in the end."""
        for index, history in self.histories.items():
            logs = {node: self._log(node, index) for node in self.brokers if self._log(node, index) is not None}
            first = next(iter(logs))
            for node, log in logs.items():
                assert log is not None
                if log != logs[first]:
                    raise BrokenPromiseError("Diverged", f"brokers {first} and {node} of partition {index}")
                history.check_log(f"broker {node}, partition {index},", log)

    def _log(self, node: int, index: int) -> list[tuple[Offset, Value]] | None:
        replica = self.brokers[node].core.replicas.get(Place(TOPIC, index))
        if replica is None:
            return None
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
