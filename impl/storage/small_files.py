"""The small files of a log directory and of a partition's folder, each replaced as a whole."""

import json
import re
from base64 import urlsafe_b64encode
from uuid import uuid4

from impl.storage.disk import Disk, StorageError
from spec.log.checkpoint_files import OffsetEntry, epochs_from_text, epochs_to_text, offsets_from_text, offsets_to_text
from spec.log.epoch_history import EpochHistory
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, Error

HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"
LOCK = ".lock"

UUID = re.compile(r"[A-Za-z0-9_-]{22}")


def new_uuid() -> str:
    """A random id as Kafka writes it: 22 characters of URL-safe base64, and never beginning with a dash."""
    while True:
        text = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
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
    """What `meta.properties` says. Raises: `StorageError`, if it is no such file of version 1, or without a needed line."""
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
    if not found["node.id"].isdecimal():
        raise StorageError(f"{path} says node.id={found['node.id']}, which is no number of a node")
    return found


def write_clean_shutdown(disk: Disk, folder: str, broker_epoch: BrokerEpoch) -> None:
    """Note that the broker stopped cleanly. **Kafka:** `CleanShutdownFileHandler.write` (KIP-966)."""
    disk.write_file(f"{folder}/{CLEAN_SHUTDOWN}", json.dumps({"version": 0, "brokerEpoch": broker_epoch}).encode())
    disk.sync_folder(folder)


def read_clean_shutdown(disk: Disk, folder: str) -> BrokerEpoch | None:
    """The noted broker epoch; `NO_BROKER_EPOCH` if the note does not say it; none if there is no note."""
    path = f"{folder}/{CLEAN_SHUTDOWN}"
    if not disk.exists(path):
        return None
    try:
        epoch = json.loads(disk.read_file(path))["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return NO_BROKER_EPOCH
    return BrokerEpoch(epoch) if isinstance(epoch, int) else NO_BROKER_EPOCH


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
    if lines.get("version", "").strip() != "0" or UUID.fullmatch(topic_id) is None:
        if not clean:
            disk.unlink(path)
            return ""
        raise StorageError(f"{path} is damaged: it should say 'version: 0' and 'topic_id: ' with 22 characters of base64")
    return topic_id


def split_folder_name(name: str) -> tuple[str, int] | None:
    """Topic and partition of a folder's name, none if it is not one. **Kafka:** `UnifiedLog.parseTopicPartitionName`."""
    topic, dash, partition = name.rpartition("-")
    is_one = dash and topic and partition.isdecimal() and partition.isascii()
    return (topic, int(partition)) if is_one else None
