"""Voter sets that change: each is a number, which stands for its voters and for the offset since which it is in force.

So a voter set is a column of a log, as epochs and values are: which one is in force after each record. The same voters
written once more, as by a voter that is reached elsewhere, are no other voter set.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import z3

from kspec.proofs.symbolic.members import AnyMembers, Whole, majorities_share
from kspec.proofs.symbolic.paths import decide
from kspec.proofs.symbolic.values import AnyNumber, AnyTruth, SymbolicBool, SymbolicInt
from kspec.proofs.theorems.quorum.voter import DIRECTORY, END, ME, PROGRESS, SOMEBODY, THEM, Party, any_number
from kspec.spec.messages.quorum.voters import VoterSetEntry, VoterSets
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer, ReplicaProgress, VoterChange
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.votes import Tally
from kspec.spec.values import NO_REPLICA, BrokerId, ReplicaKey

_NUMBER = z3.IntSort()

HAS = z3.Function("votes in", _NUMBER, _NUMBER, z3.BoolSort())
"""Whether one votes in a voter set."""

SIZE = z3.Function("voters in", _NUMBER, _NUMBER)
"""The number of voters in a voter set."""

SINCE = z3.Function("in force since", _NUMBER, _NUMBER)
"""The offset of the record that wrote a voter set; -1 for the first one, which is not of the log."""

DIFFERS = z3.Function("one more or less", _NUMBER, _NUMBER, z3.BoolSort())
"""Whether the second of two voter sets has one voter more than the first, or one less."""

FIRST_SET = z3.Int("first voter set")


def whole(voter_set: Any) -> Whole:
    """A voter set as its members and their number."""
    return partial(HAS, voter_set), SIZE(voter_set)


def near(one: Any, other: Any) -> z3.BoolRef:
    """Whether two voter sets are the same, or one voter apart."""
    return z3.Or(one == other, DIFFERS(one, other), DIFFERS(other, one))


def near_majorities_share(one: Whole, one_set: Any, other: Whole, other_set: Any, common: Any) -> z3.BoolRef:
    """A fact: majorities of two voter sets that are one voter apart at most share a voter, whom `common` names.

    That this is so for sets of any size is proved by induction (`majorities`).
    """
    return z3.Implies(near(one_set, other_set), majorities_share(one, other, (whole(one_set), whole(other_set)), common))


# ---- of the voter that takes a step

SEEN = (ME, THEM, SOMEBODY)

OWN_SET = z3.Function("set at", _NUMBER, _NUMBER)
"""The voter set in force after a record of the voter's log before the step; at -1 the first one."""

LAST_SET = OWN_SET(END - 1)
"""The voter set by which it goes."""

NEW_SET, TOLD_SET = z3.Ints("new_set told_set")
"""A voter set that the step writes, and one that an answer to a fetch tells."""

LAST, BEFORE_LAST, EARLIER, EARLIEST = z3.Ints("last_entry entry_before_last earlier_entry earliest_entry")
"""The offsets of records of voters: of the last, of the one before, of any earlier one, and of the one before that.

Where there are fewer, the first voter set, of offset -1, stands for what is not there: rules ask only for the last two, and
for those below or between offsets.
"""

ENTRIES = (EARLIEST, EARLIER, BEFORE_LAST, LAST)

TELLS_VOTERS = z3.Bool("tells voters")
"""Whether an answer tells a voter set."""

HAS_VOTER, ADDS_ITSELF, CHANGE_OFFSET = z3.Bool("is to vote"), z3.Bool("adds itself"), z3.Int("offset of change")
"""Of the change that a leader is asked for: whether somebody is to vote, whether that is the leader, and the offset."""


class ChangingSet(AbstractSet[ReplicaKey]):
    """A voter set of any size, each voter with its directory. `code`: its number; `made`: those that the step makes."""

    def __init__(self, members: AnyMembers, code: Any, made: "list[ChangingSet]") -> None:
        self.members, self.code, self.made = members, code, made

    @classmethod
    def of(cls, code: Any, made: "list[ChangingSet]", seen: tuple[BrokerId, ...] = SEEN) -> "ChangingSet":
        """The voter set of this number. `seen`: by loops over it."""
        return cls(AnyMembers(*whole(code), seen), code, made)

    def __contains__(self, replica: object) -> bool:
        return isinstance(replica, ReplicaKey) and replica.directory == DIRECTORY and replica.id in self.members

    def __iter__(self) -> Iterator[ReplicaKey]:
        return (ReplicaKey(one, DIRECTORY) for one in self.members)

    def __len__(self) -> Any:
        return SymbolicInt(self.members.size)

    def __or__(self, voters: Any) -> Any:
        return self._changed(self.members | {voter.id for voter in voters})

    def __sub__(self, voters: Any) -> Any:
        return self._changed(self.members - {voter.id for voter in voters})

    def _changed(self, members: AnyMembers) -> "ChangingSet":
        changed = ChangingSet(members, NEW_SET, self.made)
        self.made.append(changed)
        return changed

    def facts(self) -> list[z3.BoolRef]:
        """The definition of the number of a set that a step makes, which is in force from the end of the log on."""
        voter = z3.Int("any voter")
        known = [z3.ForAll([voter], HAS(NEW_SET, voter) == self.members.has(voter)), SIZE(NEW_SET) == self.members.size]
        apart = [_is_apart(one) for one in (ME, THEM)]
        return [*known, SINCE(NEW_SET) == END, z3.Implies(z3.Or(*apart), DIFFERS(LAST_SET, NEW_SET))]


def code_of(voters: AbstractSet[ReplicaKey]) -> Any:
    """The number of a voter set of a replica."""
    assert isinstance(voters, ChangingSet), "all voter sets of the party change"
    return voters.code


def _is_apart(one: BrokerId) -> z3.BoolRef:
    """Whether the new voter set has this voter more than the last one, or less, and no other."""
    voter = z3.Int("any voter")
    alike = z3.ForAll([voter], z3.Or(voter == one, HAS(NEW_SET, voter) == HAS(LAST_SET, voter)))
    is_added = z3.And(HAS(NEW_SET, one), z3.Not(HAS(LAST_SET, one)), SIZE(NEW_SET) == SIZE(LAST_SET) + 1)
    is_removed = z3.And(HAS(LAST_SET, one), z3.Not(HAS(NEW_SET, one)), SIZE(NEW_SET) == SIZE(LAST_SET) - 1)
    return z3.And(alike, z3.Or(is_added, is_removed))


class SetsOfLog:
    """The voter sets of the voter's log, as far as rules look at them: the first one, and those of `ENTRIES`.

    A loop over voters sees some of the last set. Of another one it asks only whether all have directories, which they have.
    """

    def __init__(self, made: list[ChangingSet]) -> None:
        earlier = [(z3.IntVal(-1), FIRST_SET), *((offset, OWN_SET(offset)) for offset in ENTRIES[:-1])]
        self.entries = tuple(_entry(AnyNumber(offset), ChangingSet.of(code, made, ())) for offset, code in earlier)
        self.entries += (_entry(AnyNumber(LAST), ChangingSet.of(LAST_SET, made)),)

    def __getitem__(self, place: Any) -> Any:
        return self.entries[place]

    def __iter__(self) -> Iterator[VoterSetEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return 1 if decide(LAST == -1) else len(self.entries)


class ToldSets:
    """The voter sets that an answer to a fetch tells: that whose record it brings, if it tells one."""

    def __init__(self, made: list[ChangingSet]) -> None:
        self.entries = (_entry(any_number("its end"), ChangingSet.of(TOLD_SET, made)),)

    def __iter__(self) -> Iterator[VoterSetEntry]:
        return iter(self.entries if decide(TELLS_VOTERS) else ())


def _entry(offset: Any, voters: Any) -> VoterSetEntry:
    return VoterSetEntry(offset, voters)


class AnyVoter(ReplicaKey):
    """The replica that is to vote, if one is: who that is is decided when it is asked."""

    @property
    def id(self) -> BrokerId:
        return ME if decide(ADDS_ITSELF) else THEM

    def __eq__(self, other: object) -> bool:
        if other == NO_REPLICA:
            return decide(z3.Not(HAS_VOTER))
        return isinstance(other, ReplicaKey) and other.directory == DIRECTORY and decide(HAS_VOTER) and self.id == other.id

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return 0


class ChangingParty(Party):
    """A voter, or an observer, whose voter sets are in the log, and change. `made`: those that a step makes."""

    made: list[ChangingSet]
    sets: SetsOfLog

    @classmethod
    def by(cls, protocol: QuorumProtocol, log: Callable[[], Any], made: list[ChangingSet]) -> "ChangingParty":
        """The party by the rules of a release, without snapshots."""
        party = cls(protocol, log, False, SEEN)
        party.made, party.sets = made, SetsOfLog(made)
        return party

    @property
    def server(self) -> QuorumServer:
        has_moved: Any = SymbolicBool(z3.Bool("has moved"))
        return replace(super().server, has_moved=has_moved)

    def in_role(self, role: VoterRole) -> QuorumReplica[Any]:
        state = super().in_role(role)._replace(voters_in_log=True)
        if role != VoterRole.LEADER:
            return state
        offset: Any = AnyNumber(CHANGE_OFFSET)
        waits: Any = SymbolicBool(z3.Bool("waits for change"))
        return state._replace(change=VoterChange(AnyVoter(THEM, DIRECTORY), offset, waits))

    @property
    def voter_sets(self) -> VoterSets:
        sets: Any = self.sets
        found: VoterSets = sets
        return found

    @property
    def voters_in_log(self) -> bool:
        return True

    def told_voter_sets(self) -> VoterSets:
        """That whose record is brought, if one is: an answer that tells another is not true."""
        told: Any = ToldSets(self.made)
        found: VoterSets = told
        return found

    def tally(self) -> Tally:
        voters: Any = ChangingSet.of(LAST_SET, self.made)
        return super().tally()._replace(voters=voters)

    def progress(self) -> frozenset[ReplicaProgress]:
        """Of each other with its directory, voter or not: one that has never fetched is one of which nothing is known."""
        found = []
        for one in SEEN[1:]:
            end, leader_end = AnyNumber(PROGRESS(one)), AnyNumber(z3.Int(f"end of leader before {one}"))
            caught_up = AnyTruth(z3.Bool(f"has caught up {one}"))
            told: tuple[Any, ...] = (end, caught_up, leader_end)
            found.append(ReplicaProgress(ReplicaKey(one, DIRECTORY), told[0], has_caught_up=told[1], leader_end=told[2]))
        return frozenset(found)


# ---- what is known of them before a step


def of_own_sets() -> list[z3.BoolRef]:
    """The order of the records of voters in a log; a voter set has as many voters at least as are seen in it."""
    ordered = [z3.Or(one < later, z3.And(one == -1, later == -1)) for one, later in pairwise(ENTRIES)]
    seen = z3.Sum(*(z3.If(HAS(LAST_SET, one), 1, 0) for one in SEEN))
    first = [OWN_SET(z3.IntVal(-1)) == FIRST_SET, SINCE(FIRST_SET) == -1]
    return [EARLIEST >= -1, *ordered, z3.If(END > 0, END, 0) > LAST, SIZE(LAST_SET) >= seen, *first]


def in_force(offset: Any) -> z3.BoolRef:
    """Each of the last two voter sets is in force from its record up to the next one, at an offset."""
    return z3.And(
        z3.Implies(z3.And(offset >= LAST, offset < END), OWN_SET(offset) == LAST_SET),
        z3.Implies(z3.And(offset >= BEFORE_LAST, offset < LAST), OWN_SET(offset) == OWN_SET(BEFORE_LAST)),
    )


def earlier_at_cut(offset: Any, cut: Any) -> z3.BoolRef:
    """The earlier voter set that is seen where the log is cut: the last one below the cut, and the one before that."""
    end = z3.If(cut < BEFORE_LAST, cut, BEFORE_LAST)
    return z3.And(
        z3.Implies(end >= 0, end > EARLIER),
        z3.Implies(z3.And(offset >= EARLIER, offset < end), OWN_SET(offset) == OWN_SET(EARLIER)),
        z3.Implies(z3.And(offset >= EARLIEST, offset < EARLIER), OWN_SET(offset) == OWN_SET(EARLIEST)),
    )


def earlier_at_fetch(offset: Any) -> z3.BoolRef:
    """The earlier voter set that is seen where another fetches: that whose record is there, if one is."""
    is_change = z3.And(offset >= 0, offset < BEFORE_LAST, OWN_SET(offset) != OWN_SET(offset - 1))
    return z3.Implies(is_change, z3.Or(offset == EARLIER, offset == EARLIEST))
