"""Three servers of a quorum in memory, and what a driver does for each: send, store, flush, lose what was not flushed."""

from typing import NamedTuple

from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.quorum.voters import VoterSet, VoterSets
from kspec.spec.quorum.effects import (
    ForgetRequests,
    Halt,
    IllegalState,
    LogCommitted,
    LogFlushed,
    PersistElection,
    QuorumAnswer,
    QuorumEffect,
)
from kspec.spec.quorum.elections import on_timeout
from kspec.spec.quorum.leading import append
from kspec.spec.quorum.messages import handle_answer, handle_request
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import NO_ELECTION, ElectionState, QuorumReplica, QuorumServer, QuorumSettings
from kspec.spec.quorum.requests import QuorumRequest, requests_of
from kspec.spec.quorum.rules.epochs import NOMINEES
from kspec.spec.quorum.rules.voters import fixed_voters, sets_below
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import QuorumStep
from kspec.spec.releases.quorum import QUORUM_RELEASES
from kspec.spec.step import Reply, Send
from kspec.spec.values import UNKNOWN_OFFSET, BrokerId, DirectoryId, MonotonicMs, Offset, Record, ReplicaKey

(NEWEST,) = (release for release in QUORUM_RELEASES if release.name == "4.2")
NOW = MonotonicMs(1_000_000)
ONE, TWO, THREE = (BrokerId(number) for number in (1, 2, 3))
IDS = (ONE, TWO, THREE)


def directory_of(server: BrokerId, life: int = 1) -> DirectoryId:
    """The directory that a server has after its disk was made empty so many times, less one."""
    return DirectoryId(bytes([server, life]) + bytes(14))


def key_of(server: BrokerId, life: int = 1) -> ReplicaKey:
    return ReplicaKey(server, directory_of(server, life))


VOTERS: VoterSet = frozenset(key_of(server) for server in IDS)


def server_of(server: BrokerId, protocol: QuorumProtocol = NEWEST) -> QuorumServer:
    return QuorumServer(protocol, QuorumSettings(), server)


def started(server: BrokerId, election: ElectionState = NO_ELECTION, log: RecordLog = EMPTY_LOG) -> QuorumReplica[RecordLog]:
    """A replica that has just started."""
    return start(server_of(server), log, election, directory_of(server), fixed_voters(VOTERS)).state


def reply_of(step: QuorumStep[RecordLog]) -> QuorumAnswer:
    """The one answer of a step."""
    (answer,) = (effect.message for effect in step.effects if isinstance(effect, Reply))
    return answer


def reasons(step: QuorumStep[RecordLog]) -> list[IllegalState]:
    """The reasons for which a replica stops in a step."""
    return [effect.reason for effect in step.effects if isinstance(effect, Halt)]


class VoterDisk(NamedTuple):
    """The content of a server's disk: what is written through, and what a power failure may take."""

    election: ElectionState = NO_ELECTION
    flushed: Offset = Offset(0)


class VoterQuorum:
    """Servers with their disks; a request and its answer are one step. `observers`: servers that do not vote at first."""

    def __init__(
        self,
        protocol: QuorumProtocol = NEWEST,
        voters: VoterSet = VOTERS,
        observers: VoterSet = frozenset(),
        *,
        voters_in_log: bool = False,
    ) -> None:
        ids = [one.id for one in sorted(voters | observers)]
        self.servers = {one: server_of(one, protocol) for one in ids}
        self.voters_in_log = voters_in_log
        self.sets: VoterSets = fixed_voters(voters)
        self.states: dict[BrokerId, QuorumReplica[RecordLog]] = {}
        self.disks = {one: VoterDisk() for one in ids}
        self.directories: dict[BrokerId, DirectoryId] = {}
        """The directories of servers whose disk is not their first."""
        self.committed: dict[BrokerId, list[Offset]] = {one: [] for one in ids}
        for one in self.servers:
            self.restart(one)

    def restart(self, one: BrokerId, keeps: Offset | None = None) -> list[IllegalState]:
        """Start a server anew; with `keeps`, after a power failure that has left the log up to there."""
        log = self.states[one].local.log if one in self.states else EMPTY_LOG
        if keeps is not None:
            assert keeps >= self.disks[one].flushed
            log = log.truncate_to(keeps)
        log = log._replace(opened_epoch=EMPTY_LOG.opened_epoch)
        election = self.disks[one].election
        found = self.states[one].voter_sets if one in self.states else self.sets
        sets = sets_below(found, log.end_offset)
        in_log = self.voters_in_log or sets[-1].offset != UNKNOWN_OFFSET
        directory = self.directories.get(one, directory_of(one))
        return self.take(one, start(self.servers[one], log, election, directory, sets, voters_in_log=in_log))

    def wipe(self, one: BrokerId) -> None:
        """Start a server with another disk, which is empty."""
        del self.states[one]
        self.disks[one] = VoterDisk()
        self.directories[one] = directory_of(one, life=2)
        self.restart(one)

    def take(self, one: BrokerId, step: QuorumStep[RecordLog]) -> list[IllegalState]:
        """Carry out a step; the reasons for which the server stops."""
        self.states[one] = step.state
        for effect in step.effects:
            self._carry_out(one, effect)
        return reasons(step)

    def _carry_out(self, one: BrokerId, effect: QuorumEffect) -> None:
        match effect:
            case PersistElection(election):
                self.disks[one] = self.disks[one]._replace(election=election)
            case LogFlushed():
                self.disks[one] = self.disks[one]._replace(flushed=self.states[one].local.log.end_offset)
            case LogCommitted(high_watermark):
                self.committed[one].append(high_watermark)

    def time_out(self, one: BrokerId) -> None:
        self.take(one, on_timeout(self.servers[one], self.states[one], NOW))

    def ask(self, one: BrokerId, to: BrokerId) -> bool:
        """Let a server send what it would send to another one, and take the answer; whether it would send something."""
        found = [send for send in requests_of(self.servers[one], self.states[one], NOW) if send.to == to]
        for send in found:
            answer = self.arrive(send)
            self.take(one, handle_answer(self.servers[one], self.states[one], send, answer, True, NOW))
        return bool(found)

    def arrive(self, send: Send[QuorumRequest]) -> QuorumAnswer:
        """Let a request arrive; its answer."""
        step = handle_request(self.servers[send.to], self.states[send.to], send.message, NOW)
        self.take(send.to, step)
        return reply_of(step)

    def elect(self, one: BrokerId, by: BrokerId) -> None:
        """Make a server the leader by the vote of another."""
        self.time_out(one)
        for _ in range(2):
            if self.states[one].role in NOMINEES:
                self.ask(one, by)

    def append(self, one: BrokerId, *values: int) -> None:
        records = tuple(Record(value, self.states[one].election.epoch) for value in values)
        self.take(one, append(self.servers[one], self.states[one], records, NOW))


def forgets(step: QuorumStep[RecordLog]) -> bool:
    """Whether answers to requests that were sent before a step are dropped."""
    return ForgetRequests() in step.effects
