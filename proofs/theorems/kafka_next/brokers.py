"""Conjuncts about brokers: incarnations, and the decisions that brokers have replayed."""

from typing import Any

from kspec.model_check.models.messages.values import FIRST_BROKER_EPOCH
from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.symbolic.logic import all_of, any_of, implies, member, no
from kspec.proofs.theorems.kafka_next.view import KafkaNextView
from kspec.spec.values import NO_BROKER_EPOCH, NO_EPOCH, NO_LEADER, BrokerId, Epoch


@conjunct("EpochsFromController", "The controller alone opens epochs, so no broker is in a later one than its.")
def epochs_from_controller(s: KafkaNextView, broker: BrokerId) -> Any:
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
        implies(role.leader_epoch >= 0, role.leader == s.last_decision(role.leader_epoch).leader),
    )


@conjunct(
    "BrokerEpochs",
    "A broker that is up has the registered broker epoch, and has replayed the metadata of that time or later.",
)
def broker_epochs(s: KafkaNextView, broker: BrokerId) -> Any:
    broker_epoch, known, registered_at, role = (
        s.broker_epoch(broker),
        s.registered(broker),
        s.registered_at(broker),
        s.role(broker),
    )
    down, idle = broker_epoch == NO_BROKER_EPOCH, role.leader_epoch == NO_EPOCH
    return all_of(
        *(
            known.broker_epoch >= FIRST_BROKER_EPOCH,
            known.broker_epoch < s.next_broker_epoch,
            any_of(down, broker_epoch == known.broker_epoch),
        ),
        implies(down, idle),
        implies(all_of(idle, no(down)), s.epoch(broker) <= registered_at.leader_epoch),
        any_of(
            idle,
            all_of(
                role.leader_epoch >= registered_at.leader_epoch,
                s.applied(broker).partition_epoch >= registered_at.partition_epoch,
            ),
        ),
    )


@conjunct("RegisteredWithoutLeading", "A broker registers after a decision that makes it not the leader.")
def registered_without_leading(s: KafkaNextView, broker: BrokerId) -> Any:
    registered_at = s.registered_at(broker)
    decided = s.decision(registered_at.partition_epoch)
    begun = all_of(
        *(registered_at.partition_epoch <= s.partition.partition_epoch, decided.leader_epoch == registered_at.leader_epoch),
        no(decided.leader == broker),
        no(s.last_decision(registered_at.leader_epoch).leader == broker),
    )
    return all_of(
        *(registered_at.partition_epoch >= -1, registered_at.leader_epoch >= NO_EPOCH),
        (registered_at.partition_epoch >= 0) == (registered_at.leader_epoch >= 0),
        implies(registered_at.partition_epoch >= 0, begun),
        registered_at.leader_epoch <= s.partition.leader_epoch,
    )


@conjunct(
    "NewIncarnationsComeBack",
    "Where records may be lost, a new incarnation is listed only once it takes part in the epoch in which it registered.",
)
def new_incarnations_come_back(s: KafkaNextView, broker: BrokerId, epoch: Epoch) -> Any:
    if s.min_isr == 1:
        return True
    registered_at = s.registered_at(broker).leader_epoch
    listed = all_of(s.is_listed(broker, s.last_decision(epoch)), registered_at <= epoch, epoch <= s.partition.leader_epoch)
    return implies(listed, s.epoch(broker) >= registered_at)


@conjunct("HeardOfBrokerEpochs", "A broker epoch in a broker's metadata is registered, or was registered before.")
def heard_of_broker_epochs(s: KafkaNextView, broker: BrokerId, other: BrokerId) -> Any:
    if broker is other or broker == other:
        return True
    return all_of(s.heard(broker, other) >= FIRST_BROKER_EPOCH, s.heard(broker, other) <= s.registered(other).broker_epoch)


@conjunct("AppliedIsDecided", "The decision that a broker has replayed last is one of the controller's.")
def applied_is_decided(s: KafkaNextView, broker: BrokerId) -> Any:
    applied = s.applied(broker)
    decided = s.decision(applied.partition_epoch)
    return implies(
        applied.partition_epoch >= 0,
        all_of(decided.leader_epoch == applied.leader_epoch, applied.leader_epoch == s.role(broker).leader_epoch),
    )


@conjunct("LeaderIsrIsDecided", "The ISR that a leader knows is one that the controller decided in its epoch.")
def leader_isr_is_decided(s: KafkaNextView, leader: BrokerId, replica: BrokerId) -> Any:
    isr = s.role(leader).isr
    decided = s.decision(isr.partition_epoch)
    same = member(replica, isr.isr) == member(replica, decided.isr)
    partition_epoch = all_of(
        isr.partition_epoch >= s.applied(leader).partition_epoch, isr.partition_epoch <= s.partition.partition_epoch
    )
    pending = any_of(isr.pending_epoch == -1, isr.pending_epoch == isr.partition_epoch)
    nothing = implies(isr.pending_epoch == -1, no(member(replica, isr.pending_isr)))
    return implies(s.leads(leader), all_of(partition_epoch, decided.leader_epoch == s.epoch(leader), same, pending, nothing))
