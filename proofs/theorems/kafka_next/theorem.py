"""Kafka's replication protocol, message by message (`next`: 4.0 with its known defects repaired).

What an epoch's leader committed is in the log of every later epoch's leader, and on every member of the controller's ISR.
The model is `messages` with its bounds lifted: fetches, answers, proposals and decisions are in flight in any number, late
for any time, or lost.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from model_check.models.messages.values import FIRST_RUN
from proofs.induction.invariant import Theorem, Witness, conjunct, weakened_rules
from proofs.symbolic.logic import (
    all_of,
    any_of,
    epoch_at,
    has_same_record,
    holds,
    implies,
    member,
    no,
    opened_epoch,
    same_record,
    value_at,
)
from proofs.symbolic.values import Kind
from proofs.theorems.kafka_next.brokers import (
    applied_is_decided,
    epochs_from_controller,
    heard_of_runs,
    leader_isr_is_decided,
    new_runs_come_back,
    registered_since,
    runs,
)
from proofs.theorems.kafka_next.controller import (
    decisions,
    decisions_in_order,
    eligible_while_too_few,
    last_decision,
    leader_is_up,
    leaders_change,
    reigns,
    somebody_is_left,
)
from proofs.theorems.kafka_next.epochs import (
    later_leaders_hold,
    later_leaders_hold_before,
    later_members_hold,
    later_members_hold_before,
    members_stay,
    someone_moved_on,
)
from proofs.theorems.kafka_next.following import (
    answers,
    awaited_fetch,
    diverging_answers,
    fetcher_follows_log,
    fetches,
    follower_keeps_shown,
    last_fetches,
    no_fetch_yet,
)
from proofs.theorems.kafka_next.leading import (
    admitted_by_leader,
    committed_is_shown,
    known_followers,
    latest_proposal,
    leader_counts_isr,
    new_runs_are_known,
    news_is_last,
    news_shrinks,
    no_proposal_yet,
    proposals,
    proposed_count,
    proposed_have_committed,
    proposed_members,
    proposed_runs,
    verdicts,
)
from proofs.theorems.kafka_next.logs import (
    epochs_in_order,
    leader_keeps_ledger,
    ledger_in_order,
    ledger_shape,
    ledger_written_by_leader,
    log_shape,
    opened_by_itself,
    written_by_leader,
)
from proofs.theorems.kafka_next.model import (
    CHECKPOINTED,
    EPOCH,
    FETCH,
    NAME,
    NOW,
    PROPOSAL,
    RUN,
    SURVIVES,
    VERSION,
    as_within_bounds,
    bounded,
    unbounded,
)
from proofs.theorems.kafka_next.reading import readable_is_settled, settled, told_is_settled
from proofs.theorems.kafka_next.view import LossyView, View
from spec.releases.broker import BROKER_NEXT
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft import KRAFT_NEXT
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, Offset, PartitionEpoch

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


def landmarks(s: View) -> tuple[tuple[Kind, Any], ...]:
    """The epochs that brokers are in, and the controller; and of who has committed furthest."""
    state = s.partition
    controller = ((Epoch, state.leader_epoch), (PartitionEpoch, state.partition_epoch), (Epoch, s.settled.epoch))
    return *controller, *((Epoch, s.role(broker).leader_epoch) for broker in s.brokers.ids or ())


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
