"""Conjuncts about leading: a leader's state of followers, its proposals, and the answers to them."""

from typing import Any

from kspec.model_check.models.messages.values import FIRST_BROKER_EPOCH, ProposalId
from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.symbolic.logic import all_of, any_of, implies, is_one_of, member, no
from kspec.proofs.theorems.kafka_next.view import KafkaNextView
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, Error, PartitionEpoch


@conjunct("KnownFollowers", "A leader knows of a follower only what the follower has shown in this very epoch.")
def known_followers(s: KafkaNextView, leader: BrokerId, follower: BrokerId) -> Any:
    if leader is follower or leader == follower:
        return True
    known, last = s.known(leader, follower), s.fetched(follower, s.epoch(leader))
    of_incarnation = all_of(
        known.broker_epoch >= FIRST_BROKER_EPOCH,
        known.broker_epoch <= last.broker_epoch,
        any_of(last.anew, known.broker_epoch == last.broker_epoch),
    )
    shown = implies(known.broker_epoch == last.broker_epoch, s.has_shown(follower, s.epoch(leader), known.end_offset))
    return implies(all_of(s.leads(leader), known.end_offset >= 0), all_of(of_incarnation, shown))


@conjunct(
    "AdmittedByLeader",
    "A broker that registers again returns to the ISR in the same epoch only by a proposal of its leader.",
)
def admitted_by_leader(s: KafkaNextView, replica: BrokerId, epoch: Epoch) -> Any:
    """An exception is the last in-sync replica, which stays in the ISR if the partition has no leader and no records are
    lost.
    """
    listed = all_of(s.fetched(replica, epoch).anew, s.is_listed(replica, s.last_decision(epoch)))
    return implies(
        listed, any_of(s.leadership(epoch).begun, all_of(s.min_isr == 1, s.last_decision(epoch).leader == NO_LEADER))
    )


@conjunct(
    "NewIncarnationsAreKnown",
    "A leader knows the new broker epoch of a follower that has registered again and is in sync again.",
)
def new_incarnations_are_known(s: KafkaNextView, leader: BrokerId, follower: BrokerId) -> Any:
    if leader is follower or leader == follower:
        return True
    epoch = s.epoch(leader)
    last, known = s.fetched(follower, epoch), s.known(leader, follower)
    admitted = all_of(s.leads(leader), last.anew, s.is_listed(follower, s.last_decision(epoch)))
    return implies(
        admitted,
        all_of(
            s.heard(leader, follower) >= last.broker_epoch, known.end_offset >= 0, known.broker_epoch == last.broker_epoch
        ),
    )


@conjunct("Proposals", "A leader proposes in its own epoch, on top of the ISR that it knows, and another ISR than that one.")
def proposals(s: KafkaNextView, proposal: ProposalId, leader: BrokerId) -> Any:
    asked = s.proposed(proposal)
    epoch, partition_epoch = asked.leader_epoch, asked.partition_epoch
    decided = s.decision(partition_epoch)
    another = s.some(lambda broker: no(member(broker, asked.isr) == member(broker, decided.isr)))
    return implies(
        asked.leader == leader,
        all_of(
            proposal < s.next_proposal,
            epoch >= 0,
            epoch <= s.epoch(leader),
            s.last_decision(epoch).leader == leader,
            s.leadership(epoch).begun,
            partition_epoch >= 0,
            partition_epoch <= s.partition.partition_epoch,
            decided.leader_epoch == epoch,
            implies(s.leads_in(leader, epoch), partition_epoch <= s.known_partition_epoch(leader)),
            member(leader, asked.isr),
            another,
        ),
    )


@conjunct("NoProposalYet", "The number of a proposal is used once.")
def no_proposal_yet(s: KafkaNextView, proposal: ProposalId) -> Any:
    leader = s.proposed(proposal).leader
    answer = s.isr_answer(proposal)
    unused = all_of(leader == NO_LEADER, no(answer.given), no(answer.for_good))
    somebody = any_of(leader == NO_LEADER, s.some(lambda broker: leader == broker))
    return all_of(somebody, s.next_proposal >= 0, implies(proposal >= s.next_proposal, unused))


@conjunct(
    "ProposedMembers",
    "A proposed member is in the ISR, or has shown all records with which the epoch's leader started.",
)
def proposed_members(s: KafkaNextView, proposal: ProposalId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    epoch = asked.leader_epoch
    in_sync = member(replica, s.decision(asked.partition_epoch).isr)
    named, last = s.named(proposal, replica), s.fetched(replica, epoch)
    joined = implies(named == last.broker_epoch, s.has_shown(replica, epoch, s.leadership(epoch).start))
    of_incarnation = all_of(named >= FIRST_BROKER_EPOCH, named <= last.broker_epoch)
    proposes = all_of(asked.leader >= 0, member(replica, asked.isr))
    return implies(proposes, any_of(in_sync, all_of(of_incarnation, joined)))


@conjunct(
    "ProposedBrokerEpochs",
    "A leader knows the broker epoch of a follower that it proposes to admit: the proposed one, or a later one.",
)
def proposed_broker_epochs(s: KafkaNextView, proposal: ProposalId, leader: BrokerId, replica: BrokerId) -> Any:
    if leader is replica or leader == replica:
        return True
    asked, named, known = s.proposed(proposal), s.named(proposal, replica), s.known(leader, replica)
    admits = all_of(member(replica, asked.isr), no(member(replica, s.decision(asked.partition_epoch).isr)))
    return implies(
        all_of(asked.leader == leader, s.leads_in(leader, asked.leader_epoch), admits),
        all_of(s.heard(leader, replica) >= named, known.broker_epoch >= named, known.end_offset >= 0),
    )


@conjunct(
    "ProposedCount",
    "A leader waits for every member that it has proposed until it hears that the proposal is not carried out.",
)
def proposed_count(s: KafkaNextView, proposal: ProposalId, leader: BrokerId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    open_ = all_of(s.leads_in(leader, asked.leader_epoch), asked.partition_epoch == s.known_partition_epoch(leader))
    may_be_granted = all_of(open_, no(s.isr_answer(proposal).for_good))
    return implies(all_of(asked.leader == leader, may_be_granted, member(replica, asked.isr)), s.counts(leader, replica))


@conjunct(
    "ProposedHaveCommitted", "A replica that a proposal may admit has shown all records that were committed in the epoch."
)
def proposed_have_committed(s: KafkaNextView, proposal: ProposalId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    epoch = asked.leader_epoch
    refused = s.isr_answer(proposal).for_good
    open_ = all_of(asked.leader >= 0, asked.partition_epoch == s.partition.partition_epoch, no(refused))
    another = all_of(member(replica, asked.isr), no(asked.leader == replica), s.stands(proposal, replica))
    committed = s.leadership(epoch).committed
    return implies(all_of(open_, another, committed > 0), s.has_shown(replica, epoch, committed))


@conjunct("LatestProposal", "A leader makes a proposal only after an answer that the one before is not applied.")
def latest_proposal(s: KafkaNextView, proposal: ProposalId, leader: BrokerId) -> Any:
    asked, answer = s.proposed(proposal), s.isr_answer(proposal)
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
        any_of(no(s.isr_answer(latest).for_good), s.isr_answer(latest).given),
    )
    return all_of(
        latest >= -1,
        latest < s.next_proposal,
        implies(all_of(asked.leader == leader, same), any_of(given_up, all_of(proposal == latest, pending))),
        implies(all_of(s.leads(leader), pending), awaited),
    )


@conjunct("IsrAnswers", "The answer to a proposal names the decision that the proposal led to.")
def isr_answers(s: KafkaNextView, proposal: ProposalId, replica: BrokerId) -> Any:
    asked, answer = s.proposed(proposal), s.isr_answer(proposal)
    granted = all_of(answer.given, is_one_of(answer.error, Error.NONE))
    decided = s.decision(answer.partition_epoch)
    rolls_back = is_one_of(answer.error, Error.INELIGIBLE_REPLICA, Error.OPERATION_NOT_ATTEMPTED)
    out_of_date = any_of(asked.leader_epoch < s.partition.leader_epoch, asked.partition_epoch < s.partition.partition_epoch)
    return all_of(
        answer.for_good == rolls_back,
        implies(answer.for_good, out_of_date),
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


@conjunct("LaterIsrWithinUnread", "After a decision that a leader does not know yet, the ISR of its epoch does not grow.")
def later_isr_within_unread(
    s: KafkaNextView, partition_epoch: PartitionEpoch, later: PartitionEpoch, leader: BrokerId, replica: BrokerId
) -> Any:
    decided, after = s.decision(partition_epoch), s.decision(later)
    same_epoch = all_of(later <= s.partition.partition_epoch, after.leader_epoch == decided.leader_epoch)
    return implies(
        all_of(s.is_unread(partition_epoch, leader), partition_epoch <= later, same_epoch),
        no_larger(s, replica, after, decided),
    )


def no_larger(s: KafkaNextView, replica: Any, after: Any, before: Any) -> Any:
    """That a replica which is in sync, or listed, was so before."""
    in_sync = implies(member(replica, after.isr), member(replica, before.isr))
    return in_sync if s.min_isr == 1 else all_of(in_sync, implies(s.is_listed(replica, after), s.is_listed(replica, before)))


@conjunct(
    "LastIsrWithinUnread", "The last ISR of an epoch is no larger than one of a decision that its leader does not know yet."
)
def last_isr_within_unread(s: KafkaNextView, partition_epoch: PartitionEpoch, leader: BrokerId, replica: BrokerId) -> Any:
    decided = s.decision(partition_epoch)
    return implies(
        s.is_unread(partition_epoch, leader), no_larger(s, replica, s.last_decision(decided.leader_epoch), decided)
    )


@conjunct("LeaderCountsIsr", "A leader waits for every member of the ISR that the controller decided last in its epoch.")
def leader_counts_isr(s: KafkaNextView, leader: BrokerId, replica: BrokerId) -> Any:
    """It also waits for every member of the ELR, or commits nothing."""
    last, counts = s.last_decision(s.epoch(leader)), s.counts_for_sure(leader, replica)
    in_sync = implies(member(replica, last.isr), counts)
    eligible = implies(member(replica, last.elr), any_of(counts, s.is_under_min(s.role(leader).isr.isr)))
    return implies(s.leads(leader), in_sync if s.min_isr == 1 else all_of(in_sync, eligible))


@conjunct("CommittedIsShown", "A leader commits only records that all awaited replicas have shown.")
def committed_is_shown(s: KafkaNextView, leader: BrokerId, replica: BrokerId, epoch: Epoch) -> Any:
    if leader is replica or leader == replica:
        return True
    last_decision, committed = s.last_decision(epoch), s.leadership(epoch).committed
    needed = all_of(last_decision.leader == leader, s.is_listed(replica, last_decision))
    return implies(all_of(needed, committed > 0), s.has_shown(replica, epoch, committed))
