"""Runs that are written by hand, each of which makes real processes lose records if one rule is weakened.

In a shortest run of the model every fetch is a step of its own. Real brokers fetch all the time, and many times within the
half second in which somebody could hold them. So these runs keep to what can be held: a broker stands still, or is dead, or
does not reach another. They wait for what a cluster shows of itself, not for times.

Links to who has died stay cut until another one leads: what was on its way would still arrive, as TCP repeats it.

A producer has one request under way. While it waits, a leader has nothing to append and does not look again at what is
committed. So where a leader is to acknowledge by what it has learned meanwhile, another producer begins.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from conformance.cluster.acts import Act, Do, Schedule
from conformance.cluster.driver import CLIENTS, CONTROLLER, Link

ALL, LEADER = "all", "1"
"""What producers wait for: all in-sync replicas, or the leader alone."""


class Loss(NamedTuple):
    """A run for a mutant. `title`: what happens in it to a cluster whose rule is weakened, in sentences."""

    title: str
    schedule: Schedule
    acks: str = ALL


def _run(*acts: Act | tuple[Act, ...]) -> Schedule:
    """Broker 1 leads first, then 2, then 3, as far as they may; two of three must be in sync."""
    return Schedule((1, 2, 3), 2, tuple(one for act in acts for one in ([act] if isinstance(act, Act) else act)))


def _cut(*links: Link) -> Act:
    return Act(Do.PART, links=frozenset(links))


def _ways(one: int | str, other: int | str) -> tuple[Link, Link]:
    return (str(one), str(other)), (str(other), str(one))


def _all(do: Do, brokers: Iterable[int]) -> tuple[Act, ...]:
    return tuple(Act(do, broker) for broker in brokers)


SEND, WRITE, READ, ACKNOWLEDGE = Act(Do.SEND), Act(Do.WRITE), Act(Do.READ), Act(Do.ACKNOWLEDGE)
MORE, LAG = Act(Do.MORE), Act(Do.LAG)
MEND = _cut()

LOSSES: Mapping[str, Loss] = {
    "min-isr-of-one": Loss(
        "Both followers drop out of the ISR. The leader goes on acknowledging alone, and dies: an eligible replica leads "
        "and does not have what was acknowledged since.",
        _run(
            _cut(*_ways(1, 2), *_ways(1, 3)),
            _all(Do.DROP, (2, 3)),
            WRITE,
            Act(Do.KILL, 1),
            Act(Do.LEAD, 2),
        ),
    ),
    "advance-below-min-isr": Loss(
        "Producers wait for the leader alone. Both followers drop out of the ISR, and consumers go on reading what only the "
        "leader has. It dies, and what they have read is gone.",
        _run(
            _cut(*_ways(1, 2), *_ways(1, 3)),
            _all(Do.DROP, (2, 3)),
            READ,
            Act(Do.KILL, 1),
            Act(Do.LEAD, 2),
        ),
        LEADER,
    ),
    "shrink-before-confirmation": Loss(
        "The leader reaches neither a follower nor the controller. It takes for granted that the follower is out of the "
        "ISR, and acknowledges without it. The others die; the follower is in the controller's ISR, and leads.",
        _run(
            _cut(*_ways(1, 2), *_ways(1, CONTROLLER)),
            LAG,
            MORE,
            ACKNOWLEDGE,
            _all(Do.KILL, (1, 3)),
            Act(Do.LEAD, 2),
        ),
    ),
    "high-watermark-over-committed-isr": Loss(
        "A follower is back in the ISR, and the leader does not hear that the controller has granted it. It acknowledges "
        "without that follower, which stands still by now. The others die, and it leads.",
        _run(
            _cut(*_ways(1, 2)),
            Act(Do.DROP, 2),
            WRITE,
            _cut((CONTROLLER, "1")),
            Act(Do.JOIN, 2),
            _cut(*_ways(1, 2), (CONTROLLER, "1")),
            LAG,
            MORE,
            ACKNOWLEDGE,
            _all(Do.KILL, (1, 3)),
            Act(Do.LEAD, 2),
        ),
    ),
    "count-what-is-sent": Loss(
        "Fetches are on their way while producers send. They arrive, and their answers do not. The leader counts what it "
        "has sent, acknowledges it, and dies.",
        _run(
            _cut(("2", "1"), ("3", "1"), *_ways(2, 3), (CLIENTS, "1")),
            SEND,
            _cut(("2", "1"), ("3", "1"), *_ways(2, 3)),
            SEND,
            _cut(("1", "2"), ("1", "3"), *_ways(2, 3)),
            ACKNOWLEDGE,
            Act(Do.KILL, 1),
            Act(Do.LEAD, 2),
        ),
    ),
    "join-before-high-watermark": Loss(
        "A follower stands still until it has left the ISR, and lacks what is acknowledged then. It fetches once, gets no "
        "answer, and is in the ISR again. The others die, and it leads.",
        _run(
            Act(Do.PAUSE, 3),
            Act(Do.DROP, 3),
            WRITE,
            _cut(("1", "3"), *_ways(2, 3)),
            Act(Do.RESUME, 3),
            Act(Do.JOIN, 3),
            _all(Do.KILL, (1, 2)),
            Act(Do.LEAD, 3),
        ),
    ),
    "truncate-to-high-watermark": Loss(
        "Both followers have what the leader has acknowledged, and do not know yet that it is committed. The leader dies. "
        "One of them leads; the other truncates to its high watermark, and leads when the first one dies before it fetches.",
        _run(
            _cut(*_ways(2, 3), (CLIENTS, "1")),
            SEND,
            _cut(("2", "1"), ("3", "1"), *_ways(2, 3)),
            SEND,
            _cut(("1", "2"), ("1", "3"), *_ways(2, 3)),
            ACKNOWLEDGE,
            Act(Do.KILL, 1),
            Act(Do.LEAD, 2),
            Act(Do.KNOW, 3),
            Act(Do.KILL, 2),
            Act(Do.LEAD, 3),
        ),
    ),
    "no-divergence-check": Loss(
        "Producers wait for the leader alone, which reaches no follower and dies. Another one leads, and consumers read "
        "what is written there. The first one comes back with other records at the same offsets, is in sync by its offset, "
        "and leads again: what consumers had read is gone.",
        _run(
            _cut(*_ways(1, 2), *_ways(1, 3)),
            SEND,
            Act(Do.KILL, 1),
            Act(Do.LEAD, 2),
            MEND,
            READ,
            READ,
            READ,
            Act(Do.START, 1),
            Act(Do.SERVE, 1),
            Act(Do.JOIN, 1),
            _all(Do.KILL, (2, 3)),
            Act(Do.LEAD, 1),
        )._replace(one_by_one=True),
        LEADER,
    ),
    "election-outside-isr-and-elr": Loss(
        "A follower has left the ISR and lacks what is acknowledged then. All replicas in sync stand still until their "
        "sessions are over, and it is elected. The others come back, truncate to its log, and one of them is elected again.",
        _run(
            _cut(*_ways(1, 3), *_ways(2, 3)),
            Act(Do.DROP, 3),
            WRITE,
            _all(Do.PAUSE, (1, 2)),
            Act(Do.LEAD, 3),
            MEND,
            _all(Do.RESUME, (1, 2)),
            _all(Do.KNOW, (1, 2)),
            SEND,
            Act(Do.ELECT, 1),
            Act(Do.LEAD, 1),
        ),
    ),
    "unclean-replica-keeps-its-place": Loss(
        "One follower dies, then the other one, which so becomes an eligible leader. It comes back without its records, and "
        "is eligible still. The leader dies, and it leads with an empty log.",
        _run(
            Act(Do.KILL, 2),
            Act(Do.DROP, 2),
            _cut(*_ways(1, 3)),
            Act(Do.KILL, 3),
            Act(Do.DROP, 3),
            Act(Do.ERASE, 3),
            Act(Do.START, 3),
            Act(Do.SERVE, 3),
            Act(Do.KILL, 1),
            Act(Do.LEAD, 3),
        ),
    ),
}
"""The runs, by the mutant of the rules that loses records in each."""
