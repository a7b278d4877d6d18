"""The values of the model's slots: a server with its disk, messages under way, and what is remembered of the past."""

from typing import NamedTuple

from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.quorum.effects import IllegalState, QuorumAnswer
from kspec.spec.quorum.replica import QuorumReplica
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import NO_REPLICA, BrokerId, Epoch, Offset, Record, ReplicaKey


class VoterServer(NamedTuple):
    """A server: its replica, how far its log is flushed, and why it has stopped for good, if it has.

    The election of the replica is always the one on its disk. `in_snapshot`: the records of the snapshot with which the log
    begins; `wanted`: the snapshot that it fetches.
    """

    replica: QuorumReplica[RecordLog]
    flushed: Offset = Offset(0)
    halted: IllegalState | None = None
    in_snapshot: tuple[Record, ...] = ()
    wanted: SnapshotId = NO_SNAPSHOT


def whole_log(server: VoterServer) -> RecordLog:
    """The log of a server from its first record on, with those that only its snapshot has."""
    log = server.replica.local.log
    return RecordLog(server.in_snapshot + log.records) if server.in_snapshot else log


class LateAnswer(NamedTuple):
    """A request and its answer, which is under way; `is_expected`: the one who asked has not forgotten the request."""

    to: BrokerId
    request: QuorumRequest
    answer: QuorumAnswer
    is_expected: bool = True


class ElectedLeader(NamedTuple):
    """A replica that has led in an epoch."""

    epoch: Epoch
    replica: ReplicaKey


class CastVote(NamedTuple):
    """The last vote that a replica has cast, and whether it has ever cast two different ones in an epoch."""

    voter: ReplicaKey = NO_REPLICA
    epoch: Epoch = Epoch(0)
    candidate: ReplicaKey = NO_REPLICA
    is_second: bool = False


class CommittedLog(NamedTuple):
    """All that anybody has ever taken for committed, and whether two have taken different records for it."""

    records: tuple[Record, ...] = ()
    is_torn: bool = False


class StepOutcome(NamedTuple):
    """The server after a step, with what the step tells of elections, votes, and what is committed."""

    server: VoterServer
    led: tuple[ElectedLeader, ...] = ()
    votes: tuple[CastVote, ...] = ()
    committed: tuple[tuple[Record, ...], ...] = ()
    answer: QuorumAnswer | None = None
    forgets: bool = False
