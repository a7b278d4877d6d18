"""The election that a voter of the metadata log keeps, in the file `quorum-state` beside that log."""

import json
from typing import Any

from kspec.impl.storage import Disk, StorageError
from kspec.impl.storage.small_files import read_text, replace_file
from kspec.spec.quorum.replica import NO_ELECTION, ElectionState
from kspec.spec.values import NO_REPLICA, BrokerId, Epoch, ReplicaKey

QUORUM_STATE = "quorum-state"
VERSION = 0
"""The version that goes with `kraft.version` 0: voters are named by their ids. Kafka: `QuorumStateData`."""


def write_election(disk: Disk, folder: str, election: ElectionState, voters: frozenset[BrokerId]) -> None:
    """Replace the file, through to the disk. **Kafka:** `FileQuorumStateStore.writeElectionState`."""
    fields = {
        "clusterId": "",
        "leaderId": election.leader,
        "leaderEpoch": election.epoch,
        "votedId": election.voted.id,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in sorted(voters)],
        "data_version": VERSION,
    }
    replace_file(disk, folder, QUORUM_STATE, json.dumps(fields, separators=(",", ":")))


def read_election(disk: Disk, folder: str) -> ElectionState:
    """The election in the file, `NO_ELECTION` if there is none. Raises: `StorageError`, if it is damaged.

    **Kafka:** `FileQuorumStateStore.readElectionState`.
    """
    path = f"{folder}/{QUORUM_STATE}"
    if not disk.exists(path):
        return NO_ELECTION
    try:
        found: dict[str, Any] = json.loads(read_text(disk, path))
        epoch, leader, voted = (int(found[name]) for name in ("leaderEpoch", "leaderId", "votedId"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StorageError(
            f"{path} is damaged: it should be one object with leaderId, leaderEpoch and votedId; "
            "whom this controller has voted for is lost with it"
        ) from None
    return ElectionState(Epoch(epoch), BrokerId(leader), NO_REPLICA if voted < 0 else ReplicaKey(BrokerId(voted)))
