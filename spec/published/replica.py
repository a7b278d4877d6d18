"""Becoming leader or follower, and starting again after a stop."""

from spec.values import NO_LEADER, BrokerId, Epoch, LeaderAndIsr

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


def restart(partition: LeaderAndIsr) -> LeaderAndIsr:
    """The role of a replica whose broker has just started: none, until the controller announces the present state.

    It accepts nothing older than `partition`, the controller's state: an incarnation is sent what is current.

    **Kafka:** `ReplicaManager.startup`; announcements to an earlier incarnation are refused (KIP-380).
    """
    return LeaderAndIsr(NO_LEADER, Epoch(partition.leader_epoch - 1), frozenset())
