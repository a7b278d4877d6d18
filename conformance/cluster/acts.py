"""What is done to a cluster and waited for: a run of the model `kafka` as a list of acts."""

from enum import Enum
from typing import NamedTuple

from conformance.cluster.driver import ELECT, ERASE, KILL, PARTITION, PAUSE, STOP, Link


class Do(Enum):
    """The kinds of acts, each with what it says to people. Those that wait give up after a while, and the run goes on."""

    PART = "these links are cut, and no others"
    SEND = "producers send"
    WRITE = "producers send, and some of it is acknowledged"
    ACKNOWLEDGE = "something is acknowledged"
    MORE = "another producer begins"
    READ = "producers send, and consumers read some of it"
    ELECT = "is elected without a failure"
    KILL = "is killed"
    STOP = "is shut down in order"
    START = "is started"
    PAUSE = "stands still"
    RESUME = "goes on"
    ERASE = "loses all its records"
    SERVE = "is there again"
    LAG = "who does not fetch is slow by now"
    LOSE = "has been replaced as the leader"
    DROP = "has left the ISR"
    JOIN = "is in the ISR"
    LEAD = "leads"
    KNOW = "knows who leads"


NEEDS = {Do.PART: PARTITION, Do.ELECT: ELECT, Do.KILL: KILL, Do.STOP: STOP, Do.PAUSE: PAUSE, Do.ERASE: ERASE}
"""The ability of a driver that an act needs."""


class Act(NamedTuple):
    """One act: about a broker, or about links."""

    do: Do
    broker: int = 0
    links: frozenset[Link] = frozenset()

    def __str__(self) -> str:
        if self.do is Do.PART:
            return f"cut: {', '.join(f'{one} to {other}' for one, other in sorted(self.links)) or 'nothing'}"
        return f"broker {self.broker} {self.do.value}" if self.broker else self.do.value


class Schedule(NamedTuple):
    """A run as acts. `replicas`: the topic's replicas in the order in which they are preferred; the first one leads.

    `one_by_one`: producers put one record in a batch, so every offset is the first one of a batch.
    """

    replicas: tuple[int, ...]
    min_isr: int
    acts: tuple[Act, ...]
    one_by_one: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """The abilities that a driver must have."""
        return frozenset(NEEDS[act.do] for act in self.acts if act.do in NEEDS and (act.do is not Do.PART or act.links))
