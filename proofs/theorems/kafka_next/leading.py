"""Conjuncts about leading: what a leader knows of followers, its proposals, and the answers to them."""

from typing import Any

from model_check.models.messages.values import FIRST_RUN, ProposalId
from proofs.induction.invariant import conjunct
from proofs.symbolic.logic import all_of, any_of, implies, is_one_of, member, no
from proofs.theorems.kafka_next.view import View
from spec.values import NO_LEADER, BrokerId, Epoch, Error, PartitionEpoch


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
def proposals(s: View, proposal: ProposalId, leader: BrokerId) -> Any:
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
def no_proposal_yet(s: View, proposal: ProposalId) -> Any:
    leader = s.proposed(proposal).leader
    answer = s.verdict(proposal)
    unused = all_of(leader == NO_LEADER, no(answer.given), no(answer.for_good))
    somebody = any_of(leader == NO_LEADER, s.some(lambda broker: leader == broker))
    return all_of(somebody, s.next_proposal >= 0, implies(proposal >= s.next_proposal, unused))


@conjunct("ProposedMembers", "Who is proposed for the ISR is in it, or has shown all that the epoch's leader started with.")
def proposed_members(s: View, proposal: ProposalId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    epoch = asked.leader_epoch
    in_sync = member(replica, s.decision(asked.partition_epoch).isr)
    named, last = s.named(proposal, replica), s.fetched(replica, epoch)
    joined = implies(named == last.run, s.has_shown(replica, epoch, s.term(epoch).start))
    by_run = all_of(named >= FIRST_RUN, named <= last.run)
    proposes = all_of(asked.leader >= 0, member(replica, asked.isr))
    return implies(proposes, any_of(in_sync, all_of(by_run, joined)))


@conjunct("ProposedRuns", "Whom a leader proposes to admit it knows by the run that it names, or by a later one.")
def proposed_runs(s: View, proposal: ProposalId, leader: BrokerId, replica: BrokerId) -> Any:
    if leader is replica or leader == replica:
        return True
    asked, named, known = s.proposed(proposal), s.named(proposal, replica), s.known(leader, replica)
    admits = all_of(member(replica, asked.isr), no(member(replica, s.decision(asked.partition_epoch).isr)))
    return implies(
        all_of(asked.leader == leader, s.leads_in(leader, asked.leader_epoch), admits),
        all_of(s.heard(leader, replica) >= named, known.run >= named, known.end_offset >= 0),
    )


@conjunct("ProposedCount", "Until it knows better, a leader waits for everybody whom it has proposed.")
def proposed_count(s: View, proposal: ProposalId, leader: BrokerId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    open_ = all_of(s.leads_in(leader, asked.leader_epoch), asked.partition_epoch == s.known_version(leader))
    may_be_granted = all_of(open_, no(s.verdict(proposal).for_good))
    return implies(all_of(asked.leader == leader, may_be_granted, member(replica, asked.isr)), s.counts(leader, replica))


@conjunct("ProposedHaveCommitted", "Who may be admitted by a proposal has shown all that was committed in the epoch.")
def proposed_have_committed(s: View, proposal: ProposalId, replica: BrokerId) -> Any:
    asked = s.proposed(proposal)
    epoch = asked.leader_epoch
    refused = s.verdict(proposal).for_good
    open_ = all_of(asked.leader >= 0, asked.partition_epoch == s.partition.partition_epoch, no(refused))
    another = all_of(member(replica, asked.isr), no(asked.leader == replica), s.stands(proposal, replica))
    committed = s.term(epoch).committed
    return implies(all_of(open_, another, committed > 0), s.has_shown(replica, epoch, committed))


@conjunct("LatestProposal", "A leader makes a proposal after it has been told that the one before is not carried out.")
def latest_proposal(s: View, proposal: ProposalId, leader: BrokerId) -> Any:
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
def verdicts(s: View, proposal: ProposalId, replica: BrokerId) -> Any:
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
