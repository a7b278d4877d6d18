"""Runs with a name: findings, and what came up on the way, each a few steps."""

from collections.abc import Callable

from kspec.conformance.mirror.moves import (
    CancelReassignment,
    CreatePartition,
    Elect,
    Heartbeat,
    ProposalFault,
    Propose,
    ProposeAgain,
    Reassign,
    Register,
    Unregister,
)
from kspec.conformance.mirror.runs import MirrorRun, run_of
from kspec.spec.values import BrokerId

ONE, TWO, THREE, FOUR = (BrokerId(number) for number in range(1, 5))
CREATE = CreatePartition((ONE, TWO, THREE))


def _fence(broker: BrokerId) -> Heartbeat:
    return Heartbeat(broker, want_fence=True)


def eligible_without_assignment() -> MirrorRun:
    """2 is removed from the partition, stays eligible, comes back empty, and leads."""
    moves = (CREATE, Reassign((ONE, THREE)), _fence(THREE), Reassign((ONE, TWO)), _fence(ONE))
    return run_of("eligible-without-assignment", *moves, min_isr=3)


def eligible_after_two_reassignments() -> MirrorRun:
    """With three replicas and min ISR 2: 1 is replaced by 4 and comes back, eligible all the time, and leads.

    It is the shortest run that `kspec check controller --release 4.3 --invariant LeaderHoldsLog` finds.
    """
    moves = (CREATE, Reassign((TWO, THREE, FOUR)), Propose((TWO,)), _fence(THREE), Propose((FOUR,)))
    back = (Reassign((ONE, TWO, THREE)), _fence(FOUR))
    return run_of("eligible-after-two-reassignments", *moves, *back)


def eligible_stranger() -> MirrorRun:
    """1 alone is assigned, and fenced; 2 is eligible without an assignment. No reassignment can bring 2 back."""
    return run_of("eligible-stranger", CREATE, Reassign((ONE,)), _fence(ONE), Reassign((TWO,)), Reassign((THREE, FOUR)))


def second_copy() -> MirrorRun:
    """A proposal is refused, because 3 is fenced. 3 is unfenced, and another copy of the same proposal is granted."""
    moves = (CREATE, Propose((THREE,)), _fence(THREE), Propose((THREE,)), Heartbeat(THREE), ProposeAgain())
    return run_of("second-copy-of-a-proposal", *moves)


def second_copy_after_a_change() -> MirrorRun:
    """As `second-copy-of-a-proposal`, but the partition changes in between: then the second copy is out of date."""
    away = (Propose((TWO,)), Propose((TWO,)))
    moves = (CREATE, Propose((THREE,)), _fence(THREE), Propose((THREE,)), Heartbeat(THREE), *away)
    late = Propose((THREE,), ProposalFault.EARLIER_PARTITION_EPOCH)
    return run_of("second-copy-control", *moves, late)


def fetch_before_registration() -> MirrorRun:
    """3 leaves the ISR, and is registered anew. A proposal with a member of unknown broker epoch admits it.

    The same proposal with the broker epoch of the incarnation before is refused.
    """
    again = (_fence(THREE), Unregister(THREE), Register(THREE), Heartbeat(THREE))
    moves = (CREATE, Propose((THREE,)), *again, Propose((THREE,), ProposalFault.STALE_MEMBER))
    return run_of("fetch-before-registration", *moves, Propose((THREE,), ProposalFault.MEMBER_WITHOUT_EPOCH))


def duplicate_registration() -> MirrorRun:
    """A new incarnation registers while the session of the one before lasts: refused; since 4.0 also if that is fenced."""
    return run_of("duplicate-registration", CREATE, Register(THREE), _fence(THREE), Register(THREE), Heartbeat(THREE))


def late_registration() -> MirrorRun:
    """An incarnation that is unfenced registers once more: it keeps its broker epoch, and stays as it is."""
    return run_of("late-registration", CREATE, Register(THREE, again=True), Heartbeat(THREE), Propose((THREE,)))


def registration_of_the_incarnation_before() -> MirrorRun:
    """3 is restarted and registers, and before its first heartbeat a registration of its earlier incarnation arrives."""
    restarted = (_fence(THREE), Unregister(THREE), Register(THREE), Register(THREE, earlier=True))
    return run_of("registration-of-the-incarnation-before", CREATE, *restarted, Heartbeat(THREE), Heartbeat(THREE))


def reassignment_taken_back() -> MirrorRun:
    """4 is being added; then the partition is moved back to the replicas that it had, and all are in sync."""
    back, joins = Reassign((ONE, TWO, THREE)), Propose((FOUR,))
    return run_of("reassignment-taken-back", CREATE, Reassign((ONE, TWO, FOUR)), back, joins, back, CancelReassignment())


def elections() -> MirrorRun:
    """On fencing, on controlled shutdown, preferred, by nobody, and on coming back."""
    shutdown = Heartbeat(TWO, want_shutdown=True)
    moves = (CREATE, _fence(ONE), shutdown, Heartbeat(THREE), shutdown, Heartbeat(ONE), Propose((ONE,)), Elect())
    gone = (_fence(THREE), _fence(ONE), Elect(unclean=True), Heartbeat(THREE))
    return run_of("elections", *moves, *gone)


def last_known_leader() -> MirrorRun:
    """Nobody is in sync or eligible. The last leader is elected once it is up, and not before."""
    down = (_fence(TWO), _fence(THREE), _fence(ONE))
    lost = (Unregister(THREE), Register(THREE), Unregister(ONE), Register(ONE))
    return run_of("last-known-leader", CREATE, *down, *lost, Heartbeat(TWO), Heartbeat(ONE))


def stopping_broker_is_elected() -> MirrorRun:
    """1 asks for leave to stop while the others are fenced. Heartbeats of before then fence it, unfence it, and it leads."""
    stops = (_fence(TWO), _fence(THREE), Heartbeat(ONE, want_shutdown=True), Heartbeat(FOUR))
    return run_of("stopping-broker-is-elected", CREATE, *stops, Heartbeat(ONE), Heartbeat(ONE))


NAMED: dict[str, Callable[[], MirrorRun]] = {
    run().name: run
    for run in (
        eligible_without_assignment,
        eligible_after_two_reassignments,
        eligible_stranger,
        second_copy,
        second_copy_after_a_change,
        fetch_before_registration,
        duplicate_registration,
        late_registration,
        registration_of_the_incarnation_before,
        reassignment_taken_back,
        elections,
        last_known_leader,
        stopping_broker_is_elected,
    )
}
"""The runs by name."""

OTHER_NAMES = {"second-copy": "second-copy-of-a-proposal"}
"""Names of findings whose study has another name."""
