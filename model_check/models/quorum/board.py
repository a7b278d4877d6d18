"""The slots of the model, and how a step of a server is taken in it.

Time is a choice: a timer may end whenever it runs. So times are not kept, nor what is only there for the length of a wait.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.model_check.core.model import REFUSED, Effect, Event, Model, Slot, View, then, when
from kspec.model_check.models.quorum.network import CutLink, CutLinks, NeedlessElections, with_needless
from kspec.model_check.models.quorum.settings import REPAIRS
from kspec.model_check.models.quorum.values import (
    CastVote,
    CommittedLog,
    ElectedLeader,
    LateAnswer,
    StepOutcome,
    VoterServer,
)
from kspec.model_check.traces.encode import in_words
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.fetch import NO_LIMIT
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.messages.quorum.voters import VoterSets
from kspec.spec.mutation import weaken
from kspec.spec.quorum.effects import (
    ForgetRequests,
    Halt,
    LogCommitted,
    LogCut,
    LogFlushed,
    LogReplaced,
    QuorumAnswer,
    QuorumEffect,
    SnapshotWanted,
)
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import (
    NO_ELECTION,
    ElectionState,
    QuorumReplica,
    QuorumServer,
    QuorumSettings,
    own_key,
    voters_of,
)
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import fixed_voters, ids_of
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import QuorumStep
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.releases.quorum import QUORUM_RELEASES
from kspec.spec.step import Reply
from kspec.spec.values import (
    NO_DIRECTORY,
    NO_REPLICA,
    UNKNOWN_OFFSET,
    BrokerId,
    DirectoryId,
    MonotonicMs,
    Offset,
    Record,
    ReplicaKey,
)

NOW = MonotonicMs(1_000_000)
"""The time of every action; whoever has fetched has done so long ago."""

LONG_AGO = MonotonicMs(0)

BUDGETS = (
    "restarts",
    "power_losses",
    "wipes",
    "resignations",
    "lost_answers",
    "late_requests",
    "late_answers",
    "voter_changes",
    "upgrades",
    "cuts",
    "strangers",
    "snapshots",
)


FROM_STRANGERS = ("StrangerPreVote", "StrangerVote")
"""Actions of one who is no voter: it asks for a vote, before an election or in one."""


def directory_of(life: int) -> DirectoryId:
    """The directory of a server's `life`-th disk. Its id tells it from the server's others alone."""
    return DirectoryId(bytes([life]) + bytes(15))


class Slots(NamedTuple):
    """`request[i, j]` and `answer[i, j]` are under way between a server and the one that it has asked.

    Of the past: who has led, the last vote of each server, what was committed, and `needless`: what was done to a leader
    that a majority fetches from. `cut`: servers that do not reach each other. `left`: budgets.
    """

    server: dict[BrokerId, Slot]
    request: dict[tuple[BrokerId, BrokerId], Slot]
    answer: dict[tuple[BrokerId, BrokerId], Slot]
    elected: Slot
    cast: dict[BrokerId, Slot]
    committed: Slot
    left: dict[str, Slot]
    cut: Slot | None
    needless: Slot | None


class Board:
    """The model under construction."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.model = Model(name, parameters)
        self.parameters = parameters
        self.ids = [BrokerId(number) for number in range(1, parameters["servers"] + 1)]
        self.pairs = [(one, other) for one in self.ids for other in self.ids if one != other]
        self.model.interchangeable = tuple(self.ids)
        settings = QuorumSettings(max_records=parameters["answer_size"] or NO_LIMIT)
        self.servers = {one: QuorumServer(protocol_of(parameters), settings, one) for one in self.ids}
        is_by_settings = parameters["without_directories"] or parameters["upgrades"]
        first = NO_DIRECTORY if is_by_settings else directory_of(1)
        voters = self.ids[: parameters["voters"] or len(self.ids)]
        self.voter_sets: VoterSets = fixed_voters(frozenset(ReplicaKey(one, first) for one in voters))
        self.voters_in_log = bool(parameters["voter_changes"]) and not parameters["upgrades"]
        """Whether the voters are in the log from the beginning on."""
        self.slots = self._slots()

    def _slots(self) -> Slots:
        model, parameters = self.model, self.parameters
        first = {one: self.first_start(one) for one in self.ids}
        late = {name: parameters[name] for name in ("late_requests", "late_answers")}
        left = {name: model.slot(f"{name}_left", parameters[name], bookkeeping=True) for name in BUDGETS if parameters[name]}
        if parameters["records"]:
            left["records"] = model.slot("records_left", parameters["records"], bookkeeping=True)
        watches = parameters["fair_timers"] or parameters["strangers"]
        elected_before = _elected_with(frozenset(), tuple(first.values()))
        committed_before = _committed_with(CommittedLog(), tuple(first.values()))
        return Slots(
            server={one: model.slot("server", first[one].server, one, one, holds=VoterServer) for one in self.ids},
            request=self._between("request", QuorumRequest | None) if late["late_requests"] else {},
            answer=self._between("answer", LateAnswer | None) if late["late_answers"] else {},
            elected=model.slot("elected", elected_before, bookkeeping=True, holds=frozenset[ElectedLeader]),
            cast={one: model.slot("cast", CastVote(), one, one, bookkeeping=True, holds=CastVote) for one in self.ids},
            committed=model.slot("committed", committed_before, bookkeeping=True, holds=CommittedLog),
            left=left,
            cut=model.slot("cut", frozenset(), holds=frozenset[CutLink]) if parameters["cuts"] else None,
            needless=model.slot("needless", NeedlessElections(), bookkeeping=True) if watches else None,
        )

    def _between(self, name: str, holds: Any) -> dict[tuple[BrokerId, BrokerId], Slot]:
        return {
            (one, other): self.model.slot(name, None, one, one, holds=holds, words=_in_words_if_any, about=other)
            for one, other in self.pairs
        }

    # ---- steps

    def first_start(self, one: BrokerId) -> StepOutcome:
        """A server that starts with an empty disk. One that is alone leads at once, and commits its first record."""
        return self.started(one, EMPTY_LOG, directory_of(1), NO_ELECTION, Offset(0), self.voter_sets)

    def started(
        self,
        one: BrokerId,
        log: RecordLog,
        directory: DirectoryId,
        election: ElectionState,
        flushed: Offset,
        voter_sets: VoterSets,
        snapshot: SnapshotId = NO_SNAPSHOT,
        in_snapshot: tuple[Record, ...] = (),
    ) -> StepOutcome:
        """The server as it starts, from what is on its disk."""
        in_log = self.voters_in_log or voter_sets[-1].offset != UNKNOWN_OFFSET
        step = start(self.servers[one], log, election, directory, voter_sets, snapshot, in_log)
        blank = QuorumReplica(step.state.local, voter_sets, directory, election)
        return self.taken(one, VoterServer(blank, flushed, in_snapshot=in_snapshot), step)

    def taken(self, one: BrokerId, before: VoterServer, step: QuorumStep[RecordLog]) -> StepOutcome:
        """The outcome of a step, with its effects in order."""
        server, effects = self.servers[one], step.effects
        outcome = StepOutcome(before._replace(replica=settled(server, step.state)))
        log = step.state.local.log
        for effect in effects:
            outcome = _carried_out(outcome, effect, log)
        election, own = step.state.election, own_key(server, step.state)
        leads = step.state.role == VoterRole.LEADER and ForgetRequests() in effects
        led = (ElectedLeader(election.epoch, own),) if leads else ()
        has_cast = election.voted != NO_REPLICA and election != before.replica.election
        votes = (CastVote(own, election.epoch, election.voted),) if has_cast else ()
        return outcome._replace(led=led, votes=votes)

    def is_within(self, outcome: StepOutcome) -> bool:
        """Whether no epoch has begun that is beyond the bounds."""
        last: int = self.parameters["max_epoch"]
        return outcome.server.replica.election.epoch <= last

    # ---- actions

    def add(
        self,
        name: str,
        arguments: dict[str, Any],
        after: View,
        parties: Sequence[BrokerId],
        events: Sequence[Event],
        more: Sequence[Effect] = (),
        spends: str = "",
    ) -> None:
        """Add an action whose view gives the outcomes for its parties, in their order, or nothing if it is not possible."""
        slots = self.slots
        effects = [then(slots.server[one], _server_of(place), after) for place, one in enumerate(parties)]
        effects += [then(slots.cast[one], _cast_by(place), slots.cast[one], after) for place, one in enumerate(parties)]
        effects += [
            then(slots.elected, _elected_with, slots.elected, after),
            then(slots.committed, _committed_with, slots.committed, after),
            *self._forgetting(parties, after, [slot for effect in more for slot in effect.writes]),
            *self._noting_needless(parties, after, name in FROM_STRANGERS),
            *more,
        ]
        if spends:
            left = slots.left[spends]
            effects.append(then(left, lambda number: number - 1 if number else REFUSED, left))
        possible = when(lambda outcomes: outcomes is not None, after)
        self.model.action(name, arguments, [possible], effects, events)

    def _forgetting(self, parties: Sequence[BrokerId], after: View, but: Sequence[Slot]) -> list[Effect]:
        """Answers that were under way to who has changed its state since are not expected any more."""
        keeps = self.servers[self.ids[0]].protocol.takes_answer(False)
        return [
            then(slot, _forgotten_by(place, keeps), slot, after)
            for place, one in enumerate(parties)
            for (asker, _), slot in self.slots.answer.items()
            if asker == one and slot not in but
        ]

    def _noting_needless(self, parties: Sequence[BrokerId], after: View, from_stranger: bool) -> list[Effect]:
        """The effect that notes what is done to a leader that serves a majority, if the model asks for that."""
        needless = self.slots.needless
        if needless is None:
            return []

        def noted(before: NeedlessElections, outcomes: Outcomes, *values: Any) -> NeedlessElections:
            servers, cut = self.network_of(values)
            changed = {one: outcome.server for one, outcome in zip(parties, outcomes, strict=True)}
            return with_needless(before, servers, cut, changed, from_stranger)

        return [then(needless, noted, needless, after, *self.network)]

    @property
    def network(self) -> list[Slot]:
        """The slots that say who is up, and who reaches whom; `network_of` reads their values."""
        return [*self.slots.server.values(), *([] if self.slots.cut is None else [self.slots.cut])]

    def network_of(self, values: Sequence[Any]) -> tuple[dict[BrokerId, VoterServer], CutLinks]:
        """The servers, and who is cut off from whom."""
        servers = dict(zip(self.ids, values, strict=False))
        return servers, frozenset() if self.slots.cut is None else values[len(self.ids)]

    def outcomes(
        self,
        name: str,
        arguments: dict[str, Any],
        decide: Callable[..., tuple[StepOutcome, ...] | None],
        *reads: Slot,
        link: tuple[BrokerId, BrokerId] | None = None,
    ) -> View:
        """A view: the outcomes of an action, `None` if it is not possible or leads out of the bounds.

        `link`: servers that have to reach each other for it.
        """
        cut = self.slots.cut if link is not None else None

        def outcomes(*values: Any) -> tuple[StepOutcome, ...] | None:
            if cut is not None and frozenset(link or ()) in values[-1]:
                return None
            found = decide(*(values if cut is None else values[:-1]))
            return found if found is not None and all(self.is_within(outcome) for outcome in found) else None

        return self.model.view(f"{name} {arguments}", outcomes, *reads, *([] if cut is None else [cut]))


def protocol_of(parameters: dict[str, Any]) -> QuorumProtocol:
    """The rules of the release, with the repair, weakened by the mutant."""
    (protocol,) = (release for release in QUORUM_RELEASES if release.name == parameters["release"])
    for name in parameters["repair"]:
        protocol = replace(protocol, **REPAIRS[name])
    for mutant in QUORUM_MUTANTS:
        if mutant.name == parameters["mutant"]:
            return weaken(protocol, mutant)
    return protocol


def settled(server: QuorumServer, state: QuorumReplica[RecordLog]) -> QuorumReplica[RecordLog]:
    """The replica without times, and without what only says how long somebody waits, or whom it still tells."""
    asks_until_acknowledged = not server.protocol.needs_begin(True, NOW, 1)
    known = frozenset(
        one._replace(last_fetch_ms=LONG_AGO, has_acknowledged=one.has_acknowledged and asks_until_acknowledged)
        for one in state.progress
        if one.replica in voters_of(state) or (state.voters_in_log and (one.has_caught_up or one.leader_end > 0))
    )
    others = ids_of(voters_of(state)) - {server.self_id} if state.role == VoterRole.RESIGNED else frozenset()
    return state._replace(progress=known, heard_from=frozenset(), unacknowledged=others, successors=())


def _carried_out(outcome: StepOutcome, effect: QuorumEffect, log: RecordLog) -> StepOutcome:
    server = outcome.server
    match effect:
        case LogFlushed():
            return outcome._replace(server=server._replace(flushed=log.end_offset))
        case LogCut(end):
            return outcome._replace(server=server._replace(flushed=min(server.flushed, end)))
        case LogCommitted(high_watermark):
            records = (*server.in_snapshot, *log.records)
            return outcome._replace(committed=(*outcome.committed, records[:high_watermark]))
        case LogReplaced(snapshot):
            return outcome._replace(server=server._replace(flushed=snapshot.end_offset))
        case SnapshotWanted(snapshot):
            return outcome._replace(server=server._replace(wanted=snapshot))
        case Halt(reason):
            return outcome._replace(server=server._replace(halted=reason))
        case ForgetRequests():
            return outcome._replace(forgets=True, server=server._replace(wanted=NO_SNAPSHOT))
        case Reply(answer):
            return outcome._replace(answer=answer)
        case _:
            return outcome


# ---- effects of outcomes


Outcomes = tuple[StepOutcome, ...]


def _server_of(place: int) -> Callable[[Outcomes], object]:
    return lambda outcomes: outcomes[place].server


def _cast_by(place: int) -> Callable[[CastVote, Outcomes], object]:
    def cast(before: CastVote, outcomes: Outcomes) -> CastVote:
        for vote in outcomes[place].votes:
            is_other = (before.voter, before.epoch) == (vote.voter, vote.epoch) and before.candidate != vote.candidate
            return vote._replace(is_second=before.is_second or is_other)
        return before

    return cast


def _elected_with(elected: frozenset[ElectedLeader], outcomes: Outcomes) -> frozenset[ElectedLeader]:
    return elected | {leader for outcome in outcomes for leader in outcome.led}


def _committed_with(committed: CommittedLog, outcomes: Outcomes) -> CommittedLog:
    for outcome in outcomes:
        for records in outcome.committed:
            common = min(len(records), len(committed.records))
            is_torn = committed.is_torn or records[:common] != committed.records[:common]
            longest = records if len(records) > len(committed.records) and not is_torn else committed.records
            committed = CommittedLog(longest, is_torn)
    return committed


def _forgotten_by(place: int, keeps: bool) -> Callable[[LateAnswer | None, Outcomes], object]:
    def forget(late: LateAnswer | None, outcomes: Outcomes) -> LateAnswer | None:
        if late is None or not outcomes[place].forgets:
            return late
        return late._replace(is_expected=False) if keeps else None

    return forget


def _in_words_if_any(value: object) -> str:
    return "none" if value is None else in_words(value)


def answer_of(outcome: StepOutcome) -> QuorumAnswer | None:
    """The answer of a step, none if the server has stopped."""
    return None if outcome.server.halted is not None else outcome.answer
