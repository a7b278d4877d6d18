"""Kafka's replication protocol, message by message (`next`: 4.4 with its known defects repaired).

A record that an epoch's leader committed is in the log of every later epoch's leader, and on every member of the
controller's ISR. The model is `messages` with its bounds lifted: fetches, answers, proposals and decisions are in flight in
any number, late for any time, or lost.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from kspec.model_check.models.messages.properties import MEANINGS
from kspec.model_check.models.messages.values import FIRST_BROKER_EPOCH
from kspec.proofs.induction.invariant import Conjunct, Theorem, Witness, conjunct, weakened_rules
from kspec.proofs.symbolic.logic import (
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
from kspec.proofs.symbolic.values import Kind
from kspec.proofs.theorems.kafka_next.brokers import (
    applied_is_decided,
    broker_epochs,
    epochs_from_controller,
    heard_of_broker_epochs,
    leader_isr_is_decided,
    new_incarnations_come_back,
    registered_without_leading,
)
from kspec.proofs.theorems.kafka_next.controller import (
    decisions,
    decisions_in_order,
    eligible_while_too_few,
    epoch_leaders,
    leader_is_up,
    leaders_change,
    somebody_is_left,
    state_is_last_decision,
)
from kspec.proofs.theorems.kafka_next.epochs import (
    later_leaders_hold,
    later_leaders_hold_before,
    later_members_hold,
    later_members_hold_before,
    members_stay,
    someone_moved_on,
)
from kspec.proofs.theorems.kafka_next.following import (
    awaited_fetch,
    diverging_answers,
    fetch_answers,
    fetcher_follows_log,
    fetches,
    follower_keeps_shown,
    last_fetches,
    no_fetch_yet,
)
from kspec.proofs.theorems.kafka_next.leading import (
    admitted_by_leader,
    committed_is_shown,
    isr_answers,
    known_followers,
    last_isr_within_unread,
    later_isr_within_unread,
    latest_proposal,
    leader_counts_isr,
    new_incarnations_are_known,
    no_proposal_yet,
    proposals,
    proposed_broker_epochs,
    proposed_count,
    proposed_have_committed,
    proposed_members,
)
from kspec.proofs.theorems.kafka_next.logs import (
    epochs_in_order,
    leader_keeps_log,
    leader_log_in_order,
    leader_log_shape,
    leader_log_written_by_leader,
    log_shape,
    opened_by_itself,
    written_by_leader,
)
from kspec.proofs.theorems.kafka_next.model import (
    BROKER_EPOCH,
    CHECKPOINTED,
    EPOCH,
    FETCH,
    NAME,
    NOW,
    PARTITION_EPOCH,
    PROPOSAL,
    SURVIVES,
    as_within_bounds,
    bounded,
    unbounded,
)
from kspec.proofs.theorems.kafka_next.reading import furthest_commit, readable_is_committed, told_is_committed
from kspec.proofs.theorems.kafka_next.view import KafkaNextView, LossyView
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, Offset, PartitionEpoch

# ---- what follows: properties of the model, proved without its bounds


def consequence(name: str) -> Callable[[Callable[..., Any]], Conjunct]:
    """A claim that the model has as a property, within bounds: in the same words."""
    meaning = MEANINGS[name]
    return conjunct(name, f"{meaning[0].upper()}{meaning[1:]}.")


@consequence("CommittedOnLaterLeaders")
def committed_on_later_leaders(s: KafkaNextView, epoch: Epoch, later: Epoch, offset: Offset) -> Any:
    committed = all_of(epoch < later, s.leadership(later).begun, offset < s.leadership(epoch).committed)
    return implies(committed, has_same_record(s.leader_log(later), s.leader_log(epoch), offset))


@consequence("CommittedOnNextLeader")
def committed_on_next_leader(s: KafkaNextView, replica: BrokerId, epoch: Epoch, offset: Offset) -> Any:
    """A stopped broker that may have lost records cannot lead before it registers again, which removes it from the list."""
    candidate = all_of(s.is_listed(replica, s.partition), any_of(s.min_isr == 1, s.broker_epoch(replica) >= 0))
    committed = all_of(candidate, offset < s.leadership(epoch).committed)
    return implies(committed, has_same_record(s.log(replica), s.leader_log(epoch), offset))


@consequence("SameEpochSameRecords")
def same_epoch_same_records(
    s: KafkaNextView, one: BrokerId, other: BrokerId, offset: Offset, later: Offset, earlier: Offset
) -> Any:
    log, another = s.log(one), s.log(other)
    same_epoch = all_of(holds(log, offset), holds(another, later), epoch_at(log, offset) == epoch_at(another, later))
    return implies(all_of(same_epoch, earlier <= offset, offset <= later), same_record(log, another, earlier))


@consequence("QuorumSuperset")
def quorum_superset(s: KafkaNextView, leader: BrokerId, replica: BrokerId) -> Any:
    is_true_leader = s.leads_in(leader, s.partition.leader_epoch)
    return implies(all_of(is_true_leader, member(replica, s.partition.isr)), s.counts(leader, replica))


@consequence("ReadableIsFinal")
def readable_is_final(s: KafkaNextView, broker: BrokerId, epoch: Epoch, offset: Offset) -> Any:
    committed = offset < s.leadership(epoch).committed
    same = implies(committed, has_same_record(s.log(broker), s.leader_log(epoch), offset))
    return implies(offset < s.high_watermark(broker), all_of(offset < s.furthest_commit.end, same))


INVARIANT = (
    decisions,
    decisions_in_order,
    state_is_last_decision,
    epoch_leaders,
    leader_is_up,
    eligible_while_too_few,
    somebody_is_left,
    leaders_change,
    epochs_from_controller,
    broker_epochs,
    registered_without_leading,
    new_incarnations_come_back,
    heard_of_broker_epochs,
    applied_is_decided,
    leader_isr_is_decided,
    log_shape,
    epochs_in_order,
    opened_by_itself,
    leader_log_shape,
    leader_log_in_order,
    leader_keeps_log,
    written_by_leader,
    leader_log_written_by_leader,
    fetcher_follows_log,
    fetches,
    no_fetch_yet,
    last_fetches,
    follower_keeps_shown,
    awaited_fetch,
    fetch_answers,
    diverging_answers,
    known_followers,
    admitted_by_leader,
    new_incarnations_are_known,
    proposals,
    no_proposal_yet,
    proposed_members,
    proposed_broker_epochs,
    proposed_count,
    proposed_have_committed,
    latest_proposal,
    isr_answers,
    later_isr_within_unread,
    last_isr_within_unread,
    leader_counts_isr,
    committed_is_shown,
    members_stay,
    someone_moved_on,
    later_leaders_hold,
    later_members_hold,
    later_leaders_hold_before,
    later_members_hold_before,
    furthest_commit,
    readable_is_committed,
    told_is_committed,
)


CONSEQUENCES = (
    committed_on_later_leaders,
    committed_on_next_leader,
    same_epoch_same_records,
    quorum_superset,
    readable_is_final,
)


# ---- what makes counterexamples look like a cluster


@conjunct("AppliedWhole", "A broker has replayed a decision as a whole.")
def applied_whole(s: KafkaNextView, broker: BrokerId, replica: BrokerId) -> Any:
    applied = s.applied(broker)
    decided = s.decision(applied.partition_epoch)
    same = all_of(applied.leader == decided.leader, member(replica, applied.isr) == member(replica, decided.isr))
    nothing = all_of(applied.leader == NO_LEADER, applied.leader_epoch == NO_EPOCH, no(member(replica, applied.isr)))
    return all_of(implies(applied.partition_epoch >= 0, same), implies(applied.partition_epoch < 0, nothing))


@conjunct("ValuesAreNew", "Each record has a value of its own.")
def values_are_new(s: KafkaNextView, broker: BrokerId, epoch: Epoch, offset: Offset, later: Offset) -> Any:
    logs = (s.log(broker), s.leader_log(epoch))
    return all_of(
        *(
            all_of(
                implies(holds(log, later), all_of(value_at(log, later) >= 0, value_at(log, later) < s.next_value)),
                implies(all_of(offset < later, holds(log, later)), value_at(log, offset) < value_at(log, later)),
            )
            for log in logs
        )
    )


@conjunct("LeaderLogOpened", "A leader records its epoch before it has written a record in it.")
def leader_log_opened(s: KafkaNextView, epoch: Epoch) -> Any:
    book, begun = s.leader_log(epoch), s.leadership(epoch).begun
    wrote = book.end_offset > s.leadership(epoch).start
    return all_of(
        implies(all_of(begun, no(wrote)), opened_epoch(book) == epoch),
        implies(any_of(no(begun), wrote), opened_epoch(book) == NO_EPOCH),
    )


REALISTIC = (applied_whole, values_are_new, leader_log_opened)


def landmarks(s: KafkaNextView) -> tuple[tuple[Kind, Any], ...]:
    """The epochs of the brokers and of the controller, and the epoch of the furthest commit."""
    state = s.partition
    controller = ((Epoch, state.leader_epoch), (PartitionEpoch, state.partition_epoch), (Epoch, s.furthest_commit.epoch))
    return *controller, *((Epoch, s.role(broker).leader_epoch) for broker in s.brokers.ids or ())


def committed_before_the_last_epoch(s: KafkaNextView) -> bool:
    """A witness: an epoch has committed, the next one has begun, the ISR has two members."""
    return bool(s.leadership(0).committed > 0 and s.leadership(1).begun and len(s.partition.isr) > 1)


PREMISES: Any = tuple(
    name >= 0 for name in (NOW, EPOCH, PARTITION_EPOCH, FETCH, PROPOSAL, SURVIVES, CHECKPOINTED, BROKER_EPOCH)
)
"""The conditions on the arguments of actions."""

KAFKA_NEXT_THEOREM = Theorem(
    name=NAME,
    summary="every committed record is on every later leader, and on every member of the ISR",
    model=partial(unbounded, 1),
    bounded=partial(bounded, 1),
    view=KafkaNextView,
    conjuncts=INVARIANT,
    consequences=CONSEQUENCES,
    by_outcome=True,
    replicas=2,
    properties=(),
    witness=Witness(committed_before_the_last_epoch, (1, 1), ("leadership", "partition")),
    mutants=weakened_rules(BROKER_NEXT, BROKER_MUTANTS) | weakened_rules(KRAFT_NEXT, CONTROLLER_MUTANTS),
    premises=PREMISES,
    realistic=REALISTIC,
    in_bounds=as_within_bounds,
    landmarks=landmarks,
)


def committed_and_lost(s: KafkaNextView) -> bool:
    """A witness: an epoch has committed, the next one has begun, and a broker that lost what was committed is back."""
    committed = s.leadership(0).committed
    back = s.some(lambda broker: all_of(s.broker_epoch(broker) > FIRST_BROKER_EPOCH, s.log(broker).end_offset < committed))
    return bool(all_of(committed > 0, s.leadership(1).begun, back))


POWER_LOSS = f"{NAME}-power-loss"


KAFKA_NEXT_POWER_LOSS_THEOREM = replace(
    KAFKA_NEXT_THEOREM,
    name=POWER_LOSS,
    summary="the same with min ISR 2 and eligible leader replicas, where a broker that stops loses unflushed records",
    model=partial(unbounded, LossyView.min_isr),
    bounded=partial(bounded, LossyView.min_isr),
    view=LossyView,
    witness=Witness(committed_and_lost, (1, 1), ("leadership", "brokerEpoch", "log")),
)
