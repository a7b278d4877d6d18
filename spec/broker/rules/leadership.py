"""Whether a replica leads, and how it becomes leader."""

import typing

from kspec.spec.log.algebra import LogT
from kspec.spec.values import BrokerId, Epoch, LeaderAndIsr


def is_leader(self_id: BrokerId, role: LeaderAndIsr) -> bool:
    """Whether a replica believes that it leads: the last announcement that it took names it.

    **Kafka:** `Partition.isLeader`.
    """
    return role.leader == self_id


def start_leading(log: LogT, epoch: Epoch) -> LogT:
    """A new leader's log unchanged: the epoch history lacks the new epoch until its first record.

    **Kafka:** `Partition.makeLeader` before KAFKA-7415.
    """
    return log


def start_leading_with_epoch_entry(log: LogT, epoch: Epoch) -> LogT:
    """A new leader's log with its epoch starting at the log's end, before any record is written in it.

    A follower that asks about the epoch before its first record then gets an answer.

    **Kafka:** `Partition.makeLeader` (KAFKA-7415, since 2.0.1 and 2.1).
    """
    return log.open_epoch(epoch)


class StartLeadingRule(typing.Protocol):
    """A rule for what a new leader writes to its epoch history, for a log of any carrier."""

    def __call__(self, log: LogT, epoch: Epoch) -> LogT:
        """The log as a leader of `epoch` starts with it."""
