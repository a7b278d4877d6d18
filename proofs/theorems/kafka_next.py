"""Kafka's replication protocol, message by message (`next`: 4.0 with its known defects repaired).

What an epoch's leader committed is in the log of every later epoch's leader, and on every member of the controller's ISR.
The model is `messages` with its bounds lifted: fetches, answers, proposals and decisions are in flight in any number, late
for any time, or lost.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import inf
from typing import Any

import z3

from model_check.core.model import Model
from model_check.core.parameters import resolve
from model_check.models import messages
from model_check.models.messages import Numbers
from model_check.models.messages.board import LATE, LONG_AGO
from model_check.models.messages.settings import PARAMETERS
from model_check.models.messages.values import FIRST_RUN, MessageId
from proofs.induction.invariant import ReplicaView, Theorem, Witness, conjunct, weakened_rules
from proofs.settings import Replicas
from proofs.symbolic.logic import (
    all_of,
    any_of,
    epoch_at,
    has_same_record,
    holds,
    implies,
    is_one_of,
    member,
    no,
    opened_epoch,
    present,
    same_record,
    value_at,
)
from proofs.symbolic.values import Name, SymbolicBool
from spec.broker.rules.fetcher import FetchStatus
from spec.releases.broker import BROKER_NEXT
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft import KRAFT_NEXT
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    UNDEFINED_EPOCH_END,
    BrokerId,
    Epoch,
    Error,
    Offset,
    PartitionEpoch,
    Record,
)

EPOCH, VERSION, FETCH, PROPOSAL = Name("epoch"), Name("version"), Name("fetch"), Name("proposal")
SURVIVES, CHECKPOINTED, RUN = Name("survives"), Name("checkpointed"), Name("run")
NOW, CAUGHT_UP = Name("now"), Name("caught_up")

NAME = "kafka-next"


def unbounded(min_isr: int, replicas: Replicas, mutant: str | None = None) -> Model:
    """The model for a proof: nothing but the number of replicas is bounded."""
    if not isinstance(replicas, int):
        raise TypeError(f"{NAME} is proved for a number of replicas, not for any")
    given = {"replicas": replicas, "values": inf, "stops": inf, "min_isr": min_isr, "mutant": mutant}
    parameters = resolve(NAME, PARAMETERS, given)
    times: Any = {broker: _caught_up(broker) for broker in range(1, replicas + 1)}
    fenced: Any = {broker: _believed(broker) for broker in times}
    each = (EPOCH, VERSION, FETCH, PROPOSAL, SURVIVES, CHECKPOINTED, RUN, CAUGHT_UP)
    names: Any = (*([name] for name in each), NOW, times, fenced)
    return messages.build("messages", parameters, Numbers(*names))


def _believed(broker: int) -> SymbolicBool:
    return SymbolicBool(z3.Bool(f"{broker} is believed to be fenced"))


def _caught_up(broker: int) -> Name:
    return Name(f"when {broker} was caught up")


def as_within_bounds(replicas: int) -> tuple[SymbolicBool, ...]:
    """What the bounded model says of time and of leaders' beliefs: it is late, and nobody is believed to be fenced.

    Who fetches may have been caught up just now.
    """
    brokers = range(1, replicas + 1)
    lags = (_caught_up(broker) == LONG_AGO for broker in brokers)
    last = any_of(CAUGHT_UP == LONG_AGO, CAUGHT_UP == LATE)
    return NOW == LATE, last, *lags, *(no(_believed(broker)) for broker in brokers)


def bounded(min_isr: int, replicas: int, log_size: int, max_epoch: int, mutant: str | None = None) -> Model:
    """The model for exploration."""
    given = {
        "replicas": replicas,
        "min_isr": min_isr,
        "stops": max_epoch,
        "values": log_size,
        "max_epoch": max_epoch,
        "max_version": max_epoch + 1,
        "fetches": max_epoch + 1,
        "proposals": max_epoch,
        "mutant": mutant,
    }
    return messages.build("messages", resolve(NAME, PARAMETERS, given))


class View(ReplicaView):
    """A state as the conjuncts read it, with one replica in sync being enough; then a broker that stops loses nothing."""

    min_isr = 1

    # ---- brokers

    def epoch(self, replica: Any) -> Any:
        """The latest leader epoch that the broker ever entered, whatever it remembers."""
        return self.at("entered", replica)

    def run(self, broker: Any) -> Any:
        """The broker epoch of a broker's process; -1 from when it stops until its next run is registered."""
        return self.at("run", broker)

    def since(self, broker: Any) -> Any:
        """The controller's last decision when the broker's run registered."""
        return self.at("since", broker)

    def is_intact(self, broker: Any, epoch: Any) -> Any:
        """Whether the broker has all that it had when it was listed in the ISR or ELR of an epoch.

        Who may have lost records is not listed any more from the epoch on in which its next run registers.
        """
        if self.min_isr == 1:
            return True
        return all_of(self.run(broker) >= 0, epoch >= self.since(broker).leader_epoch)

    def leads_in(self, broker: Any, epoch: Any) -> Any:
        """Whether the broker leads in this epoch, as far as it knows."""
        return all_of(self.leads(broker), self.role(broker).leader_epoch == epoch)

    def counts(self, leader: Any, replica: Any) -> Any:
        """Whether the high watermark of `leader` waits for `replica`: it is in the maximal ISR."""
        isr = self.role(leader).isr
        return any_of(member(replica, isr.isr), member(replica, isr.pending_isr))

    def counts_for_sure(self, leader: Any, replica: Any) -> Any:
        """Whether it does, and will if an answer tells it that its proposal is refused."""
        isr = self.role(leader).isr
        proposed = all_of(member(replica, isr.pending_isr), no(self.verdict(self.latest(leader)).for_good))
        return any_of(member(replica, isr.isr), proposed)

    def is_news(self, version: Any, leader: Any) -> Any:
        """Whether a decision makes `leader` lead, or tells it another ISR, and it does not know that yet."""
        decided = self.decision(version)
        unknown = all_of(self.leads_in(leader, decided.leader_epoch), version > self.known_version(leader))
        return all_of(
            version <= self.partition.partition_epoch,
            decided.leader == leader,
            any_of(self.epoch(leader) < decided.leader_epoch, unknown),
        )

    def known_version(self, leader: Any) -> Any:
        """The partition epoch that a leader's ISR is of."""
        return self.role(leader).isr.partition_epoch

    def applied(self, broker: Any) -> Any:
        """The decision that the broker has replayed last."""
        return self.at("applied", broker)

    def fetcher(self, broker: Any) -> Any:
        """The broker's fetcher."""
        return self.at("fetcher", broker)

    def is_fetching(self, broker: Any) -> Any:
        """Whether the broker fetches."""
        return is_one_of(self.fetcher(broker).status, FetchStatus.FETCHING)

    def known(self, leader: Any, follower: Any) -> Any:
        """What `leader` remembers of `follower`: its end offset, and the run that fetched."""
        return self.at(f"knows of {follower}", leader)

    def heard(self, broker: Any, other: Any) -> Any:
        """Which run of another broker a broker has heard to be registered."""
        return self.at(f"has heard of {other}", broker)

    def are_too_few(self, belongs: Callable[[Any], Any]) -> Any:
        """Whether fewer than min ISR brokers belong to something."""
        enough = combinations(self.brokers.ids or (), self.min_isr)
        return all_of(*(no(all_of(*map(belongs, some))) for some in enough))

    def is_under_min(self, isr: Any) -> Any:
        """Whether an ISR is too small for anything to be committed."""
        return self.are_too_few(lambda broker: member(broker, isr))

    def awaited(self, follower: Any, leader: Any) -> Any:
        """The fetch to `leader` whose answer `follower` waits for."""
        return self.at(f"awaits {leader}", follower)

    # ---- messages

    def fetch(self, number: Any) -> Any:
        """A fetch by its number."""
        return self.at("fetch", number)

    @property
    def next_fetch(self) -> Any:
        """The number of the next fetch."""
        return self.at("nextFetch", None)

    @property
    def next_proposal(self) -> Any:
        """The number of the next proposal."""
        return self.at("nextProposal", None)

    @property
    def next_value(self) -> Any:
        """The value of the next record that is written."""
        return self.at("nextValue", None)

    def reply(self, number: Any) -> Any:
        """The answer to a fetch."""
        return self.at("reply", number)

    def proposed(self, number: Any) -> Any:
        """A proposal of an ISR by its number."""
        return self.at("proposed", number)

    def named(self, proposal: Any, replica: Any) -> Any:
        """The run of a member that a proposal names."""
        return self.at(f"named {replica}", proposal)

    def stands(self, proposal: Any, replica: Any) -> Any:
        """Whether a proposed member was in sync before, or fetched in a run that is its last in the epoch."""
        asked = self.proposed(proposal)
        in_sync = member(replica, self.decision(asked.partition_epoch).isr)
        return any_of(in_sync, self.named(proposal, replica) == self.fetched(replica, asked.leader_epoch).run)

    def latest(self, leader: Any) -> Any:
        """The proposal that a broker has made last."""
        return self.at("latest", leader)

    def verdict(self, number: Any) -> Any:
        """The answer to a proposal."""
        return self.at("verdict", number)

    # ---- the controller

    @property
    def partition(self) -> Any:
        """The controller's last decision."""
        return self.at("partition", None)

    def registered(self, broker: Any) -> Any:
        """The broker's registration: which run, and whether it is fenced."""
        return self.at("registered", broker)

    @property
    def next_run(self) -> Any:
        """The broker epoch of the next run that registers."""
        return self.at("nextRun", None)

    def is_listed(self, broker: Any, decided: Any) -> Any:
        """Whether a broker is in the ISR or ELR of a decision or a reign: one that may be elected from it."""
        in_sync = member(broker, decided.isr)
        return in_sync if self.min_isr == 1 else any_of(in_sync, member(broker, decided.elr))

    def decision(self, version: Any) -> Any:
        """A decision by its partition epoch."""
        return self.at("decision", version)

    def leads_in_sync(self, decided: Any) -> Any:
        """Whether the leader of a decision or a reign is a broker, and in sync."""
        return self.some(lambda broker: all_of(decided.leader == broker, member(broker, decided.isr)))

    # ---- history

    def reign(self, epoch: Any) -> Any:
        """An epoch's leader, and the ISR that the controller had last in it."""
        return self.at("reign", epoch)

    def term(self, epoch: Any) -> Any:
        """What an epoch's leader made of it."""
        return self.at("term", epoch)

    def ledger(self, epoch: Any) -> Any:
        """The log of an epoch's leader, as it was when that left the epoch, or as it is."""
        return self.at("ledger", epoch)

    @property
    def settled(self) -> Any:
        """The epoch whose leader has committed furthest, and up to where."""
        return self.at("settled", None)

    def is_settled(self, log: Any, offset: Any) -> Any:
        """Whether a log holds at `offset` what is committed there."""
        return all_of(offset < self.settled.end, has_same_record(log, self.ledger(self.settled.epoch), offset))

    def fetched(self, broker: Any, epoch: Any) -> Any:
        """The last fetch that the broker sent in an epoch."""
        return self.at(f"fetched {broker}", epoch)

    def has_fetched(self, broker: Any, epoch: Any) -> Any:
        """Whether the broker has sent a fetch in an epoch."""
        return self.fetched(broker, epoch).offset >= 0

    def every(self, claim: Any) -> Any:
        """That the claim holds of every broker."""
        return no(self.some(lambda broker: no(claim(broker))))

    def continues(self, epoch: Any, asked: Any) -> Any:
        """Whether the leader of an epoch has the record before the offset of a fetch, and of the epoch that it names."""
        book = self.ledger(epoch)
        before = asked.offset - 1
        found = all_of(holds(book, before), epoch_at(book, before) == asked.last_epoch)
        return all_of(self.term(epoch).begun, any_of(asked.offset == 0, found))

    def has_shown(self, broker: Any, epoch: Any, end: Any) -> Any:
        """Whether the broker has shown, by a fetch in an epoch, that it holds its leader's log up to `end`."""
        last = self.fetched(broker, epoch)
        return all_of(self.continues(epoch, last), last.offset >= end)

    def may_commit(self, epoch: Any, offset: Any) -> Any:
        """Whether the leader of an epoch may have committed the record at `offset`, or may yet.

        It may not if a replica that it needs has moved on without having shown that it holds the record.
        """
        reign = self.reign(epoch)

        def does_not_prevent(broker: Any) -> Any:
            needed = all_of(self.is_listed(broker, reign), no(reign.leader == broker))
            return implies(needed, any_of(self.epoch(broker) <= epoch, self.has_shown(broker, epoch, offset + 1)))

        return all_of(holds(self.ledger(epoch), offset), self.every(does_not_prevent))

    def may_yet_commit(self, epoch: Any, offset: Any, written_in: Any) -> Any:
        """The same of an epoch that its leader has yet to begin, and of a record at `offset` written in some epoch."""
        reign = self.reign(epoch)

        def does_not_prevent(broker: Any) -> Any:
            needed = all_of(self.is_listed(broker, reign), no(reign.leader == broker))
            last = self.fetched(broker, epoch)
            book = self.ledger(last.last_epoch)
            had = all_of(
                last.offset > offset, last.last_epoch >= 0, holds(book, offset), epoch_at(book, offset) == written_in
            )
            return implies(needed, any_of(self.epoch(broker) <= epoch, had))

        may_begin = self.some(lambda broker: all_of(reign.leader == broker, self.epoch(broker) < epoch))
        return all_of(no(self.term(epoch).begun), may_begin, self.every(does_not_prevent))

    def is_intact_member(self, replica: Any, epoch: Any, later: Any) -> Any:
        """Whether a replica is listed in an epoch, has left an earlier one behind, and has all that it had then."""
        listed = all_of(later <= self.partition.leader_epoch, self.is_listed(replica, self.reign(later)))
        return all_of(epoch <= later, listed, self.epoch(replica) > epoch, self.is_intact(replica, later))

    def written_by_own_leader(self, broker: Any, asked: Any) -> Any:
        """Where a fetch's last record comes from: its epoch's leader wrote it; or the broker opened that, and wrote none."""
        written = self.ledger(asked.last_epoch)
        before = asked.offset - 1
        began = self.term(asked.last_epoch).begun
        has = all_of(asked.last_epoch >= 0, began, holds(written, before), epoch_at(written, before) == asked.last_epoch)
        return any_of(
            all_of(asked.offset == 0, asked.last_epoch == NO_EPOCH),
            has,
            self.opened_only(broker, asked.last_epoch, asked.offset),
        )

    def opened_only(self, broker: Any, epoch: Any, end: Any) -> Any:
        """Whether the broker led in an epoch without writing anything, its log ending at `end`."""
        term = self.term(epoch)
        led = all_of(epoch >= 0, self.reign(epoch).leader == broker, term.begun)
        return all_of(led, term.start == end, self.ledger(epoch).end_offset == end)


# ---- the controller


@conjunct(
    "Decisions", "Each partition epoch up to the controller's has one decision, with its epoch's leader, if it has one."
)
def decisions(s: View, version: PartitionEpoch) -> Any:
    decided = s.decision(version)
    taken = version <= s.partition.partition_epoch
    leader = any_of(decided.leader == NO_LEADER, s.leads_in_sync(decided))
    in_reign = s.reign(decided.leader_epoch).leader == decided.leader
    epochs = all_of(decided.leader_epoch >= 0, decided.leader_epoch <= s.partition.leader_epoch)
    return all_of(
        implies(taken, all_of(decided.partition_epoch == version, epochs, leader, in_reign)),
        implies(no(taken), decided.partition_epoch == -1),
    )


@conjunct("DecisionsInOrder", "Leader epochs never go back.")
def decisions_in_order(s: View, version: PartitionEpoch, later: PartitionEpoch) -> Any:
    taken = all_of(version <= later, later <= s.partition.partition_epoch)
    return implies(taken, s.decision(version).leader_epoch <= s.decision(later).leader_epoch)


@conjunct("LastDecision", "The controller's state is its last decision.")
def last_decision(s: View) -> Any:
    state = s.partition
    last, reign = s.decision(state.partition_epoch), s.reign(state.leader_epoch)
    same_isr = s.every(lambda broker: all_of(_same(broker, last.isr, state.isr), _same(broker, reign.isr, state.isr)))
    same_elr = s.every(lambda broker: all_of(_same(broker, last.elr, state.elr), _same(broker, reign.elr, state.elr)))
    nobody = s.every(lambda broker: no(member(broker, state.elr)))
    same = all_of(
        *(last.leader == state.leader, last.leader_epoch == state.leader_epoch, reign.leader == state.leader),
        *(same_isr, nobody if s.min_isr == 1 else same_elr),
    )
    return all_of(
        state.partition_epoch >= -1,
        state.leader_epoch >= -1,
        (state.partition_epoch >= 0) == (state.leader_epoch >= 0),
        implies(state.partition_epoch >= 0, same),
        any_of(state.leader == NO_LEADER, s.some(lambda broker: state.leader == broker)),
    )


def _same(broker: Any, some: Any, others: Any) -> Any:
    """That a broker is in both sets or in none."""
    return member(broker, some) == member(broker, others)


@conjunct(
    "Reigns", "Each epoch up to the controller's has one leader, which is in sync, or none. The last one in sync stays so."
)
def reigns(s: View, epoch: Epoch) -> Any:
    reign, term = s.reign(epoch), s.term(epoch)
    in_sync = any_of(reign.leader == NO_LEADER, s.leads_in_sync(reign))
    somebody = any_of(s.min_isr > 1, s.some(lambda broker: member(broker, reign.isr)))
    opened = epoch <= s.partition.leader_epoch
    return all_of(
        implies(opened, all_of(in_sync, somebody)),
        implies(no(opened), all_of(reign.leader == NO_LEADER, no(term.begun))),
    )


@conjunct("LeaderIsUp", "Who is fenced leaves the ISR, but for the last one; then nobody leads.")
def leader_is_up(s: View, broker: BrokerId) -> Any:
    state = s.partition
    alone = s.every(lambda other: any_of(other == broker, no(member(other, state.isr))))
    last_one = all_of(s.min_isr == 1, state.leader == NO_LEADER, alone)
    return implies(all_of(s.registered(broker).fenced, state.partition_epoch >= 0, member(broker, state.isr)), last_one)


@conjunct("EligibleWhileTooFew", "There are eligible leader replicas only while too few are in sync.")
def eligible_while_too_few(s: View, version: PartitionEpoch, replica: BrokerId) -> Any:
    decided = s.decision(version)
    eligible = all_of(s.min_isr > 1, version <= s.partition.partition_epoch, member(replica, decided.elr))
    return implies(eligible, all_of(s.is_under_min(decided.isr), no(member(replica, decided.isr))))


@conjunct(
    "SomebodyIsLeft", "With power loss, who leaves ISR and ELR for good has registered anew, or min ISR others are there."
)
def somebody_is_left(s: View, version: PartitionEpoch) -> Any:
    """So while fewer than min ISR brokers have stopped and are not back on a list, somebody can be elected.

    That is if the partition began with enough of them in sync.
    """
    first, now = s.decision(version), s.partition
    began = all_of(version == 0, s.min_isr > 1, now.partition_epoch >= 0, no(s.is_under_min(first.isr)))
    accounted = s.are_too_few(lambda broker: any_of(s.is_listed(broker, now), s.since(broker).partition_epoch >= 0))
    return implies(began, no(accounted))


@conjunct("LeadersChange", "Without reassignments, a new epoch is a new leader's.")
def leaders_change(s: View, epoch: Epoch) -> Any:
    later = s.reign(epoch + 1)
    return implies(epoch + 1 <= s.partition.leader_epoch, no(s.reign(epoch).leader == later.leader))


# ---- brokers and what they know


@conjunct("EpochsFromController", "The controller alone opens epochs, so no broker is in a later one than its.")
def epochs_from_controller(s: View, broker: BrokerId) -> Any:
    role, applied = s.role(broker), s.applied(broker)
    return all_of(
        s.epoch(broker) >= NO_EPOCH,
        s.epoch(broker) <= s.partition.leader_epoch,
        any_of(role.leader_epoch == NO_EPOCH, role.leader_epoch == s.epoch(broker)),
        applied.partition_epoch >= -1,
        applied.partition_epoch <= s.partition.partition_epoch,
        applied.leader_epoch <= role.leader_epoch,
        (applied.partition_epoch >= 0) == (role.leader_epoch >= 0),
        implies(s.leads(broker), member(broker, role.isr.isr)),
        implies(no(s.leads(broker)), all_of(role.isr.partition_epoch == -1, role.isr.pending_epoch == -1)),
        implies(role.leader_epoch < 0, role.leader == NO_LEADER),
        implies(role.leader_epoch >= 0, role.leader == s.reign(role.leader_epoch).leader),
    )


@conjunct("Runs", "A broker's run is the one that is registered; what it knows is from then or later.")
def runs(s: View, broker: BrokerId) -> Any:
    run, known, since, role = s.run(broker), s.registered(broker), s.since(broker), s.role(broker)
    down, idle = run == NO_BROKER_EPOCH, role.leader_epoch == NO_EPOCH
    return all_of(
        *(known.run >= FIRST_RUN, known.run < s.next_run, any_of(down, run == known.run)),
        implies(down, idle),
        implies(all_of(idle, no(down)), s.epoch(broker) <= since.leader_epoch),
        any_of(
            idle, all_of(role.leader_epoch >= since.leader_epoch, s.applied(broker).partition_epoch >= since.partition_epoch)
        ),
    )


@conjunct("RegisteredSince", "A run registers upon a decision by which its broker does not lead.")
def registered_since(s: View, broker: BrokerId) -> Any:
    since = s.since(broker)
    decided = s.decision(since.partition_epoch)
    begun = all_of(
        *(since.partition_epoch <= s.partition.partition_epoch, decided.leader_epoch == since.leader_epoch),
        no(decided.leader == broker),
        no(s.reign(since.leader_epoch).leader == broker),
    )
    return all_of(
        *(since.partition_epoch >= -1, since.leader_epoch >= NO_EPOCH),
        (since.partition_epoch >= 0) == (since.leader_epoch >= 0),
        implies(since.partition_epoch >= 0, begun),
        since.leader_epoch <= s.partition.leader_epoch,
    )


@conjunct(
    "NewRunsComeBack", "Where records may be lost, a new run is listed once it has entered the epoch that it registered in."
)
def new_runs_come_back(s: View, broker: BrokerId, epoch: Epoch) -> Any:
    if s.min_isr == 1:
        return True
    since = s.since(broker).leader_epoch
    listed = all_of(s.is_listed(broker, s.reign(epoch)), since <= epoch, epoch <= s.partition.leader_epoch)
    return implies(listed, s.epoch(broker) >= since)


@conjunct("HeardOfRuns", "Who hears of a run hears what is registered, or was.")
def heard_of_runs(s: View, broker: BrokerId, other: BrokerId) -> Any:
    if broker is other or broker == other:
        return True
    return all_of(s.heard(broker, other) >= FIRST_RUN, s.heard(broker, other) <= s.registered(other).run)


@conjunct("AppliedIsDecided", "What a broker has replayed is a decision.")
def applied_is_decided(s: View, broker: BrokerId) -> Any:
    applied = s.applied(broker)
    decided = s.decision(applied.partition_epoch)
    return implies(
        applied.partition_epoch >= 0,
        all_of(decided.leader_epoch == applied.leader_epoch, applied.leader_epoch == s.role(broker).leader_epoch),
    )


@conjunct("LeaderIsrIsDecided", "The ISR that a leader knows is one that the controller decided in its epoch.")
def leader_isr_is_decided(s: View, leader: BrokerId, replica: BrokerId) -> Any:
    isr = s.role(leader).isr
    decided = s.decision(isr.partition_epoch)
    same = member(replica, isr.isr) == member(replica, decided.isr)
    version = all_of(
        isr.partition_epoch >= s.applied(leader).partition_epoch, isr.partition_epoch <= s.partition.partition_epoch
    )
    pending = any_of(isr.pending_epoch == -1, isr.pending_epoch == isr.partition_epoch)
    nothing = implies(isr.pending_epoch == -1, no(member(replica, isr.pending_isr)))
    return implies(s.leads(leader), all_of(version, decided.leader_epoch == s.epoch(leader), same, pending, nothing))


# ---- logs


@conjunct("LogShape", "Nothing is deleted at the start of a log.")
def log_shape(s: View, broker: BrokerId) -> Any:
    log = s.log(broker)
    return all_of(
        log.start_offset == 0,
        log.end_offset >= 0,
        s.high_watermark(broker) >= 0,
        s.high_watermark(broker) <= log.end_offset,
    )


@conjunct("EpochsInOrder", "Epochs grow along a log, and none is later than its broker's.")
def epochs_in_order(s: View, broker: BrokerId, offset: Offset, later: Offset) -> Any:
    log = s.log(broker)
    return implies(
        all_of(offset <= later, holds(log, later)),
        all_of(
            epoch_at(log, offset) >= 0,
            epoch_at(log, offset) <= epoch_at(log, later),
            epoch_at(log, later) <= s.epoch(broker),
        ),
    )


@conjunct("OpenedByItself", "An epoch that a log has no record of was opened by its broker as leader, which wrote none.")
def opened_by_itself(s: View, broker: BrokerId, offset: Offset) -> Any:
    log = s.log(broker)
    opened = opened_epoch(log)
    last = implies(log.end_offset > 0, opened > epoch_at(log, log.end_offset - 1))
    return any_of(
        opened == NO_EPOCH,
        all_of(
            opened <= s.epoch(broker),
            last,
            s.opened_only(broker, opened, log.end_offset),
            implies(holds(log, offset), same_record(s.ledger(opened), log, offset)),
        ),
    )


@conjunct("LedgerShape", "An epoch starts where its leader's log ended; it begins when its leader replays its election.")
def ledger_shape(s: View, epoch: Epoch) -> Any:
    book, term = s.ledger(epoch), s.term(epoch)
    entered = s.some(lambda broker: all_of(s.reign(epoch).leader == broker, s.epoch(broker) >= epoch))
    return all_of(
        book.start_offset == 0,
        book.end_offset >= 0,
        term.committed >= 0,
        implies(
            term.begun, all_of(entered, term.start >= 0, term.start <= book.end_offset, term.committed <= book.end_offset)
        ),
        implies(no(term.begun), all_of(term.committed == 0, book.end_offset == 0)),
    )


@conjunct("LedgerInOrder", "A leader writes its own epoch, after all that it had when the epoch began.")
def ledger_in_order(s: View, epoch: Epoch, offset: Offset, later: Offset) -> Any:
    book = s.ledger(epoch)
    own = epoch_at(book, later) == epoch
    return implies(
        all_of(offset <= later, holds(book, later)),
        all_of(
            epoch_at(book, offset) >= 0,
            epoch_at(book, offset) <= epoch_at(book, later),
            epoch_at(book, later) <= epoch,
            own == (later >= s.term(epoch).start),
        ),
    )


@conjunct("LeaderKeepsLedger", "While it leads, a leader only appends. One that has stopped has that log until it starts.")
def leader_keeps_ledger(s: View, leader: BrokerId, offset: Offset) -> Any:
    epoch, log = s.epoch(leader), s.log(leader)
    book, term, opened = s.ledger(epoch), s.term(epoch), opened_epoch(log)
    has_led = all_of(s.min_isr == 1, epoch >= 0, s.reign(epoch).leader == leader)
    wrote = all_of(log.end_offset > 0, epoch_at(log, log.end_offset - 1) == epoch)
    kept = all_of(term.begun, log.end_offset == book.end_offset, implies(holds(log, offset), same_record(log, book, offset)))
    leading = all_of(
        term.start == s.role(leader).epoch_start,
        term.committed <= s.high_watermark(leader),
        any_of(opened == epoch, wrote),
    )
    return all_of(implies(any_of(s.leads(leader), has_led), kept), implies(s.leads(leader), leading))


@conjunct("WrittenByLeader", "A log is, up to any record, what the leader of the record's epoch had.")
def written_by_leader(s: View, broker: BrokerId, offset: Offset, earlier: Offset) -> Any:
    log = s.log(broker)
    epoch = epoch_at(log, offset)
    return implies(
        all_of(earlier <= offset, holds(log, offset)),
        all_of(s.term(epoch).begun, has_same_record(s.ledger(epoch), log, earlier)),
    )


@conjunct("LedgerWrittenByLeader", "The same of a leader's log at any time.")
def ledger_written_by_leader(s: View, epoch: Epoch, offset: Offset, earlier: Offset) -> Any:
    log = s.ledger(epoch)
    written_in = epoch_at(log, offset)
    return implies(
        all_of(earlier <= offset, holds(log, offset)),
        all_of(s.term(written_in).begun, has_same_record(s.ledger(written_in), log, earlier)),
    )


# ---- following


@conjunct("FetcherFollowsLog", "A fetcher fetches on from the end of its log, and names the log's last epoch.")
def fetcher_follows_log(s: View, broker: BrokerId) -> Any:
    fetcher, log, role = s.fetcher(broker), s.log(broker), s.role(broker)
    idle = is_one_of(fetcher.status, FetchStatus.NOT_FETCHING, FetchStatus.FAILED)
    return all_of(
        any_of(idle, s.is_fetching(broker)),
        implies(
            s.is_fetching(broker),
            all_of(
                fetcher.leader_epoch == role.leader_epoch,
                fetcher.leader == role.leader,
                role.leader_epoch >= 0,
                no(s.leads(broker)),
                fetcher.fetch_offset == log.end_offset,
                fetcher.last_fetched_epoch == log.latest_epoch,
            ),
        ),
    )


@conjunct("Fetches", "A fetch is sent in its sender's epoch to the leader of that.")
def fetches(s: View, broker: BrokerId, fetch: MessageId) -> Any:
    asked = s.fetch(fetch)
    epoch = asked.epoch
    sent = all_of(
        fetch < s.next_fetch,
        epoch >= 0,
        epoch <= s.epoch(broker),
        asked.leader == s.reign(epoch).leader,
        no(asked.leader == broker),
        asked.offset >= 0,
        asked.last_epoch >= NO_EPOCH,
        asked.last_epoch <= epoch,
        s.written_by_own_leader(broker, asked),
        any_of(asked.last_epoch < epoch, s.continues(epoch, asked)),
    )
    last = s.fetched(broker, epoch)
    by_run = all_of(asked.run >= FIRST_RUN, asked.run <= last.run, any_of(last.anew, asked.run == last.run))
    growing = implies(s.continues(epoch, asked), s.has_shown(broker, epoch, asked.offset))
    not_begun = implies(no(s.term(epoch).begun), all_of(last.offset == asked.offset, last.last_epoch == asked.last_epoch))
    noted = all_of(s.has_fetched(broker, epoch), growing, not_begun)
    return implies(asked.follower == broker, all_of(sent, by_run, implies(asked.run == last.run, noted)))


@conjunct("NoFetchYet", "Numbers of fetches are used once.")
def no_fetch_yet(s: View, fetch: MessageId) -> Any:
    follower = s.fetch(fetch).follower
    unused = all_of(follower == NO_LEADER, no(s.reply(fetch).given))
    somebody = any_of(all_of(follower == NO_LEADER, no(s.reply(fetch).given)), s.some(lambda broker: follower == broker))
    return all_of(somebody, s.next_fetch >= 0, implies(fetch >= s.next_fetch, unused))


@conjunct("LastFetches", "A replica fetches in epochs up to its own, from who leads them, and from the end of its log.")
def last_fetches(s: View, broker: BrokerId, epoch: Epoch) -> Any:
    last, since = s.fetched(broker, epoch), s.since(broker).leader_epoch
    by_run = all_of(
        *(last.run >= NO_BROKER_EPOCH, last.run <= s.registered(broker).run),
        implies(last.offset >= 0, last.run >= FIRST_RUN),
        implies(epoch > since, all_of(no(last.anew), any_of(last.run == s.registered(broker).run, last.offset < 0))),
        implies(epoch == since, all_of(last.anew, last.run == s.registered(broker).run)),
        implies(epoch > s.partition.leader_epoch, last.run == NO_BROKER_EPOCH),
        any_of(last.run >= FIRST_RUN, no(last.anew)),
        implies(all_of(s.run(broker) >= 0, epoch >= since, last.offset >= 0), epoch <= s.role(broker).leader_epoch),
    )
    sent = implies(
        last.offset >= 0,
        all_of(
            epoch <= s.epoch(broker),
            no(s.reign(epoch).leader == broker),
            last.last_epoch >= NO_EPOCH,
            last.last_epoch <= epoch,
            any_of(last.last_epoch < epoch, s.continues(epoch, last)),
            s.written_by_own_leader(broker, last),
        ),
    )
    return all_of(by_run, sent)


@conjunct("FollowerKeepsShown", "Once a fetch continues the leader's log, the follower only appends what the leader has.")
def follower_keeps_shown(s: View, broker: BrokerId, offset: Offset) -> Any:
    epoch, log = s.epoch(broker), s.log(broker)
    last = s.fetched(broker, epoch)
    fetched = all_of(epoch >= 0, last.offset >= 0, s.is_intact(broker, epoch))
    prefix = implies(holds(log, offset), has_same_record(s.ledger(epoch), log, offset))
    nothing_opened = any_of(opened_epoch(log) == NO_EPOCH, log.end_offset == 0)
    keeps = all_of(log.end_offset >= last.offset, prefix, nothing_opened)
    forgotten = all_of(
        s.role(broker).leader_epoch < epoch,
        s.opened_only(broker, last.last_epoch, last.offset),
        implies(holds(log, offset), same_record(s.ledger(last.last_epoch), log, offset)),
    )
    as_sent = all_of(last.offset == log.end_offset, any_of(last.last_epoch == log.latest_epoch, forgotten))
    return all_of(
        implies(all_of(fetched, s.continues(epoch, last)), keeps),
        implies(all_of(fetched, no(s.term(epoch).begun)), as_sent),
    )


@conjunct("AwaitedFetch", "While a follower waits for an answer in its epoch, its log is as when it asked.")
def awaited_fetch(s: View, follower: BrokerId, leader: BrokerId) -> Any:
    number = s.awaited(follower, leader)
    asked, fetcher = s.fetch(number), s.fetcher(follower)
    last = s.fetched(follower, s.epoch(follower))
    in_epoch = all_of(number >= 0, asked.epoch == s.epoch(follower), s.is_fetching(follower))
    same = all_of(
        asked.offset == fetcher.fetch_offset,
        asked.last_epoch == fetcher.last_fetched_epoch,
        last.offset == asked.offset,
        last.last_epoch == asked.last_epoch,
    )
    own = all_of(asked.follower == follower, asked.leader == leader, asked.run == s.run(follower))
    return all_of(number >= -1, implies(number >= 0, own), implies(in_epoch, same))


@conjunct("Answers", "A leader answers by its log as it was in the epoch of the fetch.")
def answers(s: View, fetch: MessageId) -> Any:
    asked, answer = s.fetch(fetch), s.reply(fetch)
    served = all_of(answer.given, is_one_of(answer.error, Error.NONE))
    parted = diverges(answer)
    book, record = s.ledger(asked.epoch), answer.record
    return all_of(
        implies(answer.given, all_of(asked.offset >= 0, no(is_one_of(answer.error, Error.OFFSET_OUT_OF_RANGE)))),
        implies(served, all_of(s.term(asked.epoch).begun, answer.high_watermark >= 0)),
        implies(all_of(served, no(parted)), s.continues(asked.epoch, asked)),
        implies(all_of(served, no(parted)), is_record_at(book, asked.offset, record)),
        implies(
            all_of(served, parted),
            all_of(
                answer.diverging.leader_epoch >= NO_EPOCH,
                answer.diverging.end_offset >= 0,
                answer.diverging.end_offset <= book.end_offset,
                any_of(asked.offset == 0, no(s.continues(asked.epoch, asked))),
            ),
        ),
    )


def diverges(answer: Any) -> Any:
    """That an answer tells the follower to truncate."""
    undefined, end = UNDEFINED_EPOCH_END, answer.diverging
    return no(all_of(end.leader_epoch == undefined.leader_epoch, end.end_offset == undefined.end_offset))


def is_record_at(book: Any, offset: Any, record: Any) -> Any:
    """That a record, if there is one, is the one that a log holds at `offset`."""
    if record is None:
        return True
    if isinstance(record, Record):
        return all_of(
            holds(book, offset), epoch_at(book, offset) == record.leader_epoch, value_at(book, offset) == record.value
        )
    return implies(present(record), is_record_at(book, offset, record.value))


@conjunct("DivergingAnswers", "Where an answer says that logs part, no record of an epoch that both can have lies beyond.")
def diverging_answers(s: View, fetch: MessageId, offset: Offset) -> Any:
    asked, answer = s.fetch(fetch), s.reply(fetch)
    parted = all_of(answer.given, is_one_of(answer.error, Error.NONE), diverges(answer))
    book = s.ledger(asked.epoch)
    epoch = epoch_at(book, offset)
    sides = all_of(
        implies(offset < answer.diverging.end_offset, epoch <= answer.diverging.leader_epoch),
        implies(offset >= answer.diverging.end_offset, epoch > asked.last_epoch),
    )
    return implies(all_of(parted, holds(book, offset)), sides)


# ---- leading


@conjunct("KnownFollowers", "A leader knows of a follower what it has shown in this very epoch.")
def known_followers(s: View, leader: BrokerId, follower: BrokerId) -> Any:
    if leader is follower or leader == follower:
        return True
    known, last = s.known(leader, follower), s.fetched(follower, s.epoch(leader))
    by_run = all_of(known.run >= FIRST_RUN, known.run <= last.run, any_of(last.anew, known.run == last.run))
    shown = implies(known.run == last.run, s.has_shown(follower, s.epoch(leader), known.end_offset))
    return implies(all_of(s.leads(leader), known.end_offset >= 0), all_of(by_run, shown))


@conjunct("AdmittedByLeader", "Who registers anew is listed again in the same epoch only by a proposal of its leader.")
def admitted_by_leader(s: View, replica: BrokerId, epoch: Epoch) -> Any:
    """But for the last one in sync, which stays where it is if nobody leads and nothing is lost."""
    listed = all_of(s.fetched(replica, epoch).anew, s.is_listed(replica, s.reign(epoch)))
    return implies(listed, any_of(s.term(epoch).begun, all_of(s.min_isr == 1, s.reign(epoch).leader == NO_LEADER)))


@conjunct("NewRunsAreKnown", "Who is in sync again after a new run of it has registered is known by that run.")
def new_runs_are_known(s: View, leader: BrokerId, follower: BrokerId) -> Any:
    if leader is follower or leader == follower:
        return True
    epoch = s.epoch(leader)
    last, known = s.fetched(follower, epoch), s.known(leader, follower)
    admitted = all_of(s.leads(leader), last.anew, s.is_listed(follower, s.reign(epoch)))
    return implies(admitted, all_of(s.heard(leader, follower) >= last.run, known.end_offset >= 0, known.run == last.run))


@conjunct("Proposals", "A leader proposes in its epoch, on top of the ISR that it knows, and not that one.")
def proposals(s: View, proposal: MessageId, leader: BrokerId) -> Any:
    asked = s.proposed(proposal)
    epoch, version = asked.leader_epoch, asked.partition_epoch
    decided = s.decision(version)
    another = s.some(lambda broker: no(member(broker, asked.isr) == member(broker, decided.isr)))
    return implies(
        asked.leader == leader,
        all_of(
            proposal < s.next_proposal,
            epoch >= 0,
            epoch <= s.epoch(leader),
            s.reign(epoch).leader == leader,
            s.term(epoch).begun,
            version >= 0,
            version <= s.partition.partition_epoch,
            decided.leader_epoch == epoch,
            implies(s.leads_in(leader, epoch), version <= s.known_version(leader)),
            member(leader, asked.isr),
            another,
        ),
    )


@conjunct("NoProposalYet", "Numbers of proposals are used once.")
def no_proposal_yet(s: View, proposal: MessageId) -> Any:
    leader = s.proposed(proposal).leader
    answer = s.verdict(proposal)
    unused = all_of(leader == NO_LEADER, no(answer.given), no(answer.for_good))
    somebody = any_of(leader == NO_LEADER, s.some(lambda broker: leader == broker))
    return all_of(somebody, s.next_proposal >= 0, implies(proposal >= s.next_proposal, unused))


@conjunct("ProposedMembers", "Who is proposed for the ISR is in it, or has shown all that the epoch's leader started with.")
def proposed_members(s: View, proposal: MessageId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    epoch = asked.leader_epoch
    in_sync = member(replica, s.decision(asked.partition_epoch).isr)
    named, last = s.named(proposal, replica), s.fetched(replica, epoch)
    joined = implies(named == last.run, s.has_shown(replica, epoch, s.term(epoch).start))
    by_run = all_of(named >= FIRST_RUN, named <= last.run)
    proposes = all_of(asked.leader >= 0, member(replica, asked.isr))
    return implies(proposes, any_of(in_sync, all_of(by_run, joined)))


@conjunct("ProposedRuns", "Whom a leader proposes to admit it knows by the run that it names, or by a later one.")
def proposed_runs(s: View, proposal: MessageId, leader: BrokerId, replica: BrokerId) -> Any:
    if leader is replica or leader == replica:
        return True
    asked, named, known = s.proposed(proposal), s.named(proposal, replica), s.known(leader, replica)
    admits = all_of(member(replica, asked.isr), no(member(replica, s.decision(asked.partition_epoch).isr)))
    return implies(
        all_of(asked.leader == leader, s.leads_in(leader, asked.leader_epoch), admits),
        all_of(s.heard(leader, replica) >= named, known.run >= named, known.end_offset >= 0),
    )


@conjunct("ProposedCount", "Until it knows better, a leader waits for everybody whom it has proposed.")
def proposed_count(s: View, proposal: MessageId, leader: BrokerId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    open_ = all_of(s.leads_in(leader, asked.leader_epoch), asked.partition_epoch == s.known_version(leader))
    may_be_granted = all_of(open_, no(s.verdict(proposal).for_good))
    return implies(all_of(asked.leader == leader, may_be_granted, member(replica, asked.isr)), s.counts(leader, replica))


@conjunct("ProposedHaveCommitted", "Who may be admitted by a proposal has shown all that was committed in the epoch.")
def proposed_have_committed(s: View, proposal: MessageId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    epoch = asked.leader_epoch
    refused = s.verdict(proposal).for_good
    open_ = all_of(asked.leader >= 0, asked.partition_epoch == s.partition.partition_epoch, no(refused))
    another = all_of(member(replica, asked.isr), no(asked.leader == replica), s.stands(proposal, replica))
    committed = s.term(epoch).committed
    return implies(all_of(open_, another, committed > 0), s.has_shown(replica, epoch, committed))


@conjunct("LatestProposal", "A leader makes a proposal after it has been told that the one before is not carried out.")
def latest_proposal(s: View, proposal: MessageId, leader: BrokerId) -> Any:
    asked, answer = s.proposed(proposal), s.verdict(proposal)
    isr, latest = s.role(leader).isr, s.latest(leader)
    same = all_of(s.leads_in(leader, asked.leader_epoch), asked.partition_epoch == isr.partition_epoch)
    given_up = all_of(answer.for_good, no(answer.given))
    pending = isr.pending_epoch >= 0
    last = s.proposed(latest)
    awaited = all_of(
        latest >= 0,
        last.leader == leader,
        last.leader_epoch == s.epoch(leader),
        last.partition_epoch == isr.partition_epoch,
        s.every(lambda broker: member(broker, last.isr) == member(broker, isr.pending_isr)),
        any_of(no(s.verdict(latest).for_good), s.verdict(latest).given),
    )
    return all_of(
        latest >= -1,
        latest < s.next_proposal,
        implies(all_of(asked.leader == leader, same), any_of(given_up, all_of(proposal == latest, pending))),
        implies(all_of(s.leads(leader), pending), awaited),
    )


@conjunct("Verdicts", "The answer to a proposal is the decision that it led to.")
def verdicts(s: View, proposal: MessageId, replica: BrokerId) -> Any:
    asked, answer = s.proposed(proposal), s.verdict(proposal)
    granted = all_of(answer.given, is_one_of(answer.error, Error.NONE))
    decided = s.decision(answer.partition_epoch)
    rolls_back = is_one_of(answer.error, Error.INELIGIBLE_REPLICA, Error.OPERATION_NOT_ATTEMPTED)
    return all_of(
        answer.for_good == rolls_back,
        implies(
            granted,
            all_of(
                answer.partition_epoch > asked.partition_epoch,
                answer.partition_epoch <= s.partition.partition_epoch,
                decided.leader_epoch == answer.leader_epoch,
                asked.leader_epoch == answer.leader_epoch,
                member(replica, answer.isr) == member(replica, decided.isr),
            ),
        ),
    )


@conjunct("NewsShrinks", "After a decision that a leader does not know yet, the ISR of its epoch does not grow.")
def news_shrinks(s: View, version: PartitionEpoch, later: PartitionEpoch, leader: BrokerId, replica: BrokerId) -> Any:
    decided, after = s.decision(version), s.decision(later)
    same_epoch = all_of(later <= s.partition.partition_epoch, after.leader_epoch == decided.leader_epoch)
    return implies(all_of(s.is_news(version, leader), version <= later, same_epoch), no_larger(s, replica, after, decided))


def no_larger(s: View, replica: Any, after: Any, before: Any) -> Any:
    """That a replica which is in sync, or listed, was so before."""
    in_sync = implies(member(replica, after.isr), member(replica, before.isr))
    return in_sync if s.min_isr == 1 else all_of(in_sync, implies(s.is_listed(replica, after), s.is_listed(replica, before)))


@conjunct("NewsIsLast", "The ISR that the epoch has in the end is no larger, either.")
def news_is_last(s: View, version: PartitionEpoch, leader: BrokerId, replica: BrokerId) -> Any:
    decided = s.decision(version)
    return implies(s.is_news(version, leader), no_larger(s, replica, s.reign(decided.leader_epoch), decided))


@conjunct("LeaderCountsIsr", "So a leader waits for every member of the ISR that the controller had last in its epoch.")
def leader_counts_isr(s: View, leader: BrokerId, replica: BrokerId) -> Any:
    """And of the ELR, or else it commits nothing."""
    last, counts = s.reign(s.epoch(leader)), s.counts_for_sure(leader, replica)
    in_sync = implies(member(replica, last.isr), counts)
    eligible = implies(member(replica, last.elr), any_of(counts, s.is_under_min(s.role(leader).isr.isr)))
    return implies(s.leads(leader), in_sync if s.min_isr == 1 else all_of(in_sync, eligible))


@conjunct("CommittedIsShown", "A leader commits what all have shown that it waits for.")
def committed_is_shown(s: View, leader: BrokerId, replica: BrokerId, epoch: Epoch) -> Any:
    if leader is replica or leader == replica:
        return True
    reign, committed = s.reign(epoch), s.term(epoch).committed
    needed = all_of(reign.leader == leader, s.is_listed(replica, reign))
    return implies(all_of(needed, committed > 0), s.has_shown(replica, epoch, committed))


# ---- from epoch to epoch


@conjunct("MembersStay", "Who is in a later ISR without having entered its epoch never left the ISR.")
def members_stay(s: View, replica: BrokerId, epoch: Epoch, later: Epoch) -> Any:
    in_later = all_of(epoch <= later, later <= s.partition.leader_epoch, s.is_listed(replica, s.reign(later)))
    return implies(
        all_of(in_later, s.epoch(replica) < later, s.epoch(replica) <= epoch), s.is_listed(replica, s.reign(epoch))
    )


@conjunct("SomeoneMovedOn", "A later epoch begins only after a member of the ISR has left the earlier one behind.")
def someone_moved_on(s: View, replica: BrokerId, epoch: Epoch, later: Epoch) -> Any:
    in_later = all_of(epoch < later, later <= s.partition.leader_epoch, s.is_listed(replica, s.reign(later)))
    moved_on = s.some(lambda broker: all_of(s.is_listed(broker, s.reign(epoch)), s.epoch(broker) > epoch))
    return implies(all_of(in_later, s.epoch(replica) > epoch), moved_on)


@conjunct("LaterLeadersHold", "What an epoch's leader may commit is in the log of every later leader.")
def later_leaders_hold(s: View, epoch: Epoch, later: Epoch, offset: Offset) -> Any:
    return implies(
        all_of(epoch < later, s.term(later).begun, s.may_commit(epoch, offset)),
        has_same_record(s.ledger(later), s.ledger(epoch), offset),
    )


@conjunct("LaterMembersHold", "And in the log of every member of a later ISR that has left that epoch behind.")
def later_members_hold(s: View, replica: BrokerId, epoch: Epoch, later: Epoch, offset: Offset) -> Any:
    in_later = s.is_intact_member(replica, epoch, later)
    return implies(all_of(in_later, s.may_commit(epoch, offset)), has_same_record(s.log(replica), s.ledger(epoch), offset))


@conjunct("LaterLeadersHoldBefore", "The same of an epoch that begins late, after a later one.")
def later_leaders_hold_before(s: View, epoch: Epoch, later: Epoch, offset: Offset, written_in: Epoch) -> Any:
    return implies(
        all_of(epoch < later, s.term(later).begun, s.may_yet_commit(epoch, offset, written_in)),
        holds_record_of(s.ledger(later), offset, written_in),
    )


@conjunct("LaterMembersHoldBefore", "And of members of a later ISR.")
def later_members_hold_before(
    s: View, replica: BrokerId, epoch: Epoch, later: Epoch, offset: Offset, written_in: Epoch
) -> Any:
    in_later = s.is_intact_member(replica, epoch, later)
    return implies(
        all_of(in_later, s.may_yet_commit(epoch, offset, written_in)), holds_record_of(s.log(replica), offset, written_in)
    )


def holds_record_of(log: Any, offset: Any, epoch: Any) -> Any:
    """That a log holds a record of an epoch at `offset`."""
    return all_of(holds(log, offset), epoch_at(log, offset) == epoch)


# ---- reading


@conjunct("Settled", "What some epoch's leader has committed furthest is all that was ever committed.")
def settled(s: View, epoch: Epoch) -> Any:
    furthest = s.settled
    known = all_of(furthest.epoch >= 0, s.term(furthest.epoch).committed == furthest.end)
    return all_of(furthest.end >= 0, any_of(furthest.end == 0, known), s.term(epoch).committed <= furthest.end)


@conjunct("ReadableIsSettled", "What can be read from a replica is committed.")
def readable_is_settled(s: View, broker: BrokerId, offset: Offset) -> Any:
    return implies(offset < s.high_watermark(broker), s.is_settled(s.log(broker), offset))


@conjunct("ToldIsSettled", "What a leader tells of its high watermark is about what is committed.")
def told_is_settled(s: View, fetch: MessageId, offset: Offset) -> Any:
    asked, answer = s.fetch(fetch), s.reply(fetch)
    served = all_of(answer.given, is_one_of(answer.error, Error.NONE))
    return implies(all_of(served, offset < answer.high_watermark), s.is_settled(s.ledger(asked.epoch), offset))


# ---- what follows


@conjunct("LeaderCompleteness", "What an epoch's leader committed is in the log of the leader of every later epoch.")
def leader_completeness(s: View, epoch: Epoch, later: Epoch, offset: Offset) -> Any:
    committed = all_of(epoch < later, s.term(later).begun, offset < s.term(epoch).committed)
    return implies(committed, has_same_record(s.ledger(later), s.ledger(epoch), offset))


@conjunct("LeaderCandidateCompleteness", "What was ever committed is on every member of the controller's ISR or ELR.")
def leader_candidate_completeness(s: View, replica: BrokerId, epoch: Epoch, offset: Offset) -> Any:
    """One that has stopped and may have lost records cannot lead before its next run registers, which takes it out."""
    candidate = all_of(s.is_listed(replica, s.partition), any_of(s.min_isr == 1, s.run(replica) >= 0))
    committed = all_of(candidate, offset < s.term(epoch).committed)
    return implies(committed, has_same_record(s.log(replica), s.ledger(epoch), offset))


@conjunct("LogMatching", "Two logs that hold records of one epoch hold the same up to the earlier of them.")
def log_matching(s: View, one: BrokerId, other: BrokerId, offset: Offset, later: Offset, earlier: Offset) -> Any:
    log, another = s.log(one), s.log(other)
    same_epoch = all_of(holds(log, offset), holds(another, later), epoch_at(log, offset) == epoch_at(another, later))
    return implies(all_of(same_epoch, earlier <= offset, offset <= later), same_record(log, another, earlier))


@conjunct("ReplicationQuorumSuperset", "A leader's high watermark waits for every member of the controller's ISR.")
def replication_quorum_superset(s: View, leader: BrokerId, replica: BrokerId) -> Any:
    in_office = s.leads_in(leader, s.partition.leader_epoch)
    return implies(all_of(in_office, member(replica, s.partition.isr)), s.counts(leader, replica))


@conjunct("ConsistentRead", "What can be read at an offset is committed, and no epoch ever commits anything else there.")
def consistent_read(s: View, broker: BrokerId, epoch: Epoch, offset: Offset) -> Any:
    committed = offset < s.term(epoch).committed
    same = implies(committed, has_same_record(s.log(broker), s.ledger(epoch), offset))
    return implies(offset < s.high_watermark(broker), all_of(offset < s.settled.end, same))


INVARIANT = (
    decisions,
    decisions_in_order,
    last_decision,
    reigns,
    leader_is_up,
    eligible_while_too_few,
    somebody_is_left,
    leaders_change,
    epochs_from_controller,
    runs,
    registered_since,
    new_runs_come_back,
    heard_of_runs,
    applied_is_decided,
    leader_isr_is_decided,
    log_shape,
    epochs_in_order,
    opened_by_itself,
    ledger_shape,
    ledger_in_order,
    leader_keeps_ledger,
    written_by_leader,
    ledger_written_by_leader,
    fetcher_follows_log,
    fetches,
    no_fetch_yet,
    last_fetches,
    follower_keeps_shown,
    awaited_fetch,
    answers,
    diverging_answers,
    known_followers,
    admitted_by_leader,
    new_runs_are_known,
    proposals,
    no_proposal_yet,
    proposed_members,
    proposed_runs,
    proposed_count,
    proposed_have_committed,
    latest_proposal,
    verdicts,
    news_shrinks,
    news_is_last,
    leader_counts_isr,
    committed_is_shown,
    members_stay,
    someone_moved_on,
    later_leaders_hold,
    later_members_hold,
    later_leaders_hold_before,
    later_members_hold_before,
    settled,
    readable_is_settled,
    told_is_settled,
)

CONSEQUENCES = (
    leader_completeness,
    leader_candidate_completeness,
    log_matching,
    replication_quorum_superset,
    consistent_read,
)


# ---- what makes counterexamples look like a cluster


@conjunct("AppliedWhole", "What a broker has replayed is a decision as a whole.")
def applied_whole(s: View, broker: BrokerId, replica: BrokerId) -> Any:
    applied = s.applied(broker)
    decided = s.decision(applied.partition_epoch)
    same = all_of(applied.leader == decided.leader, member(replica, applied.isr) == member(replica, decided.isr))
    nothing = all_of(applied.leader == NO_LEADER, applied.leader_epoch == NO_EPOCH, no(member(replica, applied.isr)))
    return all_of(implies(applied.partition_epoch >= 0, same), implies(applied.partition_epoch < 0, nothing))


@conjunct("ValuesAreNew", "Each record has a value of its own.")
def values_are_new(s: View, broker: BrokerId, epoch: Epoch, offset: Offset, later: Offset) -> Any:
    logs = (s.log(broker), s.ledger(epoch))
    return all_of(
        *(
            all_of(
                implies(holds(log, later), all_of(value_at(log, later) >= 0, value_at(log, later) < s.next_value)),
                implies(all_of(offset < later, holds(log, later)), value_at(log, offset) < value_at(log, later)),
            )
            for log in logs
        )
    )


@conjunct("LedgerOpened", "A leader notes its epoch before it has written a record in it.")
def ledger_opened(s: View, epoch: Epoch) -> Any:
    book, begun = s.ledger(epoch), s.term(epoch).begun
    wrote = book.end_offset > s.term(epoch).start
    return all_of(
        implies(all_of(begun, no(wrote)), opened_epoch(book) == epoch),
        implies(any_of(no(begun), wrote), opened_epoch(book) == NO_EPOCH),
    )


REALISTIC = (applied_whole, values_are_new, ledger_opened)


def landmarks(s: View) -> tuple[tuple[str, Any], ...]:
    """The epochs that brokers are in, and the controller; and of who has committed furthest."""
    state = s.partition
    controller = (("epoch", state.leader_epoch), ("version", state.partition_epoch), ("epoch", s.settled.epoch))
    return *controller, *(("epoch", s.role(broker).leader_epoch) for broker in s.brokers.ids or ())


def committed_before_the_last_epoch(s: View) -> bool:
    """A witness: an epoch has committed, the next one has begun, the ISR has two members."""
    return bool(s.term(0).committed > 0 and s.term(1).begun and len(s.partition.isr) > 1)


PREMISES: Any = tuple(name >= 0 for name in (NOW, EPOCH, VERSION, FETCH, PROPOSAL, SURVIVES, CHECKPOINTED, RUN))
"""What holds of the arguments of actions."""

KAFKA_NEXT_THEOREM = Theorem(
    name=NAME,
    summary="what was ever committed is on every later leader, and on every member of the ISR",
    model=partial(unbounded, 1),
    bounded=partial(bounded, 1),
    view=View,
    conjuncts=INVARIANT,
    consequences=CONSEQUENCES,
    by_outcome=True,
    replicas=2,
    properties=(),
    witness=Witness(committed_before_the_last_epoch, (1, 1), ("term", "partition")),
    mutants=weakened_rules(BROKER_NEXT, BROKER_MUTANTS) | weakened_rules(KRAFT_NEXT, CONTROLLER_MUTANTS),
    premises=PREMISES,
    realistic=REALISTIC,
    in_bounds=as_within_bounds,
    landmarks=landmarks,
)


def committed_and_lost(s: View) -> bool:
    """A witness: an epoch has committed, the next one has begun, and a broker that lost what was committed is back."""
    committed = s.term(0).committed
    back = s.some(lambda broker: all_of(s.run(broker) > FIRST_RUN, s.log(broker).end_offset < committed))
    return bool(all_of(committed > 0, s.term(1).begun, back))


class LossyView(View):
    """A state as the conjuncts read it, where two replicas have to be in sync before anything is committed."""

    min_isr = 2


POWER_LOSS = f"{NAME}-power-loss"

KAFKA_NEXT_POWER_LOSS_THEOREM = replace(
    KAFKA_NEXT_THEOREM,
    name=POWER_LOSS,
    summary="the same with min ISR 2 and eligible leader replicas, where a broker that stops loses what it has not flushed",
    model=partial(unbounded, LossyView.min_isr),
    bounded=partial(bounded, LossyView.min_isr),
    view=LossyView,
    witness=Witness(committed_and_lost, (1, 1), ("term", "run", "log")),
)
