"""The first snapshot of a new controller: it names the voters that the cluster begins with (KIP-853).

**Kafka:** `Formatter`, `RecordsSnapshotWriter`.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path

from kspec.impl.metadata.files import FOLDER
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.metadata.snapshots import BOOTSTRAP, PARTIAL, snapshot_name, to_bytes
from kspec.impl.metadata.voters import Endpoint, KnownVoters
from kspec.impl.storage import Disk
from kspec.impl.storage.small_files import format_directory
from kspec.spec.values import BrokerId, DirectoryId, Epoch, Instant, ReplicaKey

LISTED = re.compile(r"([0-9]{1,10})@(\[[^\]]+\]|[^:\[\]]+):([0-9]{1,5}):([A-Za-z0-9_-]{22})")


class InitialVotersError(Exception):
    """A list of voters that is none, in one line."""


def voters_in_text(text: str, listener: str) -> dict[ReplicaKey, tuple[Endpoint, ...]]:
    """The voters of a list ID@HOST:PORT:DIRECTORY,... Raises: `InitialVotersError`. **Kafka:** `DynamicVoters.parse`."""
    found: dict[ReplicaKey, tuple[Endpoint, ...]] = {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        fields = LISTED.fullmatch(one)
        if fields is None or int(fields[3]) > 0xFFFF:
            raise InitialVotersError(f"a controller is ID@HOST:PORT:DIRECTORY, as 3@127.0.0.1:9093:{'A' * 21}g, not {one}")
        voter = ReplicaKey(BrokerId(int(fields[1])), DirectoryId(urlsafe_b64decode(f"{fields[4]}==")))
        if any(known.id == voter.id for known in found):
            raise InitialVotersError(f"controller {voter.id} is listed twice")
        found[voter] = (Endpoint(listener, fields[2].strip("[]"), int(fields[3])),)
    if not found:
        raise InitialVotersError("no controller is listed")
    return found


def format_controller(disk: Disk, path: str, cluster_id: str, node_id: int, voters: KnownVoters, now: Instant) -> None:
    """Format the log directory of a controller that is new, with the voters that the cluster begins with: if it is one of
    them, with that directory id.

    Raises: `StorageError`, if the folder is not empty.
    """

    def write_voters() -> None:
        MetadataLog(disk, Path(path), now).close()
        name = f"{path}/{FOLDER}/{snapshot_name(BOOTSTRAP)}"
        disk.write_file(name + PARTIAL, to_bytes([], Epoch(0), now.timestamp, voters))
        disk.rename(name + PARTIAL, name)
        disk.sync_folder(f"{path}/{FOLDER}")

    own = next((voter.directory for voter in voters if voter.id == node_id), None)
    directory_id = None if own is None else urlsafe_b64encode(own).decode().rstrip("=")
    format_directory(disk, path, cluster_id, node_id, directory_id, write_voters)
