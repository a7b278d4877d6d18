"""The rules of a broker that differ between Kafka's releases, as a record. `spec.releases.broker` has the releases."""

import typing
from collections.abc import Callable
from dataclasses import dataclass

from spec.broker.rules.divergence import Divergence
from spec.broker.rules.fetcher import FetchState, Start, Truncation
from spec.broker.rules.followers import Brokers, FollowerFetch, FollowerState
from spec.broker.rules.isr.errors import OnIsrError
from spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr, Proposal
from spec.broker.rules.isr.request import IsrRequest, IsrWriter
from spec.broker.rules.leadership import StartLeading
from spec.broker.rules.lifecycle import BrokerLifecycle
from spec.log.algebra import Log, LogT
from spec.log.batch import Batches
from spec.log.local_log import LocalLog
from spec.log.producers import ProducerBatch, ProducerEntry
from spec.messages.alter_partition import AlterPartitionRequest
from spec.messages.broker_registration import BrokerRegistrationResponse
from spec.messages.fetch import FetchPosition, Isolation
from spec.values import BrokerEpoch, BrokerId, Epoch, EpochEndOffset, Error, LeaderAndIsr, Offset, PartitionEpoch


class Truncate(typing.Protocol):
    """A rule that truncates a log of any carrier."""

    def __call__(self, local: LocalLog[LogT], offset: Offset) -> LocalLog[LogT]:
        """The log up to `offset`."""


@dataclass(frozen=True, slots=True)
class BrokerProtocol:
    """The rules in which the brokers of Kafka's releases differ."""

    name: str

    # ---- Becoming leader or follower

    takes_registration: Callable[[BrokerLifecycle, BrokerRegistrationResponse], bool]
    """From which answers a starting broker takes its broker epoch."""

    acts_on_metadata: Callable[[BrokerLifecycle, Offset, Offset], bool]
    """When a broker that has just started begins to act on metadata."""

    opens_ports: Callable[[BrokerLifecycle], bool]
    """When a broker that has just started answers other brokers and clients."""

    takes_announcement: Callable[[Epoch, LeaderIsr, Epoch, PartitionEpoch], bool]
    """Which announcements of the partition a replica accepts."""

    announced_isr: Callable[[LeaderIsr, PartitionIsr], LeaderIsr]
    """The leader's ISR state after an announcement."""

    start_leading: StartLeading
    """What a new leader writes to its epoch history."""

    knows_followers: Callable[[bool, Epoch, Epoch], bool]
    """When a leader keeps its state of the followers in a new epoch."""

    restarts_fetching: Callable[[BrokerId, Epoch, BrokerId, Epoch], bool]
    """When a follower restarts its fetcher."""

    start_following: Callable[[Log, Offset], Start]
    """Where the fetcher starts, and whether the follower truncates first."""

    # ---- As leader

    check_sequences: Callable[[ProducerEntry, ProducerBatch], Error]
    """Which batches of idempotent producers the leader appends."""

    min_isr: Callable[[int, int], int]
    """How many in-sync replicas acks=all requires."""

    serves: Callable[[BrokerId, LeaderAndIsr, Epoch, bool], Error]
    """Which requests it answers."""

    epoch_lookup: Callable[[Log, Epoch], EpochEndOffset]
    """Where an epoch ends in its log."""

    divergence: Callable[[Log, FetchPosition], Divergence]
    """What it answers about the follower's log."""

    notes_fetch: Callable[[FollowerState, FollowerFetch], FollowerState]
    """What it remembers of a follower that has fetched."""

    counts_fetch: Callable[[bool], bool]
    """Which fetches it takes for the follower's log end."""

    check_replica_epoch: Callable[[Brokers, BrokerId, BrokerEpoch], Error]
    """From which incarnations of a broker it takes fetches."""

    awaits: Callable[[bool, bool, bool], bool]
    """Which followers the high watermark waits for."""

    may_advance: Callable[[int, int], bool]
    """Whether the ISR is large enough to move the high watermark."""

    latest_offset_lags: Callable[[Isolation, Offset, Offset], Error]
    """When clients must not see the latest offset yet."""

    # ---- The ISR

    is_eligible: Callable[[Brokers, BrokerId, BrokerEpoch], bool]
    """Which replicas may be in sync at all."""

    has_reached: Callable[[Offset, Offset, Offset], bool]
    """Which records a follower must hold before it joins."""

    joins: Callable[[FollowerState, bool, bool], bool]
    """What else must hold before it joins, given the leader's state of it, whether it is caught up, and whether the
    ISR is below min ISR."""

    propose: Callable[[LeaderIsr, frozenset[BrokerId]], Proposal]
    """The leader's ISR state while its proposal is unanswered."""

    counted_isr: Callable[[LeaderIsr], frozenset[BrokerId]]
    """Which replicas may be in sync during that time."""

    asks_for_isr: Callable[[AlterPartitionRequest], IsrRequest]
    """How it asks for another ISR, and what the request says about the members."""

    may_ask: Callable[[bool], bool]
    """Whether it may ask for an ISR while its last request is unanswered."""

    on_isr_error: OnIsrError
    """What the leader does after a refusal."""

    # ---- As follower

    names_broker_epoch: Callable[[BrokerEpoch], BrokerEpoch]
    """The broker epoch in a fetch."""

    names_epochs: Callable[[FetchState], FetchPosition]
    """The leader epochs in a fetch."""

    truncate: Truncate
    """How the log is truncated."""

    truncation: Callable[[FetchState, Log, EpochEndOffset], Truncation]
    """Where the log is truncated, and what the follower does next."""

    takes_answer: Callable[[FetchState, Offset, Epoch], bool]
    """Which answers to a fetch count."""

    takes_records: Callable[[Batches, Epoch], Batches]
    """Which records of an answer are appended."""

    last_epoch: Callable[[FetchState, Batches], Epoch]
    """The last epoch in the next fetch."""

    high_watermark_when_diverging: Callable[[Log, Offset, Offset], Offset]
    """The high watermark of a follower that is told to truncate."""

    # ---- Traits of these rules, for models that are built on them

    isr_writer: IsrWriter
    """Which party writes an ISR that a leader wants, see `asks_for_isr`."""

    acts_on_old_metadata: bool
    """Whether a starting broker may act on metadata that are already out of date, see `acts_on_metadata`."""

    truncates_at_once: bool
    """Whether a new follower may truncate before its leader has answered, see `start_following`."""

    last_epoch_needs_answer: bool
    """Whether `last_epoch` depends on whether the leader has answered before."""

    promises_latest_offset: bool
    """Whether clients are promised a latest offset that does not go back, see `latest_offset_lags`."""
