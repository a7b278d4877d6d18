"""The log directory of each replica, as the metadata have it (KIP-858). Directories are named by UUIDs of 16 bytes."""

from collections.abc import Callable, Mapping

from kspec.spec.controller.rules.features import METADATA_VERSION, FeatureLevel
from kspec.spec.values import BrokerId, Error

UNASSIGNED = bytes(16)
"""The broker chooses, and says which it has chosen. Kafka: `DirectoryId.UNASSIGNED`."""

MIGRATING = bytes(15) + b"\2"
"""The broker has not named its directories. Kafka: `DirectoryId.MIGRATING`."""

Directories = tuple[bytes, ...]

KNOWS_DIRECTORIES = 17
"""The `metadata.version` since which brokers name their directories: 3.7-IV2."""

RESERVED = 100
"""So many ids, the first ones, are no directory's; nor are those with eight zero bytes before a number below zero."""


def is_reserved(directory: bytes) -> bool:
    """Whether an id is no directory's. **Kafka:** `DirectoryId.reserved`."""
    return directory[:8] == bytes(8) and int.from_bytes(directory[8:], "big", signed=True) < RESERVED


def check_directories(
    finalized: tuple[FeatureLevel, ...],
    broker: BrokerId,
    directories: Directories,
    registered: Mapping[BrokerId, Directories],
) -> Error:
    """Whether a broker may register with these directories: each is its own, and no other broker has registered with it.

    `registered`: the directories of each broker that is registered. Errors: `INVALID_REGISTRATION`.

    **Kafka:** `ClusterControlManager.registerBroker`, which looks at them after it has looked for another incarnation.
    """
    if not any(one.name == METADATA_VERSION and one.level >= KNOWS_DIRECTORIES for one in finalized):
        return Error.NONE
    others = {one for other, known in registered.items() if other != broker for one in known}
    is_one_twice = len(set(directories)) != len(directories)
    if not directories or is_one_twice or any(is_reserved(one) or one in others for one in directories):
        return Error.INVALID_REGISTRATION
    return Error.NONE


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
