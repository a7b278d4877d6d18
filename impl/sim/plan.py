"""What happens to a cluster, planned from its seed before the run: faults, and what operators do.

The plan is made from numbers of its own, and each entry has a number from which all its choices are drawn. So an entry can
be left out, and the others stay.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from random import Random
from typing import NamedTuple

from impl.storage.simulated_disk import Survives

LOSSES = (Survives.NOTHING, Survives.HALF, Survives.ZEROS)


class Kind(Enum):
    """What can happen, with what is said of it."""

    KILL = "broker {node} is killed"
    POWER = "broker {node} loses power; of what was not synced, {survives} is left"
    PAUSE = "broker {node} stands still"
    RESTART = "broker {node} is told to stop"
    SEPARATE = "brokers {node} and {other} do not reach each other"
    ISOLATE = "broker {node} reaches no other node"
    HIDE_CONTROLLER = "broker {node} does not reach the controller"
    KILL_CONTROLLER = "the controller is killed; of what was not synced, {survives} is left"
    PAUSE_CONTROLLER = "the controller stands still"
    BREAK = "connections of broker {node} are lost, with what is under way on them or before that arrives"
    HOLD = "what some connections of broker {node} carry arrives late"
    SLOW_DISK = "each sync of broker {node} takes long"
    FULL_DISK = "the disk of broker {node} is full"
    CLOCK = "the clock of broker {node}, or the controller's, jumps"
    REASSIGN = "an operator moves a partition"
    PREFER = "an operator asks for preferred leaders"
    ROLL = "all brokers are restarted, one after the other"


WEIGHTS = {
    Kind.KILL: 3.0,
    Kind.POWER: 4.0,
    Kind.PAUSE: 3.0,
    Kind.RESTART: 3.0,
    Kind.SEPARATE: 4.0,
    Kind.ISOLATE: 2.0,
    Kind.HIDE_CONTROLLER: 2.0,
    Kind.KILL_CONTROLLER: 1.0,
    Kind.PAUSE_CONTROLLER: 0.5,
    Kind.BREAK: 10.0,
    Kind.HOLD: 6.0,
    Kind.SLOW_DISK: 1.0,
    Kind.FULL_DISK: 0.7,
    Kind.CLOCK: 0.7,
    Kind.REASSIGN: 1.5,
    Kind.PREFER: 2.0,
    Kind.ROLL: 0.3,
}
"""How often each happens beside the others."""


class Fault(NamedTuple):
    """One fault: when it begins (ms after the first client), to whom it happens, how long it lasts (ms)."""

    at_ms: int
    kind: Kind
    node: int
    other: int
    lasts_ms: int
    survives: Survives
    number: int = 0
    """All further choices are drawn from it."""

    def in_words(self) -> str:
        """What happens."""
        return self.kind.value.format(node=self.node, other=self.other, survives=self.survives.value)


class Weather(NamedTuple):
    """What a seed's cluster is like, and its world. Times are in milliseconds."""

    weights: tuple[tuple[Kind, float], ...] = tuple(WEIGHTS.items())
    pauses: tuple[int, int] = (100, 1_500)
    """Between the begin of one fault and the next: the least and the most."""
    longest: int = 5_000
    """How long a fault lasts at most."""
    delays: tuple[int, int] = (1, 4)
    """How long a frame is under way."""
    stragglers: float = 0.0
    """How many of a hundred frames are under way for much longer."""
    partitions: int = 2
    min_isr: int = 2
    max_lag: int = 2_000
    """`replica.lag.time.max.ms`."""
    think: tuple[int, int] = (5, 80)
    """Between a client's answer and its next request."""
    hasty: bool = False
    """Whether there is a producer for each partition that asks for acks=1, to which nothing is promised."""


def weather_of(seed: int) -> Weather:
    """The weather of a seed: some things happen much more often than in others, or not at all."""
    random = Random(f"weather {seed}")
    weights = {
        kind: weight * random.choice((0, 0.2, 0.5, 2, 4, 8)) if random.random() < 0.5 else weight
        for kind, weight in WEIGHTS.items()
    }
    return Weather(
        weights=tuple(weights.items()),
        pauses=random.choice(((30, 300), (100, 1_500), (100, 1_500), (300, 3_000))),
        longest=random.choice((1_000, 2_500, 5_000, 8_000)),
        delays=random.choice(((1, 4), (1, 4), (1, 15), (5, 40))),
        stragglers=random.choice((0.0, 0.0, 0.5, 3.0)),
        partitions=random.choice((1, 2, 3)),
        min_isr=random.choice((1, 2, 2, 2)),
        max_lag=random.choice((300, 1_000, 2_000, 10_000)),
        think=random.choice(((5, 80), (20, 200), (50, 500))),
        hasty=random.random() < 0.4,
    )


def plan(seed: int, brokers: Sequence[int], weather: Weather) -> Iterator[Fault]:
    """What happens in a seed, in the order of the times, without end."""
    random = Random(seed)
    kinds, weights = zip(*weather.weights, strict=True)
    at_ms = 0
    while True:
        at_ms += random.randint(*weather.pauses)
        (kind,) = random.choices(kinds, weights)
        node, other = random.sample(list(brokers), 2)
        lasts_ms, survives = random.randint(50, weather.longest), random.choice(LOSSES)
        yield Fault(at_ms, kind, node, other, lasts_ms, survives, random.getrandbits(32))
