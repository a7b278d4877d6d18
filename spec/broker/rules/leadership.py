"""Whether a replica leads, how it becomes leader, and when a started broker acts on metadata."""

import typing

from spec.log.algebra import LogT
from spec.values import BrokerId, Epoch, LeaderAndIsr, Offset


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


def has_caught_up(metadata_end: Offset, end_at_start: Offset) -> bool:
    """Whether a broker that has just started acts on its metadata: only once it has read all that was committed at its
    start.

    Otherwise it would replay its past, and lead again in an epoch in which an earlier incarnation of it has led. That epoch
    would then have two histories, which a comparison of epochs cannot tell apart.

    Parameters: the end of the metadata log that it has read, and the end that it learned when it started.

    **Kafka:** `MetadataLoader.stillNeedToCatchUp`, `BrokerServer.startup`; `BrokerMetadataListener` before 3.4.
    """
    return metadata_end >= end_at_start


def acts_on_any_metadata(metadata_end: Offset, end_at_start: Offset) -> bool:
    """A broker that has just started acts on the metadata that it has read so far. **Kafka:** no release."""
    return True


class StartLeading(typing.Protocol):
    """A rule for what a new leader writes to its epoch history, for a log of any carrier."""

    def __call__(self, log: LogT, epoch: Epoch) -> LogT:
        """The log as a leader of `epoch` starts with it."""
