"""Voter sets: who votes, and since where in the log."""

from kspec.spec.messages.quorum.voters import VoterSet, VoterSetEntry, VoterSets
from kspec.spec.quorum.rules.votes import size_of
from kspec.spec.values import NO_DIRECTORY, UNKNOWN_OFFSET, BrokerId, Offset, ReplicaKey


def fixed_voters(voters: VoterSet) -> VoterSets:
    """The voter set of the configuration. **Kafka:** `VoterSetHistory` of `kraft.version` 0."""
    return (VoterSetEntry(UNKNOWN_OFFSET, voters),)


def sets_below(voter_sets: VoterSets, end_offset: Offset) -> VoterSets:
    """The voter sets of a log that ends at an offset: those before the cut; the first one is not of the log, and stays.

    **Kafka:** `KRaftControlRecordStateMachine.truncateNewEntries`, `VoterSetHistory.truncateNewEntries`.
    """
    return tuple(entry for entry in voter_sets if entry.offset < end_offset)


def sets_between(voter_sets: VoterSets, begin: Offset, end: Offset) -> VoterSets:
    """The voter sets whose records are at these offsets."""
    return tuple(entry for entry in voter_sets if begin <= entry.offset < end)


def sets_after_snapshot(voter_sets: VoterSets, end_offset: Offset) -> VoterSets:
    """The voter sets of a log that begins with a snapshot up to an offset: that in force there, and those since.

    **Kafka:** `VoterSetHistory.truncateOldEntries`.
    """
    before = [entry for entry in voter_sets if entry.offset < end_offset]
    return (*before[-1:], *(entry for entry in voter_sets if entry.offset >= end_offset))


def with_voter(voters: VoterSet, voter: ReplicaKey) -> VoterSet | None:
    """The voters and one more; none if its server votes already. **Kafka:** `VoterSet.addVoter`."""
    return None if voter.id in ids_of(voters) else voters | {voter}


def without_voter(voters: VoterSet, voter: ReplicaKey) -> VoterSet | None:
    """The voters but one; none if it does not vote, with this directory, or votes alone.

    **Kafka:** `VoterSet.removeVoter`.
    """
    return voters - {voter} if voter in voters and size_of(voters) > 1 else None


def may_change_voters(committed_in_epoch: bool, last_is_committed: bool) -> bool:
    """Whether a leader may change the voters: once a record of its own epoch is committed, and the last change is.

    So each voter set shares a voter of each majority with the one before, also with one that another leader has written.

    **Kafka:** `AddVoterHandler.handleAddVoterRequest`, `RemoveVoterHandler.handleRemoveVoterRequest`.
    """
    return committed_in_epoch and last_is_committed


def reaches_end(fetch_offset: Offset, leader_end: Offset, leader_end_before: Offset) -> bool:
    """Whether a replica has caught up by a fetch: to the leader's end, or to where that was at its fetch before.

    Else no replica would catch up while the log grows.

    **Kafka:** `LeaderState.ReplicaState.updateFollowerState`.
    """
    return fetch_offset >= leader_end or 0 < leader_end_before <= fetch_offset


OBSERVER_MS = 300_000
"""The time (milliseconds) after which an observer that does not fetch is forgotten. Kafka: `OBSERVER_SESSION_TIMEOUT_MS`."""


def is_forgotten(silent_ms: int) -> bool:
    """Whether who describes the quorum names an observer no more that has not fetched for so long (milliseconds).

    **Kafka:** `LeaderState.clearInactiveObservers`. **Leaves out:** it has not caught up any more then.
    """
    return silent_ms >= OBSERVER_MS


def resigns_if_still_asked(is_asked: bool) -> bool:
    """Whether a leader resigns when it learns that its own removal is committed: if the request for it still waits.

    One that has timed out is forgotten, and the leader leads on, though it does not vote.

    **Kafka:** `RemoveVoterHandler.highWatermarkUpdated`.
    """
    return is_asked


def resigns_in_any_case(is_asked: bool) -> bool:
    """Whether a leader resigns when it learns that its own removal is committed: whoever still waits for it."""
    return True


def stops_for_acknowledgement(is_voter: bool) -> bool:
    """Whether a replica that says that it knows its leader stops that leader: if it is no voter (any more).

    Requests to a voter are not forgotten when it is removed, so its answer may come after that.

    **Kafka:** `LeaderState.addAcknowledgementFrom`, `ensureValidVoter`, which throws `IllegalArgumentException`.
    """
    return not is_voter


def takes_any_acknowledgement(is_voter: bool) -> bool:
    """Whether a replica that says that it knows its leader stops that leader: nobody does."""
    return False


def with_report(reported: VoterSet, voter: ReplicaKey, may_upgrade: bool) -> VoterSet:
    """The voters that have reported their directories, after one more report, which takes the place of an earlier one.

    One that does not work with `kraft.version` 1 counts as if it had not reported.

    **Kafka:** `VoterSet.updateVoterIgnoringDirectoryId`, `supportsVersion`.
    """
    others = frozenset(one for one in reported if one.id != voter.id)
    return others | {voter} if may_upgrade else others


def never_upgrades(voters: VoterSet, reported: VoterSet) -> bool:
    """The voters of `kraft.version` 0 stay those of the settings. **Kafka:** up to 4.0."""
    return False


def upgrades_when_all_have_reported(voters: VoterSet, reported: VoterSet) -> bool:
    """Whether the voters of `kraft.version` 0 may be written into the log, with their directories: once all are known.

    **Kafka:** `LeaderState.maybeAppendUpgradedKRaftVersion` (KAFKA-16538, since 4.1).
    """
    return ids_of(reported) == ids_of(voters)


def are_in_log(voters: VoterSet) -> bool:
    """Whether voters are those of a log: with `kraft.version` 0 nobody knows their directories."""
    return all(voter.directory != NO_DIRECTORY for voter in voters)


def never_joins(is_told: bool) -> bool:
    """Nobody asks for its vote itself: an operator does. **Kafka:** up to 4.1."""
    return False


def joins_if_told(is_told: bool) -> bool:
    """Whether a controller that does not vote asks for its vote itself: if settings tell it to.

    **Kafka:** `KafkaRaftClient.shouldSendAddOrRemoveVoterRequest`, `QuorumConfig.autoJoin` (since 4.2).
    """
    return is_told


def matches(known: ReplicaKey, replica: ReplicaKey) -> bool:
    """Whether a replica is the one that is known: the same server, and the same directory, if one is known.

    **Kafka:** `VoterSet.VoterNode.isVoter`, `LeaderState.ReplicaState.matchesKey`.
    """
    return known.id == replica.id and known.directory in (NO_DIRECTORY, replica.directory)


def is_voter(voters: VoterSet, replica: ReplicaKey) -> bool:
    """Whether a replica is a voter. **Kafka:** `VoterSet.isVoter`."""
    return replica in voters or replica._replace(directory=NO_DIRECTORY) in voters


def ids_of(voters: VoterSet) -> frozenset[BrokerId]:
    """The ids of the voters. **Kafka:** `VoterSet.voterIds`."""
    return frozenset(voter.id for voter in voters)
