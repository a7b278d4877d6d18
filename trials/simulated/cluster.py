"""One simulated cluster: a controller, brokers, clients and faults, checked against the promises while it runs."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from random import Random

from kspec.impl.broker.replica import Replica
from kspec.impl.wire.values import Message
from kspec.spec.broker.partition import Broker
from kspec.spec.messages.produce import ACKS_LEADER
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.topics import TopicPartition
from kspec.spec.values import BrokerId, Offset
from kspec.trials.history.commits import GroupHistory
from kspec.trials.simulated.checks.metadata import place_of
from kspec.trials.simulated.clients.classic import ClassicMember
from kspec.trials.simulated.clients.client import ClientEnvironment, SimClient
from kspec.trials.simulated.clients.consumers import ConsumerClient
from kspec.trials.simulated.clients.groups import GroupClient, SimpleConsumer
from kspec.trials.simulated.clients.members import SimulatedMember
from kspec.trials.simulated.clients.operator import Operator
from kspec.trials.simulated.clients.partitions import Consumer, Deleter, ProducerClient, values_in
from kspec.trials.simulated.clock import START_MS, VirtualClock
from kspec.trials.simulated.controllers.several import SeveralControllers
from kspec.trials.simulated.controllers.voters import SimulatedVoterOperator, first_voters
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.faults import Faults
from kspec.trials.simulated.history import BrokenPromiseError, ClientPartitionHistory, Value
from kspec.trials.simulated.ids import CONTROLLER_ID, FIRST_CLIENT_ID, OFFSETS_PARTITIONS, OFFSETS_TOPIC, TOPIC
from kspec.trials.simulated.kinds.site import Fault
from kspec.trials.simulated.network import Network
from kspec.trials.simulated.nodes import BrokerNode, ControllerNode
from kspec.trials.simulated.promises import Promises
from kspec.trials.simulated.setup import RunSetup

HEALING_MS = 120_000
"""The longest time until a cluster without faults is healthy again (ms)."""


GROUPS = ("members", "simple", "consumers")
"""The group that has members, the one that has none, and the one whose members speak the newer protocol (KIP-848)."""

LEAST_REPLICAS = 2
"""The least number of replicas in an operator's reassignment."""


class SimulatedCluster:
    """The cluster of one seed."""

    kind_of_promises: type[Promises] = Promises
    """The checker of the promises."""

    more_purposes: tuple[str, ...] = ()
    """The purposes of brokers' connections to one another that its clients make them have."""

    other_partitions: tuple[TopicPartition, ...] = ()
    """Partitions that are looked at beside those of the topic and of `__consumer_offsets`."""

    def __init__(self, setup: RunSetup, planned: Iterable[Fault] = ()) -> None:
        self.setup = setup
        self._conditions = conditions = setup.conditions_now
        self.partitions, self.least_replicas = conditions.partitions, LEAST_REPLICAS
        self.random = Random(setup.seed)
        self.clock = VirtualClock()
        self.network = Network(self.clock, self.random, conditions.delays, conditions.stragglers, setup.is_coded)
        for purpose, forth, longer_ms in conditions.slow_links:
            self.network.slow_links.update({(node, purpose, forth): longer_ms for node in setup.protocols})
        self.steps = 0
        """Steps of handlers so far."""
        settings = setup.settings()
        ids = [CONTROLLER_ID + number for number in range(setup.controllers)]
        in_log = setup.has_voters_in_log
        self.controllers = [
            ControllerNode(
                *(one, self.clock, self.network, self.random, setup.controller, settings),
                voters=() if in_log else ids,
                bootstrap=ids if in_log else (),
                quorum=setup.quorum,
            )
            for one in ids
        ]
        self.controller: ControllerNode | SeveralControllers = self.controllers[0]
        self.voters: SimulatedVoterOperator | None = None
        """The operator of the voters, where they are in the log."""
        if len(ids) > 1:
            self.controller = several = SeveralControllers(self.controllers)
            if in_log:
                self.voters = SimulatedVoterOperator(self.clock, self.network, several)
                for controller in self.controllers:
                    controller.format(first_voters(ids))
        self.brokers = {
            node: BrokerNode(node, self.clock, self.network, self.random, protocol, settings, ids)
            for node, protocol in sorted(setup.protocols.items())
        }
        for node in (*self.controllers, *self.brokers.values()):
            node.note = self.note
            if setup.loses_epoch_files:
                node.epoch_files = Random(f"epoch files {setup.seed} {node.node_id}")
                node.tell = self.tell
        keeps = not setup.unclean_elections
        self.histories = {index: ClientPartitionHistory(keeps, conditions.deletes) for index in range(conditions.partitions)}
        self.places = {index: TopicPartition(TOPIC, index) for index in self.histories}
        """The name of each partition that is looked at."""
        self.groups = [GroupHistory(name, conditions.partitions) for name in GROUPS] if conditions.members else []
        if self.groups:
            self.places |= {
                conditions.partitions + index: TopicPartition(OFFSETS_TOPIC, index) for index in range(OFFSETS_PARTITIONS)
            }
        self.places |= dict(enumerate(self.other_partitions, start=len(self.places)))
        looked_at = {index: self.histories.get(index, ClientPartitionHistory()) for index in self.places}
        self._promises = self.kind_of_promises(setup, self.controller, self.brokers, looked_at, self.places)
        for index, history in self.histories.items():
            history.on_acknowledged = partial(self._promises.acknowledged, index)
        promised = all(one.promises_latest_offset for one in setup.protocols.values())
        self.environment = ClientEnvironment(
            self.clock,
            self.network,
            self.random,
            list(self.brokers),
            TOPIC,
            conditions.think,
            conditions.asks_latest,
            promised,
            conditions.one_by_one,
        )
        self.operator = Operator(self.environment, self.active_controller)
        self.clients: list[SimClient] = []
        self.told: list[str] = []
        self._killed: set[int] = set()
        """Brokers that have stopped uncleanly, and are not in sync again."""
        self._lost: set[int] = set()
        """Brokers that have lost power, and are not in sync again."""
        self.faults = Faults(self, planned)

    def active_controller(self) -> int:
        """The id of the controller that decides, or has decided last."""
        return self.controller.node_id

    # ---- running

    def run(self, most_steps: int, most_ms: int | None = None) -> None:
        """Start all nodes, run with faults for so many steps, or ms; then heal the cluster, and check all logs.

        Raises: `BrokenPromiseError`.
        """
        self.begin()
        self.faults.begin()
        end_ms = inf if most_ms is None else self.clock.now_ms + most_ms
        while self.steps < most_steps and self.clock.now_ms < end_ms:
            self.next_event()
        self.heal()

    def begin(self) -> None:
        """Start all nodes, create the topic, and start the clients. Raises: `BrokenPromiseError`."""
        self.controller.start()
        for node in self.brokers.values():
            node.start()
        self.until(self._is_formed, "start")
        self.create_topic()
        self.start_clients()

    def _is_formed(self) -> bool:
        """Whether all brokers serve and are unfenced; older releases serve before they are."""
        unfenced = [one for one in self.controller.core.image.spec.brokers if not one.fenced]
        return all(node.serves for node in self.brokers.values()) and len(unfenced) == len(self.brokers)

    def heal(self) -> None:
        """End all faults, wait until all replicas are in sync and new records are acknowledged, and check all logs."""
        self.faults.end()
        self._promises.look()
        for client in self.clients:
            client.stopped = not isinstance(client, GroupClient)
        self.until(self._is_whole, "be whole again")
        self._settle_groups()
        last = [self._new_producer(index) for index in self.histories]
        for producer in last:
            producer.start()
        self.until(lambda: all(one.acknowledged > 0 for one in last), "acknowledge new records")
        for producer in last:
            producer.stopped = True
        self.until(self._is_well, "be well again")
        self._check_logs()
        self._promises.look_at_all()

    def _settle_groups(self) -> None:
        """Wait until members, in one generation, and simple consumers have committed and read after all faults."""
        clients = [client for client in self.clients if isinstance(client, GroupClient)]
        for client in clients:
            client.settle()
        self.until(lambda: all(one.has_settled for one in clients) and self._are_assigned(), "let groups settle")
        for group in self.groups:
            wrong = group.look_at_all()
            if wrong:
                raise BrokenPromiseError("LostCommit", f"group {group.group_id}: {wrong}")

    def _are_assigned(self) -> bool:
        """Whether both groups with members share all partitions in one generation, each having one owner."""
        members = [client for client in self.clients if isinstance(client, SimulatedMember)]
        return all(self._is_shared([one for one in members if one.history is group]) for group in self.groups)

    def _is_shared(self, members: Sequence[SimulatedMember]) -> bool:
        owned = sorted(index for member in members for index in member.owned)
        return not members or (len({one.generation for one in members}) == 1 and owned == list(range(self.partitions)))

    def next_event(self) -> None:
        """Let the next event happen, and check the promises. Raises: `BrokenPromiseError`."""
        if not self.clock.next_event():
            raise BrokenPromiseError("NeverReady", "nothing is left to happen")
        self._promises.look()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Go on until something holds. Raises: `BrokenPromiseError`, if it does not come to hold."""
        deadline = self.clock.now_ms + HEALING_MS
        while not condition():
            if self.clock.now_ms > deadline:
                what = f"the cluster does not {what} within {HEALING_MS // 1000} s: {self.in_words()}"
                raise BrokenPromiseError("NeverReady", what)
            self.next_event()

    def _is_whole(self) -> bool:
        are_voters = self.voters is None or self.voters.is_whole
        return are_voters and self.all_in_sync() and all(self._same_ends(index) for index in self.histories)

    def _is_well(self) -> bool:
        """Whether followers also have the leader's high watermark, which they get with the next record at the latest.

        A response with a diverging epoch has the leader's high watermark, too. The follower ignores it, but the leader's
        fetch session counts it as sent. So without a new record it is not sent again, nor is it in Apache Kafka
        (`CachedPartition.maybeUpdateResponseData`, `AbstractFetcherThread.processFetchRequest`).
        """
        return self._is_whole() and all(self._same_marks(index) for index in self.histories)

    def all_in_sync(self) -> bool:
        """Whether the controller counts all replicas as in sync."""
        partitions = self.controller.core.image.spec.partitions
        return all(one.registration.isr == frozenset(one.registration.replicas) for one in partitions)

    def may_lose_power(self, node: BrokerNode) -> bool:
        """Whether enough other brokers have all acknowledged records, so that this one may lose some.

        With eligible leader replicas, fewer replicas than min.insync.replicas may lose records at a time, and every unclean
        stop counts as a loss (KIP-966). Without them, a loss is allowed only while all replicas are in sync.
        """
        full = any(one.disk.condition.full for one in self.brokers.values())
        if full or self._conditions.min_isr < 2 or not self.controller.up:
            return False
        self._note_completed()
        if not self.controller.core.deciding.controller.settings.eligible_leader_replicas:
            return not self._killed and not self._lost and self.all_in_sync() and all(map(self._is_complete, self.brokers))
        return self._killed | self._lost <= {node.node_id}

    def may_stop_uncleanly(self, node: BrokerNode) -> bool:
        """Whether no other broker still lacks records that it has lost."""
        self._note_completed()
        return self._lost <= {node.node_id}

    def _note_completed(self) -> None:
        complete = {node for node in self._killed | self._lost if self._is_complete(node)}
        self._killed -= complete
        self._lost -= complete

    def _is_complete(self, node_id: int) -> bool:
        """Whether a broker serves, and its present incarnation is in sync according to the controller."""
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
        """Whether this incarnation of the broker has registered, and the controller has another registration of it now: that
        of an earlier incarnation, or one more of this incarnation after such a one.
        """
        if not (node.up and node.is_registered and self.controller.up):
            return False
        lifecycle = node.member.membership.lifecycle
        known = {int(one.broker): (one.incarnation, one.broker_epoch) for one in self.controller.core.image.spec.brokers}
        return known.get(node.node_id) != (lifecycle.incarnation, lifecycle.broker_epoch)

    def is_alone(self, node: BrokerNode) -> bool:
        """Whether all other brokers are fenced, and this one is not."""
        if not self.controller.up:
            return False
        unfenced = {int(one.broker) for one in self.controller.core.image.spec.brokers if not one.fenced}
        return unfenced == {node.node_id}

    def stops_uncleanly(self, node: BrokerNode, survives: Survives) -> None:
        """Note an unclean stop of a broker, in which it may lose records."""
        if survives == Survives.ALL:
            self._killed.add(node.node_id)
            return
        self._lost.add(node.node_id)
        self._promises.lost_power(node.node_id)

    def replicas_of(self, index: int) -> tuple[BrokerId, ...]:
        """The replicas of a partition in their order, according to the controller."""
        return self.registration_of(index).replicas

    def leader_of(self, index: int) -> BrokerId:
        """The leader of a partition according to the controller."""
        return self.registration_of(index).leader

    def client_ids(self) -> list[int]:
        """The ids of all clients."""
        return [client.node_id for client in self.clients]

    def _same_ends(self, index: int) -> bool:
        registration = self.registration_of(index)
        replicas = self._replicas(index)
        ends = {replica.partition.local.log.end_offset for replica in replicas}
        settled = not registration.adding and not registration.removing
        return settled and len(replicas) == len(registration.replicas) and len(ends) == 1

    def _same_marks(self, index: int) -> bool:
        locals_of = [replica.partition.local for replica in self._replicas(index)]
        return all(local.high_watermark == local.log.end_offset for local in locals_of)

    # ---- topics and clients

    def create_topic(self) -> None:
        """Create the topic of the clients."""
        factor, brokers = self.setup.replication_factor, list(self.brokers)
        assignments = [
            [brokers[(index + place) % len(brokers)] for place in range(factor)] for index in range(self.partitions)
        ]
        done: list[Message | None] = []
        self.operator.create_topic(assignments, self.setup.unclean_elections, done.append)
        self.until(lambda: bool(done), "create a topic")
        assert done[0] is not None, "the controller answers"
        error = done[0].topics[0].error_code
        assert error == 0, f"the topic is not created: error {error}"

    def _new_producer(self, index: int) -> ProducerClient:
        is_promise = self.setup.relies_on_acks and not self.setup.unclean_elections
        history = self.histories[index] if is_promise else None
        return ProducerClient(self.new_id(), self.environment, index, history, self.setup.acks)

    def add_producer(self, index: int) -> None:
        """Let another producer of a partition begin."""
        producer = self._new_producer(index)
        self.clients.append(producer)
        producer.start()

    def new_id(self) -> int:
        """The id of the next client."""
        return FIRST_CLIENT_ID + len(self.clients)

    def start_clients(self) -> None:
        """Start all clients."""
        for index, history in self.histories.items():
            self.clients.append(self._new_producer(index))
            self.clients.append(self._new_producer(index))
            if self._conditions.has_acks_1:
                self.clients.append(ProducerClient(self.new_id(), self.environment, index, None, ACKS_LEADER))
            self.clients.append(Consumer(self.new_id(), self.environment, index, history))
            if self._conditions.deletes:
                self.clients.append(Deleter(self.new_id(), self.environment, index, history))
        self._add_group_clients()
        for client in self.clients:
            client.start()

    def _add_group_clients(self) -> None:
        """Add members of one group, half of them static, and simple consumers of another, each with own partitions."""
        if not self.groups:
            return
        count = self._conditions.members
        with_members, without, of_consumers = self.groups
        for number in range(count):
            instance_id = f"static-{number}" if number % 2 else None
            self.clients.append(ClassicMember(self.new_id(), self.environment, with_members, instance_id))
        for number in range(min(count, self.partitions)):
            own = range(number, self.partitions, count)
            self.clients.append(SimpleConsumer(self.new_id(), self.environment, without, own))
        for _ in range(self._conditions.consumers):
            self.clients.append(ConsumerClient(self.new_id(), self.environment, of_consumers))

    # ---- promises

    def note(
        self, handler: Callable[..., object], party: object, state: object, given: tuple[object, ...], outcome: object
    ) -> None:
        """Note a step of a handler."""
        self.steps += 1
        # A step that is not of a broker's partitions may have changed the controller's image; of a broker's start and stop
        # the properties read the controller's registration.
        self._promises.stepped.add(party.self_id if isinstance(party, Broker) else CONTROLLER_ID)
        self._promises.look_at_step(handler, party, state, given, outcome)

    def registration_of(self, index: int) -> PartitionRegistration:
        """A partition according to the controller."""
        image = self.controller.core.image
        wanted = self.places[index]
        return next(one.registration for one in image.spec.partitions if place_of(image, one.partition_id) == wanted)

    def _replicas(self, index: int) -> list[Replica]:
        """The replicas of a partition according to the controller, of the brokers that are up."""
        nodes = [self.brokers[one] for one in self.registration_of(index).replicas]
        found = [node.core.replicas.get(TopicPartition(TOPIC, index)) for node in nodes if node.up]
        return [one for one in found if one is not None]

    def _check_logs(self) -> None:
        """Compare the logs of all replicas in the end."""
        for index, history in self.histories.items():
            replicas = self.registration_of(index).replicas
            logs = {node: self._log(node, index) for node in replicas}
            start = max(self._log_start(node, index) for node in replicas)  # each may have deleted more than another
            common = {node: [one for one in log if one[0] >= start] for node, log in logs.items()}
            first = next(iter(logs))
            for node, log in logs.items():
                if common[node] != common[first]:
                    found, known = min(set(common[node]) ^ set(common[first])), (len(logs[first]), len(log))
                    what = f"brokers {first} and {node} of partition {index}, with {known} records, differ at {found}"
                    raise BrokenPromiseError("Diverged", what)
                history.check_log(f"broker {node}, partition {index},", self._log_start(node, index), log)

    def _log(self, node: int, index: int) -> list[tuple[Offset, Value]]:
        replica = self.brokers[node].core.replicas[TopicPartition(TOPIC, index)]
        found: list[tuple[Offset, Value]] = []
        log = replica.partition.local.log
        offset = log.start_offset
        while offset < log.end_offset:
            piece = replica.files.read(offset, log.end_offset, 1 << 20, at_least_one=True)
            found += values_in(piece.bytes())
            offset = piece.next_offset
        return [one for one in found if one[0] >= log.start_offset]  # the log may start inside a batch

    def _log_start(self, node: int, index: int) -> Offset:
        return self.brokers[node].core.replicas[TopicPartition(TOPIC, index)].partition.local.log.start_offset

    # ---- telling

    def tell(self, what: str) -> None:
        """Note an event in words, with the time and the steps so far."""
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
