"""The run of a plan on a simulated cluster: seconds of virtual time, and every promise is checked after each event."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.records.record import new_batch
from kspec.impl.wire.requests import sent
from kspec.impl.wire.values import Message
from kspec.spec.messages.produce import ACKS_LEADER
from kspec.spec.values import Offset
from kspec.trials.cluster.plan import CONTROLLER
from kspec.trials.faults.links import CLIENTS, Link
from kspec.trials.faults.plans.plan import Plan
from kspec.trials.faults.plans.plan_run import SHORT_PATIENCE_S, PlanError, PlanRun
from kspec.trials.faults.plans.steps import ALL
from kspec.trials.simulated.clients.client import ClientEndpoint, nothing
from kspec.trials.simulated.clients.partitions import ProducerClient, values_in
from kspec.trials.simulated.clock import VirtualClock, VirtualWait, carried_out
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.history import Value
from kspec.trials.simulated.ids import ADMIN_ID, CONTROLLER_ID, FIRST_CLIENT_ID, TOPIC
from kspec.trials.simulated.network import Carried, CarriedFrame, SimulatedConnection
from kspec.trials.simulated.nodes import BrokerNode, SimulatedNode
from kspec.trials.simulated.plan import RunConditions
from kspec.trials.simulated.runs import RunOutcome, run
from kspec.trials.simulated.setup import RunSetup

FIRST_PLAN_PRODUCER = 1_000_000
"""Producer ids of records that a plan itself sends: no broker gives out such ones."""

FIRST_PLAN_CLIENT = 1_900
ANSWER_MS, READ_BYTES = 10_000, 1 << 20

CONDITIONS = RunConditions(
    weights=(), partitions=1, min_isr=2, max_lag=4_000, session=5_000, think=(5, 40), asks_latest=0.05
)
"""The settings of rounds on processes, and no faults but those of the plan."""


IN_FLIGHT_MS = 1_000
"""The time after which all that producers may have in flight counts as sent, as real clients go on sending."""


class SimulatedHold:
    """Requests of one API from a node, or from clients, to another that do not arrive for now; or the responses to them."""

    def __init__(
        self, cluster: SimulatedCluster, source: int | None, target: int, api: str, answers: bool, most: int | None
    ) -> None:
        self.held: list[CarriedFrame] = []
        self._clock = cluster.clock
        self._source, self._target, self._key, self._answers = source, target, sent(api).key, answers
        self._left = most
        self._ended = False

    def takes(self, line: SimulatedConnection, forth: bool, frame: Carried) -> bool:
        """Whether a frame is held that would arrive now; it is one of `held` then."""
        client = line.client.node_id
        is_source = client >= FIRST_CLIENT_ID if self._source is None else client == self._source
        if self._ended or self._left == 0 or forth == self._answers or not is_source or line.server.node_id != self._target:
            return False
        carried = CarriedFrame(line, forth, frame)
        if carried.key != self._key:
            return False
        if self._left is not None:
            self._left -= 1
        self.held.append(carried)
        return True

    def release_one(self) -> None:
        """Let the oldest one arrive; the others go on waiting."""
        if self.held:
            self._clock.at(self._clock.now_ms, self.held.pop(0).arrive)

    def lose(self) -> None:
        """Lose those that wait, with their connections; the next ones are held."""
        held, self.held = self.held, []
        for carried in held:
            carried.lose()

    def let_go(self) -> None:
        """Hold nothing any more, and let all arrive."""
        self._ended = True
        while self.held:
            self.release_one()


class SimulatedCut:
    """Ways from one node, or from clients, to another that nothing goes for now: frames wait, in their order."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._links: frozenset[Link] = frozenset()
        self._held: list[CarriedFrame] = []

    def takes(self, line: SimulatedConnection, forth: bool, frame: Carried) -> bool:
        """Whether a frame waits that would arrive now."""
        is_behind = any(one.line is line and one.forth == forth for one in self._held)
        if not (is_behind or self._is_cut(line, forth)):
            return False
        self._held.append(CarriedFrame(line, forth, frame))
        return True

    def cut(self, links: frozenset[Link]) -> None:
        """Cut exactly these links; what has waited for another one arrives."""
        self._links = links
        self._clock.at(self._clock.now_ms, self._go_on)

    def _go_on(self) -> None:
        """Let the first frame arrive that has waited for a way that is open, and then the next one."""
        for place, carried in enumerate(self._held):
            if not self._is_cut(carried.line, carried.forth):
                del self._held[place]
                carried.arrive()
                self._clock.at(self._clock.now_ms, self._go_on)
                return

    def _is_cut(self, line: SimulatedConnection, forth: bool) -> bool:
        client, server = name_of(line.client.node_id), name_of(line.server.node_id)
        return ((client, server) if forth else (server, client)) in self._links


def name_of(node_id: int) -> str:
    """The name of a node, or of clients. Whoever acts for the plan itself has none: no link of his is cut."""
    if node_id == CONTROLLER_ID:
        return CONTROLLER
    if node_id < ADMIN_ID:
        return str(node_id)
    return CLIENTS if FIRST_CLIENT_ID <= node_id < FIRST_PLAN_CLIENT else ""


class SimulatedPlanRun(PlanRun):
    """A run of a plan on a simulated cluster."""

    def __init__(self, cluster: SimulatedCluster, seed: int, patience_s: float) -> None:
        super().__init__(TOPIC, seed, patience_s)
        self._cluster = cluster
        self._holds: list[SimulatedHold] = []
        self._began_ms = cluster.clock.now_ms
        self._cut = SimulatedCut(cluster.clock)
        cluster.network.holds.append(self._cut)

    def carry_out(self, plan: Plan) -> None:
        """Take a plan's steps; while it waits, the cluster's events happen. Raises: `PlanError`, `BrokenPromiseError`."""
        carried_out(self._steps(plan), self._cluster.clock, self._cluster.next_event)

    async def _steps(self, plan: Plan) -> None:
        await self.begin()
        await plan.carry_out(self)

    def heal(self) -> None:
        """Let all held messages arrive, and resume paused brokers."""
        self._cut.cut(frozenset())
        for hold in self._holds:
            hold.let_go()
        for broker in self._cluster.brokers.values():
            broker.go_on()

    # ---- time

    def elapsed_s(self) -> float:
        """The virtual time since the beginning."""
        return (self._cluster.clock.now_ms - self._began_ms) / 1000

    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether a condition holds within so many seconds."""
        return await VirtualWait(self._cluster.clock.now_ms + round(seconds * 1000), holds)

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await self.within(seconds, lambda: False)

    # ---- observations

    def image(self) -> ClusterImage:
        """The cluster image of the controller."""
        return self._cluster.controller.core.image

    def _producer_clients(self) -> list[ProducerClient]:
        return [client for client in self._cluster.clients if isinstance(client, ProducerClient)]

    async def learns_leader(self, broker: str, seconds: float) -> bool:
        """Whether a broker has read the present leader epoch within so many seconds."""

        def knows() -> bool:
            node = self._broker(broker)
            return node.serves and self.partition_in(node.core.image).leader_epoch == self.partition().leader_epoch

        return await self.within(seconds, knows)

    def sending(self, more: int) -> Callable[[], bool]:
        """A condition: so many records are sent from now on, or each producer has its batch in flight for a while."""
        since_ms = self._cluster.clock.now_ms

        def are_sent() -> bool:
            producers = self._producer_clients()
            waits = all(one.in_flight for one in producers) and self._cluster.clock.now_ms >= since_ms + IN_FLIGHT_MS
            return waits or sum(one.acknowledged + one.in_flight for one in producers) >= least

        least = sum(one.acknowledged + one.in_flight for one in self._producer_clients()) + more
        return are_sent

    def polled(self) -> int:
        """The number of records polled so far."""
        return len(self._cluster.histories[0].read)

    def acknowledged(self) -> int:
        """The number of records acknowledged so far."""
        return sum(producer.acknowledged for producer in self._producer_clients())

    def acknowledged_from_now(self) -> Callable[[], Sequence[str]]:
        """A function that gives the producers of acknowledged records that are sent from now on, one for each record."""
        before = {client.node_id: client.acknowledged + client.in_flight for client in self._producer_clients()}

        def found() -> list[str]:
            counts = {client.node_id: client.acknowledged - before[client.node_id] for client in self._producer_clients()}
            return [str(producer) for producer, more in counts.items() for _ in range(more)]

        return found

    def producers(self) -> set[str]:
        """The producers that have sent records so far."""
        return {str(client.node_id) for client in self._producer_clients()}

    def polled_from_now(self, values: Iterable[str]) -> Callable[[], bool]:
        """A function that says whether a consumer has polled one of these values."""
        wanted = {Value.from_bytes(value.encode()) for value in values}
        return lambda: not wanted.isdisjoint(self._cluster.histories[0].places)

    # ---- requests and responses in flight

    def hold_messages(self, source: str, target: str, api: str, *, answers: bool, most: int | None) -> SimulatedHold:
        """Hold the requests of one node to another, or the responses to them."""
        from_node = None if source == CLIENTS else self._node(source).node_id
        hold = SimulatedHold(self._cluster, from_node, self._node(target).node_id, api, answers, most)
        self._holds.append(hold)
        self._cluster.network.holds.append(hold)
        return hold

    def cut(self, links: frozenset[Link]) -> None:
        """Cut exactly these links."""
        self._cut.cut(links)

    # ---- nodes

    def _node(self, name: str) -> SimulatedNode:
        return self._cluster.controllers[0] if name == CONTROLLER else self._broker(name)

    def _broker(self, name: str) -> BrokerNode:
        return self._cluster.brokers[int(name)]

    def is_running(self, node: str) -> bool:
        """Whether a node runs."""
        return self._node(node).up

    def serves(self, node: str) -> bool:
        """Whether a node serves."""
        return self._node(node).serves

    def kill(self, *nodes: str) -> None:
        """Kill nodes, which stay down until they are started."""
        for node in nodes:
            self._kill(node, Survives.ALL)
        self.tell(f"{', '.join(nodes)} killed")

    def _kill(self, node: str, survives: Survives) -> None:
        if node != CONTROLLER:
            self._cluster.stops_uncleanly(self._broker(node), survives)
        self._node(node).kill(survives)

    def terminate(self, node: str) -> None:
        """Request a controlled shutdown of a broker; it stays down until it is started."""
        self._broker(node).stop()
        self.tell(f"{node} is asked to stop")

    def suspend(self, broker: str) -> None:
        """Pause a broker, until it is resumed."""
        self._broker(broker).pause()
        self.tell(f"{broker} is paused")

    def resume(self, broker: str) -> None:
        """Resume a paused broker."""
        self._broker(broker).go_on()
        self.tell(f"{broker} is resumed")

    def let_start(self, node: str) -> None:
        """Start a node that is down."""
        if not self._node(node).up:
            self._node(node).start()

    def lose_power(self, broker: str) -> None:
        """Kill a broker, and cut off the part of its log that was not synced, or the second half of that part."""
        survives = self.random.choice((Survives.NOTHING, Survives.HALF))
        self._kill(broker, survives)
        self.tell(f"{broker} has lost power; of what was not synced, {survives.value} is left")

    def erase(self, broker: str) -> None:
        """Delete all records of a broker that is down."""
        self._cluster.stops_uncleanly(self._broker(broker), Survives.NOTHING)
        self._broker(broker).erase()
        self.tell(f"{broker} has lost all its records")

    # ---- administrators and clients

    def add_producer(self) -> None:
        """Let another producer begin."""
        self._cluster.add_producer(0)

    async def assign(self, replicas: Sequence[str]) -> None:
        """Request other replicas, or the same in another order, and wait for the response. Raises: `PlanError`."""
        found: list[Message | None] = []
        self._cluster.operator.reassign(0, [*map(int, replicas)], found.append)
        await self._response(found, "AlterPartitionReassignments")

    async def elect_preferred(self) -> None:
        """Request the election of the preferred leader, and wait for the response. Raises: `PlanError`."""
        found: list[Message | None] = []
        self._cluster.operator.prefer([0], found.append)
        await self._response(found, "ElectLeaders")

    async def _response(self, found: list[Message | None], api: str) -> None:
        await self.within(ANSWER_MS / 1000, lambda: bool(found))
        if not found or found[0] is None:
            raise PlanError(f"the controller does not answer {api}")

    async def _ask(self, broker: str, api: str, message: Message) -> Message | None:
        """The response of one broker, whatever it leads; none if there is none in time."""
        client = ClientEndpoint(FIRST_PLAN_CLIENT + next(self.numbers))
        found: list[Message | None] = []
        channel = ChannelKey(int(broker), "plan")
        self._cluster.network.ask(client, Ask(channel, api, message, nothing, ANSWER_MS), found.append)
        await self.within(ANSWER_MS / 1000, lambda: bool(found))
        return found[0] if found else None

    def _topic_id(self) -> bytes:
        return self.image().topics[self.topic].topic_id

    async def send_to(self, broker: str, records: int) -> list[str]:
        """Send records to one broker, which appends them if it believes to be the leader (acks=1); their values."""
        producer = FIRST_PLAN_PRODUCER + next(self.numbers)
        values = [Value(producer, number) for number in range(records)]
        content = new_batch([(self._cluster.clock.now_ms, None, value.to_bytes()) for value in values])
        data = [Message(index=0, records=content)]
        topic = Message(name=self.topic, topic_id=self._topic_id(), partition_data=data)
        await self._ask(broker, "Produce", Message(transactional_id=None, acks=1, timeout_ms=5_000, topic_data=[topic]))
        self.tell(f"{records} records are sent to {broker} alone")
        return [value.to_bytes().decode() for value in values]

    async def read_from(self, broker: str) -> None:
        """Read all records that one broker serves, as a consumer with stale metadata does."""
        history, position = self._cluster.histories[0], 0
        while True:
            response = await self._ask(broker, "Fetch", self._fetch(position))
            part = None if response is None else response.responses[0].partitions[0]
            found = (
                [one for one in values_in(part.records) if one[0] >= position] if part is not None and part.records else []
            )
            if not found:
                break
            for offset, value in found:
                history.see(offset, value)
            position = found[-1][0] + 1
        self.tell(f"{position} records are read from {broker}")

    def _fetch(self, position: int) -> Message:
        part = Message(
            partition=0,
            current_leader_epoch=-1,
            fetch_offset=Offset(position),
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=READ_BYTES,
        )
        return Message(
            replica_state=Message(replica_id=-1, replica_epoch=-1),
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=READ_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[Message(topic=self.topic, topic_id=self._topic_id(), partitions=[part])],
        )


def _setup_of(plan: Plan, setup: RunSetup) -> RunSetup:
    """The inputs of a plan's run, with its load and the settings of its topic."""
    settings = {"min.insync.replicas": str(CONDITIONS.min_isr), **plan.settings}
    (min_isr,) = settings.values()
    conditions = CONDITIONS._replace(min_isr=int(min_isr), one_by_one=plan.one_by_one)
    found = replace(setup, conditions=conditions, coded=False)
    return found if plan.acks == ALL else replace(found, acks=ACKS_LEADER, relies_on_acks=False)


class PlanOutcome(NamedTuple):
    """The outcome of a plan: the cluster's run, the steps taken, and the condition at which it was given up, if any."""

    run: RunOutcome
    steps: tuple[str, ...]
    missed: str


def run_plan(plan: Plan, setup: RunSetup, patience_s: float = SHORT_PATIENCE_S) -> PlanOutcome:
    """Carry a plan out on a simulated cluster, and heal it. The same arguments give the same run.

    The conditions are those of a round on processes, in place of the setup's.
    """
    steps: list[str] = []
    missed: list[str] = []

    class PlannedCluster(SimulatedCluster):
        """A cluster whose only faults are those of the plan."""

        def run(self, most_steps: int, most_ms: int | None = None) -> None:
            """Begin, carry out the plan, and heal."""
            self.begin()
            plan_run = SimulatedPlanRun(self, setup.seed, patience_s)
            try:
                plan_run.carry_out(plan)
            except PlanError as error:
                missed.append(str(error))
            finally:
                steps.extend(plan_run.steps)
            plan_run.heal()
            self.heal()

    outcome = run(_setup_of(plan, setup), 0, (), kind=PlannedCluster)
    return PlanOutcome(outcome, tuple(steps), missed[0] if missed else "")
