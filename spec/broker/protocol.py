"""The rules of a broker that differ between Kafka's releases, as a record. `spec.releases.broker` has the releases."""

import typing
from collections.abc import Callable
from dataclasses import dataclass

from spec.broker.rules.divergence import Divergence
from spec.broker.rules.fetcher import FetchState, Start, Truncation
from spec.broker.rules.followers import Brokers
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
    """The rules in which the brokers of Kafka's releases differ.

    Becoming leader or follower:

    - `takes_registration`: from which answers a starting broker takes its broker epoch;
    - `acts_on_metadata`: when a broker that has just started begins to act on metadata;
    - `takes_announcement`: which announcements of the partition a replica accepts;
    - `announced_isr`: the leader's ISR state after an announcement;
    - `start_leading`: what a new leader writes to its epoch history;
    - `knows_followers`: when a leader keeps its state of the followers in a new epoch;
    - `restarts_fetching`: when a follower restarts its fetcher;
    - `start_following`: where the fetcher starts, and whether the follower truncates first.

    As leader:

    - `check_sequences`: which batches of idempotent producers the leader appends;
    - `min_isr`: how many in-sync replicas acks=all requires;
    - `serves`: which requests it answers;
    - `epoch_lookup`: where an epoch ends in its log;
    - `divergence`: what it answers about the follower's log;
    - `counts_fetch`: which fetches it takes for the follower's log end;
    - `check_replica_epoch`: from which incarnations of a broker it takes fetches;
    - `awaits`: which followers the high watermark waits for;
    - `may_advance`: whether the ISR is large enough to move the high watermark;
    - `latest_offset_lags`: when clients must not see the latest offset yet.

    The ISR:

    - `is_eligible`: which replicas may be in sync at all;
    - `has_reached`: which records a follower must hold before it joins;
    - `joins`: what else must hold before it joins;
    - `propose`: the leader's ISR state while its proposal is unanswered;
    - `counted_isr`: which replicas may be in sync during that time;
    - `asks_for_isr`: how it asks for another ISR, and what the request says about the members;
    - `on_isr_error`: what the leader does after a refusal.

    As follower:

    - `names_broker_epoch`: the broker epoch in a fetch;
    - `names_epochs`: the leader epochs in a fetch;
    - `truncate`, `truncation`: how and where the log is truncated;
    - `takes_answer`: which answers to a fetch count;
    - `takes_records`: which records of an answer are appended;
    - `last_epoch`: the last epoch in the next fetch;
    - `high_watermark_when_diverging`: the high watermark of a follower that is told to truncate.

    Traits of these rules, for models that are built on them:

    - `isr_writer`: which party writes an ISR that a leader wants, see `asks_for_isr`;
    - `acts_on_old_metadata`: whether a starting broker may act on metadata that are already out of date, see
      `acts_on_metadata`;
    - `truncates_at_once`: whether a new follower may truncate before its leader has answered, see `start_following`;
    - `last_epoch_needs_answer`: whether `last_epoch` depends on whether the leader has answered before;
    - `promises_latest_offset`: whether clients are promised a latest offset that does not go back, see `latest_offset_lags`.
    """

    name: str
    takes_registration: Callable[[BrokerLifecycle, BrokerRegistrationResponse], bool]
    acts_on_metadata: Callable[[Offset, Offset], bool]
    takes_announcement: Callable[[Epoch, LeaderIsr, Epoch, PartitionEpoch], bool]
    announced_isr: Callable[[LeaderIsr, PartitionIsr], LeaderIsr]
    start_leading: StartLeading
    knows_followers: Callable[[bool, Epoch, Epoch], bool]
    restarts_fetching: Callable[[BrokerId, Epoch, BrokerId, Epoch], bool]
    start_following: Callable[[Log, Offset], Start]
    check_sequences: Callable[[ProducerEntry, ProducerBatch], Error]
    min_isr: Callable[[int, int], int]
    serves: Callable[[BrokerId, LeaderAndIsr, Epoch, bool], Error]
    epoch_lookup: Callable[[Log, Epoch], EpochEndOffset]
    divergence: Callable[[Log, FetchPosition], Divergence]
    counts_fetch: Callable[[bool], bool]
    check_replica_epoch: Callable[[Brokers, BrokerId, BrokerEpoch], Error]
    awaits: Callable[[bool, bool, bool], bool]
    may_advance: Callable[[int, int], bool]
    latest_offset_lags: Callable[[Isolation, Offset, Offset], Error]
    is_eligible: Callable[[Brokers, BrokerId, BrokerEpoch], bool]
    has_reached: Callable[[Offset, Offset, Offset], bool]
    joins: Callable[[bool, bool], bool]
    propose: Callable[[LeaderIsr, frozenset[BrokerId]], Proposal]
    counted_isr: Callable[[LeaderIsr], frozenset[BrokerId]]
    asks_for_isr: Callable[[AlterPartitionRequest], IsrRequest]
    on_isr_error: OnIsrError
    names_broker_epoch: Callable[[BrokerEpoch], BrokerEpoch]
    names_epochs: Callable[[FetchState], FetchPosition]
    truncate: Truncate
    truncation: Callable[[FetchState, Log, EpochEndOffset], Truncation]
    takes_answer: Callable[[FetchState, Offset, Epoch], bool]
    takes_records: Callable[[Batches, Epoch], Batches]
    last_epoch: Callable[[FetchState, Batches], Epoch]
    high_watermark_when_diverging: Callable[[Log, Offset, Offset], Offset]
    isr_writer: IsrWriter
    acts_on_old_metadata: bool
    truncates_at_once: bool
    last_epoch_needs_answer: bool
    promises_latest_offset: bool
