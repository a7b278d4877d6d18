"""Effects of a replica's handlers: store, answer, wait, stop.

What is stored comes before what is sent. A handler sends no request: `spec.quorum.requests` says at any time which one a
replica would send to whom.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from kspec.spec.log.batch import Batches
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.vote import VoteResponse
from kspec.spec.messages.quorum.voter_changes import VoterChangeResponse
from kspec.spec.messages.quorum.voters import VoterSet
from kspec.spec.quorum.replica import ElectionState
from kspec.spec.step import Reply
from kspec.spec.values import BrokerId, Epoch, Offset, ReplicaKey


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Write the election through to the disk, before any later effect and before the state in memory counts.

    Kafka: `FileQuorumStateStore.writeElectionState`: a temporary file, forced, then moved (KAFKA-15312).
    """

    election: ElectionState


@dataclass(frozen=True, slots=True)
class LogAppended:
    """Write these batches at the end of the log, in the page cache."""

    base_offset: Offset
    batches: Batches


@dataclass(frozen=True, slots=True)
class LeaderChangeAppended:
    """Write a record of a new leader at the end of the log, in the page cache: who leads, and whose votes it got.

    `first_voters`: the voters that follow in the same batch, after the version of KRaft; empty if the log has them already,
    or never has (`kraft.version` 0). Kafka: `LeaderChangeMessage`, `KRaftVersionRecord`, `VotersRecord`.
    """

    base_offset: Offset
    epoch: Epoch
    voters: frozenset[BrokerId]
    granting: frozenset[BrokerId]
    first_voters: VoterSet = frozenset()


@dataclass(frozen=True, slots=True)
class VotersAppended:
    """Write a record of the voters at the end of the log, in the page cache. Kafka: `VotersRecord`.

    `upgrades`: the version of KRaft comes before it, in the same batch. Kafka: `KRaftVersionRecord`.
    """

    base_offset: Offset
    epoch: Epoch
    voters: VoterSet
    upgrades: bool = False


@dataclass(frozen=True, slots=True)
class VersionsWanted:
    """Ask a replica that is to vote for its API versions, and tell the leader (`on_versions`).

    Kafka: `AddVoterHandler.buildApiVersionsRequest`.
    """

    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class VoterChangeEnded:
    """Answer the request for a change of voters, at once or after it has waited."""

    response: VoterChangeResponse


@dataclass(frozen=True, slots=True)
class LogFlushed:
    """Write the log through to the disk. Kafka: `KafkaRaftLog.flush`."""


@dataclass(frozen=True, slots=True)
class LogCut:
    """Cut the log, and the epoch history with it, at this offset."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class SnapshotWanted:
    """Fetch this snapshot from the leader in place of records, and tell the replica when it is on the disk (`on_snapshot`).

    Kafka: `FollowerState.setFetchingSnapshot`.
    """

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class LogReplaced:
    """Empty the log, which begins anew after this snapshot."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class ForgetRequests:
    """Drop the answers to all requests that were sent before. Kafka: `RequestManager.resetAll`."""


@dataclass(frozen=True, slots=True)
class FailWaiting:
    """Answer fetches that wait, and appends that are not committed, with `NOT_LEADER_OR_FOLLOWER`.

    The appends may be committed all the same, by a later leader. Kafka: `KafkaRaftClient.onBecomeFollower`.
    """


class QuorumTimer(Enum):
    """The two timers of a replica: that after which its role changes, and that of a leader which nobody fetches from."""

    ROLE = "role"
    CHECK_QUORUM = "check quorum"


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Let the timer end after so many milliseconds, and up to `spread_ms` more, by chance; it replaces an earlier one."""

    timer: QuorumTimer
    ms: int
    spread_ms: int = 0


@dataclass(frozen=True, slots=True)
class LogCommitted:
    """Hand the log up to this offset to the state machine, and answer the appends below it.

    Kafka: `KafkaRaftClient.onUpdateLeaderHighWatermark`, `updateFollowerHighWatermark`.
    """

    high_watermark: Offset


class IllegalState(Enum):
    """Reasons for which a replica stops for good: it has met what its protocol excludes.

    Kafka: an exception in the thread of `KafkaRaftClient`, which ends the process.
    """

    TWO_LEADERS = "another leader in the same epoch"
    NOT_LEADER = "it is said to lead, and does not"
    INVALID_REQUEST = "a request of its own is called invalid"
    NOT_FOLLOWING = "an answer to a fetch, while it follows nobody"
    NOT_RESIGNED = "an answer to its resignation, while it has not resigned"
    NOT_A_VOTER = "an answer of a replica that is no voter"
    STANDS_WITHOUT_VOTE = "a candidate that is no voter"
    CHANGED_VOTE = "a voter that has answered otherwise before"
    BELOW_HIGH_WATERMARK = "a truncation of what is committed"
    HIGH_WATERMARK_BACK = "an earlier high watermark"
    UNEXPECTED_OFFSET = "records that do not follow its log"
    NO_EPOCH_LEFT = "the last epoch that a message can name: nobody can be elected after it"


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop for good, without a change of the state. Kafka: `FaultHandler.handleFault`."""

    reason: IllegalState


QuorumAnswer: TypeAlias = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | QuorumFetchResponse
"""Answers to other replicas."""

QuorumEffect: TypeAlias = (
    PersistElection
    | LogAppended
    | LeaderChangeAppended
    | VotersAppended
    | VersionsWanted
    | VoterChangeEnded
    | LogFlushed
    | LogCut
    | SnapshotWanted
    | LogReplaced
    | ForgetRequests
    | FailWaiting
    | StartTimer
    | LogCommitted
    | Halt
    | Reply[QuorumAnswer]
)
