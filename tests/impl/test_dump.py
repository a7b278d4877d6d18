"""`kspec dump-log` beside Apache Kafka's own tool: what it printed of a recorded folder, and, if Java is there, of ours."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from kspec.cli.main import cli
from kspec.impl.dump import Dump, Options
from kspec.impl.records.batch import TRANSACTIONAL
from kspec.impl.records.markers import marker_batch
from kspec.impl.records.record import new_batch
from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles, RealDisk, StorageError
from kspec.spec.log.batch import EndMarker
from kspec.spec.values import Epoch, ProducerEpoch, ProducerId, TimestampMs
from tests.conformance.kafka.releases import kafkas_dump
from tests.places import REPOSITORY
from tests.times import at_ms

RECORDED = REPOSITORY / "tests/data/kafka-4.4.0"
KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
OF_RECORDED = tuple(kind for kind in KINDS if kind != ".txnindex")
FLAGS = {
    "batches": Options(),
    "print-data-log": Options(print_data_log=True),
    "index-sanity-check": Options(index_sanity_check=True),
}


def files_of(folder: Path, kinds: Sequence[str] = KINDS) -> list[str]:
    return [str(file) for kind in kinds for file in sorted(folder.glob(f"*{kind}"))]


@pytest.mark.parametrize("name", FLAGS)
def test_a_folder_of_kafka(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dump-NAME.txt` is what `kafka-dump-log --files recorded-0/...` of Apache Kafka 4.3.1 printed."""
    monkeypatch.chdir(RECORDED)
    dump = Dump(FLAGS[name])
    lines = [line for file in files_of(Path("recorded-0"), OF_RECORDED) for line in dump.lines(file)]
    assert lines == (RECORDED / f"dump-{name}.txt").read_text(encoding="utf-8").splitlines()
    assert dump.complaints[1:] == (["  -1 is followed by 50"] if FLAGS[name].print_data_log else [])


def ours(folder: Path) -> Path:
    """A folder with each codec, segments, epochs and producers."""
    directory = LogDirectory.open(str(folder), RealDisk(), "c" * 22, 1)
    config = LogConfig(segment_bytes=6_000, index_interval_bytes=200)
    files = directory.create_partition("t", 0, "A" * 22, config, at_ms(0))
    for number in range(60):
        time = 1_000 + 5 * number
        records = [(time, b"k%d" % number, b"v" * 40), (time + 3, None, b"w"), (time, b"x", None)]
        producer = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 3 * number} if number % 3 else {}
        batch = new_batch(records, codec=number % 5, **producer)
        files.append(files.log.end_offset, Epoch(number // 20), [batch], at_ms(0))
    for number in range(4):
        _end_transaction(files, number)
    directory.close({}, None)
    return folder / "t-0"


def _end_transaction(files: PartitionFiles, number: int) -> None:
    """Two producers begin transactions; one of them ends its own, and before that the other one, from the second time on."""
    one, other = ((ProducerId(20), ProducerEpoch(1)), (ProducerId(21), ProducerEpoch(0)))
    for producer_id, producer_epoch in (one, other):
        batch = new_batch(
            [(2_000, b"k", b"v")],
            attributes=TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=number,
        )
        files.append(files.log.end_offset, Epoch(5), [batch], at_ms(0))
    for whose in (one,) if number == 0 else (other, one):
        marker = marker_batch(*whose, EndMarker(number == 2, Epoch(3)), TimestampMs(2_001))
        files.append(files.log.end_offset, Epoch(5), [marker], at_ms(0))


def run(arguments: list[str]) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, ["dump-log", *arguments], standalone_mode=False)
    return (result.return_value if result.exception is None else 2), result.stdout, result.stderr


def test_mismatches_are_told(tmp_path: Path) -> None:
    folder = ours(tmp_path / "logs")
    index, times = folder / f"{0:020d}.index", folder / f"{0:020d}.timeindex"
    entry = bytearray(index.read_bytes())
    entry[3] += 1
    index.write_bytes(entry)
    stamps = bytearray(times.read_bytes())
    stamps[7] += 1
    times.write_bytes(stamps)
    status, _, errors = run([str(index), str(times), "--verify-index-only"])
    assert status == 0
    assert errors.splitlines()[0] == f"Mismatches in :{index}"
    assert errors.splitlines()[2] == f"Found timestamp mismatch in :{times}"


def test_an_index_of_aborted_transactions_that_was_cut(tmp_path: Path) -> None:
    folder = ours(tmp_path / "logs")
    index = next(iter(folder.glob("*.txnindex")))
    (line, *_) = list(Dump(Options()).lines(str(index)))[1:]
    assert line == "version: 0 producerId: 20 firstOffset: 180 lastOffset: 182 lastStableOffset: 181"
    index.write_bytes(index.read_bytes()[:-1])
    with pytest.raises(StorageError, match="no multiple of 34"):
        list(Dump(Options()).lines(str(index)))


def test_invalid_bytes_at_the_end(tmp_path: Path) -> None:
    log = ours(tmp_path / "logs") / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-1])
    lines = list(Dump(Options()).lines(str(log)))
    assert lines[-1].endswith(f"invalid bytes at the end of {log.name}")
    log.write_bytes(bytes(100))
    with pytest.raises(StorageError, match="the least is 14"):
        list(Dump(Options()).lines(str(log)))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("none.log", b"", "should be named by the offset"),
        ("1.checkpoint", b"", "should be named OFFSET-EPOCH.checkpoint"),
        (f"{0:020d}.log", bytes(11) + b"\x50" + bytes(4) + b"\x01" + bytes(100), "has format 1, not 2"),
        (f"{0:020d}.index", b"\x00" * 8, "cannot read"),
    ],
)
def test_files_that_cannot_be_read(name: str, content: bytes, complaint: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StorageError, match=complaint):
        list(Dump(Options()).lines(str(tmp_path / name)))


def test_other_files_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "x.snapshot").write_bytes(b"no snapshot")
    status, _, errors = run([str(tmp_path / "x.txt"), str(tmp_path / "x.snapshot")])
    assert status == 0
    assert errors.splitlines()[0] == f"Ignoring unknown file {tmp_path / 'x.txt'}"
    assert "is no snapshot of producers" in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--print-data-log"],
        ["--deep-iteration"],
        ["--index-sanity-check"],
        ["--verify-index-only"],
        ["--max-bytes", "900"],
    ],
)
def test_beside_kafkas_tool(flags: list[str], tmp_path: Path) -> None:
    """Kafka's tool reads our folder, and prints just what ours prints, also to standard error."""
    names = ["--files", ",".join(files_of(ours(tmp_path / "logs"))), *flags]
    theirs = kafkas_dump(*names)
    assert run(names) == (theirs.returncode, theirs.stdout, theirs.stderr)
