"""The election that a voter of the metadata log keeps, in the file `quorum-state` beside that log."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from kspec.impl.storage import Disk, StorageError
from kspec.impl.storage.small_files import UUID_TEXT, read_text, replace_file
from kspec.spec.quorum.replica import NO_ELECTION, ElectionState
from kspec.spec.values import NO_REPLICA, BrokerId, DirectoryId, Epoch, ReplicaKey

QUORUM_STATE = "quorum-state"
NO_DIRECTORY_TEXT = "A" * 22
"""Kafka: `ReplicaKey.NO_DIRECTORY_ID`, as text."""

VERSIONS = WITH_VOTERS, WITH_DIRECTORY = 0, 1
"""The versions that go with `kraft.version` 0, where voters are named by their ids, and 1. Kafka: `QuorumStateData`."""


def write_election(disk: Disk, folder: str, election: ElectionState, voters: frozenset[BrokerId] | None) -> None:
    """Replace the file, through to the disk; `voters` are those of `kraft.version` 0, none with 1.

    **Kafka:** `FileQuorumStateStore.writeElectionState`.
    """
    fields = _of_version_1(election) if voters is None else _of_version_0(election, voters)
    replace_file(disk, folder, QUORUM_STATE, json.dumps(fields, separators=(",", ":")))


def _of_version_1(election: ElectionState) -> dict[str, object]:
    return {
        "leaderId": election.leader,
        "leaderEpoch": election.epoch,
        "votedId": election.voted.id,
        "votedDirectoryId": urlsafe_b64encode(election.voted.directory).decode().rstrip("="),
        "data_version": WITH_DIRECTORY,
    }


def _of_version_0(election: ElectionState, voters: frozenset[BrokerId]) -> dict[str, object]:
    return {
        "clusterId": "",
        "leaderId": election.leader,
        "leaderEpoch": election.epoch,
        "votedId": election.voted.id,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in sorted(voters)],
        "data_version": WITH_VOTERS,
    }


def read_election(disk: Disk, folder: str) -> ElectionState:
    """The election in the file, `NO_ELECTION` if there is none. Raises: `StorageError`, if it is damaged.

    **Kafka:** `FileQuorumStateStore.readElectionState`.
    """
    path = f"{folder}/{QUORUM_STATE}"
    if not disk.exists(path):
        return NO_ELECTION
    try:
        found: dict[str, Any] = json.loads(read_text(disk, path))
        epoch, leader, voted = _number(found["leaderEpoch"], 0), _number(found["leaderId"]), _number(found["votedId"])
        directory = found.get("votedDirectoryId", NO_DIRECTORY_TEXT)
        if _number(found["data_version"]) not in VERSIONS or UUID_TEXT.fullmatch(directory) is None:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StorageError(
            f"{path} is damaged: it should be one object of data_version 0 or 1 with leaderId, leaderEpoch and votedId, "
            "numbers of 32 bits; whom this controller has voted for is lost with it"
        ) from None
    given = NO_REPLICA if voted < 0 else ReplicaKey(BrokerId(voted), DirectoryId(urlsafe_b64decode(f"{directory}==")))
    return ElectionState(Epoch(epoch), BrokerId(leader), given)


def _number(value: object, lowest: int = -1) -> int:
    """A number of the file. Raises: `ValueError`, if it is none of 32 bits, or too low."""
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value < 2**31:
        raise ValueError
    return value
