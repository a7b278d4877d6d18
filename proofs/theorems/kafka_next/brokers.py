"""Conjuncts about brokers: incarnations, and what brokers know of the controller's decisions."""

from typing import Any

from model_check.models.messages.values import FIRST_RUN
from proofs.induction.invariant import conjunct
from proofs.symbolic.logic import all_of, any_of, implies, member, no
from proofs.theorems.kafka_next.view import View
from spec.values import NO_BROKER_EPOCH, NO_EPOCH, NO_LEADER, BrokerId, Epoch


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
