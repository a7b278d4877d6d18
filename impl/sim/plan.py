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
    COPY = "the next request of broker {node} for one purpose, or of a client, loses its connection, and arrives late"
    STRIKE = "when the next ISR is proposed, or broker {node} fetches next, that is held up, and a broker stops or leads"
    SLUGGISH = "what broker {node} says and hears for some purposes takes longer"
    REASSIGN = "an operator moves a partition"
    PREFER = "an operator asks for preferred leaders"
    MOVE_LEADER = "an operator makes broker {node} the preferred leader of partitions, and takes that back"
    HAND_OVER = "a leader does not hear from the controller while broker {node}, which is behind, leads and is told to stop"
    LATE_FETCH = "a fetch arrives at a leader that has been deposed and elected again, while broker {node} led"
    LATE_NEWS = "broker {node} is dropped from an ISR, and the leader, which admits it again, hears late of the first change"
    REGISTER_TWICE = "broker {node} is told to stop, and then registers twice, the first time late"
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
    Kind.COPY: 5.0,
    Kind.STRIKE: 5.0,
    Kind.SLUGGISH: 5.0,
    Kind.REASSIGN: 2.5,
    Kind.PREFER: 2.0,
    Kind.MOVE_LEADER: 4.0,
    Kind.ROLL: 0.3,
    Kind.HAND_OVER: 1.0,
    Kind.LATE_FETCH: 1.0,
    Kind.LATE_NEWS: 1.0,
    Kind.REGISTER_TWICE: 0.5,
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
    burst: int = 1
    """How many faults come close together at most, before the next pause."""
    focus: float = 0.0
    """How often a fault of a burst happens to the same two brokers as the one before."""
    session: int = 3_000
    """`broker.session.timeout.ms`."""
    sluggish: tuple[tuple[str, bool, int], ...] = ()
    """What takes longer for all brokers and all the time: the purpose of the connection, whether forth, and how much."""
    asks_latest: float = 0.15
    """How often a consumer asks for the latest offset beside fetching."""
    snapshot_bytes: int = 20_000
    """`metadata.log.max.record.bytes.between.snapshots`."""


SNAPSHOT_BYTES = (1_000, 3_000, 10_000, 10_000, 20_000, 20_000, 40_000, 40_000)
"""How long the metadata log becomes: in a few seeds nodes take snapshots often, and a broker that was away needs one."""

PURPOSES = ("fetch", "isr", "metadata", "lifecycle")
"""What brokers' connections are for."""

IN_A_BURST_MS = 120
"""How far apart two faults of a burst are at most."""

OF_FEW_SEEDS = {
    Kind.HAND_OVER: ("hand-overs", 4, 6.0),
    Kind.LATE_FETCH: ("late fetches", 10, 6.0),
    Kind.LATE_NEWS: ("late news", 10, 6.0),
    Kind.REGISTER_TWICE: ("second registrations", 10, 4.0),
}
"""What happens in few seeds: its name, in one of how many seeds, and how often there beside the others."""

SESSION_TRIPS = 3
"""How many round trips of a heartbeat a session lasts at least: in a shorter one no broker is ever unfenced."""

LEFT_OUT = 0.6
"""How many of the kinds of faults do not happen in a seed that draws its own."""


def weather_of(seed: int) -> Weather:
    """The weather of a seed: some things happen much more often than in others, or not at all."""
    random = Random(f"weather {seed}")
    weights: dict[Kind, float] = {
        kind: weight * random.choice((0, 0.2, 0.5, 2, 4, 8)) if random.random() < 0.5 else weight
        for kind, weight in WEIGHTS.items()
        if kind not in OF_FEW_SEEDS
    }
    if random.random() < 0.5:
        some = {kind: weight for kind, weight in weights.items() if random.random() >= LEFT_OUT}
        weights = some if sum(some.values()) > 0 else weights
    for kind, (name, one_in, weight) in OF_FEW_SEEDS.items():
        weights[kind] = Random(f"{name} {seed}").choice((0.0,) * (one_in - 1) + (weight,))
    weather = Weather(
        weights=tuple(weights.items()),
        pauses=random.choice(((30, 300), (100, 1_500), (100, 1_500), (300, 3_000))),
        longest=random.choice((500, 1_000, 2_500, 5_000)),
        delays=random.choice(((1, 4), (1, 4), (1, 15), (5, 40))),
        stragglers=random.choice((0.0, 0.0, 0.5, 3.0)),
        partitions=random.choice((1, 1, 2, 3)),
        min_isr=random.choice((1, 2, 2, 2, 3)),
        max_lag=random.choice((300, 300, 1_000, 2_000, 10_000)),
        think=random.choice(((5, 80), (20, 200), (50, 500))),
        hasty=random.random() < 0.4,
        burst=random.choice((1, 2, 3, 5)),
        focus=random.choice((0.0, 0.5, 0.9)),
        session=random.choice((600, 1_500, 3_000)),
        sluggish=_sluggish(random),
        asks_latest=random.choice((0.15, 0.15, 0.6)),
        snapshot_bytes=Random(f"snapshots {seed}").choice(SNAPSHOT_BYTES),
    )
    return weather._replace(session=max(weather.session, SESSION_TRIPS * _round_trip_ms(weather)))


def _round_trip_ms(weather: Weather) -> int:
    """How long a heartbeat and its answer are under way at most, stragglers aside."""
    longer = sum(ms for purpose, _, ms in weather.sluggish if purpose == "lifecycle")
    return 2 * weather.delays[1] + longer


def _sluggish(random: Random) -> tuple[tuple[str, bool, int], ...]:
    """What takes longer throughout: in two seeds of five something does."""
    if random.random() < 0.6:
        return ()
    return tuple(
        (purpose, forth, random.choice((20, 100, 400)))
        for purpose in PURPOSES
        for forth in (True, False)
        if random.random() < 0.3
    )


def plan(seed: int, brokers: Sequence[int], weather: Weather) -> Iterator[Fault]:
    """What happens in a seed, in the order of the times, without end."""
    random = Random(seed)
    kinds, weights = zip(*weather.weights, strict=True)
    at_ms = 0
    while True:
        at_ms += random.randint(*weather.pauses)
        pair = random.sample(list(brokers), 2)
        for _ in range(random.randint(1, weather.burst)):
            (kind,) = random.choices(kinds, weights)
            if random.random() >= weather.focus:
                pair = random.sample(list(brokers), 2)
            lasts_ms, survives = random.randint(50, weather.longest), random.choice(LOSSES)
            yield Fault(at_ms, kind, pair[0], pair[1], lasts_ms, survives, random.getrandbits(32))
            at_ms += random.randint(0, IN_A_BURST_MS)


# ---- days without faults

MINUTE_MS = 60_000

CALM = Weather(weights=(), delays=(1, 4), max_lag=30_000, session=9_000, think=(500, 2_000))
"""Kafka's default time-outs, and clients that send and fetch every second or so: a day has many seconds."""


def restarts(every_minutes: int) -> Iterator[Fault]:
    """A rolling restart every so many minutes, without end."""
    at_ms = 0
    while True:
        at_ms += every_minutes * MINUTE_MS
        yield Fault(at_ms, Kind.ROLL, 1, 2, 0, Survives.ALL)
