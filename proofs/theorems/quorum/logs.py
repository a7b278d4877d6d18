"""Theorem: what the quorum of controllers has committed is in the log of each later leader, and is the same for all.

As in `elections`, a step changes one voter, and the histories of all are part of the state: the log of each epoch's leader,
what each voter has held of it, with which log a voter stood for election, what was committed in each epoch, and who held it
then. Elections are as the other theorem says. The claims about what a voter has held are about one record, which is any.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import z3

from kspec.proofs.induction.by_steps import StepTheorem, obligations_of_step, status_of
from kspec.proofs.induction.claims import Obligation
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.log import SymbolicLog, in_order
from kspec.proofs.symbolic.members import Membership, is_part, majorities_share
from kspec.proofs.symbolic.values import AnyNumber, number
from kspec.proofs.theorems.quorum import elections
from kspec.proofs.theorems.quorum.elections import Elections, Told, protocol_of, terms_of
from kspec.proofs.theorems.quorum.majorities import TASK, lemmas
from kspec.proofs.theorems.quorum.steps import STEPS_IN_ROLES, VoterStep
from kspec.proofs.theorems.quorum.voter import (
    DIRECTORY,
    END,
    EPOCH,
    EPOCH_START,
    HAVE_DIRECTORIES,
    HIGH_WATERMARK,
    LEADER,
    ME,
    OTHER_DIRECTORY,
    PROGRESS,
    SOMEBODY,
    START,
    THEM,
    VOTED,
    VOTERS,
    Party,
    VoterLog,
)
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse
from kspec.spec.messages.quorum.vote import VoteRequest
from kspec.spec.quorum.effects import (
    ForgetRequests,
    LeaderChangeAppended,
    LogAppended,
    LogCommitted,
    LogFlushed,
    PersistElection,
)
from kspec.spec.quorum.replica import ElectionState, QuorumReplica
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.replication import FIRST_EPOCH
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.step import Reply
from kspec.spec.values import NO_EPOCH, NO_LEADER, NO_VALUE, UNDEFINED_EPOCH_END, Error, Offset

NAME = "quorum-logs"
SUMMARY = (
    "What was committed in an epoch of the metadata quorum is in the log of each later leader, at the same offsets; what two"
    " voters take for committed is the same as far as both go; logs with a record of one offset and epoch agree up to it."
)

SEEN = (ME, THEM, SOMEBODY)

HELD_EPOCH, HELD_OFFSET = z3.Ints("epoch_held offset_held")
"""Any record of a leader: what voters have held is claimed of this one, and so of each."""

VOTER, LATER_EPOCH, AN_EPOCH, AN_OFFSET, EARLIER = z3.Ints("a_voter later_epoch an_epoch an_offset an_earlier_offset")
"""Any others, that a claim is about."""

KNOWN_IN = z3.Int("known_in")
"""The epoch in which the voter's high watermark was committed."""

_LOG_EPOCH = z3.Function("epoch at", z3.IntSort(), z3.IntSort())
_LOG_VALUE = z3.Function("value at", z3.IntSort(), z3.IntSort())


def any_log() -> Any:
    """A log of any length, from its first record on."""
    return VoterLog(START, END, _LOG_EPOCH, _LOG_VALUE, z3.IntVal(NO_EPOCH))


OWN_LOG: SymbolicLog = any_log()
"""The voter's log before the step."""


class Majority:
    """The offset up to which a majority has the log, as far as the law of `majority_offset` says which.

    It is any offset that more than half of the voters have reached, and the law is all that is known: it is a lemma of
    `majorities` that the rule keeps it. `SOMEBODY` is any of those whose ends the step does not change.
    """

    def __init__(self) -> None:
        self.has: Membership = z3.Function("has offset of majority", z3.IntSort(), z3.BoolSort())
        self.size = z3.Int("number that have offset of majority")
        self.facts: list[z3.BoolRef] = []
        self.somebody: z3.BoolRef = z3.BoolVal(True)

    def offset(self, party: Party, ends: tuple[Offset, ...]) -> Offset:
        """The offset, and with it the facts about the voters that have reached it."""
        found = z3.Int(f"offset of majority {len(self.facts)}")
        members = (*party.others, ME)
        assert len(members) == len(ends), "a leader counts each voter, itself last"
        self.facts += [z3.Implies(self.has(one), number(end) >= found) for one, end in zip(members, ends, strict=True)]
        self.facts += [self.size * 2 > VOTERS.size, is_part(self.has, VOTERS.has)]
        self.somebody = z3.Or(*(self.has(one) for one in SEEN))
        offset: Any = AnyNumber(found)
        reached: Offset = offset
        return reached


# ---- the histories


def _function(name: str, arguments: int, sort: Any = z3.IntSort) -> Any:
    return z3.Function(name, *[z3.IntSort()] * arguments, sort())


_EPOCH_IN = _function("epoch in epoch", 2)


class Logs(NamedTuple):
    """The histories of all voters, as functions of epochs, offsets and ids.

    - `start`, `end`: where the log of an epoch's leader ended when it was elected, and where it ends;
    - `epoch`, `value`: of the record at an offset of that log;
    - `held`: up to which offset a voter has had it on its disk, while it was in that epoch;
    - `stood_epoch`, `stood_end`: the last epoch and the end of the log with which a voter stood for election in an epoch;
    - `committed`, `holder`, `holders`: up to which offset it was committed in that epoch, who held it, and how many.
    """

    elections: Elections
    start: Any
    end: Any
    epoch: Any
    value: Any
    held: Any
    stood_epoch: Any
    stood_end: Any
    committed: Any
    holder: Any
    holders: Any

    def led(self, epoch: Any) -> z3.BoolRef:
        """Whether an epoch has, or had, a leader."""
        return self.elections.elected(epoch) != NO_LEADER

    def has(self, epoch: Any, offset: Any, record_epoch: Any) -> z3.BoolRef:
        """Whether the leader of an epoch has a record of an epoch at an offset."""
        return z3.And(offset < self.end(epoch), self.epoch(epoch, offset) == record_epoch)

    def same(self, epoch: Any, other: Any, offset: Any) -> z3.BoolRef:
        """Whether the leaders of two epochs have the same record at an offset, if they have one."""
        return z3.And(
            self.epoch(epoch, offset) == self.epoch(other, offset), self.value(epoch, offset) == self.value(other, offset)
        )

    def is_like(self, log: SymbolicLog, epoch: Any, offset: Any) -> z3.BoolRef:
        """Whether a log and that of the leader of an epoch have the same record at an offset, if they have one."""
        return z3.And(log.epoch(offset) == self.epoch(epoch, offset), log.value(offset) == self.value(epoch, offset))

    def was_held(self, voter: Any) -> z3.BoolRef:
        """Whether a voter has held the record that claims are about, in the epoch of its leader."""
        written = z3.And(self.start(HELD_EPOCH) <= HELD_OFFSET, HELD_OFFSET >= 0)
        return z3.And(written, self.held(voter, HELD_EPOCH) > HELD_OFFSET)

    def kept_up_to(self, epoch: Any) -> z3.BoolRef:
        """Whether each leader of an epoch between that of the record and this one has it."""
        at = z3.Int("epoch between")
        between = z3.And(at > HELD_EPOCH, at < epoch, self.led(at))
        has = z3.Implies(between, self.has(at, HELD_OFFSET, HELD_EPOCH))
        return z3.ForAll([at], has, patterns=[_EPOCH_IN(at, HELD_OFFSET)])


BEFORE = Logs(
    elections.BEFORE,
    _function("start of epoch", 1),
    _function("end in epoch", 1),
    _EPOCH_IN,
    _function("value in epoch", 2),
    _function("held", 2),
    _function("stood with epoch", 2),
    _function("stood with end", 2),
    _function("committed in", 1),
    _function("holder", 2, z3.BoolSort),
    _function("holders", 1),
)
"""The histories before a step."""


# ---- the invariant: of histories


def histories_match(past: Logs, epoch: Any, offset: Any, earlier: Any) -> z3.BoolRef:
    """The log of a leader agrees, up to each of its records, with that of the leader of the record's epoch."""
    written = past.epoch(epoch, offset)
    there = z3.And(past.led(epoch), earlier >= 0, earlier <= offset, offset < past.end(epoch))
    told = z3.And(
        written >= 1,
        written <= epoch,
        past.led(written),
        past.start(written) <= offset,
        offset < past.end(written),
        past.same(epoch, written, earlier),
    )
    return z3.Implies(there, told)


def leaders_write(past: Logs, epoch: Any, offset: Any) -> z3.BoolRef:
    """The records that a leader has written are of its epoch; those that it had before are of earlier ones."""
    inside = z3.And(offset >= 0, offset < past.end(epoch))
    record = past.epoch(epoch, offset)
    written = z3.If(past.start(epoch) <= offset, record == epoch, record < epoch)
    bounds = z3.And(past.start(epoch) >= 0, past.start(epoch) <= past.end(epoch), epoch >= 1)
    return z3.Implies(past.led(epoch), z3.And(bounds, z3.Implies(inside, written)))


def elected_as_it_stood(past: Logs, epoch: Any) -> z3.BoolRef:
    """The leader of an epoch began it with the log with which it stood."""
    leader, start = past.elections.elected(epoch), past.start(epoch)
    last = z3.If(start > 0, past.epoch(epoch, start - 1), FIRST_EPOCH)
    as_it_stood = z3.And(past.stood_end(leader, epoch) == start, past.stood_epoch(leader, epoch) == last)
    return z3.Implies(past.led(epoch), as_it_stood)


def held_is_written(past: Logs, voter: Any, epoch: Any) -> z3.BoolRef:
    """The records of an epoch's leader that a voter has held are in the log of that."""
    held = past.held(voter, epoch)
    return z3.And(held >= 0, z3.Implies(held > 0, z3.And(past.led(epoch), held <= past.end(epoch))))


def committed_is_written(past: Logs, epoch: Any) -> z3.BoolRef:
    """The log that was committed in an epoch ends with a record of that epoch."""
    committed = past.committed(epoch)
    written = z3.And(past.led(epoch), past.start(epoch) < committed, committed <= past.end(epoch))
    return z3.And(committed >= 0, z3.Implies(committed > 0, written))


def committed_by_majority(past: Logs, epoch: Any) -> z3.BoolRef:
    """More than half of the voters are said to have held what was committed."""
    by_majority = z3.And(past.holders(epoch) * 2 > VOTERS.size, is_part(partial(past.holder, epoch), VOTERS.has))
    return z3.Implies(past.committed(epoch) > 0, by_majority)


def holder_has_held(past: Logs, epoch: Any, voter: Any) -> z3.BoolRef:
    """One of those that are said to have held what was committed has."""
    committed = past.committed(epoch)
    return z3.Implies(z3.And(committed > 0, past.holder(epoch, voter)), past.held(voter, epoch) >= committed)


def votes_up_to_date(past: Logs, voter: Any, epoch: Any) -> z3.BoolRef:
    """A voter that has held a record votes later for one whose log is no worse, if the leaders between have it."""
    candidate = past.elections.votes(voter, epoch)
    last, end = past.stood_epoch(candidate, epoch), past.stood_end(candidate, epoch)
    no_worse = z3.Or(last > HELD_EPOCH, z3.And(last == HELD_EPOCH, end > HELD_OFFSET))
    premise = z3.And(epoch > HELD_EPOCH, past.was_held(voter), candidate != NO_LEADER, past.kept_up_to(epoch))
    return z3.Implies(premise, no_worse)


def votes_for_candidates(past: Logs, voter: Any, epoch: Any) -> z3.BoolRef:
    """A voter that has a vote has voted for itself."""
    candidate = past.elections.votes(voter, epoch)
    return z3.Implies(candidate != NO_LEADER, past.elections.votes(candidate, epoch) == candidate)


# ---- the invariant: of a voter


def last_epoch(log: SymbolicLog) -> Any:
    """The epoch of the last record of a log."""
    return z3.If(log.end > 0, log.epoch(log.end - 1), FIRST_EPOCH)


def of_disk(past: Logs, election: tuple[Any, Any, Any], log: SymbolicLog) -> Told:
    """The invariant of what is on a voter's disk, and so of the voter after any crash; two conjuncts are apart, below."""
    epoch, leader, voted = election
    last = last_epoch(log)
    there = z3.And(last >= 1, last <= epoch, past.led(last), past.start(last) < log.end, log.end <= past.end(last))
    has = z3.And(log.end > HELD_OFFSET, log.epoch(HELD_OFFSET) == HELD_EPOCH)
    kept = z3.Implies(past.kept_up_to(z3.If(leader == NO_LEADER, epoch, epoch + 1)), has)
    stood = z3.And(past.stood_epoch(ME, epoch) == last, past.stood_end(ME, epoch) == log.end)
    return {
        "PrefixOfHistory": z3.And(log.start == 0, log.end >= 0, log.opened == NO_EPOCH, z3.Implies(log.end > 0, there)),
        "EpochsCount": z3.And(epoch >= FIRST_EPOCH, z3.Implies(voted != NO_LEADER, epoch > FIRST_EPOCH)),
        "KeepsHeld": z3.Implies(past.was_held(ME), z3.And(epoch >= HELD_EPOCH, kept)),
        "HasHeld": z3.Implies(z3.And(log.end > 0, last == epoch), past.held(ME, epoch) >= log.end),
        "StandsAsSaid": z3.Implies(z3.And(voted == ME, leader == NO_LEADER), stood),
        "LeadsOnce": z3.Implies(past.elections.elected(epoch) == ME, leader == ME),
    }


def log_matches(past: Logs, log: SymbolicLog, offset: Any) -> z3.BoolRef:
    """A voter's log is like that of the leader who wrote its last record."""
    return z3.Implies(z3.And(offset >= 0, offset < log.end), past.is_like(log, last_epoch(log), offset))


def goes_forward(log: SymbolicLog, earlier: Any, offset: Any) -> z3.BoolRef:
    """Epochs never go back along a log."""
    within = z3.And(earlier >= 0, earlier <= offset, offset < log.end)
    return z3.Implies(within, z3.And(log.epoch(earlier) >= 0, log.epoch(earlier) <= log.epoch(offset)))


def records_match(past: Logs, log: SymbolicLog, offset: Any, earlier: Any) -> z3.BoolRef:
    """A voter's log is, up to each of its records, like that of the leader who wrote this record."""
    written = log.epoch(offset)
    there = z3.And(past.led(written), written >= 1, past.start(written) <= offset, offset < past.end(written))
    within = z3.And(earlier >= 0, earlier <= offset, offset < log.end)
    return z3.Implies(within, z3.And(there, written <= last_epoch(log), past.is_like(log, written, earlier)))


def all_records_match(past: Logs, earlier: Any) -> z3.BoolRef:
    """All records of the voter's log match, by `records_match`, which follows from the invariant (`PROPERTIES`)."""
    offset = z3.Int("offset of record")
    return z3.ForAll([offset], records_match(past, OWN_LOG, offset, earlier), patterns=[_LOG_EPOCH(offset)])


class VoterMemory(NamedTuple):
    """Of a voter, what is in memory alone."""

    role: VoterRole | None
    high_watermark: Any
    known_in: Any
    epoch_start: Any
    progress: tuple[tuple[Any, Any], ...]


def of_memory(past: Logs, epoch: Any, log: SymbolicLog, memory: VoterMemory) -> Told:
    """The invariant of the rest of a voter."""
    known, known_in = memory.high_watermark, memory.known_in
    committed = z3.And(known <= past.committed(known_in), known <= log.end, past.is_like(log, known_in, known - 1))
    told: Told = {"KnowsCommitted": z3.Implies(known > 0, committed), "LeaderHasHistory": z3.BoolVal(True)}
    if memory.role == VoterRole.LEADER:
        own = z3.And(
            last_epoch(log) == epoch,
            log.end == past.end(epoch),
            memory.epoch_start == past.start(epoch),
            past.start(epoch) < log.end,
        )
        in_epoch = past.committed(epoch) == z3.If(known > 0, known, 0)
        told["LeaderHasHistory"] = z3.And(own, in_epoch, past.held(ME, epoch) == log.end)
    counted = memory.progress if memory.role == VoterRole.LEADER else ()
    told["CountsHeld"] = z3.And(
        *(z3.Implies(end > past.start(epoch), past.held(voter, epoch) >= end) for voter, end in counted)
    )
    return told


# ---- messages


def is_true(past: Logs, message: Any, asked: Any = None, at: Any = None) -> z3.BoolRef:
    """Whether what a message says of logs is so, and stays so.

    `asked`: the fetch that it answers; `at`: an offset, of which an answer says whether it is before the end it tells.
    """
    match message:
        case VoteRequest(is_pre_vote=False):
            candidate, epoch = number(message.replica.id), number(message.epoch)
            last, end = past.stood_epoch(candidate, epoch), past.stood_end(candidate, epoch)
            stands = past.elections.votes(candidate, epoch) == candidate
            return z3.And(stands, last == number(message.last_epoch), end == number(message.end_offset))
        case QuorumFetchRequest():
            return z3.Implies(is_of_voter(message), _fetch_is_true(past, message))
        case QuorumFetchResponse():
            return _answer_is_true(past, message, asked, at)
        case _:
            return z3.BoolVal(True)


def is_of_voter(request: Any) -> z3.BoolRef:
    """Whether a request is a voter's, or an answer to it is to one: not if a fetch is from another disk, which observes.

    Where voter sets know no directories, no disk is another one.
    """
    observes = isinstance(request, QuorumFetchRequest) and request.replica.directory != DIRECTORY
    return z3.Not(HAVE_DIRECTORIES) if observes else z3.BoolVal(True)


def _fetch_is_true(past: Logs, request: QuorumFetchRequest) -> z3.BoolRef:
    fetch, voter = request.fetch, number(request.replica.id)
    epoch, last, end = map(number, (fetch.current_leader_epoch, fetch.last_fetched_epoch, fetch.fetch_offset))
    written = z3.And(past.led(last), past.start(last) < end, end <= past.end(last))
    return z3.Implies(end > 0, z3.And(written, z3.Implies(last == epoch, past.held(voter, epoch) >= end)))


def _answer_is_true(past: Logs, answer: QuorumFetchResponse, asked: QuorumFetchRequest, at: Any) -> z3.BoolRef:
    epoch, offset, last = number(answer.epoch), number(asked.fetch.fetch_offset), number(asked.fetch.last_fetched_epoch)
    told_epoch, told_end = map(number, answer.diverging)
    undefined, undefined_end = UNDEFINED_EPOCH_END
    high_watermark = number(answer.high_watermark)
    in_place = z3.Or(offset == 0, z3.And(offset > 0, offset <= past.end(epoch), past.epoch(epoch, offset - 1) == last))
    up_to = z3.And(at >= 0, at < past.end(epoch), past.epoch(epoch, at) <= last)
    up_to_there = z3.Implies(up_to, z3.And(at < told_end, past.epoch(epoch, at) <= told_epoch))
    parted = z3.And(last < epoch, told_epoch >= FIRST_EPOCH, told_end >= 0, told_end <= past.end(epoch), up_to_there)
    is_parted = z3.Not(z3.And(told_epoch == undefined, told_end == undefined_end))
    told = [z3.If(is_parted, parted, in_place), high_watermark <= past.committed(epoch)]
    for record in answer.records:
        written, value = number(record.leader_epoch), number(getattr(record, "value", NO_VALUE))
        there = z3.And(past.epoch(epoch, offset) == written, past.value(epoch, offset) == value)
        told.append(z3.Implies(z3.Not(is_parted), z3.And(offset < past.end(epoch), there)))
    return z3.Implies(_is_no_error(answer.error), z3.And(number(answer.leader) != NO_LEADER, *told))


def _is_no_error(error: Any) -> z3.BoolRef:
    if isinstance(error, Error):
        return z3.BoolVal(error == Error.NONE)
    return z3.Int("error") == [*Error].index(Error.NONE)


# ---- a step

DISK = ("PrefixOfHistory", "EpochsCount", "KeepsHeld", "HasHeld", "StandsAsSaid", "LeadsOnce")
CONJUNCTS = (
    "HistoriesGrow",
    "HistoriesMatch",
    "LeadersWrite",
    "ElectedAsItStood",
    "HeldIsWritten",
    "CommittedIsWritten",
    "CommittedByMajority",
    "VotesForCandidates",
    "VotesUpToDate",
    *DISK,
    "LogMatching",
    "EpochsInOrder",
    "KnowsCommitted",
    "LeaderHasHistory",
    "CountsHeld",
    "DurableBeforeSent",
    "MessagesAreTrue",
    "FetchesFromItsEnd",
)
"""The invariant, and what is told apart of a step. The theorem follows from it (`PROPERTIES`)."""


def after_step(taken: VoterStep, majority: Majority) -> Logs:
    """The histories after a step, by its effects and the log that the voter has then."""
    past, state = BEFORE, taken.step.state
    epoch, log = number(state.election.epoch), SymbolicLog.of(state.local.log)
    for effect in taken.step.effects:
        match effect:
            case PersistElection(election):
                past = _with_election(past, taken, election)
            case LogCommitted(offset) if led(taken):
                past = past._replace(
                    committed=_at(past.committed, epoch, number(offset)),
                    holders=_at(past.holders, epoch, majority.size),
                    holder=lambda at, voter, before=past.holder: z3.If(at == epoch, majority.has(voter), before(at, voter)),
                )
            case _:
                pass
    if led(taken):
        past = past._replace(
            start=_at(past.start, epoch, start_of_epoch(taken)),
            end=_at(past.end, epoch, log.end),
            epoch=lambda at, offset, before=past.epoch: z3.If(at == epoch, log.epoch(offset), before(at, offset)),
            value=lambda at, offset, before=past.value: z3.If(at == epoch, log.value(offset), before(at, offset)),
        )
    before = past.held
    has_held = z3.And(log.end > before(ME, epoch), last_epoch(log) == epoch)

    def held(voter: Any, at: Any) -> Any:
        return z3.If(z3.And(voter == ME, at == epoch, has_held), log.end, before(voter, at))

    return past._replace(held=held)


def led(taken: VoterStep) -> bool:
    """Whether the voter leads after a step, or has led in it, and resigned: its own removal is committed."""
    before, after = taken.before.role, taken.step.state.role
    resigns = after == VoterRole.RESIGNED and (before == VoterRole.LEADER or is_elected(taken))
    return after == VoterRole.LEADER or resigns


def start_of_epoch(taken: VoterStep) -> Any:
    """The offset at which the epoch of one that has led in a step starts."""
    before = EPOCH_START if taken.before.role == VoterRole.LEADER else END
    return number(taken.step.state.epoch_start) if taken.step.state.role == VoterRole.LEADER else before


def _at(before: Callable[[Any], Any], place: Any, now: Any) -> Callable[[Any], Any]:
    return lambda at: z3.If(at == place, now, before(at))


def is_elected(taken: VoterStep) -> bool:
    """Whether the voter is elected in a step."""
    return any(isinstance(effect, LeaderChangeAppended) for effect in taken.step.effects)


def _with_election(past: Logs, taken: VoterStep, election: ElectionState) -> Logs:
    epoch, leader, voted = terms_of(election)
    is_new = z3.And(voted == ME, past.elections.votes(ME, epoch) == NO_LEADER)
    with_leader = past.elections.with_vote(epoch, voted)
    if is_elected(taken):
        with_leader = with_leader.with_leader(epoch, leader, elections.granting_in(taken))

    def stood(before: Any, now: Any) -> Any:
        return lambda voter, at: z3.If(z3.And(voter == ME, at == epoch, is_new), now, before(voter, at))

    return past._replace(
        elections=with_leader,
        stood_epoch=stood(past.stood_epoch, last_epoch(OWN_LOG)),
        stood_end=stood(past.stood_end, END),
    )


def claims(taken: VoterStep, role: VoterRole | None, majority: Majority) -> Told:
    """Whether each conjunct holds after a step."""
    step, state = taken.step, taken.step.state
    past, log = after_step(taken, majority), SymbolicLog.of(state.local.log)
    election, is_changed = terms_of(state.election), not (log.end.eq(END) and log.epoch is _LOG_EPOCH)
    epoch, leads = election[0], led(taken)
    told: dict[str, list[Any]] = {name: [] for name in CONJUNCTS}
    if leads:
        told["HistoriesGrow"].append(histories_grow(past, epoch))
        told["HistoriesMatch"].append(histories_match(past, AN_EPOCH, AN_OFFSET, EARLIER))
        told["LeadersWrite"].append(leaders_write(past, AN_EPOCH, AN_OFFSET))
        if any(isinstance(effect, LogCommitted) for effect in step.effects):
            told["CommittedIsWritten"].append(committed_is_written(past, epoch))
            told["CommittedByMajority"] = [holder_has_held(past, epoch, one) for one in SEEN]
            told["CommittedByMajority"].append(committed_by_majority(past, epoch))
    told["ElectedAsItStood"].append(elected_as_it_stood(past, AN_EPOCH))
    told["HeldIsWritten"].append(z3.Implies(z3.And(log.end > 0, last_epoch(log) == epoch), held_is_written(past, ME, epoch)))
    told["VotesUpToDate"].append(votes_up_to_date(past, VOTER, LATER_EPOCH))
    told["VotesForCandidates"].append(votes_for_candidates(past, VOTER, LATER_EPOCH))
    for name, holds in of_disk(past, election, log).items():
        told[name].append(holds)
    told["LogMatching"].append(log_matches(past, log, AN_OFFSET))
    told["EpochsInOrder"].append(goes_forward(log, EARLIER, AN_OFFSET))
    stored = BEFORE
    for effect in step.effects:
        if isinstance(effect, PersistElection):
            epoch_stored, leader, voted = terms_of(effect.election)
            elected = stored.elections.elected(epoch_stored)
            if not is_elected(taken):
                told["ElectedAsItStood"].append(z3.Implies(leader == ME, elected == ME))
            stored = _with_election(stored, taken, effect.election)
            if is_elected(taken):
                told["VotesUpToDate"].append(votes_up_to_date(stored, VOTER, LATER_EPOCH))
            if is_changed:
                for name, holds in of_disk(stored, (epoch_stored, leader, voted), OWN_LOG).items():
                    told[name].append(holds)
    for name, holds in of_memory(past, epoch, log, memory_of(state)).items():
        told[name].append(holds)
    told["KnowsCommitted"] += [
        number(effect.high_watermark) == number(state.high_watermark)
        for effect in step.effects
        if isinstance(effect, LogCommitted) and state.role in (VoterRole.LEADER, VoterRole.FOLLOWER)
    ]
    told["DurableBeforeSent"].append(z3.BoolVal(is_durable(step.effects)))
    for effect in step.effects:
        if isinstance(effect, Reply):
            answer = is_true(past, effect.message, taken.request, AN_OFFSET)
            told["MessagesAreTrue"].append(z3.Implies(is_of_voter(taken.request), answer))
    told["MessagesAreTrue"] += [is_true(past, request) for request in taken.sent]
    fetches = role in (VoterRole.UNATTACHED, VoterRole.FOLLOWER) and not isinstance(taken.answer, QuorumFetchResponse)
    if fetches and ForgetRequests() not in step.effects:
        stays = z3.And(log.end == END, last_epoch(log) == last_epoch(OWN_LOG))
        told["FetchesFromItsEnd"].append(stays)
    told["FetchesFromItsEnd"] += [is_from_end(request) for request in taken.sent if isinstance(request, QuorumFetchRequest)]
    return {name: z3.And(*holds) for name, holds in told.items()}


def is_from_end(fetch: QuorumFetchRequest) -> z3.BoolRef:
    """Whether a fetch is from the end of the voter's log, and names its last epoch."""
    position = fetch.fetch
    return z3.And(number(position.fetch_offset) == END, number(position.last_fetched_epoch) == last_epoch(OWN_LOG))


def histories_grow(past: Logs, epoch: Any) -> z3.BoolRef:
    """The log of a leader keeps what it has, and so does what is committed; another leader's stays as it is."""
    offset = AN_OFFSET
    kept = z3.And(
        past.epoch(epoch, offset) == BEFORE.epoch(epoch, offset), past.value(epoch, offset) == BEFORE.value(epoch, offset)
    )
    within = z3.And(offset >= 0, offset < BEFORE.end(epoch))
    longer = z3.And(past.end(epoch) >= BEFORE.end(epoch), past.start(epoch) == BEFORE.start(epoch))
    grows = z3.And(longer, z3.Implies(within, kept))
    return z3.And(z3.Implies(BEFORE.led(epoch), grows), past.committed(epoch) >= BEFORE.committed(epoch))


def is_durable(effects: tuple[Any, ...]) -> bool:
    """Whether all that is appended is flushed in the same step, and before an answer."""
    waits = False
    for effect in effects:
        if isinstance(effect, LogFlushed):
            waits = False
        elif isinstance(effect, LogAppended | LeaderChangeAppended):
            waits = True
        elif waits and isinstance(effect, Reply | LogCommitted):
            return False
    return not waits


def memory_of(state: QuorumReplica[Any]) -> VoterMemory:
    """The memory of a voter after a step. If it knows more than before, that was committed in its epoch.

    A leader also notes how far observers are, which it does not count.
    """
    known, epoch = number(state.high_watermark), number(state.election.epoch)
    known_in = z3.If(known == HIGH_WATERMARK, KNOWN_IN, epoch)
    if state.role == VoterRole.LEADER:
        known_in = epoch
    counted = (one for one in state.progress if one.replica.directory != OTHER_DIRECTORY)
    progress = tuple((number(one.replica.id), number(one.end_offset)) for one in counted)
    return VoterMemory(state.role, known, known_in, number(state.epoch_start), progress)


class SpokenTerms(NamedTuple):
    """The epochs and offsets for which Z3 is given the invariant: those that a claim and a step speak of.

    What follows from the invariant for these follows from the invariant. So the choice need not be trusted.
    """

    epochs: tuple[Any, ...]
    offsets: tuple[Any, ...]


def of_histories(past: Logs, terms: SpokenTerms) -> list[z3.BoolRef]:
    """The invariant of the histories, for these epochs and offsets."""
    told = []
    for epoch in terms.epochs:
        told += [elected_as_it_stood(past, epoch), committed_is_written(past, epoch)]
        told += [held_is_written(past, voter, epoch) for voter in (*SEEN, VOTER)]
        told += [leaders_write(past, epoch, offset) for offset in terms.offsets]
        told += [histories_match(past, epoch, *both) for both in product(terms.offsets, terms.offsets)]
    return told


LAST = _LOG_EPOCH(END - 1)


def terms_for(label: str) -> SpokenTerms:
    """The terms for a step."""
    epochs, offsets = (HELD_EPOCH, LATER_EPOCH, EPOCH, LAST), (HELD_OFFSET, END - 1, AN_OFFSET)
    asked, told = z3.Int("its end") - 1, z3.Int("high watermark told") - 1
    match label.partition("(")[0]:
        case "FetchAnswer" if label != "FetchAnswer(leader)":
            return SpokenTerms((*epochs, z3.Int("epoch of record")), (*offsets, END, told, EARLIER))
        case "Fetch":
            return SpokenTerms((*epochs, AN_EPOCH, z3.Int("last epoch")), (*offsets, asked, EPOCH_START - 1, EARLIER))
        case "Log":
            return SpokenTerms((*epochs, AN_EPOCH), (*offsets, EPOCH_START - 1, EARLIER))
        case _:
            return SpokenTerms((*epochs, AN_EPOCH, EPOCH + 1), (*offsets, EPOCH_START - 1, EARLIER))


def any_in(label: str, role: VoterRole | None) -> tuple[list[z3.BoolRef], list[z3.BoolRef]]:
    """The assumptions about the voter before a step, and about the histories: without and with quantifiers."""
    terms = terms_for(label)
    of_elections, _ = elections.any_in(role)
    known, assumed = of_logs(terms, role)
    by_majority = [committed_by_majority(BEFORE, epoch) for epoch in terms.epochs]
    return [*of_elections, VOTERS.has(SOMEBODY), *known], [*assumed, *by_majority]


def of_logs(terms: SpokenTerms, role: VoterRole | None) -> tuple[list[z3.BoolRef], list[z3.BoolRef]]:
    """The assumptions about the voter's log and the logs of leaders, but those about majorities."""
    past, election = BEFORE, (EPOCH, LEADER, VOTED)
    progress = tuple((one, PROGRESS(one)) for one in (THEM, SOMEBODY))
    own = of_disk(past, election, OWN_LOG)
    memory = of_memory(past, EPOCH, OWN_LOG, VoterMemory(role, HIGH_WATERMARK, KNOWN_IN, EPOCH_START, progress))
    known = [own["PrefixOfHistory"], own["EpochsCount"], memory["LeaderHasHistory"]]
    return known, [
        *elections.on_disk(past.elections, EPOCH, LEADER, VOTED).values(),
        *of_histories(past, terms),
        *(log_matches(past, OWN_LOG, offset) for offset in terms.offsets),
        *(all_records_match(past, offset) for offset in (z3.IntVal(0), *terms.offsets)),
        in_order(OWN_LOG),
        *own.values(),
        *memory.values(),
        votes_up_to_date(past, VOTER, LATER_EPOCH),
        votes_for_candidates(past, VOTER, LATER_EPOCH),
        elected_as_it_stood(past, AN_EPOCH),
    ]


def premise(taken: VoterStep) -> list[z3.BoolRef]:
    """The truth of the message that arrives; an expected answer is to a fetch from the end that the log still has."""
    told = [elections.premise(taken)]
    if taken.request is not None:
        told.append(is_true(BEFORE, taken.request))
    if isinstance(taken.answer, QuorumFetchResponse):
        fetch = taken.question.message
        told.append(is_true(BEFORE, taken.answer, fetch, HELD_OFFSET))
        told.append(z3.Implies(taken.expected, is_from_end(fetch)))
    return told


# ---- what follows


OTHER_LOG = SymbolicLog(
    z3.IntVal(0),
    z3.Int("other end"),
    z3.Function("other epoch at", z3.IntSort(), z3.IntSort()),
    z3.Function("other value at", z3.IntSort(), z3.IntSort()),
    z3.IntVal(NO_EPOCH),
)
"""The log of another voter."""


Stated = tuple[list[z3.BoolRef], z3.BoolRef]
"""Premises, and what follows from them."""


def leader_completeness() -> Stated:
    """The first leader that would not have a record that was committed has it; so, by induction over epochs, each has."""
    past, epoch, common = BEFORE, LATER_EPOCH, z3.Int("voter of both")
    electors, whole = past.elections.electors_of(epoch), (VOTERS.has, VOTERS.size)
    holders = partial(past.holder, HELD_EPOCH), past.holders(HELD_EPOCH)
    last = past.start(epoch) - 1
    writer = past.epoch(epoch, last)
    known = [
        HELD_OFFSET >= 0,
        past.start(HELD_EPOCH) <= HELD_OFFSET,
        past.committed(HELD_EPOCH) > HELD_OFFSET,
        epoch > HELD_EPOCH,
        past.led(epoch),
        past.kept_up_to(epoch),
        elections.by_majority(past.elections, epoch),
        majorities_share(electors, holders, (whole, whole), common),
        votes_up_to_date(past, common, epoch),
        holder_has_held(past, HELD_EPOCH, common),
        held_is_written(past, common, HELD_EPOCH),
        committed_by_majority(past, HELD_EPOCH),
    ]
    terms = SpokenTerms((HELD_EPOCH, epoch, writer), (HELD_OFFSET, last))
    return [*known, *of_histories(past, terms)], past.has(epoch, HELD_OFFSET, HELD_EPOCH)


def prefix_is_kept() -> Stated:
    """A leader that has the last record that was committed in an epoch has all before it."""
    past, epoch, offset = BEFORE, LATER_EPOCH, AN_OFFSET
    last = past.committed(HELD_EPOCH) - 1
    known = [past.led(epoch), past.has(epoch, last, HELD_EPOCH), offset >= 0, offset <= last]
    terms = SpokenTerms((HELD_EPOCH, epoch), (offset, last))
    return [*known, *of_histories(past, terms)], z3.And(offset < past.end(epoch), past.same(epoch, HELD_EPOCH, offset))


def of_log(past: Logs, log: SymbolicLog, *offsets: Any) -> list[z3.BoolRef]:
    """The invariant of a voter's log."""
    own = of_disk(past, (z3.Int(f"epoch with {log.end}"), LEADER, VOTED), log)["PrefixOfHistory"]
    return [own, *(log_matches(past, log, offset) for offset in offsets)]


def each_record_matches() -> Stated:
    """A voter's log is, up to each of its records, like that of the leader who wrote this record (`records_match`)."""
    past, terms = BEFORE, SpokenTerms((LAST,), (AN_OFFSET, EARLIER, END - 1))
    known = [*of_log(past, OWN_LOG, *terms.offsets), *of_histories(past, terms)]
    return known, records_match(past, OWN_LOG, AN_OFFSET, EARLIER)


def logs_match() -> Stated:
    """Two voters that have a record of one epoch at an offset have the same records up to there."""
    past = BEFORE
    both = z3.And(EARLIER >= 0, EARLIER <= AN_OFFSET, AN_OFFSET < END, OTHER_LOG.end > AN_OFFSET)
    known = [records_match(past, log, AN_OFFSET, EARLIER) for log in (OWN_LOG, OTHER_LOG)]
    alike = OWN_LOG.epoch(AN_OFFSET) == OTHER_LOG.epoch(AN_OFFSET)
    return [both, alike, *known], OWN_LOG.same_at(OTHER_LOG, EARLIER)


def committed_agree() -> Stated:
    """Two voters agree on what is committed as far as both go, since a later leader has what was committed."""
    past, known, epoch = BEFORE, z3.Int("other known"), z3.Int("other known in")
    at = AN_OFFSET
    told: list[z3.BoolRef] = [at >= 0, at < HIGH_WATERMARK, at < known]
    for log, most, known_in in ((OWN_LOG, HIGH_WATERMARK, KNOWN_IN), (OTHER_LOG, known, epoch)):
        told += [most <= past.committed(known_in), most <= log.end, past.is_like(log, known_in, most - 1)]
        told += [records_match(past, log, most - 1, at)]
    for one, later in ((KNOWN_IN, epoch), (epoch, KNOWN_IN)):
        later_has = z3.And(at < past.end(later), past.same(later, one, at))
        told.append(z3.Implies(z3.And(one < later, past.led(later), at < past.committed(one)), later_has))
    terms = SpokenTerms((KNOWN_IN, epoch), (at, HIGH_WATERMARK - 1, known - 1))
    return [*told, *of_histories(past, terms)], OWN_LOG.same_at(OTHER_LOG, at)


PROPERTIES: dict[str, Callable[[], Stated]] = {
    "LeaderCompleteness": leader_completeness,
    "CommittedPrefixIsKept": prefix_is_kept,
    "RecordsMatch": each_record_matches,
    "LogsMatch": logs_match,
    "CommittedAgree": committed_agree,
}
"""The theorem: what follows from the invariant."""


def _properties(settings: ProofSettings) -> list[Obligation]:
    found = []
    for name, stated in PROPERTIES.items():
        started = perf_counter()
        premises, goal = stated()
        found.append(Obligation("Property", name, status_of(settings, premises, goal), perf_counter() - started, 1))
    return found


IF_SOMEBODY_HAS_IT = ("CommittedIsWritten", "KnowsCommitted")
"""The conjuncts for which one of a majority is named: `SOMEBODY`, if it is none of the others. They do not speak of that."""


def is_of_logs(taken: VoterStep, role: VoterRole | None) -> bool:
    """Whether claims about logs rest on what the message of a step says, or on what a majority has.

    A leader's rest on who is said to lead later: never itself.
    """
    told = taken.request if taken.answer is None else taken.answer
    says = isinstance(told, QuorumFetchRequest | QuorumFetchResponse) or is_vote(told) or role == VoterRole.LEADER
    return says or any(isinstance(effect, LogCommitted) for effect in taken.step.effects)


def is_vote(request: Any) -> bool:
    """Whether a request is one for a vote, and no question before an election."""
    return isinstance(request, VoteRequest) and not request.is_pre_vote


def _obligations(label: str, settings: ProofSettings) -> list[Obligation]:
    protocol = protocol_of(settings, MUTANTS)
    take, role = STEPS_IN_ROLES[label]
    known, assumed = any_in(label, role)

    def of_step() -> Told:
        majority = Majority()

        def offset(ends: tuple[Offset, ...]) -> Offset:
            return majority.offset(party, ends)

        party = Party(replace(protocol, majority_offset=offset), any_log, False, SEEN)
        taken = take(party, role)
        if_true = [*premise(taken), *majority.facts] if is_of_logs(taken, role) else []
        if is_elected(taken):
            leader_before = BEFORE.elections.elected(number(taken.step.state.election.epoch))
            if_true.append(z3.Or(leader_before == NO_LEADER, leader_before == ME))
        told = claims(taken, role, majority)
        for name in IF_SOMEBODY_HAS_IT:
            told[name] = z3.Implies(majority.somebody, told[name])
        return {name: z3.Implies(z3.And(*if_true), holds) for name, holds in told.items()}

    return obligations_of_step(settings, label, CONJUNCTS, of_step, known, assumed)


TASKS: dict[str, Callable[[ProofSettings], list[Obligation]]] = {
    TASK: lemmas,
    "Property": _properties,
    **{label: partial(_obligations, label) for label in STEPS_IN_ROLES},
}

OF_LOGS = {
    *("role_after_restart", "is_up_to_date", "commits", "counts_leader", "first_high_watermark", "counts_fetch"),
    *("may_truncate", "takes_records", "flushes_fetched"),
}
"""The rules that say what becomes of logs, with a fixed voter set."""

MUTANTS = {mutant.name: mutant for mutant in QUORUM_MUTANTS if mutant.field in OF_LOGS}

QUORUM_LOGS_THEOREM = StepTheorem(NAME, SUMMARY, MUTANTS, TASKS, "voters")
