"""A damaged file: what may be lost, what must be served, and what is said. `docs/storage.md` has the table."""

import os
from random import Random

import pytest

from kspec.impl.records.batch import InvalidBatchError
from kspec.impl.storage import PartitionFiles, StorageError
from kspec.spec.values import NO_BROKER_EPOCH, Epoch, Offset, TimestampMs
from kspec.trials.faults.damage import DamageKind, FileKind
from tests.impl.storage.damage.directory import (
    BOTH,
    CONFIG,
    DAMAGED,
    EPOCH,
    IDS,
    NEIGHBOUR,
    Bytes,
    StartOutcome,
    StoppedDirectory,
    UndamagedContent,
    batch_at,
    bytes_of,
    damage,
    open_directory,
    start,
    stopped,
)
from tests.impl.storage.model import history_of, made, read_all
from tests.times import at_ms

SEEDS = 20 if os.environ.get("KSPEC_NIGHTLY") else 1
SEGMENTS = (FileKind.ACTIVE_SEGMENT, FileKind.OLDER_SEGMENT)
OTHERS_LOG = (DamageKind.SWAP, DamageKind.DOUBLE)
"""Damage after which a segment has whole batches that are not this log's: no checksum tells that they are not."""

MAY_BE_OFFLINE = (*SEGMENTS, FileKind.OWNER, FileKind.LOG_STARTS)
"""Damage of other files is mended, or the file is not needed."""


def cases() -> list[tuple[FileKind, bool]]:
    """Each kind of file, after a clean stop and after a kill."""
    return [(file, clean) for file in FileKind for clean in (True, False) if file != FileKind.CLEAN_STOP or clean]


@pytest.mark.parametrize(("file", "clean"), cases())
def test_a_damaged_file_ends_no_broker_and_what_is_served_is_what_was_written(file: FileKind, clean: bool) -> None:
    case, tried = stopped(clean), 0
    for kind in DamageKind:
        for seed in range(SEEDS):
            made_so = damage(case, file, kind, Random(f"{file} {kind} {clean} {seed}"))
            if made_so is None:
                continue
            files, path = made_so
            words = f"{path}: {kind.value}, clean {clean}, seed {seed}"
            tried += 1
            if file == FileKind.META:
                look_at_meta(files, words)
            else:
                look_at(start(files, words), case, file, kind, clean, files)
    assert tried >= 4


def look_at_meta(files: Bytes, words: str) -> None:
    """The directory's own file: it is usable, or a line names it."""
    told = ""
    try:
        assert not start(files, words).refused, words
    except StorageError as error:
        told = str(error)
    assert not told or "meta.properties" in told, (words, told)


def look_at(
    found: StartOutcome, case: StoppedDirectory, file: FileKind, kind: DamageKind, clean: bool, files: Bytes
) -> None:
    """Judge a start: the neighbour has all, the damaged partition what the table says, and both go on."""
    words = found.words
    assert NEIGHBOUR not in found.refused, words
    all_there(found.partitions[NEIGHBOUR], case.known[NEIGHBOUR], words)
    known = case.known[DAMAGED]
    if DAMAGED in found.refused:
        assert file in MAY_BE_OFFLINE, (words, found.refused)
        told = found.refused[DAMAGED]
        assert "damaged-0" in told, (words, told)
        assert "\n" not in told, words
        after = bytes_of(found.directory._disk)  # type: ignore[arg-type]
        logs = [name for name in files if name.startswith("damaged-0/") and name.endswith(".log")]
        assert all(after[name] == files[name] for name in logs), f"{words}: what was refused was changed"
        return
    damaged = found.partitions[DAMAGED]
    is_readable = True
    if file in SEGMENTS:
        is_readable = a_part_is_there(damaged, known, file, kind, clean, words)
    elif file != FileKind.LOG_STARTS:
        all_there(damaged, known, words)
        told_clean = clean and file not in (FileKind.RECOVERY_POINTS, FileKind.CLEAN_STOP)
        assert not told_clean or found.directory.previous_broker_epoch == EPOCH, words
    if clean and damaged.log.end_offset != known.end:
        assert found.directory.previous_broker_epoch == NO_BROKER_EPOCH, f"{words}: the controller is told of a clean stop"
    if is_readable and not (clean and file in SEGMENTS):
        goes_on(found)


def all_there(files: PartitionFiles, known: UndamagedContent, words: str) -> None:
    """Every record is found: by its offset, by its time; and so are epochs and producers."""
    assert files.log.end_offset == known.end, words
    first = files.log.start_offset
    batches = [one for one in known.batches if one.next_offset > first]
    assert read_all(files) == batches, words
    for one in batches:
        for offset in range(max(one.base_offset, first), one.next_offset):
            assert batch_at(files, offset) == one, (words, offset)
    assert files.log.epoch_history == history_of(batches), words
    assert files.transactions().producers == known.producers, words
    for timestamp in sorted({time for time, _, _ in known.records}):
        expected = next((one for one in known.records if one[0] >= timestamp and one[1] >= first), None)
        assert files.timestamp_lookup(timestamp) == expected, (words, timestamp)
    largest = files.max_timestamp()
    assert largest is not None
    assert largest.timestamp == max(time for time, offset, _ in known.records if offset >= first), words
    assert files.retention_offset(Offset(known.end), TimestampMs(1_000)) == first, f"{words}: records would be too old"


def a_part_is_there(
    files: PartitionFiles, known: UndamagedContent, file: FileKind, kind: DamageKind, clean: bool, words: str
) -> bool:
    """Check that all that is read was written, up to where it was damaged. Return whether all of it can be read."""
    told, found = "", []
    try:
        found = read_all(files)
    except StorageError as error:
        told = str(error)
    except InvalidBatchError:  # it was sent as it is, and the reader sees that
        told = "damaged-0/"
    if told:
        assert clean or file == FileKind.OLDER_SEGMENT, words
        assert "damaged-0/" in told, words
        return False
    if kind in OTHERS_LOG:
        return True
    begin = found[0].base_offset if found else 0
    after = [one for one in known.batches if one.base_offset >= begin]
    same = [one == other for one, other in zip(found, after, strict=False)]
    if not clean and file == FileKind.ACTIVE_SEGMENT:
        is_intact = [one.body == other.body for one, other in zip(found, after, strict=False)]
        assert all(is_intact), f"{words}: an invalid batch is served"
    assert sum(not one for one in same) <= 8, f"{words}: {same.index(False)} of {len(same)}"
    if all(same):
        assert files.log.epoch_history == history_of(found), words
    return True


def test_a_batch_that_reaches_too_far_is_told_to_its_reader() -> None:
    """Nothing else is wrong by its sizes: without a look a reader is answered with nothing, and asks for ever."""
    case = stopped(False)
    path = "damaged-0/00000000000000000040.log"
    delta = slice(23, 27)  # of the first batch, `last_offset_delta`
    content = bytearray(case.files[path])
    content[delta] = (1 << 20).to_bytes(4, "big")
    files = start({**case.files, path: bytes(content)}, path).partitions[DAMAGED]
    with pytest.raises(StorageError, match=r"damaged-0/00000000000000000040.log: the batch at byte 0 would end at"):
        files.read(Offset(40), files.log.end_offset, 1_000, at_least_one=True)
    assert batch_at(files, 60) in case.known[DAMAGED].batches


def goes_on(found: StartOutcome) -> None:
    """Records are appended, and are there with the others after a clean stop."""
    appended = found.partitions[DAMAGED]
    before = read_all(appended)
    appended.append(appended.log.end_offset, Epoch(99), [made(3)], at_ms(0))
    marks = {key: found.partitions[key].log.end_offset for key in BOTH}
    found.directory.close(marks, EPOCH)
    again = open_directory(found.directory._disk)  # type: ignore[arg-type]
    assert again.previous_broker_epoch == EPOCH, found.words
    files = again.open_partition(*DAMAGED, CONFIG, at_ms(0), IDS[DAMAGED])
    batches = read_all(files)
    assert batches[:-1] == before, found.words
    assert (batches[-1].epoch, batches[-1].count) == (99, 3), found.words
    if before:
        visible = [one for one in batches if one.next_offset > files.log.start_offset]
        assert files.log.epoch_history == history_of(visible), found.words
