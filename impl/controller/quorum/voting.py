"""This controller as a voter of the metadata log: `spec.quorum` carried out over files, timers and requests.

What a step stores is on the disk before anything of it is sent: the files are written here, and answers and requests are
effects for the shell. Whoever leads from when on is told to `listener`.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import assert_never

from kspec.impl.broker.calls import Ask, ChannelKey, Effect, EndOnError
from kspec.impl.broker.timers import Timer, Timers
from kspec.impl.controller.quorum.handlers import Given, QuorumHaltError, QuorumListener, VoterHandler, nobody_waits
from kspec.impl.controller.quorum.messages import OutgoingAsk, answer_taken, as_sent, piece_asked, update_asked, voters_among
from kspec.impl.controller.quorum.own_moves import OwnMoves, is_elsewhere
from kspec.impl.controller.quorum.snapshot_parts import PartOfSnapshot
from kspec.impl.controller.quorum.voter_changes import ChangeEnded, ChangeRequest, VoterChanges, level_of
from kspec.impl.controller.quorum.voter_sets import KnownVoterSets
from kspec.impl.metadata.active import StepRecorder
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.metadata.snapshots import voters_of_snapshot
from kspec.impl.metadata.voters import RECONFIGURABLE, Endpoint, KnownVoters, VotersFound
from kspec.impl.storage import StorageError
from kspec.impl.wire.values import Message
from kspec.spec.log.batch import Batch, Batches
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, SnapshotId
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, RemoveVoterRequest, UpdateVoterRequest
from kspec.spec.quorum.effects import (
    FailWaiting,
    ForgetRequests,
    Halt,
    LeaderChangeAppended,
    LogAppended,
    LogCommitted,
    LogCut,
    LogFlushed,
    LogReplaced,
    PersistElection,
    QuorumAnswer,
    QuorumTimer,
    SnapshotWanted,
    StartTimer,
    VersionsWanted,
    VoterChangeEnded,
    VotersAppended,
)
from kspec.spec.quorum.elections import on_timeout
from kspec.spec.quorum.following import after_own_snapshot, on_snapshot, on_snapshot_piece
from kspec.spec.quorum.leading import append, hear, is_active, leads_in, on_check_quorum, on_resignation
from kspec.spec.quorum.messages import handle_answer, handle_request
from kspec.spec.quorum.reconfiguration import (
    handle_add_voter,
    handle_remove_voter,
    handle_update_voter,
    join_of,
    update_of,
    upgrade_voters,
)
from kspec.spec.quorum.replica import NO_CHANGE, ElectionState, QuorumReplica, QuorumServer, own_key
from kspec.spec.quorum.requests import QuorumRequest, asks_anybody, begin_period_ms, requests_of
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import QuorumStep
from kspec.spec.step import Reply, Send
from kspec.spec.values import (
    NO_DIRECTORY,
    NO_EPOCH,
    BrokerId,
    Epoch,
    Error,
    Instant,
    MonotonicMs,
    Offset,
    ReplicaKey,
)

LOG = logging.getLogger("kspec.controller")

NOT_WRITTEN, HALTED = "the metadata log cannot be written", "the quorum has come to what its protocol excludes"


class MetadataVoter:
    """The replica of `spec` in this process."""

    def __init__(
        self,
        server: QuorumServer,
        configured: Mapping[BrokerId, Endpoint],
        log: MetadataLog,
        listener: QuorumListener,
        random: Random,
    ) -> None:
        self.server = server
        self.known = KnownVoterSets(configured)
        """The voters and their addresses."""
        self.log = log
        self.cluster_id = ""
        self.directory = NO_DIRECTORY
        """The directory that the log is in."""
        self.own: tuple[Endpoint, ...] = ()
        """The listeners of this controller."""
        self.timers: Timers[Effect] = Timers()
        self.request_timeout_ms, self.retry_ms = 2_000, 20
        self.note: StepRecorder | None = None
        """Called with each step of a handler, if steps are recorded."""
        self.state: QuorumReplica[EpochLog] = QuorumReplica(LocalLog(EMPTY_EPOCH_LOG), ())
        self._listener = listener
        self._random = random
        self.failure: Exception | None = None
        """The reason why this voter takes no step any more."""
        self._kept: ElectionState | None = None
        self._running: dict[QuorumTimer, Timer[Effect]] = {}
        self._begins: Timer[Effect] | None = None
        self._retry: Timer[Effect] | None = None
        self._moves = OwnMoves(self._take)
        self._generation = 0
        """The number of times that requests were forgotten."""
        self._under_way: set[BrokerId] = set()
        """The voters to which a request of this generation is under way."""
        self._claimed: Epoch | None = None
        """The epoch in which this controller is the active one."""
        self._snapshot: PartOfSnapshot | None = None
        """The snapshot that is being fetched, as far as it is there."""
        self._changes = VoterChanges(self._take)
        self._steps = 0
        """The steps that are being carried out, each within the one before."""

    # ---- what it knows

    @property
    def is_active(self) -> bool:
        """Whether this controller is the active one."""
        return self._claimed is not None

    @property
    def epoch(self) -> Epoch:
        """The epoch of the quorum."""
        return self.state.election.epoch

    @property
    def leader(self) -> BrokerId:
        """The leader of the epoch, as far as it is known. Kafka: `KafkaRaftClient.leaderAndEpoch`."""
        return self.state.election.leader

    @property
    def leads(self) -> bool:
        """Whether this voter leads."""
        return self.state.role == VoterRole.LEADER

    @property
    def committed(self) -> Offset:
        """The end of what is known to be committed."""
        return self.state.local.high_watermark

    @property
    def key(self) -> ReplicaKey:
        """This replica."""
        return own_key(self.server, self.state)

    @property
    def voters(self) -> KnownVoters:
        """The voters, by the last record of them in the log, and where each is reached."""
        return self.known.of(self.state)

    @property
    def kraft_version(self) -> int:
        """The level of `kraft.version`: 1 if the voters are in the log. Kafka: `KRaftVersion`."""
        return RECONFIGURABLE if self.state.voters_in_log else 0

    def place_of(self, node: int) -> Endpoint | None:
        """The address of a controller, if it is known."""
        return self.known.place_of(self.state, node)

    # ---- what happens

    def start(self, now: Instant) -> list[Effect]:
        """Begin with what is on the disk; the only voter leads at once. Raises: `StorageError`, if that is damaged."""
        sets, in_log = self.known.begin(self.log.voters_found(), self.log.snapshot.end_offset)
        election = self.log.election()
        self._kept = election
        log, given = self.log.log, (election, self.directory, sets, self.log.snapshot, in_log)
        begin = start  # it reads a log, and no state
        step = begin(self.server, log, *given)
        if self.note is not None:
            self.note(start, self.server, log, given, step)
        return self._carry_out(step, now)

    def asked(self, request: QuorumRequest, now: Instant, answer: Callable[[QuorumAnswer], list[Effect]]) -> list[Effect]:
        """Handle a request; `answer` says what its answer is a reason for."""
        return self._take(handle_request, now, request, now.monotonic, answer=answer)

    def add_voter(
        self, request: AddVoterRequest, endpoints: tuple[Endpoint, ...], now: Instant, ended: ChangeEnded
    ) -> list[Effect]:
        """Begin to add a voter, which is reached there; `ended` gets the error, or none, when it is done."""
        if self.state.change == NO_CHANGE:
            self.known.added = {request.voter: endpoints}
        return self._change(handle_add_voter, request, now, ended)

    def update_voter(
        self, request: UpdateVoterRequest, endpoints: tuple[Endpoint, ...], now: Instant, ended: ChangeEnded
    ) -> list[Effect]:
        """Write where a voter is reached, or note it with `kraft.version` 0; `ended` gets the error, or none."""
        if not self.state.voters_in_log:
            self.known.report(request.voter, endpoints)
        elif self.state.change == NO_CHANGE:
            self.known.added = {request.voter: endpoints}
        return self._change(handle_update_voter, request, now, ended)

    def upgrade(self, now: Instant) -> list[Effect]:
        """Write the voters into the log, which raises `kraft.version` to 1."""
        self.known.added = {self.key: self.own}
        return self._take(upgrade_voters, now, now.monotonic)

    def remove_voter(self, voter: ReplicaKey, now: Instant, ended: ChangeEnded) -> list[Effect]:
        """Begin to remove a voter; `ended` gets the error, or none, when it is done."""
        return self._change(handle_remove_voter, RemoveVoterRequest(voter), now, ended)

    def _change(
        self, handler: VoterHandler[ChangeRequest, MonotonicMs], request: ChangeRequest, now: Instant, ended: ChangeEnded
    ) -> list[Effect]:
        effects, waits = self._changes.ask(handler, request, now, ended, self.request_timeout_ms)
        if waits:
            self._changes.start_timer(self.timers, now)
        return effects

    def append(self, records: int, batch: bytes, now: Instant) -> list[Effect] | None:
        """Append a batch with so many records, which was decided in the present epoch; none if this voter leads no more.

        Raises: `OSError`, `StorageError`, if the disk does not take it.
        """
        if self._claimed is None or not leads_in(self.state, self._claimed):
            return None
        effects = self._take(append, now, (Batch(records, NO_EPOCH, batch),), now.monotonic)
        if self.failure is not None:
            raise self.failure
        return effects

    def heard(self, replica: ReplicaKey, now: Instant) -> list[Effect]:
        """A replica is there, which fetches a snapshot: a leader does not resign while a majority does such things."""
        if not self.leads:
            return []
        return self._take(hear, now, replica)

    def resign(self, now: Instant) -> list[Effect]:
        """Give up the office, if this voter has it: the process stops."""
        return self._take(on_resignation, now, now.monotonic)

    @property
    def has_resigned(self) -> bool:
        """Whether others have still to be told of a resignation."""
        return self.state.role == VoterRole.RESIGNED and bool(self.state.unacknowledged)

    def snapshot_taken(self) -> None:
        """The log begins with the snapshot that the files have."""
        if self.log.snapshot != self.state.snapshot:
            self.state = after_own_snapshot(self.state, self.log.snapshot)
            self._check()

    def _take(
        self,
        handler: VoterHandler[*Given],
        now: Instant,
        *given: *Given,
        answer: Callable[[QuorumAnswer], list[Effect]] = nobody_waits,
    ) -> list[Effect]:
        if self.failure is not None:
            return []
        before = self.state
        step = handler(self.server, before, *given)
        if self.note is not None:
            self.note(handler, self.server, before, given, step)
        return self._carry_out(step, now, answer)

    def _carry_out(
        self,
        step: QuorumStep[EpochLog],
        now: Instant,
        answer: Callable[[QuorumAnswer], list[Effect]] = nobody_waits,
    ) -> list[Effect]:
        self._steps += 1
        try:
            return self._carried_out(step, now, answer)
        except (OSError, StorageError) as error:
            self.failure = error
            return [EndOnError(error, NOT_WRITTEN)]
        except QuorumHaltError as error:
            self.failure = error
            return [EndOnError(error, HALTED)]
        finally:
            self._steps -= 1

    def _carried_out(
        self, step: QuorumStep[EpochLog], now: Instant, answer: Callable[[QuorumAnswer], list[Effect]]
    ) -> list[Effect]:
        before, self.state = self.state, step.state
        effects: list[Effect] = []
        replies: list[QuorumAnswer] = []
        fails_waiting = False
        for effect in step.effects:
            match effect:
                case Reply():
                    replies.append(effect.message)
                case LogCommitted(high_watermark):
                    effects += self._listener.committed(high_watermark, now)
                case FailWaiting():
                    effects += self._renounce(now)
                    fails_waiting = True
                case SnapshotWanted(snapshot):
                    effects += self._fetch_snapshot(snapshot)
                case PersistElection(election):
                    self._keep_election(election)
                case LogAppended(base_offset, batches):
                    self._append(base_offset, batches, now)
                case LeaderChangeAppended():
                    voters = self.known.write(step.state) if effect.first_voters else {}
                    self.log.append_leader_change(effect, self.server.self_id, voters, now)
                case LogFlushed():
                    self.log.flush(now)
                case LogCut(end_offset):
                    self.log.cut(end_offset)
                case LogReplaced(snapshot):
                    assert self._snapshot is not None, "a snapshot has been fetched"
                    self.log.begin_anew(snapshot, self._snapshot.content, now)
                case ForgetRequests():
                    self._generation += 1
                    self._under_way.clear()
                case StartTimer(timer, ms, spread_ms):
                    self._start_timer(timer, now.after(ms + (self._random.randrange(spread_ms) if spread_ms else 0)))
                case VotersAppended():
                    self.log.append_voters(effect, self.known.write(step.state), now)
                    self._listener.voters_written(self.log.end_offset)
                case VersionsWanted(voter):
                    effects.append(self._changes.ask_for_versions(lambda: self.state, voter, level_of(self.kraft_version)))
                case VoterChangeEnded(response):
                    effects += self._changes.end(response.error)
                case Halt(reason):
                    raise QuorumHaltError(f"voter {self.server.self_id} has met {reason.value}")
                case _:
                    assert_never(effect)
        self._check()
        if fails_waiting:  # only now: a fetch that waits is asked for anew, and the files are those of this step
            effects += self._listener.grown(now)
        effects += [effect for reply in replies for effect in answer(reply)]
        return [*effects, *self._follow_up(before, now)]

    def _keep_election(self, election: ElectionState) -> None:
        if election != self._kept:
            self.log.keep_election(election, None if self.state.voters_in_log else frozenset(self.known.configured))
            self._kept = election

    def _append(self, base_offset: Offset, batches: Batches, now: Instant) -> None:
        for batch in batches:
            assert isinstance(batch, Batch)
            assert isinstance(batch.payload, bytes), "a batch has its bytes"
            self.log.append(base_offset, batch.leader_epoch, batch.payload, now)
            base_offset = Offset(base_offset + batch.record_count)
        self.known.note(voters_among(batches))

    def _check(self) -> None:
        """The log of `spec` and that of the files are the same."""
        assert self.state.local.log == self.log.log, f"{self.state.local.log} is not {self.log.log}"

    def _follow_up(self, before: QuorumReplica[EpochLog], now: Instant) -> list[Effect]:
        """Tell the controller what has changed, and send what is to be sent."""
        effects: list[Effect] = []
        state = self.state
        self.log.voters = self.voters if state.voters_in_log else {}
        self._compare_own_place(now)
        if self._steps == 1:  # what a step within this one is a reason for comes after the answers of this one
            effects += self._changes.forget(state, self.timers, Error.NOT_LEADER_OR_FOLLOWER)
        if state.role != before.role or state.election.epoch != before.election.epoch:
            LOG.info("voter %d is %s in epoch %d", self.server.self_id, state.role.value, state.election.epoch)
            effects += self._renounce(now)
            if state.role == VoterRole.LEADER:
                self._stop_timer(QuorumTimer.ROLE)
                self._begin_again(now)
        if self._claimed is None and is_active(state):
            self._claimed = state.election.epoch
            effects += self._listener.claim(now)
        if state.local.log.end_offset != before.local.log.end_offset:
            effects += self._listener.grown(now)
        if state.role != VoterRole.LEADER or before.role != VoterRole.LEADER:
            effects += self._send(now)
        return effects

    def _renounce(self, now: Instant) -> list[Effect]:
        if self._claimed is None or leads_in(self.state, self._claimed):
            return []
        self._claimed = None
        return self._listener.renounce(now)

    # ---- timers

    def _start_timer(self, timer: QuorumTimer, deadline: MonotonicMs) -> None:
        self._stop_timer(timer)
        ends = on_timeout if timer == QuorumTimer.ROLE else on_check_quorum

        def go(now: Instant) -> list[Effect]:
            self._running.pop(timer, None)
            return self._take(ends, now, now.monotonic)

        self._running[timer] = self.timers.at(deadline, go)

    def _stop_timer(self, timer: QuorumTimer) -> None:
        running = self._running.pop(timer, None)
        if running is not None:
            self.timers.cancel(running)

    def _begin_again(self, now: Instant) -> None:
        """A leader of others looks from time to time whom it has to tell that it leads."""
        if self._begins is not None:
            self.timers.cancel(self._begins)
            self._begins = None
        if len(self.voters) > 1 or self.state.voters_in_log:
            self._begins = self.timers.at(now.after(begin_period_ms(self.server)), self._begin_time)

    def _begin_time(self, now: Instant) -> list[Effect]:
        self._begins = None
        if not self.leads:
            return []
        self._begin_again(now)
        return self._send(now)

    def _compare_own_place(self, now: Instant) -> None:
        """Compare where this controller is reached with what the log says, and tell the leader in a while if they differ."""
        has_moved = self.state.voters_in_log and is_elsewhere(self.own, self.voters.get(self.key))
        if has_moved != self.server.has_moved:
            self.server = replace(self.server, has_moved=has_moved)
        if has_moved and not self.leads:
            self.known.added = {self.key: self.own}
        if (update_of(self.server, self.state) or join_of(self.server, self.state)) is not None:
            self._moves.tell_later(self.timers, now, self.server.settings.fetch_timeout_ms, self._ask_for_itself)

    def _ask_for_itself(self, now: Instant) -> list[Effect]:
        joining = join_of(self.server, self.state)
        if joining is not None:
            return [self._moves.join(joining, self.cluster_id, self.own, self.request_timeout_ms)]
        wanted = update_of(self.server, self.state)
        if wanted is None:
            return []
        generation = self._generation
        message = update_asked(self.cluster_id, self.epoch, wanted.message.voter, self.own)
        return [self._moves.ask(wanted.to, message, self.request_timeout_ms, lambda: generation == self._generation)]

    # ---- requests

    def _send(self, now: Instant) -> list[Effect]:
        """Ask those whom a voter in this state asks, but for those to whom a request is under way."""
        wanted = list(requests_of(self.server, self.state, now.monotonic))
        if asks_anybody(self.state) and wanted:  # any of them may know who leads: one at a time
            wanted = [] if self._under_way else [self._random.choice(wanted)]
        return [self._ask(one) for one in wanted if one.to not in self._under_way]

    def _ask(self, send: Send[QuorumRequest]) -> Ask:
        self._under_way.add(send.to)
        generation = self._generation
        asked = as_sent(send.message, self.cluster_id, self.own)

        def take(answer: Message | None, now: Instant) -> list[Effect]:
            return self._answered(send, asked, generation, answer, now)

        channel = ChannelKey(send.to, asked.purpose)
        return Ask(channel, asked.api, asked.message, take, self.request_timeout_ms, asked.lowest)

    def _answered(
        self, send: Send[QuorumRequest], asked: OutgoingAsk, generation: int, message: Message | None, now: Instant
    ) -> list[Effect]:
        is_expected = generation == self._generation
        self.known.hear_from(send.to, message)
        fetched = send.message.fetch.fetch_offset if isinstance(send.message, QuorumFetchRequest) else Offset(0)
        answer = None if message is None else answer_taken(asked.api, message, fetched)
        if answer is None:
            if is_expected:
                self._under_way.discard(send.to)
                self._try_again(now)
            return []
        if not is_expected:
            return self._take(handle_answer, now, send, answer, False, now.monotonic)
        effects = self._take(handle_answer, now, send, answer, True, now.monotonic)
        if generation == self._generation and send.to not in self._fetching_from:
            self._under_way.discard(send.to)
            if answer.error == Error.NONE and not self.leads:
                effects += self._send(now)
            else:
                self._try_again(now)
        return effects

    def _try_again(self, now: Instant) -> None:
        """Ask again after a pause; a leader looks in its time. Kafka: `controller.quorum.retry.backoff.ms`."""
        if self._retry is None and not self.leads:
            self._retry = self.timers.at(now.after(self.retry_ms), self._retry_time)

    def _retry_time(self, now: Instant) -> list[Effect]:
        self._retry = None
        return [] if self.leads else self._send(now)

    # ---- snapshots

    @property
    def _fetching_from(self) -> tuple[BrokerId, ...]:
        """The leader from which a snapshot is being fetched."""
        return () if self._snapshot is None else (self._snapshot.leader,)

    def _fetch_snapshot(self, snapshot: SnapshotId) -> list[Effect]:
        """Fetch a snapshot in pieces; meanwhile no records. Kafka: `KafkaRaftClient.buildFetchSnapshotRequest`."""
        self._snapshot = PartOfSnapshot(snapshot, self.leader, self._generation)
        self._under_way.add(self.leader)
        return [self._ask_for_piece(self._snapshot)]

    def _ask_for_piece(self, part: PartOfSnapshot) -> Ask:
        message = piece_asked(self.cluster_id, self.key, self.epoch, part.snapshot, len(part.content))

        def take(answer: Message | None, now: Instant) -> list[Effect]:
            return self._take_piece(part, answer, now)

        return Ask(ChannelKey(part.leader, "log"), "FetchSnapshot", message, take, self.request_timeout_ms)

    def _take_piece(self, part: PartOfSnapshot, answer: Message | None, now: Instant) -> list[Effect]:
        if part is not self._snapshot:
            return []
        if part.generation != self._generation:
            self._snapshot = None
            return self._send(now)
        told = None if answer is None or answer.error_code or not answer.topics else answer.topics[0].partitions[0]
        if told is None or told.error_code:  # from the beginning: by a fetch, which says what there is
            self._snapshot = None
            self._under_way.discard(part.leader)
            self._try_again(now)
            return []
        part.content += bytes(told.unaligned_records)
        effects = self._take(on_snapshot_piece, now, now.monotonic)
        if len(part.content) < told.size:
            return [*effects, self._ask_for_piece(part)]
        try:
            voters = voters_of_snapshot(part.content, "a snapshot that was fetched")
        except StorageError as error:
            self.failure = error
            return [EndOnError(error, NOT_WRITTEN)]
        if voters:
            self.known.note([VotersFound(Offset(part.snapshot.end_offset - 1), voters)])
        effects += self._take(on_snapshot, now, part.snapshot, now.monotonic, frozenset(voters))
        self._snapshot = None
        self._under_way.discard(part.leader)
        return [*effects, *self._send(now)]
