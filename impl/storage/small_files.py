"""The small files of a log directory and of a partition's folder, each replaced as a whole."""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from random import Random
from uuid import UUID

from kspec.impl.storage.disk import Disk, StorageError
from kspec.spec.controller.rules.directories import is_reserved
from kspec.spec.log.checkpoint_files import (
    LARGEST,
    OffsetEntry,
    epochs_from_text,
    epochs_to_text,
    offsets_from_text,
    offsets_to_text,
)
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, Error

HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"
LOCK = ".lock"

METADATA_FOLDER = "__cluster_metadata-0"
"""The log that tells of all others: it is opened before them, and its recovery point is not checkpointed."""

NOT_OURS = frozenset({LOCK, f"{META_PROPERTIES}.tmp", "lost+found"})
"""Files that a folder may have before it is formatted: those of an attempt, and a file system's own folder."""

LONGEST_NAME = 255

UUID_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")

_ids = Random()


def seed_ids(seed: int) -> None:
    """From now on ids are the same in each run with this seed: simulated clusters have theirs by it."""
    _ids.seed(seed)


def random_uuid() -> UUID:
    """An id that nobody else has."""
    return UUID(int=_ids.getrandbits(128), version=4)


def new_uuid() -> str:
    """A random id as Kafka writes it: 22 characters of URL-safe base64, and never beginning with a dash."""
    while True:
        text = urlsafe_b64encode(random_uuid().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def replace_file(disk: Disk, folder: str, name: str, content: str) -> None:
    """Write a file beside the old one, sync it, rename it over the old one, sync the folder.

    **Kafka:** `CheckpointFile.write`, `Utils.atomicMoveWithFallback`.
    """
    temporary = f"{folder}/{name}.tmp"
    disk.write_file(temporary, content.encode())
    disk.rename(temporary, f"{folder}/{name}")
    disk.sync_folder(folder)


def read_text(disk: Disk, path: str) -> str:
    """The text of a file; of none if it does not exist. Raises: `StorageError`, if it is no text."""
    if not disk.exists(path):
        return ""
    if disk.is_folder(path):
        raise StorageError(f"{path} is a folder, and should be a file")
    try:
        return disk.read_file(path).decode().strip("\0")
    except UnicodeDecodeError:
        raise StorageError(f"{path} is not a text file") from None


# ---- checkpoints


def write_offsets(disk: Disk, folder: str, name: str, entries: tuple[OffsetEntry, ...]) -> None:
    """Replace one of the files of offsets."""
    replace_file(disk, folder, name, offsets_to_text(entries))


def read_offsets(disk: Disk, folder: str, name: str) -> dict[tuple[str, int], int]:
    """The offset of each topic and partition in a file of offsets; none if the file is missing.

    Raises: `StorageError`, if it is damaged.
    """
    path = f"{folder}/{name}"
    found = offsets_from_text(read_text(disk, path))
    if found.error != Error.NONE:
        raise StorageError(
            f"{path} is damaged: it should have a version 0, a count, and that many lines TOPIC PARTITION OFFSET"
        )
    return {(entry.topic, entry.partition): entry.offset for entry in found.entries}


def write_epochs(disk: Disk, folder: str, history: EpochHistory) -> None:
    """Replace `leader-epoch-checkpoint`."""
    replace_file(disk, folder, LEADER_EPOCHS, epochs_to_text(history))


def read_epochs(disk: Disk, folder: str) -> EpochHistory:
    """The history in `leader-epoch-checkpoint`. Raises: `StorageError`, if it is damaged."""
    path = f"{folder}/{LEADER_EPOCHS}"
    found = epochs_from_text(read_text(disk, path))
    if found.error != Error.NONE:
        raise StorageError(f"{path} is damaged: it should have a version 0, a count, and that many lines EPOCH OFFSET")
    return found.history


# ---- the directory


def write_meta(disk: Disk, folder: str, cluster_id: str, node_id: int, directory_id: str) -> None:
    """Format a log directory. **Kafka:** `MetaProperties`, version 1."""
    lines = ("version=1", f"cluster.id={cluster_id}", f"node.id={node_id}", f"directory.id={directory_id}")
    replace_file(disk, folder, META_PROPERTIES, "".join(f"{line}\n" for line in lines))


def read_meta(disk: Disk, folder: str) -> dict[str, str]:
    """The content of `meta.properties`. Raises: `StorageError`, if it is no such file of version 1, or without a needed
    line.
    """
    path = f"{folder}/{META_PROPERTIES}"
    found: dict[str, str] = {}
    for line in read_text(disk, path).splitlines():
        name, is_set, value = line.strip().partition("=")
        if is_set and not name.startswith("#"):
            found[name.strip()] = value.strip().replace("\\", "")
    if found.get("version") != "1":
        raise StorageError(f"{path} should say version=1, and has {found.get('version', 'no version')}")
    for name in ("cluster.id", "node.id"):
        if name not in found:
            raise StorageError(f"{path} has no line {name}=...")
    if re.fullmatch(r"[0-9]{1,10}", found["node.id"]) is None:
        raise StorageError(f"{path} says node.id={found['node.id']}, which is no number of a node")
    own = found.get("directory.id")
    if own is not None and (UUID_TEXT.fullmatch(own) is None or is_reserved(urlsafe_b64decode(f"{own}=="))):
        raise StorageError(f"{path} says directory.id={own}, which is no id of a folder: without the line one is made")
    return found


def is_formatted(disk: Disk, path: str) -> bool:
    """Whether a folder has been formatted."""
    return disk.exists(f"{path}/{META_PROPERTIES}")


def nothing_more() -> None:
    """Write nothing beside `meta.properties`."""


def format_directory(
    disk: Disk,
    path: str,
    cluster_id: str,
    node_id: int,
    directory_id: str | None = None,
    write_more: Callable[[], None] = nothing_more,
) -> None:
    """Format a folder that is new or empty: with this id, or one of its own. **Kafka:** `Formatter`.

    `write_more` writes what else belongs to it, before `meta.properties` makes it complete.

    Raises: `StorageError`, if it is not empty.
    """
    if not is_formatted(disk, path) and disk.exists(path):
        others = [name for name in disk.listdir(path) if name not in NOT_OURS]
        if others:
            raise StorageError(f"{path} has no {META_PROPERTIES}, and is not empty: it has {others[0]}")
    disk.make_folder(path)
    write_more()
    write_meta(disk, path, cluster_id, node_id, directory_id or new_uuid())


def check_owner(disk: Disk, path: str, cluster_id: str, node_id: int) -> dict[str, str]:
    """The content of `meta.properties`. **Kafka:** `MetaPropertiesEnsemble.verify`.

    Raises: `StorageError`, if it is damaged, or of another cluster or node.
    """
    meta = read_meta(disk, path)
    for name, wanted in (("cluster.id", cluster_id), ("node.id", str(node_id))):
        if meta[name] != wanted:
            raise StorageError(f"{path} belongs to {name}={meta[name]}, not to {wanted}: see its {META_PROPERTIES}")
    return meta


def with_directory_id(disk: Disk, path: str, meta: dict[str, str]) -> dict[str, str]:
    """The fields of `meta.properties`, with an id for the folder: one that Kafka formatted before 3.7 gets its own now.

    **Kafka:** `KafkaRaftServer.initializeLogDirs`.
    """
    if "directory.id" not in meta:
        meta = {**meta, "directory.id": new_uuid()}
        write_meta(disk, path, meta["cluster.id"], int(meta["node.id"]), meta["directory.id"])
    return meta


def refuse_unformatted(path: str) -> StorageError:
    """The reason why a start does not format a folder itself.

    **Kafka:** `MetaPropertiesEnsemble.verify`: "have you run `kafka-storage.sh` to format the directory?"
    """
    return StorageError(
        f"{path} is not formatted: it has no {META_PROPERTIES}; kspec storage format does that for a new node, "
        "and a node that was there before has lost its records"
    )


def write_clean_shutdown(disk: Disk, folder: str, broker_epoch: BrokerEpoch) -> None:
    """Note that the broker stopped cleanly. **Kafka:** `CleanShutdownFileHandler.write` (KIP-966)."""
    disk.write_file(f"{folder}/{CLEAN_SHUTDOWN}", json.dumps({"version": 0, "brokerEpoch": broker_epoch}).encode())
    disk.sync_folder(folder)


def read_clean_shutdown(disk: Disk, folder: str) -> BrokerEpoch | None:
    """The noted broker epoch; `NO_BROKER_EPOCH` if the note does not say it; none if there is no note."""
    path = f"{folder}/{CLEAN_SHUTDOWN}"
    if not disk.exists(path):
        return None
    if disk.is_folder(path):
        raise StorageError(f"{path} is a folder, and should be a file")
    try:
        epoch = json.loads(disk.read_file(path))["brokerEpoch"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return NO_BROKER_EPOCH
    is_epoch = type(epoch) is int and 0 <= epoch <= LARGEST
    return BrokerEpoch(epoch) if is_epoch else NO_BROKER_EPOCH


# ---- a partition's folder


def write_partition_metadata(disk: Disk, folder: str, topic_id: str) -> None:
    """Write `partition.metadata`, which the first flush syncs. **Kafka:** `PartitionMetadataFile`."""
    disk.write_file(f"{folder}/{PARTITION_METADATA}", f"version: 0\ntopic_id: {topic_id}".encode(), sync=False)


def read_partition_metadata(disk: Disk, folder: str, clean: bool) -> str:
    """The topic id; none (an empty text) if the file is missing, or was lost with the power: what is left of it then goes.

    Raises: `StorageError`, if it is damaged after a clean stop (`clean`).
    """
    path = f"{folder}/{PARTITION_METADATA}"
    lines = dict(line.split(": ", 1) for line in read_text(disk, path).splitlines() if ": " in line)
    if not disk.exists(path):
        return ""
    topic_id = lines.get("topic_id", "").strip()
    if lines.get("version", "").strip() != "0" or UUID_TEXT.fullmatch(topic_id) is None:
        if not clean:
            disk.unlink(path)
            return ""
        raise StorageError(f"{path} is damaged: it should say 'version: 0' and 'topic_id: ' with 22 characters of base64")
    return topic_id


def split_folder_name(name: str) -> tuple[str, int] | None:
    """Topic and partition of a folder's name, none if it is not one. **Kafka:** `UnifiedLog.parseTopicPartitionName`."""
    topic, _, partition = name.rpartition("-")
    is_one = topic and re.fullmatch(r"0|[1-9][0-9]{0,9}", partition)
    return (topic, int(partition)) if is_one else None


def other_name(name: str, ending: str) -> str:
    """Another name for a partition's folder that is no longer used: with an ending, and not longer than a file system takes.

    **Kafka:** `UnifiedLog.logDirNameWithSuffixCappedLength`.
    """
    stem, _, partition = name.rpartition("-")
    return f"{stem[: LONGEST_NAME - len(ending) - len(partition) - 1]}-{partition}{ending}"
