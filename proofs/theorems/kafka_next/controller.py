"""Conjuncts about the controller: its decisions, their order, and the brokers that may lead."""

from typing import Any

from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.symbolic.logic import all_of, any_of, implies, member, no
from kspec.proofs.theorems.kafka_next.view import KafkaNextView
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, PartitionEpoch


@conjunct(
    "Decisions", "Each partition epoch up to the controller's has one decision, with its epoch's leader, if it has one."
)
def decisions(s: KafkaNextView, partition_epoch: PartitionEpoch) -> Any:
    decided = s.decision(partition_epoch)
    taken = partition_epoch <= s.partition.partition_epoch
    leader = any_of(decided.leader == NO_LEADER, s.leads_in_sync(decided))
    in_epoch = s.last_decision(decided.leader_epoch).leader == decided.leader
    epochs = all_of(decided.leader_epoch >= 0, decided.leader_epoch <= s.partition.leader_epoch)
    return all_of(
        implies(taken, all_of(decided.partition_epoch == partition_epoch, epochs, leader, in_epoch)),
        implies(no(taken), decided.partition_epoch == -1),
    )


@conjunct("DecisionsInOrder", "Leader epochs never go back.")
def decisions_in_order(s: KafkaNextView, partition_epoch: PartitionEpoch, later: PartitionEpoch) -> Any:
    taken = all_of(partition_epoch <= later, later <= s.partition.partition_epoch)
    return implies(taken, s.decision(partition_epoch).leader_epoch <= s.decision(later).leader_epoch)


@conjunct("StateIsLastDecision", "The controller's state is its last decision.")
def state_is_last_decision(s: KafkaNextView) -> Any:
    state = s.partition
    last, last_decision = s.decision(state.partition_epoch), s.last_decision(state.leader_epoch)
    same_isr = s.every(
        lambda broker: all_of(_same(broker, last.isr, state.isr), _same(broker, last_decision.isr, state.isr))
    )
    same_elr = s.every(
        lambda broker: all_of(_same(broker, last.elr, state.elr), _same(broker, last_decision.elr, state.elr))
    )
    nobody = s.every(lambda broker: no(member(broker, state.elr)))
    same = all_of(
        *(last.leader == state.leader, last.leader_epoch == state.leader_epoch, last_decision.leader == state.leader),
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
    "EpochLeaders",
    "Each epoch up to the controller's has one leader, which is in sync, or none. The last broker in sync stays in sync.",
)
def epoch_leaders(s: KafkaNextView, epoch: Epoch) -> Any:
    last_decision, leadership = s.last_decision(epoch), s.leadership(epoch)
    in_sync = any_of(last_decision.leader == NO_LEADER, s.leads_in_sync(last_decision))
    somebody = any_of(s.min_isr > 1, s.some(lambda broker: member(broker, last_decision.isr)))
    opened = epoch <= s.partition.leader_epoch
    return all_of(
        implies(opened, all_of(in_sync, somebody)),
        implies(no(opened), all_of(last_decision.leader == NO_LEADER, no(leadership.begun))),
    )


@conjunct("LeaderIsUp", "A fenced broker leaves the ISR, unless it is the last one; then the partition has no leader.")
def leader_is_up(s: KafkaNextView, broker: BrokerId) -> Any:
    state = s.partition
    alone = s.every(lambda other: any_of(other == broker, no(member(other, state.isr))))
    last_one = all_of(s.min_isr == 1, state.leader == NO_LEADER, alone)
    return implies(all_of(s.registered(broker).fenced, state.partition_epoch >= 0, member(broker, state.isr)), last_one)


@conjunct("EligibleWhileTooFew", "There are eligible leader replicas only while fewer than min ISR are in sync.")
def eligible_while_too_few(s: KafkaNextView, partition_epoch: PartitionEpoch, replica: BrokerId) -> Any:
    decided = s.decision(partition_epoch)
    eligible = all_of(s.min_isr > 1, partition_epoch <= s.partition.partition_epoch, member(replica, decided.elr))
    return implies(eligible, all_of(s.is_under_min(decided.isr), no(member(replica, decided.isr))))


@conjunct(
    "SomebodyIsLeft",
    "With power loss, a broker that leaves ISR and ELR has registered again, or min ISR other brokers are in them.",
)
def somebody_is_left(s: KafkaNextView, partition_epoch: PartitionEpoch) -> Any:
    """While fewer than min ISR brokers have stopped and are not back in ISR or ELR, a broker can be elected.

    This holds if the partition began with min ISR in sync.
    """
    first, now = s.decision(partition_epoch), s.partition
    began = all_of(partition_epoch == 0, s.min_isr > 1, now.partition_epoch >= 0, no(s.is_under_min(first.isr)))
    accounted = s.are_too_few(lambda broker: any_of(s.is_listed(broker, now), s.registered_at(broker).partition_epoch >= 0))
    return implies(began, no(accounted))


@conjunct("LeadersChange", "Without reassignments, a new epoch has another leader than the one before.")
def leaders_change(s: KafkaNextView, epoch: Epoch) -> Any:
    later = s.last_decision(epoch + 1)
    return implies(epoch + 1 <= s.partition.leader_epoch, no(s.last_decision(epoch).leader == later.leader))
