"""Conjuncts from epoch to epoch: records that are committed in one are in the leader logs of later ones."""

from typing import Any

from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.symbolic.logic import all_of, epoch_at, has_same_record, holds, implies
from kspec.proofs.theorems.kafka_next.view import KafkaNextView
from kspec.spec.values import BrokerId, Epoch, Offset


@conjunct("MembersStay", "A replica that is in a later ISR and does not yet take part in its epoch never left the ISR.")
def members_stay(s: KafkaNextView, replica: BrokerId, epoch: Epoch, later: Epoch) -> Any:
    in_later = all_of(epoch <= later, later <= s.partition.leader_epoch, s.is_listed(replica, s.last_decision(later)))
    return implies(
        all_of(in_later, s.epoch(replica) < later, s.epoch(replica) <= epoch), s.is_listed(replica, s.last_decision(epoch))
    )


@conjunct(
    "SomeoneMovedOn", "A later epoch begins only after a member of the earlier epoch's ISR has moved on to a later epoch."
)
def someone_moved_on(s: KafkaNextView, replica: BrokerId, epoch: Epoch, later: Epoch) -> Any:
    in_later = all_of(epoch < later, later <= s.partition.leader_epoch, s.is_listed(replica, s.last_decision(later)))
    moved_on = s.some(lambda broker: all_of(s.is_listed(broker, s.last_decision(epoch)), s.epoch(broker) > epoch))
    return implies(all_of(in_later, s.epoch(replica) > epoch), moved_on)


@conjunct("LaterLeadersHold", "A record that an epoch's leader may commit is in the log of every later leader.")
def later_leaders_hold(s: KafkaNextView, epoch: Epoch, later: Epoch, offset: Offset) -> Any:
    return implies(
        all_of(epoch < later, s.leadership(later).begun, s.may_commit(epoch, offset)),
        has_same_record(s.leader_log(later), s.leader_log(epoch), offset),
    )


@conjunct(
    "LaterMembersHold",
    "A record that an epoch's leader may commit is in the logs of members of later ISRs that have left the epoch behind.",
)
def later_members_hold(s: KafkaNextView, replica: BrokerId, epoch: Epoch, later: Epoch, offset: Offset) -> Any:
    in_later = s.is_intact_member(replica, epoch, later)
    return implies(
        all_of(in_later, s.may_commit(epoch, offset)), has_same_record(s.log(replica), s.leader_log(epoch), offset)
    )


@conjunct(
    "LaterLeadersHoldBefore",
    "A record that an epoch's leader may yet commit, if the epoch begins late, is in the log of every later leader.",
)
def later_leaders_hold_before(s: KafkaNextView, epoch: Epoch, later: Epoch, offset: Offset, written_in: Epoch) -> Any:
    return implies(
        all_of(epoch < later, s.leadership(later).begun, s.may_yet_commit(epoch, offset, written_in)),
        holds_record_of(s.leader_log(later), offset, written_in),
    )


@conjunct(
    "LaterMembersHoldBefore",
    "A record that an epoch's leader may yet commit, if the epoch begins late, is in the logs of all members of later ISRs.",
)
def later_members_hold_before(
    s: KafkaNextView, replica: BrokerId, epoch: Epoch, later: Epoch, offset: Offset, written_in: Epoch
) -> Any:
    in_later = s.is_intact_member(replica, epoch, later)
    return implies(
        all_of(in_later, s.may_yet_commit(epoch, offset, written_in)), holds_record_of(s.log(replica), offset, written_in)
    )


def holds_record_of(log: Any, offset: Any, epoch: Any) -> Any:
    """That a log holds a record of an epoch at `offset`."""
    return all_of(holds(log, offset), epoch_at(log, offset) == epoch)
