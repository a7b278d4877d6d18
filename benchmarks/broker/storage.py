"""The cost of storage: `python -m benchmarks.broker.storage --folder DIR`.

One process, in a new folder within DIR, which is removed at the end. Records are random bytes, so that no disk compresses
them. Reading is timed through the page cache, and as bytes; a broker sends from the file.
"""

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path

import crc32c

from benchmarks.engines import write_readme
from kspec.impl.records.batch import header_at, headers
from kspec.impl.records.record import new_batch
from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles, RealDisk
from kspec.spec.values import BrokerEpoch, Epoch, Instant, MonotonicMs, Offset, TimestampMs

CLUSTER, TOPIC_ID = "b" * 22, "A" * 22
MEGABYTE = 1_000_000
CONFIG = LogConfig()
LEADER = Epoch(0)
BEGIN = Instant(MonotonicMs(0), TimestampMs(0))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _batch(size: int) -> bytes:
    return new_batch([(1_000, None, os.urandom(size - 75))])


def checksums() -> list[str]:
    """Rows: GB/s of CRC-32C by the size of a batch."""
    rows = []
    for size in (1_000, 16_384, 262_144, 1 << 20):
        data = memoryview(bytearray(os.urandom(size)))
        count = max(20, 200 * MEGABYTE // size)
        seconds = min(timeit.repeat(partial(crc32c.crc32c, data), number=count, repeat=3))
        rows.append(f"| CRC-32C of {size:,} bytes | {size * count / seconds / 1e9:.1f} GB/s |")
    return rows


def appends(folder: Path) -> list[str]:
    """Rows: microseconds for one append of one batch, without and with a sync after each."""
    rows = []
    for name, config, most in (("", CONFIG, 20_000), (", synced", LogConfig(flush_messages=1), 300)):
        for size in (1_000, 16_384, 262_144):
            count = min(most, 1_000 * MEGABYTE // size)
            files = PartitionFiles.create(RealDisk(), str(folder / f"appends{name}{size}-0"), TOPIC_ID, config, BEGIN)
            batch, times = _batch(size), []
            for _ in range(count):
                start = time.perf_counter()
                files.append(files.log.end_offset, LEADER, [batch], BEGIN)
                times.append(time.perf_counter() - start)
            shutil.rmtree(files.folder)
            rows.append(f"| append of {size:,} bytes{name}, median | {statistics.median(times) * 1e6:.1f} us |")
    batch = _batch(16_384)
    seconds = min(timeit.repeat(partial(header_at, batch), number=100_000, repeat=3))
    rows.append(f"| header of a batch | {seconds * 10:.2f} us |")
    return rows


def partitions(folder: Path, count: int) -> list[str]:
    """Rows: seconds to create partitions, to stop cleanly, and to open them again after a clean stop and without one."""

    def create() -> None:
        for number in range(count):
            directory.create_partition("many", number, TOPIC_ID, CONFIG, BEGIN)

    def append() -> None:
        for files in directory.partitions.values():
            files.append(Offset(0), LEADER, [batch], BEGIN)

    def open_again() -> LogDirectory:
        opened = LogDirectory.open(str(folder / "many"), RealDisk(), CLUSTER, 1)
        for topic, partition in opened.found:
            opened.open_partition(topic, partition, CONFIG, BEGIN)
        return opened

    batch = _batch(1_000)
    directory = LogDirectory.open(str(folder / "many"), RealDisk(), CLUSTER, 1)
    made = _timed(create)
    first = _timed(append)
    stopped = _timed(lambda: directory.close({}, BrokerEpoch(1)))
    start = time.perf_counter()
    directory = open_again()
    clean = time.perf_counter() - start
    directory.close({}, None)
    start = time.perf_counter()
    directory = open_again()
    unclean = time.perf_counter() - start
    directory.close({}, None)
    title = f"{count:,} partitions"
    return [
        f"| {title}: create | {made:.2f} s |",
        f"| {title}: append a first batch, with a new epoch's file | {first:.2f} s |",
        f"| {title}: stop cleanly | {stopped:.2f} s |",
        f"| {title}: open after that | {clean:.2f} s |",
        f"| {title}: open after an unclean stop | {unclean:.2f} s |",
    ]


def large_log(folder: Path, gigabytes: float) -> list[str]:
    """Rows: what a long log costs: to write, to open, to find and to read."""
    directory = LogDirectory.open(str(folder / "large"), RealDisk(), CLUSTER, 1)
    files = directory.create_partition("large", 0, TOPIC_ID, CONFIG, BEGIN)
    batch, wanted = _batch(65_536), int(gigabytes * 1e9 / 65_536)

    def write() -> None:
        for _ in range(wanted):
            files.append(files.log.end_offset, LEADER, [batch], BEGIN)

    written = _timed(write)
    directory.close({}, BrokerEpoch(1))
    start = time.perf_counter()
    directory = LogDirectory.open(str(folder / "large"), RealDisk(), CLUSTER, 1)
    files = directory.open_partition("large", 0, CONFIG, BEGIN)
    opened = time.perf_counter() - start
    end = files.log.end_offset
    places = [Offset(number * 7_919 % end) for number in range(2_000)]
    finds = [_timed(partial(files.read, place, end, 1)) for place in places]
    read_bytes, count, offset = 0, 0, Offset(0)
    start = time.perf_counter()
    while count < 2_000 and offset < end:
        part = files.read(offset, end, 1 << 20, at_least_one=True)
        offset, read_bytes, count = part.next_offset, read_bytes + part.length, count + 1
    slices = (time.perf_counter() - start) / max(count, 1)
    assert next(headers(files.read(Offset(0), end, 1, at_least_one=True).bytes())).base_offset == 0
    directory.close({}, None)
    title = f"a log of {gigabytes:g} GB"
    return [
        f"| {title}: append batches of 64 KiB | {wanted * 65_536 / written / 1e6:,.0f} MB/s |",
        f"| {title}: open after a clean stop | {opened * 1e3:.1f} ms |",
        f"| {title}: find an offset anywhere, median | {statistics.median(finds) * 1e6:.0f} us |",
        f"| {title}: choose 1 MiB to send, one after the other | {slices * 1e6:.0f} us |",
    ]


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True, help="where files are written; they need as much room as --gigabytes")
    parser.add_argument("--gigabytes", type=float, default=10.0, help="of the long log (10)")
    parser.add_argument("--partitions", type=int, default=1_000, help="how many are created (1,000)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        rows = [*checksums(), *appends(folder), *partitions(folder, arguments.partitions)]
        rows += large_log(folder, arguments.gigabytes)
    table = "\n".join(["| what | |", "|---|---|", *rows])
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    text = f"One process on {machine}; the machine did other work beside.\n\n{table}\n"
    print(text)
    write_readme("storage", text)


if __name__ == "__main__":
    main()
