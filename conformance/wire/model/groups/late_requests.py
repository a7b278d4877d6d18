"""Consumer groups (KIP-848) whose requests arrive late, twice, or whose answers are lost: what clients then own.

A heartbeat has no number that would tell an old one from a new one. Each candidate is a run of requests on one broker, which
is compared with the coordinator of `spec`, and what the clients believe is noted beside.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from kspec.conformance.wire.choice.cover import SelectedRun
from kspec.conformance.wire.choice.graph import GraphStep
from kspec.conformance.wire.model.groups.consumers import (
    COORDINATORS,
    INSTANCE,
    GroupByRelease,
    GroupView,
    absent_group,
    commit_move,
    consumers_setup,
    epoch_of,
    heartbeat_move,
    leaves,
    nothing_owned,
    what_it_may,
)
from kspec.conformance.wire.model.subject import Move, Subject
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.modern.state import places
from kspec.spec.messages.groups.consumer_group_heartbeat import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from kspec.spec.releases.names import RELEASES
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import Error, MemberId

ClientsView = dict[str, frozenset[TopicIdPartition]]
"""The partitions that each client believes to own."""


class Fate(Enum):
    """The fate of a request and its answer. A client that takes an answer owns what it says, and drops all if it is refused.

    A client that is busy knows what to give up, and has not done it. Nobody hears the answer to a request that arrives late.
    """

    TAKES = "takes it"
    IS_BUSY = "is busy giving up"
    LATE = "arrives late; nobody hears the answer"
    LOST = "the answer is lost"


class CandidateStep(NamedTuple):
    """A request of a client, and its fate."""

    move: Move
    client: str
    fate: Fate = Fate.TAKES


class StepTaken(NamedTuple):
    """A step as the coordinator of a release has it: the exchange, and the clients' view after it."""

    step: CandidateStep
    taken: GraphStep
    view: ClientsView

    @property
    def error(self) -> Error:
        """The error of the answer."""
        return self.taken.exchange.error


class LateRequests(NamedTuple):
    """A candidate: the steps, and what is to be seen at their end, in words and in a run."""

    name: str
    words: str
    claim: str
    steps: tuple[CandidateStep, ...]
    holds: Callable[[list[StepTaken]], bool]


def two_owners(run: list[StepTaken]) -> bool:
    """Whether at some time two clients believe to own a partition."""
    return any(len(owned) > len(frozenset(owned)) for owned in (_owned(step.view) for step in run))


def _owned(view: ClientsView) -> list[TopicIdPartition]:
    return [place for places_of in view.values() for place in places_of]


def ends_fenced(run: list[StepTaken]) -> bool:
    """Whether the last request is refused, because of its epoch."""
    return run[-1].error == Error.FENCED_MEMBER_EPOCH


def commits_what_another_owns(run: list[StepTaken]) -> bool:
    """Whether the last request, a commit of the partition 1, is accepted of a client that does not own it."""
    view = run[-1].view
    own = {place.partition for place in view[run[-1].step.client]}
    others = {place.partition for client, owned in view.items() if client != run[-1].step.client for place in owned}
    return run[-1].error == Error.NONE and 1 in others - own


def _member(client: str) -> MemberId:
    return MemberId(f"member-{client.lower()}")


def _joins(client: str, fate: Fate = Fate.TAKES, instance: str | None = None, late: str = "") -> CandidateStep:
    member_id = _member(client)
    words = f"client {client} joins{late}"
    kept = {"tells_all": True, "instance": instance}
    return CandidateStep(
        heartbeat_move("join", words, member_id, lambda view: JOIN_EPOCH, nothing_owned, **kept), client, fate
    )


def _beats(client: str, fate: Fate = Fate.TAKES) -> CandidateStep:
    return CandidateStep(
        heartbeat_move("alive", f"client {client} is alive", _member(client), epoch_of(_member(client))), client, fate
    )


def _beats_at_first(client: str) -> CandidateStep:
    words = f"client {client} is alive, in the epoch of its join"
    return CandidateStep(heartbeat_move("alive", words, _member(client), lambda view: view.first), client)


def _gives_up(client: str, fate: Fate = Fate.TAKES, behind: int = 0) -> CandidateStep:
    member_id, words = _member(client), f"client {client} says that it owns what it may"
    words += ", in the epoch that it knows" if behind else ""
    return CandidateStep(
        heartbeat_move("owns", words, member_id, epoch_of(member_id, -behind), what_it_may(member_id)), client, fate
    )


def _owned_nothing(client: str) -> CandidateStep:
    member_id, words = _member(client), f"an earlier heartbeat of client {client} arrives again, when it owned nothing"
    return CandidateStep(heartbeat_move("owns", words, member_id, epoch_of(member_id), nothing_owned), client, Fate.LATE)


def _leaves(client: str, fate: Fate, instance: str | None = None) -> CandidateStep:
    member_id, epoch = _member(client), leaves(_member(client), STATIC_LEAVE_EPOCH) if instance else leaves(_member(client))
    late = ", as it did before it came back" if fate == Fate.LATE else ""
    move = heartbeat_move("leave", f"client {client} leaves{late}", member_id, epoch, instance=instance)
    return CandidateStep(move, client, fate)


CANDIDATES = (
    LateRequests(
        "late-join",
        "A member is giving up a partition when its own join arrives a second time.",
        "two clients own a partition",
        (
            _joins("A"),
            _joins("B"),
            _beats("A", Fate.IS_BUSY),
            _joins("A", Fate.LATE, late=", as it did at first"),
            _beats("B"),
            _beats_at_first("A"),
        ),
        two_owners,
    ),
    LateRequests(
        "late-acknowledgement",
        "A member is giving up a partition when an earlier heartbeat of the same epoch arrives a second time.",
        "two clients own a partition",
        (
            _joins("B"),
            _joins("A"),
            _gives_up("A"),
            _beats("B", Fate.IS_BUSY),
            _gives_up("B"),
            _beats("A"),
            _joins("0"),
            _beats("A", Fate.IS_BUSY),
            _owned_nothing("A"),
            _beats("0"),
        ),
        two_owners,
    ),
    LateRequests(
        "late-leave",
        "A client leaves, and comes back on another connection before its leave has arrived.",
        "two clients own a partition",
        (_joins("A"), _joins("A", late=" again"), _leaves("A", Fate.LATE), _joins("B"), _beats_at_first("A")),
        two_owners,
    ),
    LateRequests(
        "late-static-leave",
        "A static member leaves for a while, and comes back on another connection before that has arrived.",
        "two clients own a partition",
        (
            _joins("A", instance=INSTANCE),
            _joins("A", instance=INSTANCE, late=" again"),
            _leaves("A", Fate.LATE, INSTANCE),
            _joins("B", instance=INSTANCE),
        ),
        two_owners,
    ),
    LateRequests(
        "lost-answers",
        "Two answers in a row are lost to a member that waits for a partition.",
        "a member that did nothing wrong is fenced",
        (
            _joins("A"),
            _joins("B"),
            _joins("C"),
            _beats("B", Fate.LOST),
            _gives_up("B", Fate.LOST, behind=1),
            _gives_up("B", behind=1),
        ),
        ends_fenced,
    ),
    LateRequests(
        "commit-of-another",
        "A member commits an offset of a partition that another member owns.",
        "the commit is accepted",
        (
            _joins("A"),
            _joins("B"),
            _beats("A", Fate.IS_BUSY),
            _gives_up("A"),
            _beats("B"),
            CandidateStep(
                commit_move("own", "client A commits an offset of partition 1", _member("A"), epoch_of(_member("A")), 1), "A"
            ),
        ),
        commits_what_another_owns,
    ),
)


def run_in(candidate: LateRequests, protocol: BrokerProtocol, release: str) -> list[StepTaken]:
    """The candidate's steps by the coordinator of a release; it ends before one that is not possible there."""
    rules = sum(RELEASES.index(name) <= RELEASES.index(release) for name, _ in COORDINATORS)
    state: Any = GroupByRelease(absent_group(rules))
    view: ClientsView = {}
    found: list[StepTaken] = []
    for step in candidate.steps:
        taken = step.move.take(protocol, state)
        if taken is None:
            break
        before, state = state, taken.state
        view = _after(view, step, taken.exchange.error, GroupView(state.groups[-1], None))
        found.append(StepTaken(step, GraphStep(before, step.move, taken.exchange), view))
    return found


def _after(view: ClientsView, step: CandidateStep, error: Error, group: GroupView) -> ClientsView:
    if step.fate != Fate.TAKES or step.move.name.startswith("commit"):
        return view
    member = group.member(_member(step.client))
    is_told = error == Error.NONE and member is not None
    return view | {step.client: places(member.assigned) if is_told and member is not None else frozenset()}


def as_chosen(candidate: LateRequests, run: list[StepTaken]) -> SelectedRun:
    """The steps as a run that becomes a case."""
    subject = Subject(candidate.name, candidate.words, GroupByRelease(), (), consumers_setup)
    return SelectedRun(subject, tuple(one.taken for one in run), ())
