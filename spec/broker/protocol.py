"""The rules of a broker that differ between Kafka's releases, as a record. `spec.releases.broker` has the releases."""

import typing
from collections.abc import Callable
from dataclasses import dataclass

from kspec.spec.broker.rules.divergence import Divergence
from kspec.spec.broker.rules.fetcher import FetchState, Start, Truncation
from kspec.spec.broker.rules.followers import Brokers, Follower, FollowerFetch, FollowerState
from kspec.spec.broker.rules.isr.errors import OnIsrError
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr, Proposal
from kspec.spec.broker.rules.isr.request import IsrRequest, IsrWriter
from kspec.spec.broker.rules.leadership import StartLeadingRule
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle
from kspec.spec.log.algebra import Log, LogT
from kspec.spec.log.batch import Batches
from kspec.spec.log.epoch_history import EpochHistory, Neighbours
from kspec.spec.log.local_log import AppendOutcome, LocalLog
from kspec.spec.log.producers import ProducerBatch, ProducerEntry, Producers
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.messages.broker_registration import BrokerRegistrationResponse
from kspec.spec.messages.fetch import FetchPosition, FetchRequest, FetchResponse, Isolation
from kspec.spec.messages.list_offsets import ListOffsetsResponse
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.values import (
    BrokerEpoch,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    LeaderAndIsr,
    MonotonicMs,
    Offset,
    PartitionEpoch,
)


class Truncate(typing.Protocol):
    """A rule that truncates or empties a log of any carrier."""

    def __call__(self, local: LocalLog[LogT], offset: Offset) -> LocalLog[LogT]:
        """The log up to `offset`, or from there on."""


class AppendFetchedRule(typing.Protocol):
    """A rule that appends a leader's records to a follower's log, for a log of any carrier."""

    def __call__(self, local: LocalLog[LogT], base_offset: Offset, batches: Batches) -> AppendOutcome[LogT]:
        """The log with the batches, the first of which lies at `base_offset`, or an error."""


@dataclass(frozen=True, slots=True)
class BrokerProtocol:
    """The rules in which the brokers of Kafka's releases differ."""

    name: str

    transactions: TransactionProtocol
    """The rules of the release about transactions."""

    # ---- Starting

    believes_epochs: Callable[[EpochHistory, Offset, Offset, tuple[Neighbours, ...], Epoch], bool]
    """Whether it believes the epochs in the file of a log that it opens, or makes them anew from the batches."""

    # ---- Becoming leader or follower

    takes_registration: Callable[[BrokerLifecycle, BrokerRegistrationResponse], bool]
    """From which answers a starting broker takes its broker epoch."""

    acts_on_metadata: Callable[[BrokerLifecycle, Offset, Offset], bool]
    """Whether a broker that has just started acts on metadata yet."""

    opens_ports: Callable[[BrokerLifecycle], bool]
    """Whether a broker that has just started answers other brokers and clients yet."""

    takes_announcement: Callable[[Epoch, LeaderIsr, Epoch, PartitionEpoch], bool]
    """Whether a replica accepts an announcement of the partition."""

    announced_isr: Callable[[LeaderIsr, PartitionIsr], LeaderIsr]
    """The leader's ISR state after an announcement."""

    begins_epoch: Callable[[Epoch, Epoch], bool]
    """Whether an announcement begins the leader's epoch, by the leader epoch that is known and the announced one."""

    hears_of_leader: Callable[[BrokerId], bool]
    """Whether a replica takes an announcement by which it does not lead: by the announced leader, if there is one."""

    stops_fetching: Callable[[bool, bool], bool]
    """Whether a follower stops fetching before its broker: by whether that is shutting down, and whether it is in sync."""

    start_leading: StartLeadingRule
    """The write of a new leader to its epoch history."""

    knows_followers: Callable[[bool, Epoch, Epoch], bool]
    """Whether a leader keeps its state of the followers in a new epoch."""

    keeps_of_followers: Callable[[FollowerState, MonotonicMs, bool, Offset], FollowerState]
    """The state that it then keeps of each: from its state, the time, whether it is in sync, and the leader's log end."""

    restarts_fetching: Callable[[BrokerId, Epoch, BrokerId, Epoch], bool]
    """Whether a follower restarts its fetcher."""

    start_following: Callable[[Log, Offset], Start]
    """The start of the fetcher, and whether the follower truncates first."""

    # ---- As leader

    check_sequences: Callable[[ProducerEntry, ProducerBatch], Error]
    """Whether the leader appends a batch of an idempotent producer, or the error."""

    finds_duplicate: Callable[[ProducerEntry, ProducerBatch], ProducerBatch | None]
    """The batch of which it takes another for a duplicate, if there is one."""

    producers_after_deletion: Callable[[Producers, Offset], Producers]
    """The state of producers that a replica keeps when the start of its log has moved."""

    min_isr: Callable[[int, int], int]
    """The number of in-sync replicas that acks=all requires."""

    serves: Callable[[BrokerId, LeaderAndIsr, Epoch, bool], Error]
    """Whether it answers a request, or the error."""

    epoch_lookup: Callable[[Log, Epoch], EpochEndOffset]
    """The end of an epoch in its log."""

    needs_leader: Callable[[FetchRequest], bool]
    """Whether only the leader answers a fetch."""

    read_replicas: Callable[[BrokerId, frozenset[BrokerId], tuple[Follower, ...], Offset], frozenset[BrokerId]]
    """To which replicas it may send a consumer that reads from an offset."""

    answers_unassigned: Callable[[FetchResponse, FetchRequest], FetchResponse]
    """The answer to a fetch by a broker that is no replica."""

    divergence: Callable[[Log, FetchPosition], Divergence]
    """The answer about the divergence of the follower's log."""

    notes_fetch: Callable[[FollowerState, FollowerFetch], FollowerState]
    """The state of a follower after a fetch."""

    notes_failed_fetch: Callable[[FollowerState], FollowerState]
    """The state of a follower after a refused fetch."""

    counts_fetch: Callable[[bool], bool]
    """Whether it takes a fetch for the follower's log end."""

    check_replica_epoch: Callable[[Brokers, BrokerId, BrokerEpoch], Error]
    """From which incarnations of a broker it takes fetches."""

    awaits: Callable[[bool, bool, bool], bool]
    """Whether the high watermark waits for a follower."""

    may_advance: Callable[[int, int], bool]
    """Whether the ISR is large enough to move the high watermark."""

    advances_after_fetch: Callable[[bool], bool]
    """After which fetches it looks at the high watermark, by whether the follower's log end has changed."""

    advances_when_granted: Callable[[Offset, Offset], Offset]
    """The high watermark once another ISR is granted, by the one before and the one that may be."""

    answered_high_watermark: Callable[[Offset, Offset], Offset]
    """The high watermark in the answer to a fetch: of the one before this fetch, and the one after."""

    latest_offset_lags: Callable[[Isolation, Offset, Offset], Error]
    """The error while clients must not see the latest offset yet."""

    answers_offset: Callable[[ListOffsetsResponse], ListOffsetsResponse]
    """Whether the answer about an offset has a leader epoch."""

    may_delete: Callable[[bool, bool], bool]
    """Whether clients may delete records, by whether `cleanup.policy` has "delete", and whether it has "compact"."""

    check_deletion: Callable[[bool, bool, Offset, Offset], Error]
    """The error of a deletion: by whether it leads, whether the policy allows it, the offset, and the high watermark."""

    deletes: Callable[[Error], bool]
    """Whether it deletes the records, by what it answers."""

    # ---- The ISR

    is_eligible: Callable[[Brokers, BrokerId, BrokerEpoch], bool]
    """Whether a replica may be in sync at all."""

    has_reached: Callable[[Offset, Offset, Offset], bool]
    """Whether a follower holds the records that it needs to join."""

    joins: Callable[[FollowerState, bool, bool], bool]
    """Whether it joins by all other conditions, given the leader's state of it, whether it is caught up, and whether the
    ISR is below min ISR."""

    drops: Callable[[frozenset[BrokerId], BrokerId, tuple[Follower, ...], Offset, MonotonicMs, int], frozenset[BrokerId]]
    """Members that it asks to drop: of the ISR, its own id, its followers, its log end, the time, and the longest lag."""

    propose: Callable[[LeaderIsr, frozenset[BrokerId]], Proposal]
    """The leader's ISR state while its proposal is unanswered."""

    counted_isr: Callable[[LeaderIsr], frozenset[BrokerId]]
    """The replicas that may be in sync during that time."""

    asks_for_isr: Callable[[AlterPartitionRequest], IsrRequest]
    """The request for another ISR, with its fields about the members."""

    may_ask: Callable[[bool], bool]
    """Whether it may ask for an ISR while its last request is unanswered."""

    takes_granted: Callable[[LeaderIsr, Epoch, PartitionIsr, Epoch], bool]
    """Whether it takes an answer that grants an ISR."""

    on_isr_error: OnIsrError
    """The reaction of the leader to a refusal."""

    # ---- As follower

    names_broker_epoch: Callable[[BrokerEpoch], BrokerEpoch]
    """The broker epoch in a fetch."""

    names_epochs: Callable[[FetchState], FetchPosition]
    """The leader epochs in a fetch."""

    truncate: Truncate
    """The truncation of the log."""

    restart: Truncate
    """The removal of the whole log, to start at another offset."""

    appends: AppendFetchedRule
    """The append of the records of an answer."""

    needs_no_answer: Callable[[FetchState, Log], bool]
    """Whether it truncates its log without asking where its last epoch ends."""

    may_truncate_by: Callable[[FetchState, Epoch], bool]
    """Whether an answer to that question counts, by the epoch in which it was asked."""

    truncation: Callable[[FetchState, Log, EpochEndOffset], Truncation]
    """The offset to which the log is truncated, and the follower's next state."""

    takes_answer: Callable[[FetchState, Offset, Epoch], bool]
    """Whether an answer to a fetch counts."""

    takes_records: Callable[[Batches, Epoch], Batches]
    """The records of an answer that are appended."""

    last_epoch: Callable[[FetchState, Batches], Epoch]
    """The last epoch in the next fetch."""

    high_watermark_when_diverging: Callable[[Log, Offset, Offset], Offset]
    """The high watermark of a follower that is told to truncate."""

    # ---- Traits of these rules, for models that are built on them

    isr_writer: IsrWriter
    """The party that writes an ISR that a leader wants, see `asks_for_isr`."""

    acts_on_old_metadata: bool
    """Whether a starting broker may act on metadata that are already out of date, see `acts_on_metadata`."""

    truncates_at_once: bool
    """Whether a new follower may truncate before its leader has answered, see `start_following`."""

    last_epoch_needs_answer: bool
    """Whether `last_epoch` depends on whether the leader has answered before."""

    answers_after_fetch: bool
    """Whether the answer to a fetch depends on what the leader knows of its followers, see `answered_high_watermark`."""

    promises_latest_offset: bool
    """Whether clients are promised a latest offset that does not go back, see `latest_offset_lags`."""
