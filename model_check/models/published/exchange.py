"""The parts of the models' larger steps: a request, its handling, and the effect of the answer."""

from collections.abc import Callable
from typing import NamedTuple

from kspec.model_check.models.carriers import ModelLog
from kspec.spec.broker.rules.epoch_lookup import answer_offset_for_leader_epoch
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.controller.rules.isr_writer import check_writer
from kspec.spec.log.local_log import LocalLog, truncate
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.messages.fetch import NO_FETCH, FetchPosition
from kspec.spec.published.fetch import fetch_request
from kspec.spec.published.replica import NO_ROLE
from kspec.spec.published.versions import Protocol
from kspec.spec.values import BrokerId, Epoch, EpochEndOffset, Error, LeaderAndIsr, Offset

Role = LeaderAndIsr
"""A replica's role is the last announcement that it has accepted."""


def ask(rules: Protocol, leader_log: ModelLog) -> Callable[[Epoch], EpochEndOffset]:
    """The round trip of one OffsetForLeaderEpoch request, to a leader whose fence has let the follower through."""
    return lambda epoch: answer_offset_for_leader_epoch(Error.NONE, rules.epoch_lookup(leader_log, epoch)).end


def truncated(log: ModelLog, high_watermark: Offset, offset: Offset) -> tuple[ModelLog, Offset]:
    """A log truncated at `offset`, with the high watermark that it then has."""
    return truncate(LocalLog(log, high_watermark), offset)


def is_in_office(partition: LeaderAndIsr, role: Role) -> bool:
    """Whether the controller accepts a new ISR from the replica in this role: it leads, in the controller's epoch.

    The published state of a partition has no partition epoch.
    """
    return check_writer(partition, role.leader, role.leader_epoch) == Error.NONE


class LeaderState(NamedTuple):
    """The state that a leader's decisions read: its own."""

    role: Role
    log: ModelLog
    high_watermark: Offset


NOT_LEADING = LeaderState(NO_ROLE, EMPTY_LOG, Offset(0))


class VisibleReplica(NamedTuple):
    """The part of a replica that others see: its leader and epoch, and the epochs of its log.

    Its fetches contain this: the one that it would send now, and those that it may have sent before.
    """

    role: Role
    epochs: ModelLog

    def fetch(self) -> FetchPosition:
        """The replica's next fetch."""
        return fetch_request(self.role, self.epochs, self.epochs.end_offset)

    def fetch_nearest_to(self, offset: Offset) -> FetchPosition:
        """Of all its fetches on the way to the end of its log, the one nearest to `offset`."""
        return fetch_request(self.role, self.epochs, min(offset, self.epochs.end_offset))


def leading(replica: BrokerId, role: Role, log: ModelLog, high_watermark: Offset) -> LeaderState:
    """The state of a presumed leader; one value for all other replicas."""
    return LeaderState(role, log, high_watermark) if is_leader(replica, role) else NOT_LEADING


NOT_FOLLOWING = VisibleReplica(NO_ROLE, EMPTY_LOG)


def following(leader: BrokerId, role: Role, log: ModelLog) -> VisibleReplica:
    """The part of a replica that a leader can learn; one value for all replicas that do not follow it."""
    if not is_leader(leader, role):
        return NOT_FOLLOWING
    return VisibleReplica(role._replace(isr=frozenset()), log.without_values())


def committed(log: ModelLog, high_watermark: Offset) -> ModelLog:
    """The records that a replica knows to be committed."""
    return log.truncate_to(high_watermark)


def has_replicated(rules: Protocol, leader: BrokerId, own: LeaderState, other: VisibleReplica, offset: Offset) -> bool:
    """Whether the leader may believe that a replica has its log up to `offset`, if the replica fetches at this moment.

    It remembers the replica's fetch nearest to `offset`, and no fetch of a replica that does not follow it.
    """
    fetch = other.fetch_nearest_to(offset) if is_leader(leader, other.role) else NO_FETCH
    return rules.has_replicated(own.role, own.log, fetch, offset)
