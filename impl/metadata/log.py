"""The metadata log as a voter of its quorum has it: batches that a leader appends, those that a follower fetches, and the
election.

What is written when, and through to the disk, `spec.quorum` decides.
"""

from collections.abc import Sequence
from pathlib import Path

from kspec.impl.metadata.election_file import read_election, write_election
from kspec.impl.metadata.files import READ_BYTES, MetadataBatch, MetadataFiles, replay_into
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord, encode_record
from kspec.impl.metadata.snapshots import BOOTSTRAP, CONTROL, leader_change, voters_of_snapshot
from kspec.impl.metadata.voters import KnownVoters, VotersFound, version_record, voters_in, voters_record
from kspec.impl.records.batch import Buffer
from kspec.impl.records.record import new_batch
from kspec.impl.storage import Disk
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.quorum.effects import LeaderChangeAppended, VotersAppended
from kspec.spec.quorum.replica import ElectionState
from kspec.spec.values import UNKNOWN_OFFSET, BrokerId, Epoch, Instant, Offset


def batch_of(records: Sequence[LogRecord], now: Instant) -> bytes:
    """Records as one batch, so that all of them survive or none."""
    return new_batch([(now.timestamp, None, encode_record(record)) for record in records])


class MetadataLog(MetadataFiles):
    """The files of the metadata log, and `quorum-state` beside them."""

    def __init__(self, disk: Disk, log_dir: Path, now: Instant) -> None:
        super().__init__(disk, log_dir, now)
        self._open_epoch_of_snapshot()

    # ---- for those who fetch it

    def batches_from(self, offset: Offset, most_bytes: int) -> bytes:
        """Whole batches from the one that has `offset` on, at least one if there is any."""
        return self.files.read(offset, self.end_offset, most_bytes, at_least_one=True).bytes()

    def snapshot_size(self) -> int:
        """The bytes of the snapshot. There is one."""
        return self.disk.size(self.path_of(self.snapshot))

    def snapshot_bytes(self, position: int, most_bytes: int) -> bytes:
        """A piece of the snapshot. There is one."""
        return self.disk.open(self.path_of(self.snapshot)).read(position, most_bytes)

    # ---- the election

    def election(self) -> ElectionState:
        """The election that was kept. Raises: `StorageError`, if the file is damaged."""
        return read_election(self.disk, self.folder)

    def keep_election(self, election: ElectionState, voters: frozenset[BrokerId] | None) -> None:
        """Keep an election, through to the disk, with the voters of `kraft.version` 0."""
        write_election(self.disk, self.folder, election, voters)

    # ---- the voters

    def voters_found(self) -> list[VotersFound]:
        """The voters that the snapshot tells, or that with which the cluster began, and those in the log after it.

        Raises: `StorageError`, if a snapshot is damaged.
        """
        found: list[VotersFound] = []
        begins = self.snapshot if self.snapshot != NO_SNAPSHOT else BOOTSTRAP
        path = self.path_of(begins)
        if self.disk.exists(path):
            told = voters_of_snapshot(self.disk.read_file(path), path)
            at = UNKNOWN_OFFSET if begins == BOOTSTRAP else Offset(begins.end_offset - 1)
            found += [VotersFound(at, told)] if told else []
        offset = max(self.files.log.start_offset, self.snapshot.end_offset)
        while offset < self.end_offset:
            piece = self.files.read(offset, self.end_offset, READ_BYTES, at_least_one=True)
            found += voters_in(memoryview(piece.bytes()))
            offset = piece.next_offset
        return found

    # ---- writing

    def append_leader_change(
        self, change: LeaderChangeAppended, leader: BrokerId, voters: KnownVoters, now: Instant
    ) -> None:
        """Append the first record of an epoch, and in its batch the voters, if the leader writes them for the first time.

        **Kafka:** `LeaderState.appendStartOfEpochControlRecords`.
        """
        told = (version_record(), voters_record(voters)) if change.first_voters else ()
        records = (leader_change(leader, change.voters, change.granting), *told)
        batch = new_batch([(now.timestamp, *record) for record in records], attributes=CONTROL)
        self.append(change.base_offset, change.epoch, batch, now)

    def append_voters(self, appended: VotersAppended, voters: KnownVoters, now: Instant) -> None:
        """Append a record of voters, after that of `kraft.version` in an upgrade.

        **Kafka:** `BatchAccumulator.appendVotersRecord`, `LeaderState.maybeAppendUpgradedKRaftVersion`.
        """
        records = (*((version_record(),) if appended.upgrades else ()), voters_record(voters))
        batch = new_batch([(now.timestamp, *record) for record in records], attributes=CONTROL)
        self.append(appended.base_offset, appended.epoch, batch, now)

    def append(self, base_offset: Offset, epoch: Epoch, batch: Buffer, now: Instant) -> None:
        """Append one batch, which gets this offset and this epoch."""
        self.files.append(base_offset, epoch, [batch], now)

    def flush(self, now: Instant) -> None:
        """Write the log through to the disk."""
        self.files.flush(now.monotonic)

    def cut(self, end_offset: Offset) -> None:
        """Cut the log; if it is empty then, the epoch of its snapshot counts as opened."""
        self.files.truncate_to(end_offset)
        self._open_epoch_of_snapshot()

    def _open_epoch_of_snapshot(self) -> None:
        """Open the epoch of the snapshot, if the log has no record after it."""
        if self.snapshot.end_offset == self.end_offset == self.files.log.start_offset:
            self.files.open_epoch(self.snapshot.epoch)

    def begin_anew(self, snapshot: SnapshotId, content: bytes, now: Instant) -> None:
        """Empty the log, which begins after a snapshot that was fetched; its epoch counts as opened."""
        self.begin_with(snapshot, content, now)
        self.files.open_epoch(snapshot.epoch)

    # ---- reading

    def image(self) -> ClusterImage:
        """The image of all that is there, committed or not. Raises: `StorageError`, if the snapshot is damaged."""
        image = self.restored()
        replay_into(image, self.batches())
        return image

    def batches_between(self, start: Offset, end: Offset) -> list[MetadataBatch]:
        """The batches from an offset up to another one, at both of which a batch begins or ends."""
        found: list[MetadataBatch] = []
        while start < end:
            piece = self.files.read(start, end, READ_BYTES, at_least_one=True)
            found += self.batches_in(memoryview(piece.bytes()))
            start = piece.next_offset
        return found
