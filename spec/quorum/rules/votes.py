"""Votes: who gets one, and how many are enough."""

from collections.abc import Sized
from typing import NamedTuple

from kspec.spec.messages.quorum.voters import VoterSet
from kspec.spec.values import NO_DIRECTORY, NO_LEADER, NO_REPLICA, BrokerId, Epoch, Offset, ReplicaKey


def is_up_to_date(last_epoch: Epoch, end_offset: Offset, own_epoch: Epoch, own_end: Offset) -> bool:
    """Whether a log is no worse than one's own: by the epoch of its last record, then by its end.

    **Kafka:** `OffsetAndEpoch.compareTo`, in `KafkaRaftClient.handleVoteRequest`.
    """
    return last_epoch > own_epoch or (last_epoch == own_epoch and end_offset >= own_end)


def grants_vote(leader: BrokerId, voted: ReplicaKey, replica: ReplicaKey, up_to_date: bool) -> bool:
    """Whether a replica that neither leads nor follows gives a candidate its vote.

    Once it has voted in the epoch it votes for that replica alone: for the same server with the same directory, or with any
    if it does not remember which. If it knows who leads in the epoch, it votes for nobody.

    Parameters: the `leader` and the replica `voted` for in this epoch, as far as it knows; the `replica` that asks.

    **Kafka:** `QuorumState.unattachedOrProspectiveCanGrantVote`; up to 2.8 `KafkaRaftClient.handleVoteRequest`.
    """
    if voted != NO_REPLICA:
        return voted.id == replica.id and voted.directory in (NO_DIRECTORY, replica.directory)
    return leader == NO_LEADER and up_to_date


def grants_pre_vote(leads: bool, follows: bool, has_fetched: bool, up_to_date: bool) -> bool:
    """Whether a replica says that it would vote: not while it leads, nor once its leader has answered a fetch of it.

    **Kafka:** `EpochState.canGrantVote` of each state (KIP-996, since 4.0).
    """
    return up_to_date and not leads and not (follows and has_fetched)


def never_grants_pre_vote(leads: bool, follows: bool, has_fetched: bool, up_to_date: bool) -> bool:
    """Nobody asks before an election, and nobody is promised a vote. **Kafka:** up to 3.9, whose Vote has no such field."""
    return False


def takes_every_epoch(leads: bool, is_served: bool) -> bool:
    """Whether a later epoch in a Vote counts: whoever names it, be it only in a question before an election.

    **Kafka:** `KafkaRaftClient.handleVoteRequest`.
    """
    return True


def takes_epoch_unless_served(leads: bool, is_served: bool) -> bool:
    """Whether a later epoch in a Vote counts: not for one who leads, nor for one whom its leader serves.

    So nobody is led away by one who is no voter. A voter in a later epoch is let in all the same: it tells the leader
    when that says that it leads.

    **Kafka:** no release; Raft (Ongaro's dissertation, 4.2.3) has it.
    """
    return not leads and not is_served


# ---- what a replica remembers of its vote


def vote_in_same_epoch(voted: ReplicaKey, same_epoch: bool) -> ReplicaKey:
    """The vote that a replica remembers when its state changes: as long as the epoch stays, the one that it gave.

    **Kafka:** `QuorumState.transitionToUnattached`, `transitionToFollower` (since 4.0).
    """
    return voted if same_epoch else NO_REPLICA


def no_vote(voted: ReplicaKey, same_epoch: bool) -> ReplicaKey:
    """A replica forgets its vote when it follows, in the same epoch, too: it knows the leader, and so votes for nobody.

    **Kafka:** `QuorumState.transitionToFollower` up to 3.9.
    """
    return NO_REPLICA


def vote_of_prospective(voted: ReplicaKey, own: ReplicaKey) -> ReplicaKey:
    """The vote of a replica that asks whether it would be elected: as it was.

    **Kafka:** `QuorumState.transitionToProspective`.
    """
    return voted


# ---- counting


class Tally(NamedTuple):
    """The votes of an election among the voters that there were when it began. Kafka: `EpochElection`.

    `granted` and `rejected` hold the ids of those that have answered, oneself among them.
    """

    voters: VoterSet = frozenset()
    granted: frozenset[BrokerId] = frozenset()
    rejected: frozenset[BrokerId] = frozenset()


NO_TALLY = Tally()


def size_of(members: Sized) -> int:
    """The number of members of a set. The set is asked, not `len`, which has a plain number for an answer, and no symbol.

    **Kafka:** `Collection.size`.
    """
    return members.__len__()


def majority_of(size: int) -> int:
    """The number of voters that are more than half of so many. **Kafka:** `EpochElection.majoritySize`."""
    return size // 2 + 1


def is_elected(tally: Tally) -> bool:
    """Whether a majority has granted its vote. **Kafka:** `EpochElection.isVoteGranted`."""
    return size_of(tally.granted) >= majority_of(size_of(tally.voters))


def is_rejected(tally: Tally) -> bool:
    """Whether so many have refused that no majority can be had. **Kafka:** `EpochElection.isVoteRejected`."""
    return size_of(tally.voters) - size_of(tally.rejected) < majority_of(size_of(tally.voters))


def counted(tally: Tally, voter: BrokerId, is_granted: bool) -> Tally:
    """The tally with the answer of one voter, in place of what it had answered. **Kafka:** `EpochElection.recordVote`."""
    granted, rejected = tally.granted - {voter}, tally.rejected - {voter}
    if is_granted:
        return Tally(tally.voters, granted | {voter}, rejected)
    return Tally(tally.voters, granted, rejected | {voter})
