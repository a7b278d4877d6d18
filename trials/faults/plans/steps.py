"""Steps as data: faults, operators' requests, and conditions to wait for; and the run of them on any cluster.

A run of model `kafka` becomes a list of steps, and so do the runs that are written by hand (`losses`). They are taken on a
cluster of anybody's behind a driver (`conformance.cluster`), and as plans on processes and on a simulated cluster.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from kspec.trials.faults.links import Link

ALL, LEADER = "all", "1"
"""The producers' acks: all in-sync replicas, or the leader alone."""


class StepKind(Enum):
    """The kinds of steps, each with its words. A step that waits gives up after a while, and the run goes on."""

    CUT = "these links are cut, and no others"
    SEND = "producers send"
    WRITE = "producers send, and some of it is acknowledged"
    ACKNOWLEDGE = "something is acknowledged"
    ADD_PRODUCER = "another producer begins"
    READ = "producers send, and consumers read some of it"
    ELECT = "is elected without a failure"
    KILL = "is killed"
    STOP = "is shut down in order"
    START = "is started"
    PAUSE = "is paused"
    RESUME = "is resumed"
    ERASE = "loses all its records"
    SERVE = "serves again"
    LAG = "the lag of followers that do not fetch is too long by now"
    LOSE_LEADERSHIP = "has been replaced as the leader"
    LEAVE_ISR = "has left the ISR"
    JOIN_ISR = "is in the ISR"
    LEAD = "leads"
    KNOW_LEADER = "knows the leader"


class ClusterStep(NamedTuple):
    """One step, about a broker or about links."""

    kind: StepKind
    broker: int = 0
    links: frozenset[Link] = frozenset()

    def __str__(self) -> str:
        if self.kind is StepKind.CUT:
            return f"cut: {', '.join(f'{one} to {other}' for one, other in sorted(self.links)) or 'nothing'}"
        return f"broker {self.broker} {self.kind.value}" if self.broker else self.kind.value


class Schedule(NamedTuple):
    """A run as steps. `replicas`: the topic's replicas, the preferred leader first, which leads at the beginning.

    `one_by_one`: producers put one record in a batch, so every offset is the base offset of a batch.
    """

    replicas: tuple[int, ...]
    min_isr: int
    steps: tuple[ClusterStep, ...]
    one_by_one: bool = False


WRITTEN = 20
"""The number of records more that ends a wait for producers or consumers."""

LIMITS_S = {
    StepKind.SEND: 4.0,
    StepKind.WRITE: 5.0,
    StepKind.ACKNOWLEDGE: 5.0,
    StepKind.READ: 5.0,
    StepKind.LEAD: 20.0,
    StepKind.LOSE_LEADERSHIP: 20.0,
    StepKind.LEAVE_ISR: 8.0,
    StepKind.JOIN_ISR: 12.0,
    StepKind.KNOW_LEADER: 8.0,
    StepKind.SERVE: 40.0,
}
"""The longest wait of a step for its condition (s)."""

SHOWN = frozenset(
    {
        StepKind.LEAD,
        StepKind.LOSE_LEADERSHIP,
        StepKind.LEAVE_ISR,
        StepKind.JOIN_ISR,
        StepKind.KNOW_LEADER,
        StepKind.SERVE,
    }
)
"""The steps that wait for what a cluster shows."""


class StepRun(ABC):
    """A run of steps on a cluster. `down`, `paused`: brokers that are; `links`: those that are cut."""

    lag_s: float
    """The time after which a leader counts a follower as lagging (s)."""

    def __init__(self) -> None:
        self.down: set[int] = set()
        self.paused: set[int] = set()
        self.links: frozenset[Link] = frozenset()

    async def take(self, step: ClusterStep) -> bool:
        """Take a step; whether its condition was met. A broker is started if it is down, and resumed if it is paused."""
        broker = step.broker
        match step.kind:
            case StepKind.CUT:
                self.links = step.links
                await self.cut(step.links)
            case StepKind.KILL:
                self._goes_down(broker)
                await self.kill(broker)
            case StepKind.STOP:
                self._goes_down(broker)
                await self.stop(broker)
            case StepKind.START if broker in self.down:
                self.down.discard(broker)
                await self.start(broker)
            case StepKind.PAUSE if broker not in self.down:
                self.paused.add(broker)
                await self.pause(broker)
            case StepKind.RESUME if broker in self.paused:
                self.paused.discard(broker)
                await self.resume(broker)
            case StepKind.ERASE if broker in self.down:
                await self.erase(broker)
            case StepKind.ELECT:
                return await self.elect(broker)
            case StepKind.ADD_PRODUCER:
                self.add_producer()
            case StepKind.LAG:
                await self.within(self.lag_s, lambda: False)
            case StepKind.SEND:
                return await self.within(LIMITS_S[step.kind], self.sending(2 * WRITTEN))
            case StepKind.WRITE:
                return await self._until_more(self.acknowledged, WRITTEN, step)
            case StepKind.ACKNOWLEDGE:
                return await self._until_more(self.acknowledged, 1, step)
            case StepKind.READ:
                return await self._until_more(self.polled, WRITTEN, step)
            case kind if kind in SHOWN:
                return await self.until_shown(step, LIMITS_S[kind])
        return True

    def _goes_down(self, broker: int) -> None:
        self.down.add(broker)
        self.paused.discard(broker)

    async def _until_more(self, count: Callable[[], int], more: int, step: ClusterStep) -> bool:
        least = count() + more
        return await self.within(LIMITS_S[step.kind], lambda: count() >= least)

    async def heal(self) -> None:
        """Undo all faults."""
        for broker in sorted(self.paused):
            await self.resume(broker)
        await self.cut(frozenset())
        for broker in sorted(self.down):
            await self.start(broker)
        self.paused.clear()
        self.down.clear()

    # ---- actions

    @abstractmethod
    async def cut(self, links: frozenset[Link]) -> None:
        """Cut exactly these links, and mend all others."""

    @abstractmethod
    async def kill(self, broker: int) -> None:
        """End a broker without warning."""

    @abstractmethod
    async def stop(self, broker: int) -> None:
        """Shut a broker down in order."""

    @abstractmethod
    async def start(self, broker: int) -> None:
        """Start a broker that is down."""

    @abstractmethod
    async def pause(self, broker: int) -> None:
        """Pause a broker."""

    @abstractmethod
    async def resume(self, broker: int) -> None:
        """Resume a broker."""

    @abstractmethod
    async def erase(self, broker: int) -> None:
        """Delete all records of a broker that is down."""

    @abstractmethod
    async def elect(self, broker: int) -> bool:
        """Elect a replica that is in sync; whether the cluster has taken the request."""

    @abstractmethod
    def add_producer(self) -> None:
        """Let another producer begin."""

    # ---- observations

    @abstractmethod
    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether a condition holds within so many seconds."""

    @abstractmethod
    async def until_shown(self, step: ClusterStep, seconds: float) -> bool:
        """Whether the cluster shows the condition of a step within so many seconds."""

    @abstractmethod
    def sending(self, more: int) -> Callable[[], bool]:
        """A condition: producers have sent so many records from now on, or as many as they may have in flight."""

    @abstractmethod
    def acknowledged(self) -> int:
        """The number of records acknowledged so far."""

    @abstractmethod
    def polled(self) -> int:
        """The number of records polled so far."""
