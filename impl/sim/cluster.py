"""One simulated cluster: a controller, brokers, clients, faults, and what is held against the promises while it runs."""

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from random import Random
from typing import Any

from impl.broker.replica import Place, Replica
from impl.sim.clients import Consumer, Operator, Producer, SimClient, Surroundings, values_in
from impl.sim.clock import START_MS, Clock
from impl.sim.faults import Faults
from impl.sim.history import BrokenPromiseError, PartitionHistory, Value
from impl.sim.network import Network
from impl.sim.nodes import BrokerNode, ControllerNode
from impl.sim.plan import Fault
from impl.sim.promises import Promises
from impl.sim.setup import CONTROLLER_ID, FIRST_CLIENT_ID, TOPIC, Setup
from impl.storage.simulated_disk import Survives
from impl.wire.values import Message
from spec.broker.partition import Broker
from spec.messages.produce import ACKS_LEADER
from spec.metadata import PartitionRegistration
from spec.values import BrokerId, Offset

CALM_MS = 120_000
"""How long a cluster without faults may take until all is well again."""


LEAST_REPLICAS = 2
"""How many replicas an operator leaves to a partition at least."""


class SimulatedCluster:
    """The cluster of one seed."""

    kind_of_promises: type[Promises] = Promises
    """Who holds it against the promises."""

    def __init__(self, setup: Setup, planned: Iterable[Fault] = ()) -> None:
        self.setup = setup
        self._weather = weather = setup.surroundings
        self.partitions, self.least_replicas = weather.partitions, LEAST_REPLICAS
        self.random = Random(setup.seed)
        self.clock = Clock()
        self.network = Network(self.clock, self.random, weather.delays, weather.stragglers, setup.is_coded)
        for purpose, forth, longer_ms in weather.sluggish:
            self.network.sluggish.update({(node, purpose, forth): longer_ms for node in setup.protocols})
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
        promised = all(one.promises_latest_offset for one in setup.protocols.values())
        self._around = Surroundings(
            self.clock, self.network, self.random, list(self.brokers), TOPIC, weather.think, weather.asks_latest, promised
        )
        self.operator = Operator(self._around)
        self.clients: list[SimClient] = []
        self.told: list[str] = []
        self._killed: set[int] = set()
        """Brokers that have stopped without leave, and are not in sync again."""
        self._lost: set[int] = set()
        """Brokers that have lost power, and are not in sync again."""
        self.faults = Faults(self, planned)

    # ---- running

    def run(self, most_steps: int, most_ms: int | None = None) -> None:
        """Start everything, and let it run with faults for so many steps, or ms; then calm it, and look at all logs.

        Raises: `BrokenPromiseError`.
        """
        self.controller.start()
        for node in self.brokers.values():
            node.start()
        self._until(self._is_formed, "start")
        self._create_topic()
        self._start_clients()
        self.faults.begin()
        end_ms = inf if most_ms is None else self.clock.now_ms + most_ms
        while self.steps < most_steps and self.clock.now_ms < end_ms:
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
        self._until(self._is_whole, "be whole again")
        last = [self._new_producer(index) for index in self.histories]
        for producer in last:
            producer.start()
        self._until(lambda: all(one.acknowledged > 0 for one in last), "acknowledge new records")
        for producer in last:
            producer.stopped = True
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

    def _is_whole(self) -> bool:
        return self.all_in_sync() and all(self._same_ends(index) for index in self.histories)

    def _is_well(self) -> bool:
        """Whether followers have the leader's high watermark besides: they are told with the next record at the latest.

        An answer that tells a follower to truncate has the leader's high watermark, too. The follower does not take it, and
        the leader's fetch session takes it for told. So without a new record it is not told again, in Apache Kafka neither
        (`CachedPartition.maybeUpdateResponseData`, `AbstractFetcherThread.processFetchRequest`).
        """
        return self._is_whole() and all(self._same_marks(index) for index in self.histories)

    def all_in_sync(self) -> bool:
        """Whether the controller counts all replicas as in sync."""
        partitions = self.controller.core.image.spec.partitions
        return all(one.registration.isr == frozenset(one.registration.replicas) for one in partitions)

    def may_lose_power(self, node: BrokerNode) -> bool:
        """Whether enough others have all that was acknowledged, so that this broker may lose some of it.

        With eligible leader replicas, fewer replicas than min.insync.replicas may lose records at a time, and every unclean
        stop counts as a loss (KIP-966). Without, only while all replicas are in sync.
        """
        full = any(one.disk.condition.full for one in self.brokers.values())
        if full or self._weather.min_isr < 2 or not self.controller.up:
            return False
        self._note_completed()
        if not self.controller.core.topic_settings.eligible_leader_replicas:
            return not self._killed and not self._lost and self.all_in_sync() and all(map(self._is_complete, self.brokers))
        return self._killed | self._lost <= {node.node_id}

    def may_stop_uncleanly(self, node: BrokerNode) -> bool:
        """Whether no other broker lacks what it has lost."""
        self._note_completed()
        return self._lost <= {node.node_id}

    def _note_completed(self) -> None:
        complete = {node for node in self._killed | self._lost if self._is_complete(node)}
        self._killed -= complete
        self._lost -= complete

    def _is_complete(self, node_id: int) -> bool:
        """Whether a broker serves, and is in sync by the controller's word on its present incarnation."""
        node = self.brokers[node_id]
        if not self.controller.up or not node.serves:
            return False
        image = self.controller.core.image.spec
        epochs = {int(one.broker): one.broker_epoch for one in image.brokers}
        if epochs.get(node_id) != node.member.membership.lifecycle.broker_epoch:
            return False
        assigned = [one.registration for one in image.partitions if node_id in one.registration.replicas]
        return all(node_id in one.isr for one in assigned)

    def is_displaced(self, node: BrokerNode) -> bool:
        """Whether the controller has another incarnation of this broker, and this one has registered."""
        if not (node.up and node.is_registered and self.controller.up):
            return False
        lifecycle = node.member.membership.lifecycle
        known = {int(one.broker): one.incarnation for one in self.controller.core.image.spec.brokers}
        return known.get(node.node_id) != lifecycle.incarnation

    def stops_uncleanly(self, node: BrokerNode, survives: Survives) -> None:
        """A broker stops without leave, and may lose records."""
        if survives == Survives.ALL:
            self._killed.add(node.node_id)
            return
        self._lost.add(node.node_id)
        self._promises.lost_power(node.node_id)

    def replicas_of(self, index: int) -> tuple[BrokerId, ...]:
        """The replicas of a partition in their order, by the controller's word."""
        return self._registration(index).replicas

    def leader_of(self, index: int) -> BrokerId:
        """The leader of a partition, by the controller's word."""
        return self._registration(index).leader

    def client_ids(self) -> list[int]:
        """The ids of all clients."""
        return [client.node_id for client in self.clients]

    def _same_ends(self, index: int) -> bool:
        registration = self._registration(index)
        replicas = self._replicas(index)
        ends = {replica.partition.local.log.end_offset for replica in replicas}
        settled = not registration.adding and not registration.removing
        return settled and len(replicas) == len(registration.replicas) and len(ends) == 1

    def _same_marks(self, index: int) -> bool:
        locals_of = [replica.partition.local for replica in self._replicas(index)]
        return all(local.high_watermark == local.log.end_offset for local in locals_of)

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
            if self._weather.hasty:
                self.clients.append(Producer(self._new_id(), self._around, index, None, ACKS_LEADER))
            self.clients.append(Consumer(self._new_id(), self._around, index, history))
        for client in self.clients:
            client.start()

    # ---- promises

    def note(self, handler: Any, party: Any, state: Any, given: Any, outcome: Any) -> None:
        """A handler has made a step."""
        self.steps += 1
        # What is no step of a broker's partitions may have changed the controller's image; of a broker's own start and stop
        # the properties read what the controller has registered.
        self._promises.stepped.add(party.self_id if isinstance(party, Broker) else CONTROLLER_ID)

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
