"""Who leads, becoming a leader, and acting on metadata after a start."""

import typing

from spec.log.algebra import LogT
from spec.values import BrokerId, Epoch, LeaderAndIsr, Offset


def is_leader(self_id: BrokerId, role: LeaderAndIsr) -> bool:
    """Whether a replica believes that it leads: the announcement that it goes by names it.

    **Kafka:** `Partition.isLeader`.
    """
    return role.leader == self_id


def start_leading(log: LogT, epoch: Epoch) -> LogT:
    """A new leader's log as it finds it: its epoch is nowhere until the first record of the epoch.

    **Kafka:** `Partition.makeLeader` before KAFKA-7415.
    """
    return log


def start_leading_with_epoch_entry(log: LogT, epoch: Epoch) -> LogT:
    """A new leader's log with its epoch starting at the log's end, before any record is written in it.

    So that a follower which asks about an epoch in between gets an answer.

    **Kafka:** `Partition.makeLeader` (KAFKA-7415, since 2.0.1 and 2.1).
    """
    return log.open_epoch(epoch)


def has_caught_up(metadata_end: Offset, end_at_start: Offset) -> bool:
    """Whether a broker that has just started acts on its metadata: only once it knows all that was committed by then.

    It would otherwise replay its past, and lead again in an epoch in which an earlier incarnation of it has led. That epoch
    would then have two histories, which comparing epochs cannot tell apart.

    Parameters: the ends of the metadata log that it has read, and that it learned of when it started.

    **Kafka:** `MetadataLoader.stillNeedToCatchUp`, `BrokerServer.startup`; `BrokerMetadataListener` before 3.4.
    """
    return metadata_end >= end_at_start


def acts_on_any_metadata(metadata_end: Offset, end_at_start: Offset) -> bool:
    """A broker that has just started acts on whatever it has read so far. **Kafka:** no release."""
    return True


class StartLeading(typing.Protocol):
    """What a new leader notes in its log, whatever carries the log."""

    def __call__(self, log: LogT, epoch: Epoch) -> LogT:
        """The log as a leader of `epoch` starts with it."""
