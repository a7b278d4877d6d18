"""The servers that reach each other, those that a leader serves, and what is done to a leader that serves a majority."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from kspec.model_check.models.quorum.values import VoterServer
from kspec.spec.quorum.replica import voters_of
from kspec.spec.quorum.rules.epochs import NOMINEES, VoterRole
from kspec.spec.quorum.rules.voters import ids_of
from kspec.spec.quorum.rules.votes import is_rejected, majority_of
from kspec.spec.values import BrokerId

CutLink: TypeAlias = frozenset[BrokerId]
"""Two servers that do not reach each other."""

Servers: TypeAlias = Mapping[BrokerId, VoterServer]
CutLinks: TypeAlias = frozenset[CutLink]


class NeedlessElections(NamedTuple):
    """The elections that nobody needed, since a majority fetched from a leader.

    `stood`: a replica has stood in a later epoch; `unseated`: one who is no voter has led a leader, or its follower, away.
    """

    stood: bool = False
    unseated: bool = False


def reaches(servers: Servers, cut: CutLinks, one: BrokerId, other: BrokerId) -> bool:
    """Whether a server reaches another one, which is up."""
    return one != other and servers[other].halted is None and frozenset((one, other)) not in cut


def leads(server: VoterServer) -> bool:
    """Whether a server leads, and has not stopped."""
    return server.halted is None and server.replica.role == VoterRole.LEADER


def reaches_majority(servers: Servers, cut: CutLinks, one: BrokerId) -> bool:
    """Whether a server reaches so many voters, by its own log, that they are a majority with it."""
    voters = ids_of(voters_of(servers[one].replica))
    reached = [other for other in voters if reaches(servers, cut, one, other)]
    return _are_majority(voters, one, reached)


def serves_majority(servers: Servers, cut: CutLinks, one: BrokerId) -> bool:
    """Whether a server leads, and a majority of its voters has fetched from it, and reaches it."""
    voters = ids_of(voters_of(servers[one].replica))
    served = [other for other in voters if is_served(servers, cut, one, other)]
    return leads(servers[one]) and _are_majority(voters, one, served)


def _are_majority(voters: frozenset[BrokerId], one: BrokerId, others: list[BrokerId]) -> bool:
    return len(voters & {*others, one}) >= majority_of(len(voters))


def is_served(servers: Servers, cut: CutLinks, leader: BrokerId, one: BrokerId) -> bool:
    """Whether a server follows a leader, has fetched from it, and reaches it."""
    replica, epoch = servers[one].replica, servers[leader].replica.election.epoch
    follows = replica.role == VoterRole.FOLLOWER and replica.election[:2] == (epoch, leader)
    return follows and replica.has_fetched and reaches(servers, cut, one, leader) and servers[one].halted is None


def is_answered_in_time(servers: Servers, cut: CutLinks, one: BrokerId) -> bool:
    """Whether a server reaches somebody who answers before its timer ends.

    A follower reaches its leader; one that waits, a leader of its epoch or a later one; one that asks for votes, a voter
    that has not answered.
    """
    replica = servers[one].replica
    epoch, leader, _ = replica.election
    reached = [other for other in servers if reaches(servers, cut, one, other)]
    if replica.role == VoterRole.FOLLOWER:
        return leader in reached and leads(servers[leader]) and servers[leader].replica.election.epoch == epoch
    if replica.role == VoterRole.UNATTACHED:
        return any(leads(servers[other]) and servers[other].replica.election.epoch >= epoch for other in reached)
    asks = replica.role in NOMINEES and not is_rejected(replica.tally)
    silent = ids_of(replica.tally.voters) - replica.tally.granted - replica.tally.rejected
    return asks and any(other in silent for other in reached)


def with_needless(
    before: NeedlessElections, servers: Servers, cut: CutLinks, after: Servers, from_stranger: bool
) -> NeedlessElections:
    """The needless elections after a step, by which some servers are others (`after`)."""
    serving = [one for one in servers if serves_majority(servers, cut, one)]
    if not serving:
        return before
    has_grown = {one for one in after if after[one].replica.election.epoch > servers[one].replica.election.epoch}
    stands = any(after[one].replica.role in (VoterRole.CANDIDATE, VoterRole.LEADER) for one in has_grown)
    away = any(one == leader or is_served(servers, cut, leader, one) for one in has_grown for leader in serving)
    return NeedlessElections(before.stood or stands, before.unseated or (from_stranger and away))
