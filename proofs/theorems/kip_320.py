"""KIP-320 (Kafka 2.1): every committed record is on every possible next leader.

The model is the checker's `kip-320` with its bounds lifted: logs and epochs have any length, records any values, and any
number of announcements is in flight. Two logs are added that no rule reads: every record that a leader ever committed, and
the epoch in which it did.
"""

from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

from kspec.model_check.core.model import Model, Slot, then
from kspec.model_check.core.parameters import resolve
from kspec.model_check.models import published
from kspec.model_check.models.published.settings import NAMES, PARAMETERS, TRUNCATION
from kspec.proofs.induction import exchange
from kspec.proofs.induction.invariant import ReplicaView, Theorem, Witness, conjunct, weakened_rules
from kspec.proofs.settings import ANY, Replicas
from kspec.proofs.symbolic.anyone import ANYONE
from kspec.proofs.symbolic.logic import (
    all_of,
    any_of,
    epoch_at,
    has_same_record,
    holds,
    implies,
    member,
    no,
    same_record,
    starts_at_zero,
    value_at,
)
from kspec.proofs.symbolic.values import Name
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.published.mutants import MUTANTS
from kspec.spec.published.versions import KIP_279, KIP_320, KIP_320_FIRST_TRY, Protocol
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, LeaderAndIsr, Offset, Record

ANY_EPOCH = Name("epoch", Epoch)
"""The epoch of the announcement that an action makes or applies: any."""


# ---- the model, and what it remembers for the proof


def remember_commit(
    committed: RecordLog, committers: RecordLog, role: LeaderAndIsr, log: RecordLog, high_watermark: Offset
) -> tuple[RecordLog, RecordLog]:
    """Both remembered logs after a leader commits the record at its high watermark: it may be the first to do so."""
    if high_watermark < committed.end_offset:
        return committed, committers
    return committed.append(log.read(high_watermark, 1)), committers.append((Record(0, role.leader_epoch),))


def with_memory(model: Model) -> Model:
    """The model with its memory of commits."""
    slots: dict[tuple[str, Any], Slot] = {(slot.name, slot.key): slot for slot in model.slots}
    committed = model.slot("committed", EMPTY_LOG)
    committers = model.slot("committers", EMPTY_LOG)
    for position, action in enumerate(model.actions):
        if action.name != NAMES[model.name].advance_high_watermark:
            continue
        own = [slots[name, action.args["leader"]] for name in ("role", "log", "highWatermark")]
        memory = then((committed, committers), remember_commit, committed, committers, *own)
        model.actions[position] = replace(action, effects=(*action.effects, memory))
    return model


def unbounded(replicas: Replicas, mutant: str | None = None, protocol: Protocol = KIP_320) -> Model:
    """The model for a proof: nothing is bounded, unless a number of replicas is given.

    Where two logs part is found at once; `proofs.induction.exchange` proves that the messages find the same.
    """
    given = {
        "replicas": inf if replicas == ANY else replicas,
        "log_size": inf,
        "max_records": inf,
        "max_epoch": inf,
        "truncation": "agreement",
        "mutant": mutant,
    }
    parameters = resolve(protocol.name, (*PARAMETERS, TRUNCATION), given)
    names: Any = ANYONE.names if replicas == ANY else None
    epochs: Any = [ANY_EPOCH]
    return with_memory(published.build(protocol.name, protocol, parameters, epochs, names))


def bounded(replicas: int, log_size: int, max_epoch: int, mutant: str | None = None, protocol: Protocol = KIP_320) -> Model:
    """The model for exploration."""
    given = {
        "replicas": replicas,
        "log_size": log_size,
        "max_records": log_size,
        "max_epoch": max_epoch,
        "mutant": mutant,
    }
    parameters = resolve(protocol.name, (*PARAMETERS, TRUNCATION), given)
    return with_memory(published.build(protocol.name, protocol, parameters))


class Kip320View(ReplicaView):
    """A state as the conjuncts read it."""

    def leads(self, replica: Any) -> Any:
        """Whether the replica presumes to lead."""
        return is_leader(replica, self.role(replica))

    def follows(self, replica: Any, leader: Any) -> Any:
        """Whether `replica` works in the epoch of `leader`, a presumed leader, under it."""
        return all_of(self.leads(leader), self.role(replica).leader == leader, self.epoch(replica) == self.epoch(leader))

    def announcement(self, epoch: Any) -> Any:
        """The controller's announcement for an epoch."""
        return self.at("announcement", epoch)

    def announced_leader(self, epoch: Any) -> Any:
        """The leader of an epoch, `NO_LEADER` if it has none or has not begun."""
        return self.announcement(epoch).leader

    @property
    def partition(self) -> Any:
        """The true state: leader, epoch and ISR as the controller has them."""
        return self.at("partition", None)

    @property
    def committed(self) -> Any:
        """Every record ever committed, as a log."""
        return self.at("committed", None)

    def committed_in(self, offset: Any) -> Any:
        """The epoch of the leader that committed the record at `offset` first."""
        return epoch_at(self.at("committers", None), offset)

    def has_committed(self, replica: Any, offset: Any) -> Any:
        """Whether the replica holds the committed record at `offset`."""
        return has_same_record(self.log(replica), self.committed, offset)

    def works_with(self, leader: Any, epoch: Any, replica: Any) -> Any:
        """Whether `replica` is in the ISR with which `leader` works in `epoch`: its own, else that of the announcement."""
        in_office = self.epoch(leader) == epoch
        return any_of(
            all_of(in_office, member(replica, self.role(leader).isr)),
            all_of(no(in_office), member(replica, self.announcement(epoch).isr)),
        )

    def is_stuck(self, leader: Any, epoch: Any) -> Any:
        """Whether some replica that `leader` needs in order to commit in `epoch` has moved on to a later epoch."""
        return self.some(lambda replica: all_of(self.works_with(leader, epoch, replica), self.epoch(replica) > epoch))

    def may_lead(self, leader: Any, epoch: Any) -> Any:
        """Whether `leader` was announced for `epoch`, and has not moved on to a later one."""
        return all_of(self.announced_leader(epoch) == leader, self.epoch(leader) <= epoch)


# ---- the invariant


@conjunct("LogStart", "No record is deleted at the start of a log, and a new leader records no epoch in it (as published).")
def log_start(s: Kip320View, replica: BrokerId) -> Any:
    return starts_at_zero(s.log(replica))


@conjunct("EpochsFromController", "The controller alone opens epochs, so no broker is in a later one than its.")
def epochs_from_controller(s: Kip320View, replica: BrokerId) -> Any:
    return all_of(s.epoch(replica) >= NO_EPOCH, s.epoch(replica) <= s.partition.leader_epoch)


@conjunct("Announcements", "Each epoch up to the controller's has one announcement, whose leader, if any, is in its ISR.")
def announcements(s: Kip320View, epoch: Epoch) -> Any:
    announced = s.announcement(epoch)
    begun = epoch <= s.partition.leader_epoch
    in_its_isr = s.some(lambda replica: all_of(announced.leader == replica, member(replica, announced.isr)))
    return all_of(
        implies(begun, all_of(announced.leader_epoch == epoch, any_of(announced.leader == NO_LEADER, in_its_isr))),
        implies(no(begun), _is_none(s, announced)),
    )


def _is_none(s: Kip320View, announced: Any) -> Any:
    """That this is no announcement at all."""
    nobody = no(s.some(lambda replica: member(replica, announced.isr)))
    return all_of(announced.leader == NO_LEADER, announced.leader_epoch == NO_EPOCH, nobody)


@conjunct("RoleIsAnnounced", "A replica leads or follows as the announcement of its epoch says.")
def role_is_announced(s: Kip320View, replica: BrokerId) -> Any:
    role = s.role(replica)
    return all_of(
        implies(role.leader_epoch >= 0, role.leader == s.announced_leader(role.leader_epoch)),
        implies(role.leader_epoch < 0, _is_none(s, role)),
    )


@conjunct("TrueLeader", "The controller's leader is the announced leader of its epoch, and is in sync.")
def true_leader(s: Kip320View) -> Any:
    state = s.partition
    in_sync = s.some(lambda replica: all_of(state.leader == replica, member(replica, state.isr)))
    return all_of(
        state.leader_epoch >= NO_EPOCH,
        implies(state.leader_epoch >= 0, state.leader == s.announced_leader(state.leader_epoch)),
        implies(state.leader_epoch < 0, state.leader == NO_LEADER),
        any_of(state.leader == NO_LEADER, in_sync),
    )


@conjunct("TrueIsr", "Only the true leader changes the ISR, its own and the controller's in one write.")
def true_isr(s: Kip320View, leader: BrokerId, replica: BrokerId) -> Any:
    state = s.partition
    in_true_isr = member(replica, state.isr)
    in_announced_isr = member(replica, s.announcement(state.leader_epoch).isr)
    is_leader, in_office = state.leader == leader, s.epoch(leader) == state.leader_epoch
    return all_of(
        implies(all_of(is_leader, in_office), in_true_isr == member(replica, s.role(leader).isr)),
        implies(all_of(is_leader, no(in_office)), in_true_isr == in_announced_isr),
        implies(all_of(state.leader == NO_LEADER, state.leader_epoch >= 0), in_true_isr == in_announced_isr),
    )


@conjunct(
    "FollowersAfterLeader",
    "A replica follows only a leader that answers it in its epoch, so the leader has entered the epoch before.",
)
def followers_after_leader(s: Kip320View, leader: BrokerId, follower: BrokerId) -> Any:
    return implies(s.role(follower).leader == leader, s.epoch(leader) >= s.epoch(follower))


@conjunct(
    "EpochsInOrder",
    "Epochs grow along a log, and none is later than its broker's: leaders append in growing epochs, and a follower takes"
    " records only from a leader of its own epoch.",
)
def epochs_in_order(s: Kip320View, replica: BrokerId, offset: Offset, later: Offset) -> Any:
    log = s.log(replica)
    return implies(
        all_of(offset <= later, holds(log, offset), holds(log, later)),
        all_of(
            epoch_at(log, offset) >= 0,
            epoch_at(log, offset) <= epoch_at(log, later),
            epoch_at(log, later) <= s.epoch(replica),
        ),
    )


@conjunct(
    "RecordsOfBegunEpochs", "A record of an epoch was written by the epoch's leader, which therefore has entered the epoch."
)
def records_of_begun_epochs(s: Kip320View, replica: BrokerId, offset: Offset) -> Any:
    log = s.log(replica)
    epoch = epoch_at(log, offset)
    begun = s.some(lambda leader: all_of(s.announced_leader(epoch) == leader, s.epoch(leader) >= epoch))
    return implies(holds(log, offset), begun)


@conjunct("LeaderHasItsEpoch", "Only the leader writes in its epoch, and it truncates nothing while it leads.")
def leader_has_its_epoch(s: Kip320View, leader: BrokerId, replica: BrokerId, offset: Offset) -> Any:
    log, own = s.log(replica), s.log(leader)
    of_its_epoch = all_of(holds(log, offset), epoch_at(log, offset) == s.epoch(leader))
    return implies(all_of(s.leads(leader), of_its_epoch), has_same_record(own, log, offset))


@conjunct(
    "SameEpochSameRecords",
    "Two logs with records of one epoch are equal up to the earlier of these records: one leader writes all records of an"
    " epoch, one after the other.",
)
def same_epoch_same_records(
    s: Kip320View, replica: BrokerId, other: BrokerId, offset: Offset, later: Offset, earlier: Offset
) -> Any:
    one, two = s.log(replica), s.log(other)
    same_epoch = all_of(holds(one, offset), holds(two, later), epoch_at(one, offset) == epoch_at(two, later))
    return implies(all_of(same_epoch, earlier <= offset, offset <= later), same_record(one, two, earlier))


@conjunct(
    "FollowerIsPrefix",
    "A follower truncates to the end of the agreement with its leader, then appends the leader's records.",
)
def follower_is_prefix(s: Kip320View, leader: BrokerId, follower: BrokerId, offset: Offset) -> Any:
    log = s.log(follower)
    return implies(all_of(s.follows(follower, leader), holds(log, offset)), has_same_record(s.log(leader), log, offset))


@conjunct(
    "WorkingIsrCoversLaterIsrs",
    "The ISR that a leader works with shrinks only with the true one; once the true one goes another way, a member has moved"
    " on, and the leader can commit nothing more.",
)
def working_isr_covers_later_isrs(s: Kip320View, leader: BrokerId, replica: BrokerId, epoch: Epoch, later: Epoch) -> Any:
    announced_later = all_of(epoch < later, later <= s.partition.leader_epoch)
    return implies(
        all_of(announced_later, s.may_lead(leader, epoch), member(replica, s.announcement(later).isr)),
        any_of(s.is_stuck(leader, epoch), s.works_with(leader, epoch, replica)),
    )


@conjunct("Memory", "Both memories of commits start at offset 0 and grow together.")
def memory(s: Kip320View) -> Any:
    committers = s.at("committers", None)
    return all_of(
        starts_at_zero(s.committed),
        starts_at_zero(committers),
        committers.end_offset == s.committed.end_offset,
    )


@conjunct(
    "CommittersHeldOffice", "A leader that commits has entered its epoch, and commits records of its own and earlier epochs."
)
def committers_held_office(s: Kip320View, offset: Offset) -> Any:
    epoch = s.committed_in(offset)
    in_office = s.some(lambda leader: all_of(s.announced_leader(epoch) == leader, s.epoch(leader) >= epoch))
    return implies(
        holds(s.committed, offset),
        all_of(epoch_at(s.committed, offset) >= 0, epoch_at(s.committed, offset) <= epoch, in_office),
    )


@conjunct(
    "CommittedOnLaterIsrs",
    "A member of the ISR of an announcement made after a commit took part in the commit, and keeps the record until it"
    " follows in that epoch; if it leads there, it keeps the record, too.",
)
def committed_on_later_isrs(s: Kip320View, replica: BrokerId, offset: Offset, later: Epoch) -> Any:
    committed_before = all_of(holds(s.committed, offset), s.committed_in(offset) < later)
    in_isr = all_of(later <= s.partition.leader_epoch, member(replica, s.announcement(later).isr))
    not_following = any_of(s.epoch(replica) < later, all_of(s.epoch(replica) == later, s.announced_leader(later) == replica))
    return implies(
        all_of(committed_before, in_isr),
        all_of(s.epoch(replica) >= s.committed_in(offset), implies(not_following, s.has_committed(replica, offset))),
    )


@conjunct(
    "CommittedOnTrueIsr", "Every committed record is on every member of the true ISR, and so on every possible next leader."
)
def committed_on_true_isr(s: Kip320View, replica: BrokerId, offset: Offset) -> Any:
    return implies(
        all_of(holds(s.committed, offset), member(replica, s.partition.isr)),
        all_of(s.epoch(replica) >= s.committed_in(offset), s.has_committed(replica, offset)),
    )


@conjunct("BelowHighWatermark", "Every record below a replica's high watermark was committed, and the replica holds it.")
def below_high_watermark(s: Kip320View, replica: BrokerId, offset: Offset) -> Any:
    return all_of(
        s.high_watermark(replica) <= s.committed.end_offset,
        implies(offset < s.high_watermark(replica), s.has_committed(replica, offset)),
    )


@conjunct("OwnCommits", "A leader's high watermark is past all records that it has committed in its epoch.")
def own_commits(s: Kip320View, leader: BrokerId, offset: Offset) -> Any:
    own = all_of(holds(s.committed, offset), s.committed_in(offset) == s.epoch(leader))
    return implies(all_of(s.leads(leader), own), offset < s.high_watermark(leader))


# ---- not needed for the proof: where counterexamples are looked for first


@conjunct("RecordsWereWritten", "Values are counted up as they are written.")
def records_were_written(s: Kip320View, replica: BrokerId, offset: Offset) -> Any:
    log = s.log(replica)
    value = value_at(log, offset)
    written = all_of(value >= 0, value < s.at("nextRecord", None))
    return all_of(s.at("nextRecord", None) >= 0, implies(holds(log, offset), written))


@conjunct("FollowersKnowTheAnnouncedIsr", "Only a leader changes the ISR that it was told.")
def followers_know_the_announced_isr(s: Kip320View, replica: BrokerId, other: BrokerId) -> Any:
    role = s.role(replica)
    told = member(other, s.announcement(role.leader_epoch).isr)
    follows = all_of(role.leader_epoch >= 0, no(s.leads(replica)))
    return implies(follows, member(other, role.isr) == told)


@conjunct("LeaderIsInItsIsr", "A leader never takes itself out of its ISR.")
def leader_is_in_its_isr(s: Kip320View, replica: BrokerId) -> Any:
    return implies(s.leads(replica), member(replica, s.role(replica).isr))


INVARIANT = (
    log_start,
    epochs_from_controller,
    announcements,
    role_is_announced,
    true_leader,
    true_isr,
    followers_after_leader,
    epochs_in_order,
    records_of_begun_epochs,
    leader_has_its_epoch,
    same_epoch_same_records,
    follower_is_prefix,
    working_isr_covers_later_isrs,
    memory,
    committers_held_office,
    committed_on_later_isrs,
    committed_on_true_isr,
    below_high_watermark,
    own_commits,
)


def committed_across_epochs(s: Kip320View) -> bool:
    """A witness: a record of the first epoch and one of a later epoch are committed, and the true ISR has two members."""
    committed: RecordLog = s.committed
    epochs = {record.leader_epoch for record in committed.records}
    return len(epochs) > 1 and len(s.partition.isr) > 1


KIP_320_THEOREM = Theorem(
    name=KIP_320.name,
    summary="every committed record is on every possible next leader",
    model=unbounded,
    bounded=bounded,
    view=Kip320View,
    conjuncts=INVARIANT,
    properties=("StrongIsr", "CommittedOnNextLeader", "LogMatching", "FollowersMatchLeader"),
    witness=Witness(committed_across_epochs, (2, 1)),
    realistic=(records_were_written, followers_know_the_announced_isr, leader_is_in_its_isr),
    mutants=weakened_rules(KIP_320, MUTANTS),
    premises=(ANY_EPOCH >= 0,),  # type: ignore[arg-type]
    lemmas=((exchange.TASK, exchange.lemma(KIP_320)),),
    any_number=True,
)


def claimed_of(protocol: Protocol) -> Theorem:
    """The same claim of an earlier version, which does not keep it: the induction fails."""
    return replace(
        KIP_320_THEOREM,
        name=protocol.name,
        model=partial(unbounded, protocol=protocol),
        bounded=partial(bounded, protocol=protocol),
        mutants={},
        lemmas=(),
        holds=False,
    )


KIP_279_CLAIM, KIP_320_FIRST_TRY_CLAIM = claimed_of(KIP_279), claimed_of(KIP_320_FIRST_TRY)
