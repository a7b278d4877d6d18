"""Events of a cluster, planned from its seed before the run: faults, and requests of operators.

The plan is made from numbers of its own, and each entry has a number from which all its choices are drawn. So an entry can
be left out, and the others stay.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.kinds.catalogue import KINDS, VOTER_KINDS
from kspec.trials.simulated.kinds.connections import PURPOSES
from kspec.trials.simulated.kinds.site import Fault, SimulatedFault
from kspec.trials.simulated.kinds.stops import RollingRestart

LOSSES = (Survives.NOTHING, Survives.HALF, Survives.ZEROS)


WEIGHTS = tuple((kind, kind.weight) for kind in KINDS)
"""The relative frequency of each kind of fault."""


class RunConditions(NamedTuple):
    """The conditions of a run: the shape of the cluster, its load, its network and its faults. Times are in milliseconds."""

    weights: tuple[tuple[type[SimulatedFault], float], ...] = WEIGHTS
    pauses: tuple[int, int] = (100, 1_500)
    """The shortest and the longest time between the beginnings of two faults."""
    longest: int = 5_000
    """The longest fault."""
    delays: tuple[int, int] = (1, 4)
    """The shortest and the longest delay of a frame."""
    stragglers: float = 0.0
    """The percentage of frames with a much longer delay."""
    partitions: int = 2
    min_isr: int = 2
    max_lag: int = 2_000
    """`replica.lag.time.max.ms`."""
    think: tuple[int, int] = (5, 80)
    """The shortest and the longest pause between a response to a client and its next request."""
    has_acks_1: bool = False
    """Whether each partition has a producer with acks=1, for which no promise holds."""
    burst: int = 1
    """The largest number of faults close together, before the next pause."""
    focus: float = 0.0
    """The share of faults in a burst that hit the same two brokers as the one before."""
    session: int = 3_000
    """`broker.session.timeout.ms`."""
    slow_links: tuple[tuple[str, bool, int], ...] = ()
    """Connections of all brokers that are slow throughout: their purpose, whether forth, and the extra delay."""
    asks_latest: float = 0.15
    """The share of ListOffsets requests among a consumer's requests."""
    snapshot_bytes: int = 20_000
    """`metadata.log.max.record.bytes.between.snapshots`."""
    members: int = 0
    """The number of members of the group, and of simple consumers of another; without any, there are no groups."""
    consumers: int = 0
    """The number of members of a group by the newer protocol (KIP-848)."""
    one_by_one: bool = False
    """Whether producers put one record in a batch."""
    deletes: bool = False
    """Whether records are deleted: by a client, and by size. There the controller looks soon for preferred leaders, too."""


SNAPSHOT_BYTES = (1_000, 3_000, 10_000, 10_000, 20_000, 20_000, 40_000, 40_000)
"""Bytes of the metadata log between snapshots: in a few seeds they are frequent, and a broker that was down needs one."""

IN_A_BURST_MS = 120
"""The longest time between two faults of a burst."""

SESSION_TRIPS = 3
"""The least length of a session in round trips of a heartbeat: in a shorter one no broker is ever unfenced."""

GROUP_SIZES, GROUPS_EVERY, GROUPS_FIRST = (2, 3, 5), 7, 5
"""The numbers of members of a group, and the seeds with groups: each seventh, from the fifth on."""

CONSUMERS_EVERY, CONSUMERS_FIRST = 14, 12
"""The seeds that have a consumer group (KIP-848), too: every other one of those with groups."""

DELETES_EVERY, DELETES_FIRST = 6, 5
"""The seeds in which records are deleted: each sixth, from the fifth on."""

GROUP_PARTITIONS = 4
"""The number of partitions of the topic where there are groups."""

LEFT_OUT = 0.6
"""The share of the kinds of faults that are left out in a seed that draws its own."""


SHARES_OF_VOTERS = (0.15, 0.35, 0.35, 0.6)
"""The share that faults of controllers have of all, where there are several."""


def conditions_of(seed: int) -> RunConditions:
    """The conditions of a seed: some faults happen much more often than in others, or never."""
    random = Random(f"weather {seed}")
    weights: dict[type[SimulatedFault], float] = {
        kind: kind.weight * random.choice((0, 0.2, 0.5, 2, 4, 8)) if random.random() < 0.5 else kind.weight
        for kind in KINDS
        if kind.few_seeds is None
    }
    if random.random() < 0.5:
        some = {kind: weight for kind, weight in weights.items() if random.random() >= LEFT_OUT}
        weights = some if sum(some.values()) > 0 else weights
    for kind in KINDS:
        if kind.few_seeds is not None:
            name, one_in, weight = kind.few_seeds
            weights[kind] = Random(f"{name} {seed}").choice((0.0,) * (one_in - 1) + (weight,))
    conditions = RunConditions(
        weights=tuple(weights.items()),
        pauses=random.choice(((30, 300), (100, 1_500), (100, 1_500), (300, 3_000))),
        longest=random.choice((500, 1_000, 2_500, 5_000)),
        delays=random.choice(((1, 4), (1, 4), (1, 15), (5, 40))),
        stragglers=random.choice((0.0, 0.0, 0.5, 3.0)),
        partitions=random.choice((1, 1, 2, 3)),
        min_isr=random.choice((1, 2, 2, 2, 3)),
        max_lag=random.choice((300, 300, 1_000, 2_000, 10_000)),
        think=random.choice(((5, 80), (20, 200), (50, 500))),
        has_acks_1=random.random() < 0.4,
        burst=random.choice((1, 2, 3, 5)),
        focus=random.choice((0.0, 0.5, 0.9)),
        session=random.choice((600, 1_500, 3_000)),
        slow_links=_slow_links_of(random),
        asks_latest=random.choice((0.15, 0.15, 0.6)),
        snapshot_bytes=Random(f"snapshots {seed}").choice(SNAPSHOT_BYTES),
        members=Random(f"groups {seed}").choice(GROUP_SIZES) if seed % GROUPS_EVERY == GROUPS_FIRST else 0,
        consumers=Random(f"consumers {seed}").choice(GROUP_SIZES) if seed % CONSUMERS_EVERY == CONSUMERS_FIRST else 0,
        deletes=seed % DELETES_EVERY == DELETES_FIRST,
    )
    if conditions.members:  # so that members commit different partitions at the same time
        conditions = conditions._replace(partitions=GROUP_PARTITIONS)
    return conditions._replace(session=max(conditions.session, SESSION_TRIPS * _round_trip_ms(conditions)))


def with_voters(seed: int, conditions: RunConditions) -> RunConditions:
    """The conditions of a seed in which there are several controllers, and faults of these."""
    random = Random(f"voters {seed}")
    share = random.choice(SHARES_OF_VOTERS)
    of_voters = [(kind, kind.weight * random.choice(kind.factors)) for kind in VOTER_KINDS]
    scale = share / (1 - share) * sum(weight for _, weight in conditions.weights) / sum(weight for _, weight in of_voters)
    return conditions._replace(weights=(*conditions.weights, *((kind, scale * weight) for kind, weight in of_voters)))


def _round_trip_ms(conditions: RunConditions) -> int:
    """The longest round trip of a heartbeat, stragglers aside."""
    longer = sum(ms for purpose, _, ms in conditions.slow_links if purpose == "lifecycle")
    return 2 * conditions.delays[1] + longer


def _slow_links_of(random: Random) -> tuple[tuple[str, bool, int], ...]:
    """The connections that are slow throughout: in two seeds of five there are some."""
    if random.random() < 0.6:
        return ()
    return tuple(
        (purpose, forth, random.choice((20, 100, 400)))
        for purpose in PURPOSES
        for forth in (True, False)
        if random.random() < 0.3
    )


def plan(seed: int, brokers: Sequence[int], conditions: RunConditions) -> Iterator[Fault]:
    """The faults of a seed, in the order of the times, without end."""
    random = Random(seed)
    kinds, weights = zip(*conditions.weights, strict=True)
    at_ms = 0
    while True:
        at_ms += random.randint(*conditions.pauses)
        pair = random.sample(list(brokers), 2)
        for _ in range(random.randint(1, conditions.burst)):
            (kind,) = random.choices(kinds, weights)
            if random.random() >= conditions.focus:
                pair = random.sample(list(brokers), 2)
            lasts_ms, survives = random.randint(50, conditions.longest), random.choice(LOSSES)
            yield Fault(at_ms, kind, pair[0], pair[1], lasts_ms, survives, random.getrandbits(32))
            at_ms += random.randint(0, IN_A_BURST_MS)


# ---- days without faults

MINUTE_MS = 60_000

UNDISTURBED = RunConditions(weights=(), delays=(1, 4), max_lag=30_000, session=9_000, think=(500, 2_000))
"""Conditions without faults: Kafka's default timeouts, and clients that send and fetch every second or so."""


def restarts(every_minutes: int) -> Iterator[Fault]:
    """A rolling restart every so many minutes, without end."""
    at_ms = 0
    while True:
        at_ms += every_minutes * MINUTE_MS
        yield Fault(at_ms, RollingRestart, 1, 2, 0, Survives.ALL)
