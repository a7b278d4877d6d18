"""Roles and epochs: what a replica becomes when its time is over, or when it starts."""

from enum import Enum

from kspec.spec.quorum.rules.voters import matches
from kspec.spec.values import NO_LEADER, NO_REPLICA, BrokerId, Epoch, ReplicaKey, next_epoch


class VoterRole(Enum):
    """The state of a replica in its epoch. An observer is only ever unattached or follows. Kafka: `EpochState`."""

    UNATTACHED = "unattached"
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"


NOMINEES = (VoterRole.PROSPECTIVE, VoterRole.CANDIDATE)
"""Roles in which a replica counts votes. Kafka: `NomineeState`."""


LAST_EPOCH = Epoch(2**31 - 1)
"""The last epoch that a message can name, since an epoch has 32 bits there."""


def asks_before_candidacy(role: VoterRole) -> VoterRole:
    """The role of a voter when its time is over: it asks before it is a candidate, who raises the epoch of all.

    A replica that has asked in vain follows again, or waits; one that has resigned waits in the next epoch.

    **Kafka:** `KafkaRaftClient.pollCurrentState` (KIP-996, since 4.0).
    """
    if role in (VoterRole.PROSPECTIVE, VoterRole.RESIGNED):
        return VoterRole.UNATTACHED
    return VoterRole.PROSPECTIVE


def stands_at_once(role: VoterRole) -> VoterRole:
    """The role of a voter when its time is over: a candidate in the next epoch, whoever leads meanwhile.

    **Kafka:** `KafkaRaftClient.pollCurrentState` up to 3.9.
    """
    return VoterRole.CANDIDATE


def epoch_after_resignation(epoch: Epoch) -> Epoch:
    """The epoch of a replica that has led, and is done with resigning: the next one.

    **Kafka:** `KafkaRaftClient.pollResigned`.
    """
    return next_epoch(epoch)


def resigned_if_it_led(leader: BrokerId, voted: ReplicaKey, own: ReplicaKey) -> VoterRole:
    """The role of a replica that starts, by its stored election: one that led has resigned, and leads no more in that epoch.

    The records that it had not yet written through may be gone, and two records would have one offset and epoch
    (KAFKA-10527). `FOLLOWER` stands for the replica that knows another leader.

    **Kafka:** `QuorumState.initialize`, `ElectionState.isVotedCandidate`.
    """
    if leader == own.id:
        return VoterRole.RESIGNED
    if matches(voted, own):
        return VoterRole.CANDIDATE
    return VoterRole.FOLLOWER


def follower_if_it_knew_who_led(leader: BrokerId, voted: ReplicaKey, own: ReplicaKey) -> VoterRole:
    """As `resigned_if_it_led`, but a replica that knew who won follows, though it had voted for itself.

    Otherwise it stands again in an epoch that has a leader, and if it is no voter any more it never starts.

    **Kafka:** no release.
    """
    return resigned_if_it_led(leader, NO_REPLICA if leader != NO_LEADER else voted, own)


def needs_begin_until_acknowledged(acknowledged: bool, silent_ms: int, period_ms: int) -> bool:
    """Whether a leader tells a voter that it leads: until the voter has answered once, or fetched.

    One that hears of it in vain, since it was down, asks others later.

    **Kafka:** `KafkaRaftClient.maybeSendBeginQuorumEpochRequests` up to 3.8.
    """
    return not acknowledged


def needs_begin_always(acknowledged: bool, silent_ms: int, period_ms: int) -> bool:
    """A leader tells every voter again and again (KAFKA-16536).

    **Kafka:** `KafkaRaftClient.maybeSendBeginQuorumEpochRequests`, 3.9 to 4.1.
    """
    return True


def needs_begin_when_silent(acknowledged: bool, silent_ms: int, period_ms: int) -> bool:
    """A leader tells each voter that has not fetched for a while (milliseconds).

    **Kafka:** `LeaderState.needToSendBeginQuorumRequests` (since 4.2).
    """
    return silent_ms >= period_ms


def checks_quorum(voters: int) -> bool:
    """Whether a leader resigns that a majority of so many voters has not fetched from for long: not if it is alone.

    **Kafka:** `LeaderState.timeUntilCheckQuorumExpires` (KAFKA-15489, KAFKA-16144, since 3.7).
    """
    return voters > 1


def never_checks_quorum(voters: int) -> bool:
    """A leader that is cut off from the others leads on, and serves what it has. **Kafka:** up to 3.6."""
    return False


def takes_expected_answer(is_expected: bool) -> bool:
    """Whether an answer is taken: if the replica's state is that in which it asked.

    **Kafka:** `RequestManager.isResponseExpected`; each transition calls `resetAll`.
    """
    return is_expected


def follows_if_it_knew_none(role: VoterRole, knows_leader: bool) -> bool:
    """Whether a replica follows the leader that an answer of its epoch names: if it knew none.

    **Kafka:** `KafkaRaftClient.maybeHandleCommonResponse`. One that starts, and knows its leader and not where that is
    reached, then takes the answer of that leader for one to a follower.
    """
    return not knows_leader


def follows_if_it_waits(role: VoterRole, knows_leader: bool) -> bool:
    """Whether a replica follows the leader that an answer of its epoch names: if it knew none, or could not reach it."""
    return not knows_leader or role == VoterRole.UNATTACHED
