"""A replica of the metadata log, voter or observer: its state, and the server that it is on."""

from dataclasses import dataclass
from typing import Generic, NamedTuple

from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.fetch import NO_LIMIT
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.messages.quorum.voters import VoterSet, VoterSets
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.replication import FIRST_EPOCH
from kspec.spec.quorum.rules.voters import ids_of, is_voter, matches
from kspec.spec.quorum.rules.votes import NO_TALLY, Tally
from kspec.spec.values import (
    NO_DIRECTORY,
    NO_LEADER,
    NO_REPLICA,
    UNKNOWN_OFFSET,
    BrokerId,
    DirectoryId,
    Epoch,
    MonotonicMs,
    Offset,
    ReplicaKey,
)


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """Settings of a server, in milliseconds: `controller.quorum.election.timeout.ms`, `.fetch.timeout.ms`,
    `.election.backoff.max.ms`. `max_records` stands for the limit of a fetch in bytes.
    """

    election_timeout_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    election_backoff_max_ms: int = 1_000
    max_records: int = NO_LIMIT


@dataclass(frozen=True, slots=True)
class QuorumServer:
    """A server: the rules of its release, its settings, its id, and whether it may ever be a voter (a controller).

    `bootstrap`: servers that it may ask who leads while it knows no voter (`controller.quorum.bootstrap.servers`). Their ids
    are below zero, as nobody knows them. `has_moved`: it is reached elsewhere than the voters' record in its log says.
    `joins`: it is to vote, and sees to that itself (`controller.quorum.auto.join.enable`).
    """

    protocol: QuorumProtocol
    settings: QuorumSettings
    self_id: BrokerId
    may_vote: bool = True
    bootstrap: tuple[BrokerId, ...] = ()
    has_moved: bool = False
    joins: bool = False


class ElectionState(NamedTuple):
    """The state of an epoch that is kept on the disk: who leads, and whom the replica has voted for, as far as it knows.

    Kafka: `ElectionState`, in the file `quorum-state`.
    """

    epoch: Epoch = FIRST_EPOCH
    leader: BrokerId = NO_LEADER
    voted: ReplicaKey = NO_REPLICA


NO_ELECTION = ElectionState()


class ReplicaProgress(NamedTuple):
    """A leader's knowledge of another replica. Kafka: `LeaderState.ReplicaState`.

    `end_offset`: of the replica's log, by its last fetch; `last_fetch_ms`: when that was; `has_caught_up`: it has once
    fetched from the leader's end; `leader_end`, until then: the end of the leader's log at its last fetch. The last two are
    noted of voters, too, where voters may change (`kraft.version` 1).
    """

    replica: ReplicaKey
    end_offset: Offset = UNKNOWN_OFFSET
    last_fetch_ms: MonotonicMs = MonotonicMs(0)
    has_acknowledged: bool = False
    has_caught_up: bool = False
    leader_end: Offset = UNKNOWN_OFFSET


class VoterChange(NamedTuple):
    """A change of the voters that is asked for. Kafka: `AddVoterHandlerState`, `RemoveVoterHandlerState`.

    `voter`: who is to vote, `NO_REPLICA` where somebody is to vote no more; `offset`: of the record of the change, which is
    unknown while the new voter is asked for its versions; `waits`: who has asked waits until it is committed.
    """

    voter: ReplicaKey = NO_REPLICA
    offset: Offset = UNKNOWN_OFFSET
    waits: bool = True


NO_CHANGE = VoterChange()


class QuorumReplica(NamedTuple, Generic[LogT]):
    """The state of a replica of the metadata log. Kafka: `KafkaRaftClient`, `QuorumState` and `EpochState`.

    - `directory`: the id of the directory that the log is in;
    - `local`: the log, with the high watermark below which it is never truncated;
    - `voter_sets`: those of configuration and log;
    - `election`: as on the disk. Who asks before an election, or has resigned, has the same there as before;
    - `high_watermark`: that of the quorum, as far as the replica knows; `UNKNOWN_OFFSET` if it does not;
    - `reaches_leader`: it knows the address of the leader that it knows;
    - `has_fetched`, of a follower: its leader has answered a fetch;
    - `tally`, of one that asks for votes;
    - of a leader: where its epoch starts, the progress of others, and who has fetched since its timer was started;
    - of one that has resigned: voters that have not acknowledged it, and who is to follow, in this order;
    - of a leader: the change of voters that is asked for, `NO_CHANGE` if none is;
    - `voters_in_log`: the voter sets are in the log, and may be changed (`kraft.version` 1);
    - of a leader before that: `reported`, the voters with their directories, as they have reported them to it;
    - of a follower before that: its leader has taken its report, `has_reported`;
    - `snapshot`: that with which the log begins, `NO_SNAPSHOT` if it begins with its first record.
    """

    local: LocalLog[LogT]
    voter_sets: VoterSets
    directory: DirectoryId = NO_DIRECTORY
    election: ElectionState = NO_ELECTION
    role: VoterRole = VoterRole.UNATTACHED
    high_watermark: Offset = UNKNOWN_OFFSET
    reaches_leader: bool = False
    has_fetched: bool = False
    tally: Tally = NO_TALLY
    epoch_start: Offset = UNKNOWN_OFFSET
    progress: frozenset[ReplicaProgress] = frozenset()
    heard_from: frozenset[BrokerId] = frozenset()
    unacknowledged: frozenset[BrokerId] = frozenset()
    successors: tuple[ReplicaKey, ...] = ()
    snapshot: SnapshotId = NO_SNAPSHOT
    change: VoterChange = NO_CHANGE
    voters_in_log: bool = False
    reported: VoterSet = frozenset()
    has_reported: bool = False


def own_key(server: QuorumServer, state: QuorumReplica[LogT]) -> ReplicaKey:
    """The replica by its server and its directory. **Kafka:** `QuorumState.localReplicaKeyOrThrow`."""
    return ReplicaKey(server.self_id, state.directory)


def voters_of(state: QuorumReplica[LogT]) -> VoterSet:
    """The voters by the last voter set in the log, committed or not.

    **Kafka:** `KRaftControlRecordStateMachine.lastVoterSet`.
    """
    return state.voter_sets[-1].voters


def votes(server: QuorumServer, state: QuorumReplica[LogT]) -> bool:
    """Whether the replica is a voter, by its own log. **Kafka:** `QuorumState.isVoter`."""
    return is_voter(voters_of(state), own_key(server, state))


def may_stand(server: QuorumServer, state: QuorumReplica[LogT]) -> bool:
    """Whether the replica may stand for election: it votes; or its removal is the last change of its log, and may not be
    committed. Then nobody else may have a log that is long enough, and those who go by the voters before need its vote.

    **Kafka:** `QuorumState.isVoter`.
    """
    if votes(server, state) or not server.protocol.stands_until_removed or len(state.voter_sets) == 1:
        return votes(server, state)
    before, last = state.voter_sets[-2:]
    is_removed = server.self_id not in ids_of(last.voters) and is_voter(before.voters, own_key(server, state))
    return is_removed and state.local.high_watermark <= last.offset


def progress_of(state: QuorumReplica[LogT], replica: ReplicaKey) -> ReplicaProgress:
    """A leader's knowledge of a replica: a voter, or an observer. **Kafka:** `LeaderState.getOrCreateReplicaState`."""
    of_voter = (one for one in state.progress if one.replica in voters_of(state) and matches(one.replica, replica))
    of_observer = (one for one in state.progress if one.replica == replica)
    return next(of_voter, next(of_observer, ReplicaProgress(replica)))
