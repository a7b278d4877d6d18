"""Things that lie where a file should be, and are none: folders, pipes, sockets, devices, links to nothing or to themselves.

Tests run as root, so that this stands for all that cannot be read.
"""

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from kspec.impl.broker.replicas import in_words
from kspec.impl.storage import LogDirectory, RealDisk, StorageError
from kspec.spec.values import MonotonicMs
from tests.impl.storage.damage.directory import BOTH, CONFIG, DAMAGED, EPOCH, IDS, NEIGHBOUR, UndamagedContent, stopped
from tests.impl.storage.model import made, read_all
from tests.times import at_ms

LIMIT_S = 60.0
IS_NIGHT = bool(os.environ.get("KSPEC_NIGHTLY"))


def of_today(names: tuple[str, ...], odd: str, clean: bool) -> tuple[str, ...]:
    """All of them by night; by day a third, another one for each kind."""
    return names if IS_NIGHT else names[(list(ODD).index(odd) + clean) % 3 :: 3]


def socket_at(path: Path) -> None:
    """A socket, whose path may be longer than a socket's."""
    there = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(path.name)
    finally:
        os.chdir(there)


def full_folder(path: Path) -> None:
    path.mkdir()
    (path / "something").write_text("kept", encoding="utf-8")


ODD: dict[str, Callable[[Path], None]] = {
    "an empty folder": Path.mkdir,
    "a folder": full_folder,
    "a pipe": os.mkfifo,
    "a socket": socket_at,
    "a link to nothing": lambda path: path.symlink_to("nothing/at/all"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a device that is always empty": lambda path: path.symlink_to("/dev/null"),
    "a device that never ends": lambda path: path.symlink_to("/dev/zero"),
    "a device that is always full": lambda path: path.symlink_to("/dev/full"),
}

SEGMENT = "00000000000000000000"
IN_PARTITION = (
    f"{SEGMENT}.log",
    f"{SEGMENT}.index",
    f"{SEGMENT}.timeindex",
    "ACTIVE.log",
    "ACTIVE.index",
    "ACTIVE.timeindex",
    "ACTIVE.snapshot",
    "partition.metadata",
    "leader-epoch-checkpoint",
    "leader-epoch-checkpoint.tmp",
    f"{SEGMENT}.log.deleted",
    f"{SEGMENT}.log.cleaned",
    f"{SEGMENT}.log.swap",
    f"{SEGMENT}.txnindex",
    "00000000000000009999.log",
    "00000000000000009999.index",
    "00000000000000009999.snapshot",
    "",
)
"""The files of a partition's folder, those that may come, and the folder itself."""

IN_DIRECTORY = (
    "meta.properties",
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
    ".kafka_cleanshutdown",
    ".lock",
    "recovery-point-offset-checkpoint.tmp",
    "replication-offset-checkpoint.tmp",
    "cleaner-offset-checkpoint.tmp",
)


@contextmanager
def limited() -> Iterator[None]:
    """Wakes whoever waits for somebody at the other end of a pipe."""

    def tell(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def laid_out(folder: Path, clean: bool) -> Path:
    """The directory of a broker that was stopped, on a real disk."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in stopped(clean).files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def put(path: Path, odd: str) -> None:
    """Something that is no file takes the place of a file, or of a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    ODD[odd](path)


def opened(data: Path) -> LogDirectory:
    return LogDirectory.open(str(data), RealDisk(), "cluster", 1, may_format=False)


def in_order(directory: LogDirectory) -> None:
    """A stop in order."""
    directory.close({key: directory.partitions[key].log.end_offset for key in directory.partitions}, EPOCH)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("odd", ODD)
def test_it_costs_at_most_the_partition_in_whose_folder_it_lies(odd: str, clean: bool, tmp_path: Path) -> None:
    known = stopped(clean).known
    for name in of_today(IN_PARTITION, odd, clean):
        data = laid_out(tmp_path / "data", clean)
        folder = data / "damaged-0"
        active = sorted(folder.glob("*.log"))[-1].stem
        path = folder / name.replace("ACTIVE", active) if name else folder
        put(path, odd)
        words = f"{path.name}: {odd}, clean {clean}"
        with limited():
            look_at(opened(data), known[NEIGHBOUR], known[DAMAGED], path, words)


def look_at(directory: LogDirectory, neighbour: UndamagedContent, known: UndamagedContent, path: Path, words: str) -> None:
    """The neighbour has all; the partition has all, or one line names what is meant."""
    files = directory.open_partition(*NEIGHBOUR, CONFIG, at_ms(0), IDS[NEIGHBOUR])
    assert read_all(files) == neighbour.batches, words
    open_it = partial(directory.open_partition, *DAMAGED, CONFIG, at_ms(0), IDS[DAMAGED])
    if not directory.has_partition(*DAMAGED, IDS[DAMAGED]):
        open_it = partial(directory.create_partition, *DAMAGED, IDS[DAMAGED], CONFIG, at_ms(0))
    try:
        found = open_it()
    except (OSError, StorageError) as error:
        told = in_words(error)
        assert str(path) in told, (words, told)
        assert "\n" not in told, words
        assert "Errno" not in told, (words, told)
    else:
        assert read_all(found) == known.batches, words
        found.append(found.log.end_offset, found.log.latest_epoch, [made(3)], at_ms(0))
        found.flush(MonotonicMs(0))
    files.append(files.log.end_offset, files.log.latest_epoch, [made(3)], at_ms(0))
    in_order(directory)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("odd", ODD)
def test_in_the_directory_it_is_replaced_or_one_line_names_it(odd: str, clean: bool, tmp_path: Path) -> None:
    known = stopped(clean).known
    for name in of_today(IN_DIRECTORY, odd, clean):
        path = laid_out(tmp_path / "data", clean) / name
        put(path, odd)
        words = f"{name}: {odd}, clean {clean}"
        with limited():
            try:
                directory = opened(path.parent)
            except (OSError, StorageError) as error:
                told = in_words(error)
                assert str(path) in told, (words, told)
                assert "\n" not in told, words
                assert "Errno" not in told, (words, told)
                assert "another process" not in told, words
                continue
            for key in BOTH:
                assert read_all(directory.open_partition(*key, CONFIG, at_ms(0), IDS[key])) == known[key].batches, words
            directory.checkpoint_logs()
            in_order(directory)
            again = opened(path.parent)
            assert again.previous_broker_epoch == EPOCH or not clean, words
            for key in BOTH:
                assert read_all(again.open_partition(*key, CONFIG, at_ms(0), IDS[key])) == known[key].batches, words
            in_order(again)


def test_what_a_link_leads_to_is_not_deleted_with_a_topic(tmp_path: Path) -> None:
    """**Kafka:** `Utils.delete`, which does not follow links."""
    data, elsewhere = laid_out(tmp_path / "data", True), tmp_path / "elsewhere"
    full_folder(elsewhere)
    (data / "gone-0.0123456789abcdef0123456789abcdef-delete").symlink_to(elsewhere)
    directory = opened(data)
    directory.remove_deleted(MonotonicMs(1))
    assert [one.name for one in elsewhere.iterdir()] == ["something"]
    assert not list(data.glob("*-delete"))
