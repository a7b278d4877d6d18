"""Theorem: elections and logs of the quorum of controllers while its voter set changes, one voter at a time (KIP-853).

A step is one of those of `elections` and `logs`, or of a change of the voters, of a replica that votes or observes. Which
voter set is in force after each record is a column of a log (`voter_sets`). What follows from the invariant is in `changes`.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import z3

from kspec.proofs.induction.by_steps import Part, StepTheorem, obligations_of_parts, obligations_of_step, status_of
from kspec.proofs.induction.claims import Obligation
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.log import SymbolicLog
from kspec.proofs.symbolic.members import AnyMembers, Whole
from kspec.proofs.symbolic.values import AnyNumber, SymbolicBool, SymbolicInt, number
from kspec.proofs.theorems.quorum import changes, elections, logs
from kspec.proofs.theorems.quorum.changes import BEFORE_STEP, SetHistories
from kspec.proofs.theorems.quorum.elections import Electorates, Told, protocol_of, terms_of
from kspec.proofs.theorems.quorum.logs import (
    AN_EPOCH,
    AN_OFFSET,
    EARLIER,
    LAST,
    OWN_LOG,
    Majority,
    SpokenTerms,
    any_log,
    is_elected,
    last_epoch,
    led,
    terms_for,
)
from kspec.proofs.theorems.quorum.majorities import TASK, lemmas
from kspec.proofs.theorems.quorum.steps import STEPS_IN_ROLES, AnyError, VoterStep
from kspec.proofs.theorems.quorum.voter import (
    DIRECTORY,
    END,
    EPOCH,
    EPOCH_START,
    HAVE_DIRECTORIES,
    HIGH_WATERMARK,
    LEADER,
    ME,
    NOW,
    OTHER_DIRECTORY,
    PROGRESS,
    THEM,
    VOTED,
    Party,
    any_number,
    is_so,
    one_of,
)
from kspec.proofs.theorems.quorum.voter_sets import (
    ADDS_ITSELF,
    CHANGE_OFFSET,
    HAS,
    HAS_VOTER,
    LAST_SET,
    OWN_SET,
    SEEN,
    SINCE,
    TELLS_VOTERS,
    TOLD_SET,
    AnyVoter,
    ChangingParty,
    ChangingSet,
    SetsOfLog,
    ToldSets,
    code_of,
    earlier_at_cut,
    earlier_at_fetch,
    in_force,
    near,
    of_own_sets,
    whole,
)
from kspec.proofs.theorems.quorum.voter_sets import LAST as LAST_ENTRY
from kspec.spec.log.local_log import truncate
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, RemoveVoterRequest, UpdateVoterRequest
from kspec.spec.quorum.effects import LogCommitted, LogCut, PersistElection
from kspec.spec.quorum.reconfiguration import (
    handle_add_voter,
    handle_remove_voter,
    handle_update_voter,
    on_versions,
    on_voter_change_timeout,
)
from kspec.spec.quorum.replica import QuorumReplica
from kspec.spec.quorum.rules.epochs import NOMINEES, VoterRole
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_LEADER, NO_REPLICA, UNKNOWN_OFFSET, Error, Offset, ReplicaKey

NAME = "quorum-voters"
SUMMARY = (
    "While the voters of the metadata quorum change, one at a time, an epoch has one leader at most, and each later leader"
    " has what was committed: voter sets by which two are elected, or count, are one voter apart where it matters."
)


# ---- the steps of a change


def _who(name: str, *others: ReplicaKey) -> ReplicaKey:
    found: ReplicaKey = one_of(name, ReplicaKey(THEM, DIRECTORY), ReplicaKey(ME, DIRECTORY), *others)
    return found


def add_voter(party: Party, role: VoterRole) -> VoterStep:
    """A replica is to vote: the leader itself, if it does not, or another."""
    waits: Any = SymbolicBool(z3.Bool("asker waits"))
    before, request = party.in_role(role), AddVoterRequest(_who("who is to vote"), waits)
    return VoterStep(before, handle_add_voter(party.server, before, request, NOW))


def versions(party: Party, role: VoterRole) -> VoterStep:
    """One that is to vote has told its versions, or an error."""
    before, error = party.in_role(role), one_of("error of versions", Error.NONE, Error.UNKNOWN_SERVER_ERROR)
    return VoterStep(before, on_versions(party.server, before, error, is_so("is supported"), NOW))


def remove_voter(party: Party, role: VoterRole) -> VoterStep:
    """A replica is not to vote any more, which may be the leader."""
    before = party.in_role(role)
    request = RemoveVoterRequest(_who("who is to go", ReplicaKey(THEM, OTHER_DIRECTORY)))
    return VoterStep(before, handle_remove_voter(party.server, before, request, NOW))


def update_voter(party: Party, role: VoterRole) -> VoterStep:
    """A voter is reached elsewhere."""
    before = party.in_role(role)
    request = UpdateVoterRequest(_who("who has moved", ReplicaKey(THEM, OTHER_DIRECTORY)))
    return VoterStep(before, handle_update_voter(party.server, before, request, NOW))


def change_timed_out(party: Party, role: VoterRole) -> VoterStep:
    """A change has taken too long."""
    before = party.in_role(role)
    return VoterStep(before, on_voter_change_timeout(party.server, before, NOW))


CHANGE_STEPS: dict[str, Callable[[Party, VoterRole], VoterStep]] = {
    "AddVoter": add_voter,
    "Versions": versions,
    "RemoveVoter": remove_voter,
    "UpdateVoter": update_voter,
    "ChangeTime": change_timed_out,
}
"""All that happens to a replica when voters are to change."""

ALL_STEPS: dict[str, tuple[Callable[[Party, Any], VoterStep], VoterRole | None]] = {
    **STEPS_IN_ROLES,
    **{f"{name}({role.value})": (step, role) for name, step in CHANGE_STEPS.items() for role in VoterRole},
}


# ---- what a majority has


class CountedMajority(Majority):
    """The offset up to which a majority has the log: any that more than half of the ends that are counted have reached.

    Those are of the voters by which the leader goes, and its own (`_ends`). Which they are is seen from how many there are.
    `made`: the voter sets that the step makes; `code`: the number of that by which it counts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made: list[ChangingSet] = []
        self.code: Any = LAST_SET

    def reached(self, ends: tuple[Offset, ...]) -> Offset:
        """The offset, and with it the facts about those that have reached it."""
        found = z3.Int("offset of majority")
        voters = self.made[-1] if self.made else ChangingSet.of(LAST_SET, [])
        self.code = voters.code
        others = [one.id for one in voters if one.id != ME]
        counts_itself = len(ends) > len(others)
        members = (*others, ME) if counts_itself else tuple(others)
        assert len(members) == len(ends), "a leader counts each voter, itself last"
        in_set, size = voters.members.has, voters.members.size
        counted = size + (z3.If(in_set(ME), 0, 1) if counts_itself else -z3.If(in_set(ME), 1, 0))
        voter = z3.Int("any member")
        is_own = voter == ME if counts_itself else z3.BoolVal(False)
        of_them = z3.ForAll([voter], z3.Implies(self.has(voter), z3.Or(is_own, z3.And(voter != ME, in_set(voter)))))
        self.facts += [z3.Implies(self.has(one), number(end) >= found) for one, end in zip(members, ends, strict=True)]
        self.facts += [self.size * 2 > counted, of_them]
        self.somebody = z3.Or(*(self.has(one) for one in SEEN))
        offset: Any = AnyNumber(found)
        told: Offset = offset
        return told


# ---- the histories and the log after a step


class OwnSets(NamedTuple):
    """The voter sets of the voter's log: their records, and which is in force after each record."""

    entries: tuple[Any, ...]
    at: Callable[[Any], Any]


def sets_after(taken: VoterStep) -> OwnSets:
    """The voter sets of the voter's log after a step: those before, and those whose records it has appended."""
    before = tuple(taken.before.voter_sets)
    entries = tuple(taken.step.state.voter_sets)
    known = {id(entry) for entry in before}
    new = tuple(entry for entry in entries if id(entry) not in known)

    def at(offset: Any) -> Any:
        found = z3.If(offset >= END, LAST_SET, OWN_SET(offset))
        for entry in new:
            found = z3.If(offset >= number(entry.offset), code_of(entry.voters), found)
        return found

    return OwnSets(entries, at)


def after_step(taken: VoterStep, counting: CountedMajority) -> SetHistories:
    """The histories after a step."""
    past, state = BEFORE_STEP._replace(logs=logs.after_step(taken, counting)), taken.step.state
    if not led(taken):
        return past
    epoch, sets = number(state.election.epoch), sets_after(taken)
    known = END if taken.before.role == VoterRole.LEADER else z3.IntVal(-1)
    """Up to where the leader's log was its epoch's before."""

    def in_force_then(at: Any, offset: Any) -> Any:
        return z3.If(z3.And(at == epoch, offset >= known), sets.at(offset), BEFORE_STEP.in_force(at, offset))

    past = past._replace(in_force=in_force_then)
    if not commits(taken):
        return past

    def is_new(at: Any, offset: Any) -> z3.BoolRef:
        inside = z3.And(offset >= BEFORE_STEP.logs.committed(epoch), offset < past.logs.committed(epoch))
        return z3.And(at == epoch, inside)

    return past._replace(
        holder=lambda at, offset, voter: z3.If(
            is_new(at, offset), counting.has(voter), BEFORE_STEP.holder(at, offset, voter)
        ),
        holders=lambda at, offset: z3.If(is_new(at, offset), counting.size, BEFORE_STEP.holders(at, offset)),
        counted_in=lambda at, offset: z3.If(is_new(at, offset), counting.code, BEFORE_STEP.counted_in(at, offset)),
    )


def commits(taken: VoterStep) -> bool:
    """Whether a voter commits in a step, or learns that more is committed."""
    return any(isinstance(effect, LogCommitted) for effect in taken.step.effects)


# ---- the invariant of a voter


def all_sets_match(past: SetHistories, earlier: Any) -> z3.BoolRef:
    """The voter sets of the voter's log are, up to each record, those of the leader who wrote it (`changes`)."""
    offset = z3.Int("offset of record")
    written = OWN_LOG.epoch(offset)
    within = z3.And(earlier >= -1, earlier <= offset, offset >= 0, offset < END)
    return z3.ForAll(
        [offset], z3.Implies(within, OWN_SET(earlier) == past.in_force(written, earlier)), patterns=[OWN_LOG.epoch(offset)]
    )


def records_name_a_leader(election: tuple[Any, Any, Any], log: SymbolicLog) -> z3.BoolRef:
    """A voter that has a record of its epoch knows the leader of it: so one that stands has a log of earlier epochs."""
    epoch, leader, _ = election
    return z3.Implies(leader == NO_LEADER, last_epoch(log) < epoch)


def entries_fit(sets: OwnSets, end: Any, offset: Any) -> z3.BoolRef:
    """The last voter sets of a voter are those of its log: each from its record up to the next one, or to the end."""
    if not sets.entries:
        return z3.BoolVal(False)
    told = []
    *before, last = [(number(entry.offset), code_of(entry.voters)) for entry in sets.entries][-2:]
    told += [
        last[0] < z3.If(end > 0, end, 0),
        z3.Implies(z3.And(offset >= last[0], offset < end), sets.at(offset) == last[1]),
    ]
    for since, code in before:
        told.append(z3.Or(since < last[0], z3.And(since == -1, last[0] == -1)))
        told.append(z3.Implies(z3.And(offset >= since, offset < last[0]), sets.at(offset) == code))
    return z3.And(*told)


class LeaderMemory(NamedTuple):
    """Of a leader: its high watermark, where its epoch starts, its last voter set, and the change that it is asked for."""

    known: Any
    start: Any
    last_entry: Any
    last_set: Any
    has_voter: Any
    voter: Any
    change_offset: Any


def pending_may_be_written(memory: LeaderMemory) -> z3.BoolRef:
    """A change that waits for the versions of one that is to vote may be written: it does not vote, and no other is open."""
    waits = z3.And(memory.has_voter, memory.change_offset == UNKNOWN_OFFSET)
    may = z3.And(z3.Not(HAS(memory.last_set, memory.voter)), memory.last_entry < memory.known, memory.known >= 0)
    return z3.Implies(waits, may)


def commits_own_epoch(memory: LeaderMemory) -> z3.BoolRef:
    """A leader knows no high watermark, or one that is behind a record of its own epoch."""
    return z3.Or(memory.known == UNKNOWN_OFFSET, memory.known > memory.start)


MEMORY = LeaderMemory(
    HIGH_WATERMARK, EPOCH_START, LAST_ENTRY, LAST_SET, HAS_VOTER, z3.If(ADDS_ITSELF, ME, THEM), CHANGE_OFFSET
)
COMMITTED = z3.Int("committed")
"""Up to where the voter keeps its log, as `Party` names it."""


def memory_of(state: QuorumReplica[Any]) -> LeaderMemory:
    """The memory of a leader after a step."""
    last, change = state.voter_sets[-1], state.change
    last_set = code_of(last.voters)
    is_any = isinstance(change.voter, AnyVoter)
    has_voter = HAS_VOTER if is_any else z3.BoolVal(change.voter != NO_REPLICA)
    voter = MEMORY.voter if is_any else number(change.voter.id)
    known, start = number(state.high_watermark), number(state.epoch_start)
    return LeaderMemory(known, start, number(last.offset), last_set, has_voter, voter, number(change.offset))


def keeps_committed(role: VoterRole | None, end: Any, committed: Any, known: Any, start: Any) -> z3.BoolRef:
    """A voter keeps its log up to where it ends at most; a leader, up to what it has committed, or had when it began."""
    bound = z3.If(known > start, known, start) if role == VoterRole.LEADER else end
    return z3.And(committed >= 0, committed <= end, committed <= bound)


# ---- messages


def is_true(past: SetHistories, answer: QuorumFetchResponse, asked: QuorumFetchRequest) -> z3.BoolRef:
    """Whether what an answer says of voter sets is so: that whose record it brings, and no other."""
    epoch, offset = number(answer.epoch), number(asked.fetch.fetch_offset)
    told: list[Any] = []
    entries: Any = answer.voter_sets
    before, now = past.in_force(epoch, offset - 1), past.in_force(epoch, offset)
    if isinstance(entries, ToldSets):
        is_told = z3.If(TELLS_VOTERS, now == TOLD_SET, now == before)
        told.append(is_told if answer.records else z3.Not(TELLS_VOTERS))
    elif not answer.records:
        told.append(z3.BoolVal(not entries))
    elif entries:
        told += [number(one.offset) == offset for one in entries]
        told += [now == code_of(one.voters) for one in entries]
    else:
        told.append(now == before)
    return z3.Implies(_has_records_in_place(answer), z3.And(*told))


def _has_records_in_place(answer: QuorumFetchResponse) -> z3.BoolRef:
    undefined = z3.And(*(number(one) == -1 for one in answer.diverging))
    error = answer.error
    is_none = z3.BoolVal(error == Error.NONE) if isinstance(error, Error) else z3.Int("error") == [*Error].index(Error.NONE)
    return z3.And(is_none, undefined)


# ---- a step


def in_elections(name: str) -> str:
    """The name of a conjunct about elections, where one about logs has the same."""
    return f"{name}InElections" if name in logs.CONJUNCTS else name


OF_ELECTIONS = tuple(map(in_elections, elections.CONJUNCTS))
OF_LOGS = tuple(name for name in logs.CONJUNCTS if name != "CommittedByMajority")
OF_SETS = (
    "SetsMatch",
    "SetsLast",
    "ChangesByOne",
    "ChangesAfterOwnRecord",
    "ChangesAfterLastChange",
    "CountedInMajority",
    "CountedInNearSet",
    "OwnSetsMatch",
    "VoterSetsAreTold",
)
OF_MEMORY = (
    "EntriesFit",
    "AsksItsVoters",
    "PendingMayBeWritten",
    "CommitsOwnEpoch",
    "KeepsCommitted",
    "RecordsNameALeader",
)
CONJUNCTS = (*OF_ELECTIONS, *OF_LOGS, *OF_SETS, *OF_MEMORY)
"""The invariant, and what is told apart of a step: of elections, of logs, of voter sets in logs, and of those remembered."""


def claims_of_memory(taken: VoterStep) -> Told:
    """Whether each conjunct about what a voter remembers of voter sets holds after a step."""
    state = taken.step.state
    log, sets = SymbolicLog.of(state.local.log), sets_after(taken)
    told: dict[str, list[Any]] = {name: [] for name in OF_MEMORY}
    told["EntriesFit"].append(entries_fit(sets, log.end, AN_OFFSET))
    if state.role in NOMINEES:
        told["AsksItsVoters"].append(code_of(state.tally.voters) == sets.at(log.end - 1))
    if state.role == VoterRole.LEADER:
        memory = memory_of(state)
        told["PendingMayBeWritten"].append(pending_may_be_written(memory))
        told["CommitsOwnEpoch"].append(commits_own_epoch(memory))
    known, start = number(state.high_watermark), number(state.epoch_start)
    told["KeepsCommitted"].append(keeps_committed(state.role, log.end, number(state.local.high_watermark), known, start))
    told["RecordsNameALeader"].append(records_name_a_leader(terms_of(state.election), log))
    for effect in taken.step.effects:
        if isinstance(effect, PersistElection):
            told["RecordsNameALeader"].append(records_name_a_leader(terms_of(effect.election), OWN_LOG))
    return {name: z3.And(*holds) for name, holds in told.items()}


def claims(taken: VoterStep, counting: CountedMajority) -> Told:
    """Whether each conjunct about voter sets in logs holds after a step."""
    past, state = after_step(taken, counting), taken.step.state
    log, sets, epoch = SymbolicLog.of(state.local.log), sets_after(taken), number(state.election.epoch)
    told: dict[str, list[Any]] = {name: [] for name in OF_SETS}
    if led(taken):
        within = z3.And(AN_OFFSET >= -1, BEFORE_STEP.logs.end(epoch) > AN_OFFSET, BEFORE_STEP.logs.led(epoch))
        stays = past.in_force(epoch, AN_OFFSET) == BEFORE_STEP.in_force(epoch, AN_OFFSET)
        told["SetsMatch"] += [changes.sets_match(past, AN_EPOCH, AN_OFFSET, EARLIER), z3.Implies(within, stays)]
        told["SetsLast"].append(changes.sets_last(past, AN_EPOCH, AN_OFFSET, EARLIER))
        for name, claim in (
            ("ChangesByOne", changes.changes_by_one),
            ("ChangesAfterOwnRecord", changes.changes_after_own_record),
            ("ChangesAfterLastChange", changes.changes_after_last_change),
        ):
            told[name].append(claim(past, AN_EPOCH, AN_OFFSET))
        if commits(taken):
            told["CountedInMajority"].append(changes.counted_in_majority(past, epoch, AN_OFFSET))
            told["CountedInMajority"] += [changes.holder_has_held(past, epoch, AN_OFFSET, one) for one in SEEN]
            told["CountedInNearSet"].append(changes.counted_in_near_set(past, epoch, AN_OFFSET))
    told["OwnSetsMatch"].append(changes.own_sets_match(past, log, AN_OFFSET, sets.at))
    for effect in taken.step.effects:
        if isinstance(effect, Reply) and isinstance(effect.message, QuorumFetchResponse):
            answer = is_true(past, effect.message, taken.request)
            told["VoterSetsAreTold"].append(z3.Implies(logs.is_of_voter(taken.request), answer))
    return {name: z3.And(*holds) for name, holds in told.items()}


def of_memory(role: VoterRole | None) -> list[z3.BoolRef]:
    """The assumptions about what a voter remembers of voter sets before a step."""
    own = records_name_a_leader((EPOCH, LEADER, VOTED), OWN_LOG)
    known = [HAVE_DIRECTORIES, own, *of_own_sets(), keeps_committed(role, END, COMMITTED, HIGH_WATERMARK, EPOCH_START)]
    return [*known, *([pending_may_be_written(MEMORY), commits_own_epoch(MEMORY)] if role == VoterRole.LEADER else [])]


def of_sets(terms: SpokenTerms) -> list[z3.BoolRef]:
    """The assumptions about voter sets in logs before a step."""
    past, offsets = BEFORE_STEP, terms.offsets
    assumed = [in_force(offset) for offset in offsets]
    assumed += [changes.own_sets_match(past, OWN_LOG, offset) for offset in offsets]
    assumed += [all_sets_match(past, offset) for offset in (z3.IntVal(-1), *offsets)]
    assumed += changes.of_sets(past, terms.epochs, (*offsets, SINCE(LAST_SET) - 1))
    assumed += [changes.counted_in_majority(past, EPOCH, AN_OFFSET), changes.counted_in_near_set(past, EPOCH, AN_OFFSET)]
    return [*assumed, *(changes.holder_has_held(past, EPOCH, AN_OFFSET, one) for one in SEEN)]


def premise(taken: VoterStep) -> list[z3.BoolRef]:
    """The truth of what an answer says of voter sets; and which earlier voter set the voter is seen to look at."""
    told = []
    if isinstance(taken.answer, QuorumFetchResponse):
        told.append(is_true(BEFORE_STEP, taken.answer, taken.question.message))
    if isinstance(taken.request, QuorumFetchRequest):
        told.append(earlier_at_fetch(number(taken.request.fetch.fetch_offset)))
    else:
        cuts = [number(effect.end_offset) for effect in taken.step.effects if isinstance(effect, LogCut)]
        told += [earlier_at_cut(offset, cut) for cut in (*cuts, END)[:1] for offset in (AN_OFFSET, cut - 1)]
    return told


def electorates() -> Electorates:
    """The voters that elected the leader of an epoch, and those by which the voter goes.

    Of one epoch they are one voter apart at most: the logs with which two stand that have a majority have all that was
    committed before (`changes`).
    """

    def of_epoch(epoch: Any) -> Whole:
        return whole(BEFORE_STEP.set_at_start(epoch))

    return Electorates(of_epoch, whole(LAST_SET), lambda epoch: near(BEFORE_STEP.set_at_start(epoch), LAST_SET))


Known = tuple[list[z3.BoolRef], list[z3.BoolRef]]
Premised = tuple[Told, list[z3.BoolRef]]
"""The conjuncts after a step, and what of the step they rest on."""


def known_of(role: VoterRole | None) -> Known:
    """Facts about the voter before a step, and the assumptions about elections."""
    members, _ = whole(LAST_SET)
    known, assumed = elections.any_in(role, members, of_memory(role))
    of_logs, _ = logs.of_logs(SpokenTerms((), ()), role)
    return [*known, *of_logs], assumed


def _told_of_elections(taken: VoterStep, role: VoterRole | None, counting: CountedMajority) -> Premised:
    told = elections.claims(taken, role, electorates())
    return {in_elections(name): holds for name, holds in told.items()}, [elections.premise(taken)]


def _told_of_logs(taken: VoterStep, role: VoterRole | None, counting: CountedMajority) -> Premised:
    told = {name: holds for name, holds in logs.claims(taken, role, counting).items() if name in OF_LOGS}
    told |= {name: z3.Implies(counting.somebody, told[name]) for name in logs.IF_SOMEBODY_HAS_IT}
    if not logs.is_of_logs(taken, role):
        return told, _is_first(taken)
    return told, [*logs.premise(taken), *counting.facts, *_is_first(taken)]


def _is_first(taken: VoterStep) -> list[z3.BoolRef]:
    """One that is elected is the first of its epoch, by what is shown of elections."""
    leader_before = logs.BEFORE.elections.elected(number(taken.step.state.election.epoch))
    return [z3.Or(leader_before == NO_LEADER, leader_before == ME)] if is_elected(taken) else []


def sets_terms(label: str) -> SpokenTerms:
    """The terms for a step, where voter sets are concerned."""
    epochs, offsets = (EPOCH, AN_EPOCH, LAST), (AN_OFFSET, AN_OFFSET - 1, EARLIER, END - 1, LAST_ENTRY)
    match label.partition("(")[0]:
        case "FetchAnswer":
            return SpokenTerms((*epochs, z3.Int("epoch of record")), (*offsets, END))
        case "Fetch":
            return SpokenTerms(epochs, (*offsets, z3.Int("its end"), z3.Int("its end") - 1))
        case _:
            return SpokenTerms((*epochs, EPOCH + 1), offsets)


def assumed_of_memory(role: VoterRole | None) -> list[z3.BoolRef]:
    """The assumptions for what a voter remembers of voter sets."""
    past, others = logs.BEFORE, tuple((one, PROGRESS(one)) for one in SEEN[1:])
    memory = logs.VoterMemory(role, HIGH_WATERMARK, logs.KNOWN_IN, EPOCH_START, others)
    counts = logs.of_memory(past, EPOCH, OWN_LOG, memory)["CountsHeld"]
    held = [logs.held_is_written(past, one, EPOCH) for one in SEEN]
    led_before = elections.on_disk(past.elections, EPOCH, LEADER, VOTED)["KnowsElectedLeader"]
    of_leader = [counts, led_before, logs.leaders_write(past, EPOCH, END - 1)]
    return [*of_leader, *held, *(in_force(offset) for offset in (AN_OFFSET, END - 1))]


def _told_of_memory(taken: VoterStep, role: VoterRole | None, counting: CountedMajority) -> Premised:
    told = claims_of_memory(taken)
    told["KeepsCommitted"] = z3.Implies(counting.somebody, told["KeepsCommitted"])
    return told, _premises_of_sets(taken, counting)


def _told_of_sets(taken: VoterStep, role: VoterRole | None, counting: CountedMajority) -> Premised:
    told = claims(taken, counting)
    told |= {name: z3.Implies(counting.somebody, told[name]) for name in ("CountedInMajority", "CountedInNearSet")}
    return told, _premises_of_sets(taken, counting)


def _premises_of_sets(taken: VoterStep, counting: CountedMajority) -> list[z3.BoolRef]:
    """The premises of claims about voter sets: what a message says, what a majority has, and what is written."""
    told = taken.request if taken.answer is None else taken.answer
    writes = SymbolicLog.of(taken.step.state.local.log).end is not END
    if not (isinstance(told, QuorumFetchRequest | QuorumFetchResponse) or writes or commits(taken)):
        return []
    made = [fact for one in counting.made for fact in one.facts()]
    return [*logs.premise(taken), *premise(taken), *counting.facts, *_is_first(taken), *made]


def parts_of(label: str, role: VoterRole | None) -> list[Part]:
    """The parts of the invariant, each with what is assumed for it.

    That of elections depends on the others by `electorates` alone, that of logs on that of elections by `_is_first`.
    """
    _, of_elections = known_of(role)
    _, of_logs = logs.of_logs(terms_for(label), role)
    _, of_logs_for_sets = logs.of_logs(sets_terms(label), role)
    return [
        Part(OF_ELECTIONS, of_elections),
        Part(OF_LOGS, of_logs),
        Part(OF_SETS, [*of_logs_for_sets, *of_sets(sets_terms(label))]),
        Part(OF_MEMORY, assumed_of_memory(role)),
    ]


def _obligations(label: str, settings: ProofSettings) -> list[Obligation]:
    take, role = ALL_STEPS[label]
    known, _ = known_of(role)

    protocol = protocol_of(settings, MUTANTS)

    def step() -> tuple[VoterStep, CountedMajority]:
        counting = CountedMajority()
        counts = replace(protocol, majority_offset=counting.reached)
        return take(ChangingParty.by(counts, any_log, counting.made), role), counting

    told = Outcomes(role)
    return obligations_of_parts(settings, label, parts_of(label, role), step, known, told.of)


class Outcomes:
    """The truth of conjuncts after steps that end alike, which many paths do; each is kept, so that what it names stays."""

    def __init__(self, role: VoterRole | None) -> None:
        self.role = role
        self.known: dict[Any, tuple[VoterStep, CountedMajority, Told]] = {}

    def of(self, stepped: tuple[VoterStep, CountedMajority]) -> Told:
        """Whether each conjunct holds after a step, with what it rests on."""
        taken, counting = stepped
        key = None if counting.made else (_outcome(taken), _outcome((*counting.facts, counting.somebody, counting.code)))
        if key is not None and key in self.known:
            *_, known = self.known[key]
            return known
        told: Told = {}
        for claimed in (_told_of_elections, _told_of_logs, _told_of_sets, _told_of_memory):
            holding, premises = claimed(taken, self.role, counting)
            told |= {name: z3.Implies(z3.And(*premises), holds) for name, holds in holding.items()}
        if key is not None:
            self.known[key] = taken, counting, told
        return told


def _outcome(value: Any) -> Any:
    """The parts of a value, each with its type: formulas by Z3's number, functions and others by their identity.

    A voter set is its number, as no step is kept that makes one; any errors are the same, and so are the sets that are told.
    """
    parts: Any
    match value:
        case z3.AstRef():
            parts = value.get_id()
        case SymbolicBool() | SymbolicInt():
            parts = value.term.get_id()
        case AnyError() | ToldSets():
            parts = ()
        case None | bool() | int() | str() | bytes() | Enum():
            parts = value
        case SymbolicLog():
            parts = tuple(map(_outcome, (value.start, value.end, value.epoch, value.value, value.opened)))
        case AnyMembers():
            parts = _outcome(value.has), _outcome(value.size)
        case ChangingSet():
            parts = _outcome(value.code)
        case frozenset():
            parts = frozenset(map(_outcome, value))
        case tuple() | SetsOfLog():
            parts = tuple(map(_outcome, value))
        case _ if is_dataclass(value):
            parts = tuple(_outcome(getattr(value, one.name)) for one in fields(value))
        case _:
            parts = id(value)
    return type(value), parts


def _cut(settings: ProofSettings) -> list[Obligation]:
    """The cut of a follower's log anywhere: by its rule the voter sets above it are taken back, and no other.

    The handler, which asks where to cut, is that of an answer to a fetch.
    """
    (known, _), at = known_of(VoterRole.FOLLOWER), any_number("cut")
    sets_after_cut = protocol_of(settings, MUTANTS).sets_after_cut

    def told() -> Told:
        party = ChangingParty.by(protocol_of(settings, MUTANTS), any_log, [])
        before = party.in_role(VoterRole.FOLLOWER)
        after = before._replace(local=truncate(before.local, at), voter_sets=sets_after_cut(before.voter_sets, at))
        taken = VoterStep(before, Step(after, (LogCut(at),)))
        return {"EntriesFit": z3.Implies(z3.And(*premise(taken)), claims_of_memory(taken)["EntriesFit"])}

    assumed = assumed_of_memory(VoterRole.FOLLOWER)
    return obligations_of_step(settings, "Cut", ("EntriesFit",), told, [*known, number(at) >= 0], assumed)


def _properties(settings: ProofSettings) -> list[Obligation]:
    found = []
    for name, stated in changes.PROPERTIES.items():
        started = perf_counter()
        premises, goal = stated()
        found.append(Obligation("Property", name, status_of(settings, premises, goal), perf_counter() - started, 1))
    return found


TASKS: dict[str, Callable[[ProofSettings], list[Obligation]]] = {
    TASK: lemmas,
    "Property": _properties,
    "Cut": _cut,
    **{label: partial(_obligations, label) for label in ALL_STEPS},
}

RULES = {*elections.OF_ELECTIONS, *logs.OF_LOGS, "may_change_voters", "sets_after_cut"} - {"may_truncate"}
"""The rules that elections and logs ask, and those that say when voters change, and which ones a log has.

Not that by which nothing is cut that is committed: a log has a voter set before each cut, only as it keeps to that.
"""

MUTANTS = {mutant.name: mutant for mutant in QUORUM_MUTANTS if mutant.field in RULES}

QUORUM_VOTERS_THEOREM = StepTheorem(NAME, SUMMARY, MUTANTS, TASKS, "voters")
