"""Becoming leader or follower, and starting again after a stop."""

from typing import TypeVar

from spec.log import Log
from spec.values import NO_LEADER, BrokerId, Epoch, LeaderAndIsr, Offset

LogT = TypeVar("LogT", bound=Log)

NO_ROLE = LeaderAndIsr(NO_LEADER, Epoch(-1), frozenset())
"""The role of a replica that has not heard from the controller."""


def is_newer(role: LeaderAndIsr, announced: LeaderAndIsr) -> bool:
    """Whether a replica in `role` accepts what the controller announces: only a higher leader epoch.

    **Kafka:** `ReplicaManager.becomeLeaderOrFollower`.
    """
    return announced.leader_epoch > role.leader_epoch


def leads(self_id: BrokerId, role: LeaderAndIsr) -> bool:
    """Whether a replica believes that it leads; it then accepts writes and fetches. **Kafka:** `Partition.isLeader`."""
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


def restart(partition: LeaderAndIsr) -> LeaderAndIsr:
    """The role of a replica whose broker has just started: none, until the controller announces the present state.

    It accepts nothing older than `partition`, the controller's state: an incarnation is sent what is current.

    **Kafka:** `ReplicaManager.startup`; announcements to an earlier incarnation are refused (KIP-380).
    """
    return LeaderAndIsr(NO_LEADER, Epoch(partition.leader_epoch - 1), frozenset())


def has_caught_up(metadata_end: Offset, end_at_start: Offset) -> bool:
    """Whether a broker that has just started acts on its metadata: only once it knows all that was committed by then.

    It would otherwise replay its past, and lead again in an epoch in which an earlier run of it has led. That epoch would
    then have two histories, which comparing epochs cannot tell apart.

    Parameters: the ends of the metadata log that it has read, and that it learned of when it started.

    **Kafka:** `MetadataLoader.stillNeedToCatchUp`, `BrokerServer.startup`; `BrokerMetadataListener` before 3.4.
    """
    return metadata_end >= end_at_start


def acts_on_any_metadata(metadata_end: Offset, end_at_start: Offset) -> bool:
    """A broker that has just started acts on whatever it has read so far. **Kafka:** no release."""
    return True
