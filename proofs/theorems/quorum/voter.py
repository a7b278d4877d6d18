"""Any voter among any number of voters: the state before a step, of which nothing is known but what an invariant says.

Ids are compared for equality alone, but for the order in which requests are sent. So three names do: the voter that takes
the step, the server that its message is from, and any other.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import z3

from kspec.proofs.symbolic.log import SymbolicLog
from kspec.proofs.symbolic.members import AnyMembers
from kspec.proofs.symbolic.paths import decide
from kspec.proofs.symbolic.values import AnyNumber, SymbolicBool, SymbolicInt
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.messages.quorum.voters import VoterSets
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import ElectionState, QuorumReplica, QuorumServer, QuorumSettings, ReplicaProgress
from kspec.spec.quorum.rules.epochs import NOMINEES, VoterRole
from kspec.spec.quorum.rules.voters import fixed_voters
from kspec.spec.quorum.rules.votes import Tally
from kspec.spec.values import NO_DIRECTORY, NO_LEADER, NO_REPLICA, BrokerId, DirectoryId, MonotonicMs, ReplicaKey

NOW, DIRECTORY, OTHER_DIRECTORY = MonotonicMs(0), DirectoryId(bytes([1] * 16)), DirectoryId(bytes([2] * 16))

ME, THEM, SOMEBODY = BrokerId(1), BrokerId(2), BrokerId(3)
"""The voter that takes the step, the server that its message is from, and any other; these two may be voters or not."""

SEEN = (ME, THEM)
"""The ids that a loop over voters sees, if nothing depends on what it does with the others."""

VOTERS = AnyMembers.named("voter", SEEN)
"""The ids of the voters: any finite set that the one is in that takes the step."""

HAVE_DIRECTORIES = z3.Bool("voters have directories")
"""Whether voter sets know the directories of voters: `kraft.version` 1, and not 0."""

EPOCH, LEADER, VOTED = z3.Ints("epoch leader voted")
"""Of the voter's election, in memory and on the disk: who leads and whom it has voted for are ids."""

START, END = z3.Ints("start end")
"""Of its log."""

EPOCH_START, HIGH_WATERMARK = z3.Ints("epoch_start high_watermark")
"""Of a leader, and of any voter."""

REACHES, FETCHED = z3.Bools("reaches_leader has_fetched")
"""Of the voter: it knows its leader's address, and that has answered a fetch."""

GRANTED, REJECTED = AnyMembers.named("granted", SEEN), AnyMembers.named("rejected", SEEN)
"""The voters that have answered in the election that the voter stands in."""

PROGRESS = z3.Function("progress", z3.IntSort(), z3.IntSort())
"""The end of each other voter's log, as far as a leader knows."""


def any_number(name: str) -> Any:
    """An epoch or an offset of this name."""
    return AnyNumber(z3.Int(name))


def one_of(name: str, *choices: Any) -> Any:
    """One of the choices, by the position that the name stands for."""
    for position, choice in enumerate(choices[:-1]):
        if decide(z3.Int(name) == position):
            return choice
    return choices[-1]


def is_so(name: str) -> bool:
    """Whether something is so of which nothing is known."""
    return decide(z3.Bool(name))


class DirectoryIfKnown:
    """The directory of a voter, or none if voter sets know none: which of the two is decided when that is asked."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DirectoryIfKnown):
            return True
        known = HAVE_DIRECTORIES if other == DIRECTORY else z3.Not(HAVE_DIRECTORIES)
        return other in (DIRECTORY, NO_DIRECTORY) and decide(known)

    def __hash__(self) -> int:
        return 0


def key_of(voter: BrokerId) -> ReplicaKey:
    """A voter as voter sets name it."""
    directory: Any = DirectoryIfKnown()
    return ReplicaKey(voter, directory)


class AnyVoterSet(AbstractSet[ReplicaKey]):
    """The voter set of the configuration, of any size: with directories (`kraft.version` 1), or without.

    A loop sees those of `seen` that are voters.
    """

    def __init__(self, seen: tuple[BrokerId, ...]) -> None:
        self.seen = seen

    def __contains__(self, replica: object) -> bool:
        return isinstance(replica, ReplicaKey) and DirectoryIfKnown() == replica.directory and replica.id in VOTERS

    def __iter__(self) -> Iterator[ReplicaKey]:
        return (key_of(one) for one in self.seen if one in VOTERS)

    def __len__(self) -> Any:
        return SymbolicInt(VOTERS.size)


class VoterLog(SymbolicLog):
    """A voter's log before the step. A leader may note its end of one who fetches, so it is a number that sets may hold."""

    __slots__ = ()

    @property
    def end_offset(self) -> AnyNumber:
        return AnyNumber(self.end)


class Party(NamedTuple):
    """The voter that takes a step: the rules of its release, any log, whether there are snapshots, and whom loops see."""

    protocol: QuorumProtocol
    log: Callable[[], Any]
    has_snapshots: bool
    seen: tuple[BrokerId, ...] = SEEN

    @property
    def server(self) -> QuorumServer:
        """Its server."""
        return QuorumServer(self.protocol, QuorumSettings(max_records=1), ME)

    def snapshot(self, name: str) -> SnapshotId:
        """A snapshot of any end and epoch; none, if there are none."""
        if not self.has_snapshots:
            return NO_SNAPSHOT
        return SnapshotId(any_number(f"end of {name}"), any_number(f"epoch of {name}"))

    def in_role(self, role: VoterRole) -> QuorumReplica[Any]:
        """The voter in this role."""
        local = LocalLog(self.log(), any_number("committed"))
        state = QuorumReplica(local, self.voter_sets, DIRECTORY, any_election(), role)
        high_watermark: Any = AnyNumber(HIGH_WATERMARK)
        state = state._replace(high_watermark=high_watermark, snapshot=self.snapshot("snapshot"))
        if role in NOMINEES:
            state = state._replace(tally=self.tally())
        if role == VoterRole.LEADER:
            heard: Any = AnyMembers.named("heard", SEEN)
            epoch_start: Any = AnyNumber(EPOCH_START)
            state = state._replace(progress=self.progress(), heard_from=heard, epoch_start=epoch_start)
        if role == VoterRole.RESIGNED:
            unacknowledged: Any = AnyMembers.named("unacknowledged", SEEN)
            state = state._replace(unacknowledged=unacknowledged)
        reaches_leader: Any = SymbolicBool(REACHES)
        has_fetched: Any = SymbolicBool(FETCHED)
        return state._replace(reaches_leader=reaches_leader, has_fetched=has_fetched)

    @property
    def voter_sets(self) -> VoterSets:
        """The voter set of the configuration."""
        voters: Any = AnyVoterSet(self.seen)
        return fixed_voters(voters)

    @property
    def voters_in_log(self) -> bool:
        """Whether voter sets are in the log, and may change: not here."""
        return False

    def told_voter_sets(self) -> VoterSets:
        """The voter sets that an answer to a fetch tells."""
        return ()

    @property
    def others(self) -> tuple[BrokerId, ...]:
        """The other voters, as far as loops see them."""
        return tuple(one for one in self.seen if one != ME and one in VOTERS)

    def tally(self) -> Tally:
        """The votes of one that stands."""
        voters: Any = AnyVoterSet(self.seen)
        granted: Any = GRANTED
        rejected: Any = REJECTED
        return Tally(voters, granted, rejected)

    def progress(self) -> frozenset[ReplicaProgress]:
        """A leader's knowledge of the others."""
        ends: dict[BrokerId, Any] = {one: AnyNumber(PROGRESS(one)) for one in self.others}
        return frozenset(ReplicaProgress(key_of(one), end) for one, end in ends.items())


def any_election() -> ElectionState:
    """Any election."""
    voted = NO_REPLICA if decide(VOTED == NO_LEADER) else ReplicaKey(any_number("voted"), DIRECTORY)
    return ElectionState(any_number("epoch"), any_number("leader"), voted)
