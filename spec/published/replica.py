"""A replica's role in the published models, and its restart."""

from kspec.spec.values import NO_LEADER, BrokerId, Epoch, LeaderAndIsr

NO_ROLE = LeaderAndIsr(NO_LEADER, Epoch(-1), frozenset[BrokerId]())
"""The role of a replica that has had no announcement."""


def role_after_restart(partition: LeaderAndIsr) -> LeaderAndIsr:
    """The role of a replica whose broker has just started: none, until the controller announces the present state.

    It accepts nothing older than `partition`, the controller's state: an incarnation gets the present state.

    **Kafka:** `ReplicaManager.startup`; announcements to an earlier incarnation are refused (KIP-380).

    **Departs:** a broker that starts knows no epoch, and takes the first announcement that is meant for its incarnation;
    here it knows the epoch before the present one, so that the announcements to the earlier incarnation are too old.
    """
    return LeaderAndIsr(NO_LEADER, Epoch(partition.leader_epoch - 1), frozenset())
