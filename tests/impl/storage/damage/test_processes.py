"""A broker as a process, on a folder that was damaged after SIGTERM or SIGKILL: what is whole is served."""

import os
from pathlib import Path
from random import Random

import pytest

from kspec.impl.records.batch import headers
from kspec.impl.records.record import new_batch, records_of
from kspec.spec.values import Error
from kspec.trials.faults.damage import DamageKind, FileKind, damage_folder
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.limits.marks import marked
from tests.limits.turns import Turns

pytestmark = pytest.mark.slow

TOPICS = ("damaged", "neighbour")
RECORDS = 400


def filled(folder: Path) -> BrokerProcess:
    """A broker with records in both topics."""
    broker = BrokerProcess(folder, overrides=["log.index.interval.bytes=200", "log.segment.bytes=3000"], traced=False)
    broker.start()
    with BrokerClient(broker.port) as client:
        for topic in TOPICS:
            client.create(topic)
            for number in range(RECORDS // 4):
                batch = [(1_000 + 4 * number + one, None, b"%d" % (4 * number + one)) for one in range(4)]
                assert client.produce(topic, new_batch(batch)).error_code == 0
    return broker


def values(client: BrokerClient, topic: str) -> tuple[Error, list[bytes]]:
    """The values that a consumer, which checks batches, reads from the beginning."""
    found: list[bytes] = []
    turns = Turns()
    while True:
        turns.go()
        part = client.fetch(topic, len(found))
        data = bytes(part.records or b"")
        if part.error_code or not data:
            return Error(part.error_code), found
        for header in headers(data):
            records = records_of(memoryview(data)[header.position : header.position + header.size])
            found += [record.value or b"" for record in records if record.offset >= len(found)]


def written(count: int = RECORDS) -> list[bytes]:
    """The values of the first records."""
    return [b"%d" % number for number in range(count)]


def test_a_byte_less_at_the_end_of_a_log_costs_its_last_batch_and_no_other_partition(tmp_path: Path) -> None:
    broker = filled(tmp_path / "data")
    assert broker.stop() == 0
    segment = sorted((tmp_path / "data" / "damaged-0").glob("*.log"))[-1]
    segment.write_bytes(segment.read_bytes()[:-1])
    broker.start()
    with BrokerClient(broker.port) as client:
        assert values(client, "neighbour") == (Error.NONE, written())
        assert values(client, "damaged") == (Error.NONE, written(RECORDS - 4))
        assert client.produce("damaged", new_batch([(1, None, b"more")])).base_offset == RECORDS - 4
    assert broker.stop() == 0
    text = broker.text_of_log()
    assert f"{segment} has " in text
    assert "which are cut off: it ends at offset 396" in text
    assert "metadata log" not in text


def test_garbage_in_an_index_hides_no_record(tmp_path: Path) -> None:
    """The entries are in range and in order, and none names a batch."""
    broker = filled(tmp_path / "data")
    assert broker.stop() == 0
    for index in (tmp_path / "data" / "damaged-0").glob("*.index"):
        entries = len(index.read_bytes()) // 8
        size = index.with_suffix(".log").stat().st_size
        made = ((2 * one + 1, (one + 1) * size // (entries + 1) + 7) for one in range(entries))
        index.write_bytes(b"".join(offset.to_bytes(4) + place.to_bytes(4) for offset, place in made))
    broker.start()
    with BrokerClient(broker.port) as client:
        for offset in range(0, RECORDS, 7):
            part = client.fetch("damaged", offset)
            first = next(headers(bytes(part.records)))
            assert first.base_offset <= offset < first.next_offset
        assert values(client, "damaged") == (Error.NONE, written())
    assert broker.stop() == 0


@pytest.mark.parametrize("damage", ["a file", "whose it is", "a folder that is gone", "a segment that is gone"])
def test_a_partition_whose_files_cannot_be_used_is_offline_alone(damage: str, tmp_path: Path) -> None:
    broker = filled(tmp_path / "data")
    assert broker.stop() == 0
    folder = tmp_path / "data" / "damaged-0"
    if damage == "whose it is":
        (folder / "partition.metadata").write_bytes(b"\xff")
    elif damage == "a segment that is gone":
        sorted(folder.glob("*.log"))[1].unlink()
    else:
        folder.rename(tmp_path / "kept")
        if damage == "a file":
            folder.write_text("a file", encoding="utf-8")
    for _ in range(2):
        broker.start()
        with BrokerClient(broker.port) as client:
            assert values(client, "damaged")[0] == Error.KAFKA_STORAGE_ERROR
            assert client.produce("damaged", new_batch([(1, None, b"x")])).error_code == Error.KAFKA_STORAGE_ERROR.value
            assert values(client, "neighbour") == (Error.NONE, written())
        assert broker.stop() == 0
    lines = [line for line in broker.text_of_log().splitlines() if "damaged-0 is offline: " in line]
    assert len(lines) == 2
    assert str(folder) in lines[0]
    assert "Traceback" not in broker.text_of_log()


SERVED = (
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.SNAPSHOT,
    FileKind.EPOCHS,
    FileKind.HIGH_WATERMARKS,
    FileKind.RECOVERY_POINTS,
)


@pytest.mark.parametrize("seed", marked(range(6), nightly=range(2, 6)))
@pytest.mark.parametrize("clean", [True, False])
def test_damage_by_seed(seed: int, clean: bool, tmp_path: Path) -> None:
    """Several files of one folder at a time; the process lives through all of it."""
    random = Random(f"{seed} {clean}")
    broker = filled(tmp_path / "data")
    for _ in range(3):
        if clean:
            assert broker.stop() == 0
        else:
            broker.kill()
        files = random.sample(SERVED, 3)
        done = [
            damage_folder(tmp_path / "data", "damaged-0", file, random.choice(list(DamageKind)), random) for file in files
        ]
        broker.start()
        with BrokerClient(broker.port) as client:
            for topic in TOPICS:
                assert values(client, topic) == (Error.NONE, written()), done
    assert broker.stop() == 0
    assert "Traceback" not in broker.text_of_log()


def odd_starts(folder: Path) -> dict[str, str]:
    """Topics of which one file each is no file any more, and the file; pipes among them, at which a start must not wait."""
    made = {
        "pipe-in-log": "00000000000000000000.log",
        "pipe-in-index": "00000000000000000000.index",
        "pipe-in-epochs": "leader-epoch-checkpoint",
        "folder-in-snapshot": "00000000000000009999.snapshot",
        "link-in-timeindex": "00000000000000000000.timeindex",
        "device-in-owner": "partition.metadata",
    }
    for topic, name in made.items():
        path = folder / f"{topic}-0" / name
        path.unlink(missing_ok=True)
        if topic.startswith("pipe"):
            os.mkfifo(path)
        elif topic.startswith("folder"):
            path.mkdir()
        else:
            path.symlink_to("/dev/zero" if topic.startswith("device") else path.name)
    os.mkfifo(folder / "recovery-point-offset-checkpoint.tmp")
    return made


def test_what_is_no_file_in_many_partitions_ends_no_broker(tmp_path: Path) -> None:
    broker = filled(tmp_path / "data")
    topics = ["pipe-in-log", "pipe-in-index", "pipe-in-epochs", "folder-in-snapshot", "link-in-timeindex", "device-in-owner"]
    with BrokerClient(broker.port) as client:
        for topic in topics:
            client.create(topic)
            assert client.produce(topic, new_batch([(1, None, b"0")])).error_code == 0
    assert broker.stop() == 0
    made = odd_starts(tmp_path / "data")
    assert sorted(made) == sorted(topics)
    broker.start()
    with BrokerClient(broker.port) as client:
        for topic in TOPICS:
            assert values(client, topic) == (Error.NONE, written())
        answers = {topic: values(client, topic)[0] for topic in topics}
    mended = {topic for topic, error in answers.items() if error == Error.NONE}
    assert mended == {"pipe-in-epochs"}
    assert set(answers.values()) == {Error.NONE, Error.KAFKA_STORAGE_ERROR}
    assert broker.stop() == 0
    text = broker.text_of_log()
    assert "Traceback" not in text
    for topic in topics:
        assert str(tmp_path / "data" / f"{topic}-0" / made[topic]) in text, topic
