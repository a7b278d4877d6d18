"""Runs that are written by hand, each of which makes real processes lose records if one rule is weakened.

In a shortest run of the model every fetch is a step of its own. Real brokers fetch all the time, many times within the half
second that a driver needs to hold one. So these runs use faults that last: a broker is paused or dead, or does not reach
another. They wait for conditions that the cluster reports, not for times.

Links to a dead broker stay cut until another one leads: TCP would retransmit what was in flight, and it would arrive.

A producer has one request in flight. While it waits, the leader has nothing to append and does not check again what is
committed. So where a leader is to acknowledge by what it has learned meanwhile, another producer begins.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kspec.trials.cluster.plan import CONTROLLER
from kspec.trials.faults.links import CLIENTS, Link
from kspec.trials.faults.plans.steps import ALL, LEADER, ClusterStep, Schedule, StepKind


class Loss(NamedTuple):
    """A run for a mutant. `rule`: the one that is weakened. `meaning`: the faults, in a line; `title`: their course on a
    cluster whose rule is weakened, in sentences.
    """

    rule: str
    meaning: str
    title: str
    schedule: Schedule
    acks: str = ALL


def _run(*steps: ClusterStep | tuple[ClusterStep, ...]) -> Schedule:
    """A schedule in which brokers 1, 2, 3 are preferred in this order, and two of them must be in sync."""
    return Schedule(
        (1, 2, 3), 2, tuple(one for step in steps for one in ([step] if isinstance(step, ClusterStep) else step))
    )


def _cut(*links: Link) -> ClusterStep:
    return ClusterStep(StepKind.CUT, links=frozenset(links))


def _ways(one: int | str, other: int | str) -> tuple[Link, Link]:
    return (str(one), str(other)), (str(other), str(one))


def _all(kind: StepKind, brokers: Iterable[int]) -> tuple[ClusterStep, ...]:
    return tuple(ClusterStep(kind, broker) for broker in brokers)


SEND, WRITE, READ, ACKNOWLEDGE = (
    ClusterStep(StepKind.SEND),
    ClusterStep(StepKind.WRITE),
    ClusterStep(StepKind.READ),
    ClusterStep(StepKind.ACKNOWLEDGE),
)
MORE, LAG = ClusterStep(StepKind.ADD_PRODUCER), ClusterStep(StepKind.LAG)
MEND = _cut()

LOSSES: Mapping[str, Loss] = {
    "min-isr-of-one": Loss(
        "min_isr",
        "both followers are cut off and leave the ISR, and the leader dies",
        "Both followers drop out of the ISR. The leader goes on acknowledging alone, and dies: an eligible replica leads "
        "and does not have what was acknowledged since.",
        _run(
            _cut(*_ways(1, 2), *_ways(1, 3)),
            _all(StepKind.LEAVE_ISR, (2, 3)),
            WRITE,
            ClusterStep(StepKind.KILL, 1),
            ClusterStep(StepKind.LEAD, 2),
        ),
    ),
    "advance-below-min-isr": Loss(
        "may_advance",
        "as loss-min-isr-of-one, with acks=1: consumers read on meanwhile",
        "Producers wait for the leader alone. Both followers drop out of the ISR, and consumers go on reading what only the "
        "leader has. It dies, and what they have read is gone.",
        _run(
            _cut(*_ways(1, 2), *_ways(1, 3)),
            _all(StepKind.LEAVE_ISR, (2, 3)),
            READ,
            ClusterStep(StepKind.KILL, 1),
            ClusterStep(StepKind.LEAD, 2),
        ),
        LEADER,
    ),
    "shrink-before-confirmation": Loss(
        "propose",
        "the leader reaches neither a follower nor the controller; then only the follower is left",
        "The leader reaches neither a follower nor the controller. It takes for granted that the follower is out of the "
        "ISR, and acknowledges without it. The others die; the follower is in the controller's ISR, and leads.",
        _run(
            _cut(*_ways(1, 2), *_ways(1, CONTROLLER)),
            LAG,
            MORE,
            ACKNOWLEDGE,
            _all(StepKind.KILL, (1, 3)),
            ClusterStep(StepKind.LEAD, 2),
        ),
    ),
    "high-watermark-over-committed-isr": Loss(
        "counted_isr",
        "a follower is admitted, and its leader does not hear that; then only the follower is left",
        "A follower is back in the ISR, and the leader does not hear that the controller has granted it. It acknowledges "
        "without that follower, which no longer fetches. The others die, and it leads.",
        _run(
            _cut(*_ways(1, 2)),
            ClusterStep(StepKind.LEAVE_ISR, 2),
            WRITE,
            _cut((CONTROLLER, "1")),
            ClusterStep(StepKind.JOIN_ISR, 2),
            _cut(*_ways(1, 2), (CONTROLLER, "1")),
            LAG,
            MORE,
            ACKNOWLEDGE,
            _all(StepKind.KILL, (1, 3)),
            ClusterStep(StepKind.LEAD, 2),
        ),
    ),
    "count-what-is-sent": Loss(
        "notes_fetch",
        "fetches are in flight while producers send, their answers do not arrive, and the leader dies",
        "Fetches are in flight while producers send. They arrive, and their responses do not. The leader counts what it "
        "has sent, acknowledges it, and dies.",
        _run(
            _cut(("2", "1"), ("3", "1"), *_ways(2, 3), (CLIENTS, "1")),
            SEND,
            _cut(("2", "1"), ("3", "1"), *_ways(2, 3)),
            SEND,
            _cut(("1", "2"), ("1", "3"), *_ways(2, 3)),
            ACKNOWLEDGE,
            ClusterStep(StepKind.KILL, 1),
            ClusterStep(StepKind.LEAD, 2),
        ),
    ),
    "join-before-high-watermark": Loss(
        "has_reached",
        "a follower that was paused fetches once, unanswered; then only it is left",
        "A follower is paused until it has left the ISR, and lacks what is acknowledged then. It fetches once, gets no "
        "response, and is in the ISR again. The others die, and it leads.",
        _run(
            ClusterStep(StepKind.PAUSE, 3),
            ClusterStep(StepKind.LEAVE_ISR, 3),
            WRITE,
            _cut(("1", "3"), *_ways(2, 3)),
            ClusterStep(StepKind.RESUME, 3),
            ClusterStep(StepKind.JOIN_ISR, 3),
            _all(StepKind.KILL, (1, 2)),
            ClusterStep(StepKind.LEAD, 3),
        ),
    ),
    "truncate-to-high-watermark": Loss(
        "start_following",
        "as loss-count-what-is-sent, and the next leader dies before the last replica has fetched",
        "Both followers have what the leader has acknowledged, and do not know yet that it is committed. The leader dies. "
        "One of them leads; the other truncates to its high watermark, and leads when the first one dies before it fetches.",
        _run(
            _cut(*_ways(2, 3), (CLIENTS, "1")),
            SEND,
            _cut(("2", "1"), ("3", "1"), *_ways(2, 3)),
            SEND,
            _cut(("1", "2"), ("1", "3"), *_ways(2, 3)),
            ACKNOWLEDGE,
            ClusterStep(StepKind.KILL, 1),
            ClusterStep(StepKind.LEAD, 2),
            ClusterStep(StepKind.KNOW_LEADER, 3),
            ClusterStep(StepKind.KILL, 2),
            ClusterStep(StepKind.LEAD, 3),
        ),
    ),
    "no-divergence-check": Loss(
        "divergence",
        "with acks=1, a leader dies with records that nobody has, is in sync again, and leads",
        "Producers wait for the leader alone, which reaches no follower and dies. Another one leads, and consumers read "
        "what is written there. The first one comes back with other records at the same offsets, is in sync by its offset, "
        "and leads again: what consumers had read is gone.",
        _run(
            _cut(*_ways(1, 2), *_ways(1, 3)),
            SEND,
            ClusterStep(StepKind.KILL, 1),
            ClusterStep(StepKind.LEAD, 2),
            MEND,
            READ,
            READ,
            READ,
            ClusterStep(StepKind.START, 1),
            ClusterStep(StepKind.SERVE, 1),
            ClusterStep(StepKind.JOIN_ISR, 1),
            _all(StepKind.KILL, (2, 3)),
            ClusterStep(StepKind.LEAD, 1),
        )._replace(one_by_one=True),
        LEADER,
    ),
    "election-outside-isr-and-elr": Loss(
        "controller: elect",
        "the replicas in sync are paused while one that is behind is up",
        "A follower has left the ISR and lacks what is acknowledged then. All replicas in sync are paused until their "
        "sessions are over, and it is elected. The others come back, truncate to its log, and one of them is elected again.",
        _run(
            _cut(*_ways(1, 3), *_ways(2, 3)),
            ClusterStep(StepKind.LEAVE_ISR, 3),
            WRITE,
            _all(StepKind.PAUSE, (1, 2)),
            ClusterStep(StepKind.LEAD, 3),
            MEND,
            _all(StepKind.RESUME, (1, 2)),
            _all(StepKind.KNOW_LEADER, (1, 2)),
            SEND,
            ClusterStep(StepKind.ELECT, 1),
            ClusterStep(StepKind.LEAD, 1),
        ),
    ),
    "unclean-replica-keeps-its-place": Loss(
        "controller: departure",
        "an eligible replica comes back without its records; then only it is left",
        "One follower dies, then the other one, which so becomes an eligible leader. It comes back without its records, and "
        "is eligible still. The leader dies, and it leads with an empty log.",
        _run(
            ClusterStep(StepKind.KILL, 2),
            ClusterStep(StepKind.LEAVE_ISR, 2),
            _cut(*_ways(1, 3)),
            ClusterStep(StepKind.KILL, 3),
            ClusterStep(StepKind.LEAVE_ISR, 3),
            ClusterStep(StepKind.ERASE, 3),
            ClusterStep(StepKind.START, 3),
            ClusterStep(StepKind.SERVE, 3),
            ClusterStep(StepKind.KILL, 1),
            ClusterStep(StepKind.LEAD, 3),
        ),
    ),
}
"""The runs, by the mutant of the rules that loses records in each."""
