"""Consequences for elections and logs while voters change, from the invariant of the histories (theorem quorum-voters).

A candidate's log is named by its last epoch and its end: it is that of the leader of this epoch up to there. Completeness
is shown for the first candidate that would lack something, and the first epoch of which it would: what earlier leaders have,
and what it has of earlier epochs, are premises. So by induction over both each candidate has all that was committed before.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import z3

from kspec.proofs.symbolic.log import SymbolicLog
from kspec.proofs.symbolic.members import Whole, is_part
from kspec.proofs.theorems.quorum import elections
from kspec.proofs.theorems.quorum.logs import (
    AN_OFFSET,
    BEFORE,
    EARLIER,
    HELD_EPOCH,
    HELD_OFFSET,
    LAST,
    LATER_EPOCH,
    OWN_LOG,
    Logs,
    Stated,
    committed_is_written,
    elected_as_it_stood,
    held_is_written,
    histories_match,
    last_epoch,
    leaders_write,
    log_matches,
    of_disk,
    votes_up_to_date,
)
from kspec.proofs.theorems.quorum.logs import PROPERTIES as OF_LOGS
from kspec.proofs.theorems.quorum.voter import END, EPOCH, LEADER, VOTED
from kspec.proofs.theorems.quorum.voter_sets import DIFFERS, FIRST_SET, OWN_SET, SINCE, near, near_majorities_share, whole
from kspec.spec.values import NO_LEADER


class SetHistories(NamedTuple):
    """The histories of voter sets, beside those of logs.

    - `in_force`: by epoch and offset, the voter set after that record of the leader's log;
    - `holder`, `holders`, `counted_in`: of a record of the leader's that is committed, who held it when it was committed
      first, how many, and by which voter set the leader counted.
    """

    logs: Logs
    in_force: Any
    holder: Any
    holders: Any
    counted_in: Any

    def set_at_start(self, epoch: Any) -> Any:
        """The voter set by which the leader of an epoch was elected: that of the log with which it began."""
        return self.in_force(epoch, self.logs.start(epoch) - 1)


def _function(name: str, arguments: int, sort: Any = z3.IntSort) -> Any:
    return z3.Function(name, *[z3.IntSort()] * arguments, sort())


BEFORE_STEP = SetHistories(
    BEFORE,
    _function("set in epoch", 2),
    _function("holder of record", 3, z3.BoolSort),
    _function("holders of record", 2),
    _function("set that counted", 2),
)
"""The histories before a step."""


# ---- the invariant of the histories


def sets_match(past: SetHistories, epoch: Any, offset: Any, earlier: Any) -> z3.BoolRef:
    """The voter sets of a leader's log are, up to each record, those of the leader who wrote it; the first is in no log."""
    logs, written = past.logs, past.logs.epoch(epoch, offset)
    there = z3.And(logs.led(epoch), earlier >= -1, earlier <= offset, offset >= 0, offset < logs.end(epoch))
    first = z3.And(past.in_force(epoch, z3.IntVal(-1)) == FIRST_SET, SINCE(FIRST_SET) == -1)
    return z3.And(first, z3.Implies(there, past.in_force(epoch, earlier) == past.in_force(written, earlier)))


def sets_last(past: SetHistories, epoch: Any, offset: Any, earlier: Any) -> z3.BoolRef:
    """A voter set is in force from its record on, up to the next one."""
    logs, now = past.logs, past.in_force(epoch, offset)
    there = z3.And(logs.led(epoch), earlier >= -1, earlier <= offset, offset < logs.end(epoch))
    lasts = z3.Implies(earlier >= SINCE(now), past.in_force(epoch, earlier) == now)
    return z3.Implies(there, z3.And(SINCE(now) >= -1, SINCE(now) <= offset, lasts))


def changes_by_one(past: SetHistories, epoch: Any, offset: Any) -> z3.BoolRef:
    """A voter set that a leader has written has one voter more than the one before, or one less."""
    now = past.in_force(epoch, offset)
    return z3.Implies(wrote_set(past, epoch, offset), DIFFERS(past.in_force(epoch, SINCE(now) - 1), now))


def changes_after_own_record(past: SetHistories, epoch: Any, offset: Any) -> z3.BoolRef:
    """A leader that has written a voter set had committed a record of its own epoch."""
    return z3.Implies(wrote_set(past, epoch, offset), past.logs.committed(epoch) > past.logs.start(epoch))


def changes_after_last_change(past: SetHistories, epoch: Any, offset: Any) -> z3.BoolRef:
    """A leader that has written a voter set had committed the one before."""
    before = past.in_force(epoch, SINCE(past.in_force(epoch, offset)) - 1)
    return z3.Implies(wrote_set(past, epoch, offset), SINCE(before) < past.logs.committed(epoch))


def wrote_set(past: SetHistories, epoch: Any, offset: Any) -> z3.BoolRef:
    """Whether the voter set in force at an offset was written by the leader of this epoch."""
    since = SINCE(past.in_force(epoch, offset))
    return z3.And(past.logs.led(epoch), past.logs.start(epoch) <= since, offset < past.logs.end(epoch), offset >= 0)


def counted_in_majority(past: SetHistories, epoch: Any, offset: Any) -> z3.BoolRef:
    """More than half of the voters by which a leader counted are said to have held a record that it has committed."""
    counted = past.counted_in(epoch, offset)
    members, size = whole(counted)
    by_majority = z3.And(past.holders(epoch, offset) * 2 > size, is_part(partial(past.holder, epoch, offset), members))
    return z3.Implies(is_committed(past, epoch, offset), by_majority)


def counted_in_near_set(past: SetHistories, epoch: Any, offset: Any) -> z3.BoolRef:
    """The voters by which a leader counted are those before the record, or one apart; at first those that elected it."""
    counted, before, start = past.counted_in(epoch, offset), past.in_force(epoch, offset - 1), past.logs.start(epoch)
    told = z3.And(near(before, counted), z3.Implies(offset == start, before == counted))
    return z3.Implies(is_committed(past, epoch, offset), told)


def holder_has_held(past: SetHistories, epoch: Any, offset: Any, voter: Any) -> z3.BoolRef:
    """One that is said to have held a record that was committed has."""
    held = past.logs.held(voter, epoch) > offset
    return z3.Implies(z3.And(is_committed(past, epoch, offset), past.holder(epoch, offset, voter)), held)


def is_committed(past: SetHistories, epoch: Any, offset: Any) -> z3.BoolRef:
    """Whether a record of the leader of an epoch is committed in it."""
    return z3.And(past.logs.start(epoch) <= offset, offset < past.logs.committed(epoch))


def by_majority(past: SetHistories, epoch: Any) -> z3.BoolRef:
    """More than half of the voters by a leader's log when it stood have voted for it."""
    return elections.by_majority(past.logs.elections, epoch, whole(past.set_at_start(epoch)))


def own_sets_match(past: SetHistories, log: SymbolicLog, offset: Any, at: Callable[[Any], Any] = OWN_SET) -> z3.BoolRef:
    """The voter sets of a voter's log are those of the leader who wrote its last record."""
    within = z3.And(log.end > 0, offset >= -1, offset < log.end)
    return z3.Implies(within, at(offset) == past.in_force(last_epoch(log), offset))


# ---- logs that are named by their last epoch and their end


class NamedLog(NamedTuple):
    """The log of an epoch's leader up to an offset that is behind a record of that epoch; or none, of epoch 0."""

    epoch: Any
    end: Any

    def is_log(self, past: SetHistories) -> z3.BoolRef:
        """Whether there is such a log."""
        logs = past.logs
        written = z3.And(logs.led(self.epoch), self.epoch >= 1, logs.start(self.epoch) < self.end)
        return z3.Or(z3.And(self.epoch == 0, self.end == 0), z3.And(written, self.end <= logs.end(self.epoch)))

    def voter_set(self, past: SetHistories) -> Any:
        """The voter set in force at its end."""
        return z3.If(self.end == 0, FIRST_SET, past.in_force(self.epoch, self.end - 1))

    def has_committed_of(self, past: SetHistories, epoch: Any) -> z3.BoolRef:
        """Whether it has the last record that was committed in an epoch, and so all before it."""
        committed = past.logs.committed(epoch)
        has = z3.And(committed <= self.end, past.logs.epoch(self.epoch, committed - 1) == epoch)
        return z3.Implies(committed > 0, has)


def log_at_start(past: SetHistories, epoch: Any) -> NamedLog:
    """The log with which the leader of an epoch began."""
    start = past.logs.start(epoch)
    return NamedLog(z3.If(start > 0, past.logs.epoch(epoch, start - 1), 0), start)


def of_histories(past: SetHistories, epochs: tuple[Any, ...], offsets: tuple[Any, ...]) -> list[z3.BoolRef]:
    """The invariant of the histories, for these epochs and offsets."""
    told = []
    for epoch in epochs:
        told += [elected_as_it_stood(past.logs, epoch), committed_is_written(past.logs, epoch)]
        told += [leaders_write(past.logs, epoch, offset) for offset in offsets]
        told += [histories_match(past.logs, epoch, *both) for both in product(offsets, offsets)]
    return [*told, *of_sets(past, epochs, offsets)]


def of_sets(past: SetHistories, epochs: tuple[Any, ...], offsets: tuple[Any, ...]) -> list[z3.BoolRef]:
    """The invariant of the voter sets in histories, for these epochs and offsets."""
    told = []
    for epoch in epochs:
        for offset in offsets:
            told += [changes_by_one(past, epoch, offset), changes_after_own_record(past, epoch, offset)]
            told += [changes_after_last_change(past, epoch, offset)]
        for both in product(offsets, offsets):
            told += [sets_match(past, epoch, *both), sets_last(past, epoch, *both)]
    return told


# ---- what follows

ONE, OTHER = (NamedLog(*z3.Ints(f"epoch_of_{name} end_of_{name}")) for name in ("one", "other"))
"""The logs of two candidates."""


def candidates_sets_are_near() -> Stated:
    """Logs of epochs before `LATER_EPOCH` that have all that was committed before it have voter sets one apart at most.

    Which of the two is called `ONE` is free: here it is the one whose voter set was written first, by epoch and offset.
    """
    past = BEFORE_STEP
    logs, sets = (ONE, OTHER), (ONE.voter_set(past), OTHER.voter_set(past))
    since = tuple(map(SINCE, sets))
    writers = tuple(z3.If(at < 0, 0, past.logs.epoch(log.epoch, at)) for log, at in zip(logs, since, strict=True))
    writer, written = writers[1], since[1]
    first_is_earlier = z3.Or(writers[0] < writer, z3.And(writers[0] == writer, since[0] <= written))
    set_before = SINCE(past.in_force(writer, written - 1))
    committed = past.logs.committed(writer) - 1
    offsets = (*since, ONE.end - 1, OTHER.end - 1, written - 1, set_before, past.logs.start(writer), committed)
    known = [z3.And(log.is_log(past), log.epoch < LATER_EPOCH) for log in logs]
    known += [z3.Implies(one < LATER_EPOCH, log.has_committed_of(past, one)) for log in logs for one in writers]
    known += [first_is_earlier, *of_histories(past, (ONE.epoch, OTHER.epoch, *writers), offsets)]
    return known, near(*sets)


class Candidate(NamedTuple):
    """One that stands in `LATER_EPOCH` with a log, and those that have voted for it, as a set."""

    server: Any
    log: NamedLog
    votes: Whole

    @classmethod
    def named(cls, name: str, log: NamedLog) -> "Candidate":
        """Any candidate."""
        electors = _function(f"votes for {name}", 1, z3.BoolSort), z3.Int(f"number of votes for {name}")
        return cls(z3.Int(name), log, electors)

    def has_majority(self, past: SetHistories) -> z3.BoolRef:
        """Whether more than half of the voters by its log have voted for it, and it stood with that log."""
        history, voter = past.logs.elections, z3.Int("any voter")
        (has_voted, number), (members, size) = self.votes, whole(self.log.voter_set(past))
        for_it = z3.ForAll([voter], z3.Implies(has_voted(voter), history.votes(voter, LATER_EPOCH) == self.server))
        stood = z3.And(
            past.logs.stood_epoch(self.server, LATER_EPOCH) == self.log.epoch,
            past.logs.stood_end(self.server, LATER_EPOCH) == self.log.end,
        )
        enough = z3.And(number * 2 > size, is_part(has_voted, members), for_it)
        return z3.And(self.server != NO_LEADER, self.log.is_log(past), stood, enough)


CANDIDATE, RIVAL = Candidate.named("candidate", ONE), Candidate.named("rival", OTHER)


def candidates_share_a_voter() -> Stated:
    """Two that have a majority in one epoch are the same, if the voter sets by which they asked are one voter apart."""
    past, common = BEFORE_STEP, z3.Int("voter of both")
    sets = ONE.voter_set(past), OTHER.voter_set(past)
    share = near_majorities_share(CANDIDATE.votes, sets[0], RIVAL.votes, sets[1], common)
    both = [one.has_majority(past) for one in (CANDIDATE, RIVAL)]
    return [*both, near(*sets), share], CANDIDATE.server == RIVAL.server


def candidate_has_what_was_committed() -> Stated:
    """One with a majority has what was committed in `HELD_EPOCH`, if leaders before it have, and it has what was before.

    The record that is looked at is the first of the epoch that it lacks.
    """
    past, epoch, later = BEFORE_STEP, HELD_EPOCH, LATER_EPOCH
    logs, log = past.logs, CANDIDATE.log
    common, own_set, first = z3.Int("voter of both"), log.voter_set(past), logs.start(epoch)
    holders = partial(past.holder, epoch, HELD_OFFSET), past.holders(epoch, HELD_OFFSET)
    counted, at_start = past.counted_in(epoch, HELD_OFFSET), log_at_start(past, epoch)
    looked_at = z3.If(log.epoch == epoch, log.end, first)
    leads_between = z3.And(logs.led(log.epoch), log.epoch > epoch)
    induction = [
        z3.Implies(logs.committed(epoch) > HELD_OFFSET, logs.kept_up_to(later)),
        z3.Implies(leads_between, log_at_start(past, log.epoch).has_committed_of(past, epoch)),
        z3.Implies(log.epoch < epoch, near(own_set, at_start.voter_set(past))),
    ]
    invariant = [
        counted_in_majority(past, epoch, HELD_OFFSET),
        counted_in_near_set(past, epoch, HELD_OFFSET),
        holder_has_held(past, epoch, HELD_OFFSET, common),
        held_is_written(logs, common, epoch),
        votes_up_to_date(logs, common, later),
    ]
    share = near_majorities_share(CANDIDATE.votes, own_set, holders, counted, common)
    known = [epoch < later, log.epoch < later, looked_at == HELD_OFFSET, CANDIDATE.has_majority(past), share]
    offsets = (HELD_OFFSET, HELD_OFFSET - 1, logs.committed(epoch) - 1, first - 1, log.end - 1, logs.start(log.epoch) - 1)
    known += of_histories(past, (epoch, log.epoch, logs.epoch(epoch, first - 1)), offsets)
    return [*known, *induction, *invariant], log.has_committed_of(past, epoch)


def each_set_matches() -> Stated:
    """The voter sets of a voter's log are, up to each record, those of the leader who wrote that record."""
    past, offset, earlier = BEFORE_STEP, AN_OFFSET, EARLIER
    there = z3.And(offset >= 0, offset < END, earlier >= -1, earlier <= offset)
    own = [own_sets_match(past, OWN_LOG, at) for at in (offset, earlier)]
    own.append(log_matches(past.logs, OWN_LOG, offset))
    prefix = of_disk(past.logs, (EPOCH, LEADER, VOTED), OWN_LOG)["PrefixOfHistory"]
    known = [*own, prefix, *of_histories(past, (LAST,), (offset, earlier))]
    return [there, *known], OWN_SET(earlier) == past.in_force(OWN_LOG.epoch(offset), earlier)


PROPERTIES: dict[str, Callable[[], Stated]] = {
    "CandidatesSetsAreNear": candidates_sets_are_near,
    "ElectionSafety": candidates_share_a_voter,
    "LeaderCompleteness": candidate_has_what_was_committed,
    "SetsOfRecordsMatch": each_set_matches,
    **{name: stated for name, stated in OF_LOGS.items() if name != "LeaderCompleteness"},
}
"""The theorem: what follows from the invariant. Those of logs do not depend on who votes, but for the completeness."""
