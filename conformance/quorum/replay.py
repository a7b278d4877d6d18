"""A run replayed on a real controller: each message, and what it makes of the controller, held against `spec/quorum`."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.kafka.codec import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    Codec,
)
from kspec.conformance.kafka.jars import Jars
from kspec.conformance.kafka.network import ArrivedRequest, NodeConnection
from kspec.conformance.quorum.controller import ELECTION_MS, FETCH_MS, REAL, ObservedVoter, RealVoter
from kspec.conformance.quorum.moves import (
    AddVoter,
    AnswerArrival,
    LoseDisk,
    QuorumMove,
    RemoveVoter,
    Restart,
    Silence,
    SnapshotTransfer,
    Tell,
    TimeOut,
    VoterExchange,
)
from kspec.conformance.quorum.playing import NothingAskedError, PlayedVoter
from kspec.conformance.quorum.runs import QuorumRun, in_words, move_in_words
from kspec.conformance.quorum.translation import (
    addition_on_the_wire,
    answer_in_words_of_spec,
    answer_on_the_wire,
    on_the_wire,
    removal_on_the_wire,
    snapshot_on_the_wire,
    snapshot_request_on_the_wire,
    voters_on_the_wire,
)
from kspec.conformance.quorum.voters import (
    APPENDED,
    DIRECTORIES,
    VOTERS,
    QuorumVoter,
    Voters,
    VotersStep,
    by_the_clock,
    first_voters,
    take,
    with_appended,
)
from kspec.impl.wire.values import Message
from kspec.spec.messages.quorum.fetch import QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.voters import VoterSetEntry
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.values import BrokerId, Epoch, EpochEndOffset, Error, Offset, Record

REAL_ID = BrokerId(REAL)
PLAYED = tuple(one for one in VOTERS if one != REAL_ID)
TIMER_SECONDS = 2 * (2 * ELECTION_MS + FETCH_MS) / 1000
"""The longest wait for a timer to end: twice what the longest may take."""

START_SECONDS = 120.0
SETTLE_SECONDS = 10.0
"""The longest wait for what a message is a reason for."""

POLL_SECONDS = 0.02
METADATA_VERSION = 20
"""The metadata version in the records of played leaders: without one a real voter ends. 20 is `3.8-IV0`, which all have."""


FIRST_VOTERS = 2
"""The place of the voters in the batch of the first leader, behind its leader change and the version of KRaft."""


class QuorumDeparture(NamedTuple):
    """A departure: the step, what was expected, what was observed."""

    step: int
    move: str
    what: str
    expected: str
    observed: str

    @property
    def words(self) -> str:
        """In a line."""
        return f"departs at step {self.step}, {self.move}: {self.what}: expected {self.expected}; observed {self.observed}"


class QuorumResult(NamedTuple):
    """The result of a run: what was told of its steps, the states of the voters after each, and the departure if any."""

    run: QuorumRun
    told: tuple[str, ...]
    states: tuple[Voters, ...]
    departure: QuorumDeparture | None
    ended: str


class _DepartsError(Exception):
    """A difference: its subject, what was expected, what was observed."""


class _OverError(Exception):
    """The real voter's time is over, and it does not ask any more."""


class QuorumReplay:
    """One run, with a process of its own in a folder of its own."""

    def __init__(self, jars: Jars, folder: Path, protocol: QuorumProtocol, run: QuorumRun) -> None:
        self._codec = Codec(jars)
        in_log = run.changes_voters
        self._real = RealVoter(jars, folder, run.request_ms, DIRECTORIES if in_log else None)
        self._run = run
        self._played = {
            one: PlayedVoter(self._codec, one, is_old=one in run.old, knows_directories=in_log) for one in PLAYED
        }
        self._voters = first_voters(protocol, voters_in_log=in_log)
        self._late: list[tuple[BrokerId, ArrivedRequest]] = []
        self._operator: asyncio.Future[Message] | None = None
        self._bytes: dict[tuple[Offset, Epoch], bytes] = {}
        self._connections: dict[bool, NodeConnection] = {}  # of the voters, and of the operator, whose answers wait longer
        self._ended = ""
        self._led_last = False
        self._settled = 0  # transitions that the present process had told after the last step
        self._awaited = 0  # and that it is to tell in this step

    async def replay(self) -> QuorumResult:
        """Start the process, and take the run's steps up to one that is not possible, or a departure.

        Raises: `KafkaMissingError`.
        """
        told, states, departure, move = list[str](), [self._voters], None, "the start"
        try:
            for played in self._played.values():
                await played.listener.open()
            await self._real.start({one: played.listener.port for one, played in self._played.items()})
            try:
                await self._settle(START_SECONDS)
                for step in self._run.steps:
                    taken = take(self._synced(), step)
                    if taken is None and not self._run.is_free:
                        break
                    if taken is None:
                        continue
                    move = move_in_words(step)
                    try:
                        seen = await self._perform(step, taken)
                    except _OverError:
                        await self._settle(SETTLE_SECONDS)
                        continue
                    states.append(self._voters)
                    told.append(f"{move}{seen}")
            except _DepartsError as error:
                what, expected, observed = error.args
                departure = QuorumDeparture(len(told) + 1, move, what, expected, observed)
        finally:
            await self._close()
        return QuorumResult(self._run, tuple(told), tuple(states), departure, self._ended)

    async def _close(self) -> None:
        await self._disconnect()
        await self._real.kill()
        for played in self._played.values():
            await played.listener.close()

    # ---- a step

    async def _perform(self, move: QuorumMove, taken: VotersStep) -> str:
        """One step on the network; returns what was seen of it."""
        seconds, words = SETTLE_SECONDS, ""
        match move:
            case TimeOut(server) if server == REAL_ID:
                seconds = TIMER_SECONDS
                self._awaited += 1
            case Restart(server) | LoseDisk(server) if server == REAL_ID:
                await self._restart(wiped=isinstance(move, LoseDisk))
                seconds = START_SECONDS
            case VoterExchange(unknown=True, server=server) if server == REAL_ID:
                assert move.asked in self._run.old, "only an old voter does not know a request"
                self._played[move.asked].lose_all()
            case VoterExchange(server=server) if server == REAL_ID:
                await self._answer_real(move, taken)
                words = in_words(taken.answer)
            case Silence(server) if server == REAL_ID:
                await asyncio.sleep(TIMER_SECONDS)
            case SnapshotTransfer(server, asked) if server == REAL_ID:
                await self._send_snapshot(asked)
            case SnapshotTransfer(server, asked) if asked == REAL_ID:
                words = await self._ask_for_snapshot(server)
            case AnswerArrival(server, asked) if server == REAL_ID:
                place = next(place for place, (whose, _) in enumerate(self._late) if whose == asked)
                self._answer(self._late.pop(place)[1], taken)
                words = in_words(taken.answer)
            case AddVoter(asked, voter) if asked == REAL_ID:
                listener = self._played[voter].listener.port if voter in self._played else self._real.port
                version = self._codec.versions("AddRaftVoter").last
                addition = addition_on_the_wire(self._voters.key(voter), listener, version)
                await self._ask_as_operator("AddRaftVoter", addition)
            case RemoveVoter(asked, voter) if asked == REAL_ID:
                await self._ask_as_operator("RemoveRaftVoter", removal_on_the_wire(self._voters.key(voter)))
            case VoterExchange(asked=asked) | Tell(asked=asked) if asked == REAL_ID:
                assert taken.request is not None
                words = in_words(await self._ask_real(taken.request, taken))
                taken = take(self._voters, move) or taken
            case VoterExchange():
                words = in_words(taken.answer)
            case _:
                pass
        self._voters = taken.after
        if taken.changed is not None and self._operator is not None:
            answered = await self._answer_to_operator(taken.changed.error)
            words = f"{words}; {answered}" if words else answered
        await self._settle(seconds)
        return (f": {words}" if words else "") + self._seen()

    async def _ask_as_operator(self, api: str, message: Message) -> None:
        connection = await self._connected(operator=True)
        self._operator = connection.send(api, self._codec.versions(api).last, message)

    async def _answer_to_operator(self, expected: Error) -> str:
        """The operator's answer, held against the specification's; a change that takes too long has the time for that."""
        assert self._operator is not None
        try:
            found = Error((await asyncio.wait_for(self._operator, SETTLE_SECONDS)).error_code)
        except (ConnectionError, TimeoutError) as error:
            raise _DepartsError("the operator's answer", expected.name, f"none ({type(error).__name__})") from None
        if found != expected:
            raise _DepartsError("the operator's answer", expected.name, found.name)
        return f"the operator is answered {found.name}"

    async def _restart(self, *, wiped: bool) -> None:
        await self._disconnect()
        await self._real.kill()
        for played in self._played.values():
            played.lose_all()
        self._late.clear()
        self._awaited, self._settled = 1, 0
        if wiped:
            self._real.lose_disk()
        await self._real.start({one: played.listener.port for one, played in self._played.items()})

    async def _answer_real(self, move: VoterExchange, taken: VotersStep) -> None:
        assert taken.request is not None
        others = [played for one, played in self._played.items() if one != move.asked]
        try:
            arrived = await self._played[move.asked].asked(taken.request, TIMER_SECONDS, self._is_over, *others)
        except NothingAskedError as error:
            if self._is_over():
                raise _OverError from None
            raise _DepartsError("its request", str(taken.request), str(error)) from None
        if move.lost or taken.answer is None:
            arrived.close()
        elif move.late:
            self._late.append((move.asked, arrived))
        else:
            self._answer(arrived, taken)

    def _answer(self, arrived: ArrivedRequest, taken: VotersStep) -> None:
        assert taken.request is not None
        assert taken.answer is not None
        arrived.answer(answer_on_the_wire(taken.answer, self._records_of(taken.request, taken.answer)))

    async def _send_snapshot(self, leader: BrokerId) -> None:
        """Give the real voter the snapshot that it wants of a played leader."""
        wanted = self._voters.of(REAL_ID).wanted
        try:
            arrived = await self._played[leader].asked_for_snapshot(wanted, TIMER_SECONDS)
        except NothingAskedError as error:
            raise _DepartsError("its request", f"FetchSnapshot of {wanted}", str(error)) from None
        epoch = self._voters.of(leader).replica.election.epoch
        arrived.answer(snapshot_on_the_wire(wanted, self._content_of(leader, wanted), leader, epoch))

    async def _ask_for_snapshot(self, one: BrokerId) -> str:
        """Let a played voter fetch the real leader's snapshot; its size in words."""
        voter = self._voters.of(one)
        epoch = voter.replica.election.epoch
        sent = snapshot_request_on_the_wire(self._codec, self._voters.key(one), epoch, voter.wanted)
        answer = await (await self._connected()).ask(sent.api, sent.version, sent.message)
        part = answer.topics[0].partitions[0]
        if part.error_code or len(bytes(part.unaligned_records)) != part.size:
            told = f"{Error(part.error_code).name}, {len(bytes(part.unaligned_records))} of {part.size} bytes"
            raise _DepartsError("its answer", "NONE, with all of the snapshot", told)
        return f"{part.size} bytes"

    async def _ask_real(self, request: QuorumRequest, taken: VotersStep) -> QuorumAnswer | None:
        """Send a request to the real voter, and hold its answer against the specification's."""
        sent = on_the_wire(self._codec, request)
        if taken.answer is None:
            (await self._connected()).send(sent.api, sent.version, sent.message)
            return None
        try:
            message = await (await self._connected()).ask(sent.api, sent.version, sent.message)
        except (ConnectionError, TimeoutError) as error:
            raise _DepartsError("its answer", str(taken.answer), f"none ({type(error).__name__})") from None
        found = answer_in_words_of_spec(sent.api, message)
        for voters in self._possible():
            after, expected = self._expected_answer(voters, request, found)
            if found == expected:
                self._voters = after
                return found
        raise _DepartsError("its answer", str(taken.answer), str(found))

    def _expected_answer(
        self, voters: Voters, request: QuorumRequest, found: QuorumAnswer
    ) -> tuple[Voters, QuorumAnswer | None]:
        """The specification's answer, and the voters before it. A real leader may have appended by itself."""
        taken = take(voters, Tell(REAL_ID, request))
        assert taken is not None
        expected = taken.answer
        if not isinstance(found, QuorumFetchResponse) or not isinstance(expected, QuorumFetchResponse):
            return voters, expected
        more = len(found.records) - len(expected.records)
        if more > 0:
            return self._expected_answer(with_appended(voters, REAL_ID, more), request, found)
        return voters, _plain(self._by_first_snapshot(expected))

    def _by_first_snapshot(self, answer: QuorumFetchResponse) -> QuorumFetchResponse:
        """The answer of a voter that was formatted with a snapshot of no records, which `spec` leaves out.

        A follower whose last epoch is older than all of the leader's is told the snapshot's epoch in the place of its own.
        It truncates to the start in both cases. Kafka: `KafkaRaftLog.endOffsetForEpoch`.
        """
        if answer.diverging.end_offset != 0 or not self._real.has_first_snapshot:
            return answer
        return replace(answer, diverging=EpochEndOffset(Epoch(0), Offset(0)))

    async def _connected(self, *, operator: bool = False) -> NodeConnection:
        end = time.monotonic() + START_SECONDS
        while operator not in self._connections:
            try:
                self._connections[operator] = await NodeConnection.open(self._codec, self._real.port)
            except ConnectionError:
                if time.monotonic() > end or not self._real.process.running:
                    raise
                await asyncio.sleep(POLL_SECONDS)
        return self._connections[operator]

    async def _disconnect(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()

    # ---- what is seen

    def _possible(self) -> Iterator[Voters]:
        """The voters as they may be by now: as expected, or after times have ended, if the run leaves that to the clock.

        A time that has ended is a transition, which the process tells.
        """
        more = max(self._real.transitions() - self._awaited, 0) if self._run.is_free else 0
        return by_the_clock(self._voters, REAL_ID, more)

    def _found(self) -> Voters | None:
        return next(filter(self._is_as_expected, self._possible()), None)

    def _is_over(self) -> bool:
        """Whether the real voter's time has ended, and not as the run says."""
        return self._run.is_free and self._real.transitions() > self._awaited

    async def _settle(self, seconds: float) -> None:
        """Wait until the real voter is as expected, or has ended if that is expected."""
        end = time.monotonic() + seconds
        while self._real.transitions() < self._awaited or (found := self._found()) is None:
            expected = self._voters.of(REAL_ID)
            if seconds > SETTLE_SECONDS and self._real.observed() is not None:  # it has started
                seconds, end = SETTLE_SECONDS, time.monotonic() + SETTLE_SECONDS
            if time.monotonic() > end or (not self._real.process.running and expected.halted is None):
                raise _DepartsError("the controller", _expected_in_words(expected), self._found_in_words())
            await asyncio.sleep(POLL_SECONDS)
        if self._real.transitions() != self._settled:  # it has forgotten what it has asked before
            for played in self._played.values():
                played.lose_all()
        self._awaited = self._settled = self._real.transitions()
        self._voters = self._with_last_appends(found)
        if found.of(REAL_ID).halted is not None:
            self._ended = self._real.reason_of_end()
            await self._disconnect()

    def _with_last_appends(self, voters: Voters) -> Voters:
        """The voters with what the real one has appended before it ceased to lead."""
        voter = voters.of(REAL_ID)
        if not self._led_last or voter.replica.role == VoterRole.LEADER or voter.halted is not None:
            return voters
        local = voter.replica.local
        more = tuple(Record(APPENDED, epoch) for epoch in self._real.log()[local.log.end_offset - local.log.start_offset :])
        replica = voter.replica._replace(local=local._replace(log=local.log.append(more)))
        return voters.replaced(REAL_ID, voter._replace(replica=replica))

    def _is_as_expected(self, voters: Voters) -> bool:
        expected = voters.of(REAL_ID)
        if expected.halted is not None:
            return not self._real.process.running
        found = self._real.observed() if self._real.process.running else None
        if found is None:
            return False
        wanted = as_observed(expected)
        appends = found.role == VoterRole.LEADER.value or self._led_last
        log = found.log[: len(wanted.log)] if appends else found.log
        return found._replace(log=log) == wanted

    def _synced(self) -> Voters:
        """The voters with what the real one has appended by itself as a leader."""
        replica = self._voters.of(REAL_ID).replica
        self._led_last = replica.role == VoterRole.LEADER
        if self._led_last and self._voters.of(REAL_ID).halted is None:
            more = self._real.start_offset() + len(self._real.log()) - replica.local.log.end_offset
            self._voters = with_appended(self._voters, REAL_ID, max(more, 0))
        return self._voters

    def _seen(self) -> str:
        return f" | {self._found_in_words()}"

    def _found_in_words(self) -> str:
        if not self._real.process.running:
            return f"has ended: {self._real.reason_of_end()}"
        found = self._real.observed()
        return "nothing" if found is None else found.words

    # ---- records

    def _records_of(self, request: QuorumRequest, answer: QuorumAnswer) -> bytes:
        """The bytes of an answer's records: batches of the real voter as it wrote them, or of played leaders."""
        if not isinstance(answer, QuorumFetchResponse) or not answer.records:
            return b""
        self._bytes.update(self._real.batches())
        base, found, place = request.fetch.fetch_offset, [], 0  # type: ignore[union-attr]
        while place < len(answer.records):
            record = answer.records[place]
            assert isinstance(record, Record)
            at = (Offset(base + place), record.leader_epoch)
            if at not in self._bytes:
                self._bytes[at] = self._new_batch(*at, answer.leader, is_appended=record.value == APPENDED)
            found.append(self._bytes[at])
            place += int.from_bytes(self._bytes[at][23:27], "big") + 1  # the last offset's delta
        return b"".join(found)

    def _new_batch(self, offset: Offset, epoch: Epoch, leader: BrokerId, *, is_appended: bool) -> bytes:
        now = int(time.time() * 1000)
        if is_appended:
            version = Message(name="metadata.version", feature_level=METADATA_VERSION)
            return self._codec.metadata_batch(
                offset, epoch, now, [self._codec.metadata_record("FeatureLevelRecord", version)]
            )
        in_log = self._voters.of(leader).replica.voter_sets[1:]
        if any(entry.offset == offset for entry in in_log):
            return self._codec.control_batch(offset, epoch, now, self._voters_at(leader, offset))
        voters = [Message(voter_id=one) for one in VOTERS]
        told = Message(version=0, leader_id=leader, voters=voters, granting_voters=voters)
        change = (LEADER_CHANGE, self._codec.write("LeaderChangeMessage", 0, told))
        last = Offset(offset + FIRST_VOTERS)
        if not in_log or in_log[0].offset != last:
            return self._codec.control_batch(offset, epoch, now, change)
        level = self._codec.write("KRaftVersionRecord", 0, Message(version=0, k_raft_version=1))
        return self._codec.control_batch(offset, epoch, now, change, (KRAFT_VERSION, level), self._voters_at(leader, last))

    def _content_of(self, leader: BrokerId, snapshot: SnapshotId) -> bytes:
        """The snapshot of a played leader: a version of the metadata, without which a real voter ends, and the voters."""
        now = int(time.time() * 1000)
        header = (
            SNAPSHOT_HEADER,
            self._codec.write("SnapshotHeaderRecord", 0, Message(version=0, last_contained_log_timestamp=now)),
        )
        told = [header]
        if self._voters.voters_in_log:
            level = self._codec.write("KRaftVersionRecord", 0, Message(version=0, k_raft_version=1))
            first = self._voters.of(leader).replica.voter_sets[0]
            told += [(KRAFT_VERSION, level), self._voters_record(first)]
        version = Message(name="metadata.version", feature_level=METADATA_VERSION)
        values = [self._codec.metadata_record("FeatureLevelRecord", version)]
        footer = (SNAPSHOT_FOOTER, self._codec.write("SnapshotFooterRecord", 0, Message(version=0)))
        return b"".join(
            (
                self._codec.control_batch(0, snapshot.epoch, now, *told),
                self._codec.metadata_batch(len(told), snapshot.epoch, now, values),
                self._codec.control_batch(len(told) + 1, snapshot.epoch, now, footer),
            )
        )

    def _voters_at(self, leader: BrokerId, offset: Offset) -> tuple[int, bytes]:
        """The record of the voters at an offset of a played leader's log."""
        return self._voters_record(next(one for one in self._voters.of(leader).replica.voter_sets if one.offset == offset))

    def _voters_record(self, entry: VoterSetEntry) -> tuple[int, bytes]:
        ports = {REAL_ID: self._real.port, **{one: played.listener.port for one, played in self._played.items()}}
        return KRAFT_VOTERS, self._codec.write("VotersRecord", 0, voters_on_the_wire(entry.voters, ports))


def _plain(answer: QuorumFetchResponse) -> QuorumFetchResponse:
    """An answer with the epochs of its records alone."""
    records = tuple(Record(0, batch.leader_epoch) for batch in answer.records for _ in range(batch.record_count))
    told = (answer.high_watermark, answer.diverging, answer.snapshot)
    return QuorumFetchResponse(answer.error, answer.epoch, answer.leader, records, *told)


def as_observed(voter: QuorumVoter) -> ObservedVoter:
    """A voter of the specification as a real one would be seen."""
    replica, election = voter.replica, voter.replica.election
    log = tuple(record.leader_epoch for record in replica.local.log.records)
    stored = (election.epoch, election.leader, election.voted.id)
    return ObservedVoter(replica.role.value, election.epoch, *stored, log, replica.local.log.start_offset)


def _expected_in_words(voter: QuorumVoter) -> str:
    return f"its end: {voter.halted.value}" if voter.halted is not None else as_observed(voter).words
