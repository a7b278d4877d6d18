"""The run of a plan, on either stage: its view of a cluster under load, and the actions that it may take.

A node meets nothing that it would not meet in production: requests and responses are late or lost, processes die, a disk
loses what was not synced, an administrator elects and reassigns, and clients send. The nodes are processes
(`trials.faults.process_run`), or a simulated cluster in virtual time (`trials.faults.simulated_run`).
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence, Sized
from itertools import count
from typing import Protocol

from kspec.impl.metadata.image import ClusterImage
from kspec.spec.metadata import PartitionRegistration, partition_of
from kspec.trials.faults.links import Link

PATIENCE_S, SHORT_PATIENCE_S = 150.0, 60.0
"""The longest wait for a condition that every cluster reaches: a plan is given up then, and the round goes on without it.
The second one is for clusters with weakened rules, which may never reach it."""

MAY_S = 3.0
"""The wait for events that only weakened rules allow: less than the lag after which a follower leaves the ISR."""


class PlanError(Exception):
    """A plan that could not be carried out, with the condition that was not reached."""


class PlanHold(Protocol):
    """Messages of one kind that do not arrive for now. `held`: the waiting ones, the oldest first."""

    @property
    def held(self) -> Sized:
        """The waiting messages."""

    def release_one(self) -> None:
        """Let the oldest one arrive; the others go on waiting."""

    def lose(self) -> None:
        """Lose those that wait, with their connections; the next ones are held."""

    def let_go(self) -> None:
        """Hold nothing any more, and let all arrive."""


class PlanRun(ABC):
    """A run of a plan on a cluster under load. The topic has one partition.

    `leader`, `second`, `third`: the names of the replicas at the beginning. The seed decides which follower is the second.
    """

    def __init__(self, topic: str, seed: int, patience_s: float = PATIENCE_S) -> None:
        self.topic = topic
        self.random = random.Random(f"play {seed}")  # the text is part of the seed: with another one seeds mean other runs
        self.leader = self.second = self.third = ""
        self.steps: list[str] = []
        """The steps taken so far, in words."""
        self.numbers = count(1)
        """Numbers for the producers and consumers of the plan itself."""
        self._patience_s = patience_s

    # ---- time

    @abstractmethod
    def elapsed_s(self) -> float:
        """The time since the beginning."""

    @abstractmethod
    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether a condition holds within so many seconds."""

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Let time pass."""

    def tell(self, what: str) -> None:
        """Note a step."""
        self.steps.append(f"{self.elapsed_s():.1f} s: {what}")

    async def begin(self) -> None:
        """Look up the leader, and wait until records are acknowledged. Raises: `PlanError`."""
        await self.until("all replicas are in sync", lambda: len(self.partition().isr) == len(self.partition().replicas))
        partition = self.partition()
        self.leader = str(partition.leader)
        followers = [str(replica) for replica in partition.replicas if replica != partition.leader]
        self.random.shuffle(followers)
        self.second, self.third = followers[:2]
        await self.until_acknowledged(20)

    # ---- observations

    async def until(self, what: str, holds: Callable[[], bool], least_s: float = 0.0) -> None:
        """Wait until a condition holds. Raises: `PlanError`, after the patience of the run, and not before `least_s`."""
        seconds = max(self._patience_s, least_s)
        if not await self.within(seconds, holds):
            raise PlanError(f"not within {seconds:g} s: {what}")
        self.tell(what)

    @abstractmethod
    def image(self) -> ClusterImage:
        """The cluster image of the controller."""

    def partition(self) -> PartitionRegistration:
        """The registration of the partition according to the controller."""
        return self.partition_in(self.image())

    def partition_in(self, image: ClusterImage) -> PartitionRegistration:
        """The registration of the partition in an image."""
        partition = partition_of(image.spec, image.topics[self.topic].partitions[0])
        assert partition is not None, "the topic has been created"
        return partition

    def in_sync(self) -> set[str]:
        """The ISR according to the controller."""
        return {str(replica) for replica in self.partition().isr}

    def is_fenced(self, broker: str) -> bool:
        """Whether the controller has fenced a broker."""
        return any(str(known.broker) == broker and known.fenced for known in self.image().spec.brokers)

    async def until_in_sync(self, *brokers: str) -> None:
        """Wait until the ISR is these brokers. Raises: `PlanError`."""
        await self.until(f"the ISR is {', '.join(sorted(brokers))}", lambda: self.in_sync() == set(brokers))

    async def until_led_by(self, *brokers: str) -> None:
        """Wait until one of these brokers leads according to the controller. Raises: `PlanError`."""
        await self.until(f"{' or '.join(brokers)} leads", lambda: str(self.partition().leader) in brokers)

    @abstractmethod
    async def learns_leader(self, broker: str, seconds: float) -> bool:
        """Whether a broker knows the partition's present leader within so many seconds."""

    @abstractmethod
    def sending(self, more: int) -> Callable[[], bool]:
        """A condition: producers have sent so many records from now on, or as many as they may have in flight."""

    @abstractmethod
    def polled(self) -> int:
        """The number of records polled so far."""

    @abstractmethod
    def acknowledged(self) -> int:
        """The number of records acknowledged so far."""

    @abstractmethod
    def acknowledged_from_now(self) -> Callable[[], Sequence[str]]:
        """A function that gives the producers of acknowledged records that are sent from now on, one for each record."""

    @abstractmethod
    def producers(self) -> set[str]:
        """The producers that have sent records so far."""

    @abstractmethod
    def polled_from_now(self, values: Iterable[str]) -> Callable[[], bool]:
        """A function that says whether a consumer has polled one of these values from now on."""

    async def until_acknowledged(self, more: int) -> None:
        """Wait until this many more records are acknowledged. Raises: `PlanError`."""
        least = self.acknowledged() + more
        await self.until(f"{more} records more are acknowledged", lambda: self.acknowledged() >= least)

    async def until_each_is_acknowledged(self, more: int) -> None:
        """Wait until each producer has this many records acknowledged that it sends from now on. Raises: `PlanError`."""
        producers, found = self.producers(), self.acknowledged_from_now()

        def each() -> bool:
            acknowledged = list(found())
            return all(acknowledged.count(producer) >= more for producer in producers)

        await self.until(f"each producer has {more} records more acknowledged", each)

    async def may_acknowledge(self, more: int = 50, seconds: float = MAY_S) -> None:
        """Wait a while for acknowledgements of records sent from now on; whether the rules allow them is the question."""
        found = self.acknowledged_from_now()
        came = await self.within(seconds, lambda: len(found()) >= more)
        self.tell("records are acknowledged" if came else "hardly any record is acknowledged")

    async def may_be_polled(self, values: Iterable[str], seconds: float = MAY_S) -> None:
        """Wait a while until consumers have polled one of these; whether the rules allow it is the question."""
        came = await self.within(seconds, self.polled_from_now(values))
        self.tell(f"what was sent to the leader alone is {'polled' if came else 'not polled'}")

    # ---- requests and responses in flight

    @abstractmethod
    def hold_messages(self, source: str, target: str, api: str, *, answers: bool, most: int | None) -> PlanHold:
        """Hold the requests of one node to another, or the responses to them."""

    def hold(
        self, source: str, target: str, api: str = "Fetch", *, answers: bool = False, most: int | None = None
    ) -> PlanHold:
        """Hold the requests of one node to another, or the responses to them, and note that."""
        way = f"from {target} to {source}" if answers else f"from {source} to {target}"
        self.tell(f"{api} {'answers' if answers else 'requests'} {way} are held" + (f" ({most})" if most else ""))
        return self.hold_messages(source, target, api, answers=answers, most=most)

    async def until_held(self, hold: PlanHold, what: str) -> None:
        """Wait until a message is held. Raises: `PlanError`."""
        await self.until(what, lambda: bool(hold.held))

    @abstractmethod
    def cut(self, links: frozenset[Link]) -> None:
        """Cut exactly these links: messages these ways wait until they are mended."""

    # ---- nodes

    @abstractmethod
    def is_running(self, node: str) -> bool:
        """Whether a node runs."""

    @abstractmethod
    def serves(self, node: str) -> bool:
        """Whether a node serves."""

    @abstractmethod
    def kill(self, *nodes: str) -> None:
        """Kill nodes, which stay down until they are started."""

    @abstractmethod
    def terminate(self, node: str) -> None:
        """Request a controlled shutdown of a node; it stays down until it is started."""

    @abstractmethod
    def suspend(self, broker: str) -> None:
        """Pause a broker, until it is resumed."""

    @abstractmethod
    def resume(self, broker: str) -> None:
        """Resume a paused broker."""

    @abstractmethod
    def let_start(self, node: str) -> None:
        """Let a node start that is to stay down."""

    @abstractmethod
    def lose_power(self, broker: str) -> None:
        """Kill a broker, and cut off the part of its log that was not synced, or the second half of that part."""

    @abstractmethod
    def erase(self, broker: str) -> None:
        """Delete all records of a broker that is down. It keeps its identity."""

    async def until_down(self, node: str, least_s: float = 0.0) -> None:
        """Wait until a node has ended. Raises: `PlanError`."""
        await self.until(f"{node} has ended", lambda: not self.is_running(node), least_s)

    async def start(self, *nodes: str) -> None:
        """Start nodes, and wait until they serve. Raises: `PlanError`."""
        for node in nodes:
            self.let_start(node)
        await self.until(f"{', '.join(nodes)} serve", lambda: all(map(self.serves, nodes)))

    def damage(self, broker: str, most: int = 3) -> None:
        """Damage some files of a broker that is down: those of the partition's folder, and the directory's checkpoints."""
        raise NotImplementedError("files are damaged on processes only")

    def forget_partition(self, broker: str) -> None:
        """Delete the partition's folder on a broker that is down, as an operator does with files beyond repair."""
        raise NotImplementedError("files are deleted on processes only")

    # ---- administrators and clients

    @abstractmethod
    async def assign(self, replicas: Sequence[str]) -> None:
        """Request other replicas, or the same in another order, and wait for the response. Raises: `PlanError`."""

    @abstractmethod
    async def elect_preferred(self) -> None:
        """Request the election of the preferred leader, and wait for the response. Raises: `PlanError`."""

    async def reassign(self, replicas: Sequence[str]) -> None:
        """Request other replicas, or the same in another order, and note that."""
        await self.assign(replicas)
        self.tell(f"the replicas are to be {', '.join(replicas)}")

    async def lead(self, broker: str) -> None:
        """Request the election of a replica, which happens if it is in sync."""
        others = [str(replica) for replica in self.partition().replicas if str(replica) != broker]
        await self.reassign([broker, *others])
        await self.elect_preferred()
        self.tell(f"{broker} is to lead; {self.partition().leader} leads")

    @abstractmethod
    def add_producer(self) -> None:
        """Let another producer begin."""

    @abstractmethod
    async def send_to(self, broker: str, records: int) -> list[str]:
        """Send records to one broker, which appends them if it believes to be the leader (acks=1); their values.

        A loss of them is allowed, unless a consumer has polled them.
        """

    @abstractmethod
    async def read_from(self, broker: str) -> None:
        """Read all records that one broker serves, as a consumer with stale metadata does."""
