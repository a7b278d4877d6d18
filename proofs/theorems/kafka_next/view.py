"""A state as the conjuncts read it."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

from kspec.proofs.induction.invariant import ReplicaView
from kspec.proofs.symbolic.logic import all_of, any_of, epoch_at, has_same_record, holds, implies, is_one_of, member, no
from kspec.spec.broker.rules.fetcher import FetchStatus
from kspec.spec.values import NO_EPOCH


class KafkaNextView(ReplicaView):
    """A state as the conjuncts read it, with one replica in sync being enough; then a broker that stops loses nothing."""

    min_isr = 1

    # ---- brokers

    def epoch(self, replica: Any) -> Any:
        """The highest leader epoch that the broker ever took part in, even if it has lost that since."""
        return self.at("highestEpoch", replica)

    def broker_epoch(self, broker: Any) -> Any:
        """The broker epoch of a broker's process; -1 from when it stops until it is registered again."""
        return self.at("brokerEpoch", broker)

    def registered_at(self, broker: Any) -> Any:
        """The controller's last decision when the broker registered."""
        return self.at("registeredAt", broker)

    def is_intact(self, broker: Any, epoch: Any) -> Any:
        """Whether the broker has all records that it had when it was listed in the ISR or ELR of an epoch.

        A broker that may have lost records is no longer listed from the epoch on in which it registers again.
        """
        if self.min_isr == 1:
            return True
        return all_of(self.broker_epoch(broker) >= 0, epoch >= self.registered_at(broker).leader_epoch)

    def leads_in(self, broker: Any, epoch: Any) -> Any:
        """Whether the broker believes it leads in this epoch."""
        return all_of(self.leads(broker), self.role(broker).leader_epoch == epoch)

    def counts(self, leader: Any, replica: Any) -> Any:
        """Whether the high watermark of `leader` waits for `replica`: it is in the maximal ISR."""
        isr = self.role(leader).isr
        return any_of(member(replica, isr.isr), member(replica, isr.pending_isr))

    def counts_for_sure(self, leader: Any, replica: Any) -> Any:
        """Whether the high watermark waits for `replica`, even after a refusal of the leader's proposal."""
        isr = self.role(leader).isr
        proposed = all_of(member(replica, isr.pending_isr), no(self.isr_answer(self.latest(leader)).for_good))
        return any_of(member(replica, isr.isr), proposed)

    def is_unread(self, partition_epoch: Any, leader: Any) -> Any:
        """Whether `leader` has not replayed yet a decision that makes it leader, or gives it another ISR."""
        decided = self.decision(partition_epoch)
        unknown = all_of(self.leads_in(leader, decided.leader_epoch), partition_epoch > self.known_partition_epoch(leader))
        return all_of(
            partition_epoch <= self.partition.partition_epoch,
            decided.leader == leader,
            any_of(self.epoch(leader) < decided.leader_epoch, unknown),
        )

    def known_partition_epoch(self, leader: Any) -> Any:
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
        """The leader's state of `follower`: its end offset, and the broker epoch of its last fetch."""
        return self.at(f"knows of {follower}", leader)

    def heard(self, broker: Any, other: Any) -> Any:
        """The broker epoch of another broker in a broker's metadata."""
        return self.at(f"has heard of {other}", broker)

    def are_too_few(self, belongs: Callable[[Any], Any]) -> Any:
        """Whether fewer than min ISR brokers satisfy a condition."""
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

    def fetch_answer(self, number: Any) -> Any:
        """The answer to a fetch."""
        return self.at("fetchAnswer", number)

    def proposed(self, number: Any) -> Any:
        """A proposal of an ISR by its number."""
        return self.at("proposed", number)

    def named(self, proposal: Any, replica: Any) -> Any:
        """The broker epoch of a member that a proposal names."""
        return self.at(f"named {replica}", proposal)

    def stands(self, proposal: Any, replica: Any) -> Any:
        """Whether a proposed member was in sync before, or fetched with the last broker epoch that it had in the epoch."""
        asked = self.proposed(proposal)
        in_sync = member(replica, self.decision(asked.partition_epoch).isr)
        return any_of(in_sync, self.named(proposal, replica) == self.fetched(replica, asked.leader_epoch).broker_epoch)

    def latest(self, leader: Any) -> Any:
        """The proposal that a broker has made last."""
        return self.at("latestProposal", leader)

    def isr_answer(self, number: Any) -> Any:
        """The answer to a proposal."""
        return self.at("isrAnswer", number)

    # ---- the controller

    @property
    def partition(self) -> Any:
        """The controller's last decision."""
        return self.at("partition", None)

    def registered(self, broker: Any) -> Any:
        """The broker's registration: its broker epoch, and whether it is fenced."""
        return self.at("registered", broker)

    @property
    def next_broker_epoch(self) -> Any:
        """The broker epoch of the next broker that registers."""
        return self.at("nextBrokerEpoch", None)

    def is_listed(self, broker: Any, decided: Any) -> Any:
        """Whether a decision lists a broker in the ISR or ELR, so that it may be elected."""
        in_sync = member(broker, decided.isr)
        return in_sync if self.min_isr == 1 else any_of(in_sync, member(broker, decided.elr))

    def decision(self, partition_epoch: Any) -> Any:
        """A decision by its partition epoch."""
        return self.at("decision", partition_epoch)

    def leads_in_sync(self, decided: Any) -> Any:
        """Whether the leader of a decision is a broker, and in sync."""
        return self.some(lambda broker: all_of(decided.leader == broker, member(broker, decided.isr)))

    # ---- history

    def last_decision(self, epoch: Any) -> Any:
        """The controller's last decision in an epoch: the leader, and the last ISR and ELR."""
        return self.at("lastDecision", epoch)

    def leadership(self, epoch: Any) -> Any:
        """The leadership of an epoch: see `Leadership`."""
        return self.at("leadership", epoch)

    def leader_log(self, epoch: Any) -> Any:
        """The log of an epoch's leader, as it was when that left the epoch, or as it is."""
        return self.at("leaderLog", epoch)

    @property
    def furthest_commit(self) -> Any:
        """The epoch whose leader has committed furthest, and the end of its commits."""
        return self.at("furthestCommit", None)

    def is_committed(self, log: Any, offset: Any) -> Any:
        """Whether a log holds at `offset` the record that is committed there."""
        return all_of(
            offset < self.furthest_commit.end, has_same_record(log, self.leader_log(self.furthest_commit.epoch), offset)
        )

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
        book = self.leader_log(epoch)
        before = asked.offset - 1
        found = all_of(holds(book, before), epoch_at(book, before) == asked.last_epoch)
        return all_of(self.leadership(epoch).begun, any_of(asked.offset == 0, found))

    def has_shown(self, broker: Any, epoch: Any, end: Any) -> Any:
        """Whether the broker has shown, by a fetch in an epoch, that it holds its leader's log up to `end`."""
        last = self.fetched(broker, epoch)
        return all_of(self.continues(epoch, last), last.offset >= end)

    def may_commit(self, epoch: Any, offset: Any) -> Any:
        """Whether the leader of an epoch may have committed the record at `offset`, or may yet.

        It may not if a replica that it needs has moved on without having shown that it holds the record.
        """
        last_decision = self.last_decision(epoch)

        def does_not_prevent(broker: Any) -> Any:
            needed = all_of(self.is_listed(broker, last_decision), no(last_decision.leader == broker))
            return implies(needed, any_of(self.epoch(broker) <= epoch, self.has_shown(broker, epoch, offset + 1)))

        return all_of(holds(self.leader_log(epoch), offset), self.every(does_not_prevent))

    def may_yet_commit(self, epoch: Any, offset: Any, written_in: Any) -> Any:
        """The same of an epoch that its leader has yet to begin, and of a record at `offset` written in some epoch."""
        last_decision = self.last_decision(epoch)

        def does_not_prevent(broker: Any) -> Any:
            needed = all_of(self.is_listed(broker, last_decision), no(last_decision.leader == broker))
            last = self.fetched(broker, epoch)
            book = self.leader_log(last.last_epoch)
            had = all_of(
                last.offset > offset, last.last_epoch >= 0, holds(book, offset), epoch_at(book, offset) == written_in
            )
            return implies(needed, any_of(self.epoch(broker) <= epoch, had))

        may_begin = self.some(lambda broker: all_of(last_decision.leader == broker, self.epoch(broker) < epoch))
        return all_of(no(self.leadership(epoch).begun), may_begin, self.every(does_not_prevent))

    def is_intact_member(self, replica: Any, epoch: Any, later: Any) -> Any:
        """Whether a replica is listed in an epoch, has left an earlier one behind, and has all that it had then."""
        listed = all_of(later <= self.partition.leader_epoch, self.is_listed(replica, self.last_decision(later)))
        return all_of(epoch <= later, listed, self.epoch(replica) > epoch, self.is_intact(replica, later))

    def written_by_own_leader(self, broker: Any, asked: Any) -> Any:
        """The origin of a fetch's last epoch: its leader wrote the record; or the broker opened the epoch, and wrote no
        record.
        """
        written = self.leader_log(asked.last_epoch)
        before = asked.offset - 1
        began = self.leadership(asked.last_epoch).begun
        has = all_of(asked.last_epoch >= 0, began, holds(written, before), epoch_at(written, before) == asked.last_epoch)
        return any_of(
            all_of(asked.offset == 0, asked.last_epoch == NO_EPOCH),
            has,
            self.opened_only(broker, asked.last_epoch, asked.offset),
        )

    def opened_only(self, broker: Any, epoch: Any, end: Any) -> Any:
        """Whether the broker led in an epoch without writing anything, its log ending at `end`."""
        leadership = self.leadership(epoch)
        led = all_of(epoch >= 0, self.last_decision(epoch).leader == broker, leadership.begun)
        return all_of(led, leadership.start == end, self.leader_log(epoch).end_offset == end)


class LossyView(KafkaNextView):
    """A state as the conjuncts read it, where two replicas have to be in sync before anything is committed."""

    min_isr = 2
