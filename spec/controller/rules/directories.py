"""The log directory of each replica, as the metadata have it (KIP-858). Directories are named by UUIDs of 16 bytes."""

from collections.abc import Callable

from spec.values import BrokerId, Error

UNASSIGNED = bytes(16)
"""The broker chooses, and says which it has chosen. Kafka: `DirectoryId.UNASSIGNED`."""

MIGRATING = bytes(15) + b"\2"
"""The broker has not named its directories. Kafka: `DirectoryId.MIGRATING`."""

Directories = tuple[bytes, ...]


def default_directory(of_broker: Directories | None) -> bytes:
    """The directory of a new replica on a broker with these directories (`None`: the broker is not registered).

    **Kafka:** `ClusterControlManager.defaultDir`.
    """
    if of_broker is None or len(of_broker) > 1:
        return UNASSIGNED
    return of_broker[0] if of_broker else MIGRATING


def directories_of(
    replicas: tuple[BrokerId, ...],
    before: tuple[BrokerId, ...],
    directories: Directories,
    default: Callable[[BrokerId], bytes],
) -> Directories:
    """The directories of replicas, in their order: who was a replica before keeps its directory.

    **Kafka:** `DirectoryId.createDirectoriesFrom`, `PartitionChangeBuilder.setAssignmentChanges`.
    """
    known = dict(zip(before, directories, strict=False))
    return tuple(known[one] if one in known else default(one) for one in replicas)


def assigned_directories(
    replicas: tuple[BrokerId, ...], directories: Directories, broker: BrokerId, directory: bytes
) -> Directories:
    """The directories of replicas after one broker has said where its replica lies.

    **Kafka:** `ReplicationControlManager.handleAssignReplicasToDirs`, `PartitionChangeBuilder.setDirectory`.
    """
    return tuple(directory if one == broker else known for one, known in zip(replicas, directories, strict=True))


def check_assignment_to_directory(replicas: tuple[BrokerId, ...] | None, broker: BrokerId) -> Error:
    """Whether a broker may say where its replica of a partition lies (`None`: there is no such partition).

    Errors: `UNKNOWN_TOPIC_OR_PARTITION`, `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `ReplicationControlManager.handleAssignReplicasToDirs`.
    """
    if replicas is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return Error.NONE if broker in replicas else Error.NOT_LEADER_OR_FOLLOWER
