"""The published models' protocols as data: a version is a record of rules.

A later version is an earlier one with some rules replaced. So the difference of two records shows the changes of the KIPs
between them. Settings (unclean election, acks, min.insync.replicas) are not rules and do not appear here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from kspec.spec.broker.rules.epoch_lookup import look_up_as_designed
from kspec.spec.broker.rules.fencing import check_serves
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, Proposal, maximal_isr, propose
from kspec.spec.broker.rules.leadership import StartLeadingRule, start_leading
from kspec.spec.log.algebra import Log
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.published.election import fail_broker_emptying_isr
from kspec.spec.published.fetch import fetch_fenced_by_last_epoch, fetch_fenced_by_leader_epoch, fetch_without_fencing
from kspec.spec.published.high_watermark import replicated_by_last_epoch, replicated_by_leader_epoch, replicated_by_offset
from kspec.spec.published.isr import join_after_epoch_start, join_at_high_watermark
from kspec.spec.published.truncation import (
    Ask,
    answer_anyone,
    look_up_in_records,
    truncate_to_common_epoch,
    truncate_to_epoch_end,
    truncate_to_high_watermark,
)
from kspec.spec.values import BrokerId, Epoch, EpochEndOffset, Error, LeaderAndIsr, Offset

TruncationRule: TypeAlias = Callable[[Log, Offset, Ask], Offset]
"""A rule for the offset up to which a follower keeps its log, from the log and its high watermark."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """The rules in which the versions differ.

    - `truncation`: up to which offset a new follower keeps its log, `None`: all of it;
    - `truncation_when_refused`: the same for a follower whose fetch was refused for its log, `None`: no fetch is refused for
      that;
    - `epoch_lookup`: how a replica finds where an epoch ends in its log;
    - `truncation_fencing`: which OffsetForLeaderEpoch requests a replica answers;
    - `fetch_fencing`: which fetches a leader serves;
    - `has_replicated`: when a leader believes that a follower has replicated up to an offset;
    - `may_join`: what else must hold before a follower joins the ISR;
    - `start_leading`: what a new leader writes to its epoch history;
    - `fail_broker`: how the controller takes a failed broker out of the partition.
    """

    name: str
    truncation: TruncationRule | None
    truncation_when_refused: TruncationRule | None
    epoch_lookup: Callable[[Log, Epoch], EpochEndOffset]
    truncation_fencing: Callable[[BrokerId, LeaderAndIsr, Epoch, bool], Error]
    fetch_fencing: Callable[[LeaderAndIsr, Log, FetchPosition], Error]
    has_replicated: Callable[[LeaderAndIsr, Log, FetchPosition, Offset], bool]
    may_join: Callable[[LeaderAndIsr, Log, Offset], bool]
    start_leading: StartLeadingRule
    fail_broker: Callable[[LeaderAndIsr, BrokerId], LeaderAndIsr]


@dataclass(frozen=True, slots=True)
class IsrProtocol:
    """The rules of ISR changes by request (KIP-497).

    - `counted_isr`: which replicas the high watermark waits for;
    - `propose`: the leader's ISR state while its proposal is unanswered.
    """

    name: str
    counted_isr: Callable[[LeaderIsr], frozenset[BrokerId]]
    propose: Callable[[LeaderIsr, frozenset[BrokerId]], Proposal]


TRUNCATE_TO_HW = Protocol(
    name="truncate-to-hw",
    truncation=truncate_to_high_watermark,
    truncation_when_refused=None,
    epoch_lookup=look_up_in_records,
    truncation_fencing=answer_anyone,
    fetch_fencing=fetch_without_fencing,
    has_replicated=replicated_by_offset,
    may_join=join_at_high_watermark,
    start_leading=start_leading,
    fail_broker=fail_broker_emptying_isr,
)
"""Up to 0.10: a new follower keeps what lies below its high watermark."""

KIP_101 = replace(TRUNCATE_TO_HW, name="kip-101", truncation=truncate_to_epoch_end)
"""0.11: a new follower asks where the epoch of its last record ends. The leader looks into its records."""

KIP_279 = replace(KIP_101, name="kip-279", truncation=truncate_to_common_epoch, epoch_lookup=look_up_as_designed)
"""2.0: the leader names the largest epoch up to the one asked, and the follower asks until both know one."""

KIP_320_FIRST_TRY = replace(
    KIP_279,
    name="kip-320-first-try",
    truncation=None,
    truncation_when_refused=truncate_to_common_epoch,
    fetch_fencing=fetch_fenced_by_last_epoch,
    has_replicated=replicated_by_last_epoch,
    may_join=join_after_epoch_start,
)
"""Refuted: fetches are fenced by the epoch of the follower's last record, and a follower truncates when refused."""

KIP_320 = replace(
    KIP_279,
    name="kip-320",
    truncation_fencing=check_serves,
    fetch_fencing=fetch_fenced_by_leader_epoch,
    has_replicated=replicated_by_leader_epoch,
    may_join=join_after_epoch_start,
)
"""2.1: every request of a follower carries its leader epoch, and counts in that epoch only."""

ASYNC_ISR = IsrProtocol(name="async-isr", counted_isr=maximal_isr, propose=propose)
"""2.7 (KIP-497): ISR changes are requests, and the high watermark waits for every replica that may be in sync."""
