"""What a plan sees of a cluster under load, and what it may do to it.

Nothing is told to a process that it would not meet in a cluster: requests and answers are late or lost, processes die, a
disk loses what was not synced, an administrator elects and reassigns, and clients send.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any

from impl.cluster.asking import NOT_REACHED, ask_once
from impl.cluster.plan import CONTROLLER, HOST
from impl.cluster.supervisor import Cluster
from impl.cluster.waiting import within
from impl.faults.links import Hold, Links
from impl.faults.load import Recorder
from impl.faults.power import lose_tail
from impl.history.events import ACKNOWLEDGED, UNKNOWN, Assigned, Outcome, Polled, Sent
from impl.metadata.files import ImageReader
from impl.metadata.image import ClusterImage
from impl.records.batch import headers
from impl.records.record import new_batch, records_of
from impl.wire.values import Message
from spec.metadata import PartitionRegistration, partition_of

PATIENCE_S = 60.0
"""An emergency stop for what each cluster must come to: a plan is given up then, and the round goes on without it."""

BATCH, READ_BYTES = 20, 1 << 20
"""Records in a batch that a plan itself sends, and bytes of an answer that it reads."""

MAY_S = 3.0
"""How long a plan waits for what only weakened rules let happen: less than the lag after which a follower is dropped."""


class PlanError(Exception):
    """A plan that could not be carried out: what did not come about."""


class Play:
    """A cluster and its load, for a plan to act upon. The partition is the topic's only one.

    `leader`, `second`, `third`: the replicas at the beginning, by their names; which follower is which, the seed decides.
    """

    def __init__(
        self, cluster: Cluster, links: Links, recorder: Recorder, written: ImageReader | None, topic: str, seed: int
    ) -> None:
        self.cluster = cluster
        self.topic = topic
        self.random = random.Random(f"play {seed}")
        self.leader = self.second = self.third = ""
        self.steps: list[str] = []
        """What was done, in words."""
        self._links = links
        self._recorder = recorder
        self._written = written
        self._numbers = count(1)
        self._began = time.monotonic()

    def tell(self, what: str) -> None:
        """Note a step."""
        self.steps.append(f"{time.monotonic() - self._began:.1f} s: {what}")

    async def begin(self) -> None:
        """Know who leads, and wait until records are acknowledged. Raises: `PlanError`."""
        await self.until("all replicas are in sync", lambda: len(self.partition().isr) == len(self.partition().replicas))
        known = self.partition()
        self.leader = str(known.leader)
        others = [str(one) for one in known.replicas if one != known.leader]
        self.random.shuffle(others)
        self.second, self.third = others[:2]
        await self.until_acknowledged(20)

    # ---- seeing

    async def until(self, what: str, holds: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
        """Wait until something holds. Raises: `PlanError`, after a long time."""
        if not await self.within(seconds, holds):
            raise PlanError(f"not within {seconds:g} s: {what}")
        self.tell(what)

    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether something comes to hold in time."""
        return await within(seconds, holds)

    def image(self) -> ClusterImage:
        """What the controller has written."""
        assert self._written is not None, "a plan has a controller that is a process of its own"
        return self._written.image()

    def partition(self) -> PartitionRegistration:
        """The partition as the controller has written it."""
        image = self.image()
        known = partition_of(image.spec, image.topics[self.topic].partitions[0])
        assert known is not None, "the topic has been created"
        return known

    def in_sync(self) -> set[str]:
        """The ISR by the controller's word."""
        return {str(one) for one in self.partition().isr}

    def is_fenced(self, broker: str) -> bool:
        """Whether the controller has fenced a broker."""
        return any(str(one.broker) == broker and one.fenced for one in self.image().spec.brokers)

    async def until_in_sync(self, *brokers: str) -> None:
        """Wait until these are the ISR. Raises: `PlanError`."""
        await self.until(f"the ISR is {', '.join(sorted(brokers))}", lambda: self.in_sync() == set(brokers))

    async def until_led_by(self, *brokers: str) -> None:
        """Wait until one of these leads, by the controller's word. Raises: `PlanError`."""
        await self.until(f"{' or '.join(brokers)} leads", lambda: str(self.partition().leader) in brokers)

    def _acknowledged(self, begin: int) -> int:
        return sum(isinstance(one, Outcome) and one.kind == ACKNOWLEDGED for one in self._recorder.events[begin:])

    async def until_acknowledged(self, more: int) -> None:
        """Wait until so many records more are acknowledged. Raises: `PlanError`."""
        begin = len(self._recorder.events)
        await self.until(f"{more} records more are acknowledged", lambda: self._acknowledged(begin) >= more)

    async def until_each_is_acknowledged(self, more: int) -> None:
        """Wait until each producer has so many acknowledgements of what it sends from now on. Raises: `PlanError`."""
        begin = len(self._recorder.events)
        producers = {one.producer for one in self._recorder.events if isinstance(one, Sent)}

        def each() -> bool:
            told = Counter(value.partition(":")[0] for value in self._acknowledged_of_those_sent(begin))
            return all(told[producer] >= more for producer in producers)

        await self.until(f"each producer has {more} records more acknowledged", each)

    def _acknowledged_of_those_sent(self, begin: int) -> list[str]:
        events = self._recorder.events[begin:]
        sent = {one.value for one in events if isinstance(one, Sent)}
        return [one.value for one in events if isinstance(one, Outcome) and one.kind == ACKNOWLEDGED and one.value in sent]

    async def may_acknowledge(self, more: int = 50, seconds: float = MAY_S) -> None:
        """Wait a while for acknowledgements of what is sent from now on, which the rules allow or not."""
        begin = len(self._recorder.events)
        came = await self.within(seconds, lambda: len(self._acknowledged_of_those_sent(begin)) >= more)
        self.tell("records are acknowledged" if came else "hardly any record is acknowledged")

    async def may_be_polled(self, values: Iterable[str], seconds: float = MAY_S) -> None:
        """Wait a while until consumers have polled one of these, which the rules allow or not."""
        begin, wanted = len(self._recorder.events), set(values)

        def polled() -> bool:
            polls = (one for one in self._recorder.events[begin:] if isinstance(one, Polled))
            return any(value in wanted for one in polls for _, value in one.records)

        self.tell(f"what was sent to the leader alone is {'polled' if await self.within(seconds, polled) else 'not polled'}")

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    # ---- what is under way

    def hold(self, source: str, target: str, api: str = "Fetch", *, answers: bool = False, most: int | None = None) -> Hold:
        """Hold what one node asks another, or the answers."""
        way = f"from {target} to {source}" if answers else f"from {source} to {target}"
        self.tell(f"{api} {'answers' if answers else 'requests'} {way} are held" + (f" ({most})" if most else ""))
        return self._links.hold(source, target, api, answers=answers, most=most)

    async def until_held(self, hold: Hold, what: str) -> None:
        """Wait until something waits there. Raises: `PlanError`."""
        await self.until(what, lambda: bool(hold.held))

    # ---- processes

    def kill(self, *nodes: str) -> None:
        """Kill nodes, which stay away until they are started."""
        for node in nodes:
            self.cluster.held.add(node)
            self.cluster.processes[node].kill()
        self.tell(f"{', '.join(nodes)} killed")

    def terminate(self, node: str) -> None:
        """Ask a node to stop in order; it stays away until it is started."""
        self.cluster.held.add(node)
        self.cluster.processes[node].terminate()
        self.tell(f"{node} is asked to stop")

    async def start(self, *nodes: str) -> None:
        """Start nodes, and wait until they serve. Raises: `PlanError`."""
        for node in nodes:
            self.cluster.held.discard(node)
        await self.until(f"{', '.join(nodes)} serve", lambda: all(self.cluster.processes[node].serves for node in nodes))

    def lose_power(self, broker: str) -> None:
        """Kill a broker, and cut off what its log had not synced, or the second half of that."""
        self.kill(broker)
        kept = self.random.choice((0.0, 0.5))
        lost = lose_tail(self.cluster.processes[broker].node.data, self.topic, 0, kept)
        self.tell(f"{broker} has lost {lost} bytes of its log")

    # ---- what administrators and clients do

    async def prefer(self, broker: str) -> None:
        """Make a replica the preferred one: the same replicas, in another order."""
        known = self.partition()
        await self.reassign([broker, *(str(one) for one in known.replicas if str(one) != broker)])

    async def lead(self, broker: str) -> None:
        """Ask for a replica to be elected, which happens if it is in sync."""
        await self.prefer(broker)
        topics = [Message(topic=self.topic, partitions=[0])]
        await self._ask_controller("ElectLeaders", 1, election_type=0, topic_partitions=topics, timeout_ms=10_000)
        self.tell(f"{broker} is to lead; {self.partition().leader} leads")

    async def reassign(self, replicas: Sequence[str]) -> None:
        """Ask for other replicas, or for the same in another order."""
        topic = Message(name=self.topic, partitions=[Message(partition_index=0, replicas=[*map(int, replicas)])])
        await self._ask_controller("AlterPartitionReassignments", 0, timeout_ms=10_000, topics=[topic])
        self.tell(f"the replicas are to be {', '.join(replicas)}")

    async def _ask_controller(self, api: str, version: int, **fields: Any) -> None:
        place = HOST, self.cluster.processes[CONTROLLER].node.port
        try:
            await ask_once(place, api, version, **fields)
        except NOT_REACHED as error:
            raise PlanError(f"the controller does not answer {api}: {error!r}") from error

    async def send_to(self, broker: str, records: int) -> list[str]:
        """Send records to one broker, which are stored there if it believes to lead (acks=1): nothing is promised of them.

        A consumer that polls one has been promised it, all the same. The values that were sent.
        """
        place, producer = (HOST, self.cluster.processes[broker].node.port), f"plan-{next(self._numbers)}"
        values = [f"{producer}:{number}" for number in range(records)]
        key = f"{self.topic}-0"
        for value in values:
            self._recorder.note(partial(Sent, producer, key, value))
        for first in range(0, records, BATCH):
            batch = [(int(time.time() * 1000), None, value.encode()) for value in values[first : first + BATCH]]
            part = Message(index=0, records=new_batch(batch))
            topics = [Message(name=self.topic, partition_data=[part])]
            with contextlib.suppress(*NOT_REACHED):
                await ask_once(place, "Produce", 8, transactional_id=None, acks=1, timeout_ms=5000, topic_data=topics)
        for value in values:
            self._recorder.note(partial(Outcome, key, value, UNKNOWN, None, "acks=1"))
        self.tell(f"{records} records are sent to {broker} alone")
        return values

    async def read_from(self, broker: str) -> None:
        """Read all that one broker lets consumers read, as a consumer that has not heard of another leader."""
        place, consumer = (HOST, self.cluster.processes[broker].node.port), f"plan-{next(self._numbers)}"
        key, position = f"{self.topic}-0", 0
        self._recorder.note(partial(Assigned, consumer, key, position))
        while True:
            part = Message(partition=0, fetch_offset=position, partition_max_bytes=READ_BYTES)
            wanted = [Message(topic=self.topic, partitions=[part])]
            try:
                answer = await ask_once(
                    place, "Fetch", 12, replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=READ_BYTES, topics=wanted
                )
            except NOT_REACHED:
                break
            content = answer.responses[0].partitions[0].records or b""
            batches = (content[one.position : one.position + one.size] for one in headers(content))
            found = [(int(one.offset), (one.value or b"").decode()) for batch in batches for one in records_of(batch)]
            found = [one for one in found if one[0] >= position]
            if not found:
                break
            self._recorder.note(partial(Polled, consumer, key, tuple(found)))
            position = found[-1][0] + 1
        self.tell(f"{position} records are read from {broker}")
