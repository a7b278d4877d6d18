"""Damaged files of Apache Kafka itself: what a node does about each kind, after SIGTERM and after SIGKILL.

`python -m tests.impl.storage.damage.kafka 4.4.0` prints a line for each cell of the table in `docs/storage.md`; `--one-start
--write tests/data/kafka-4.4-damaged-files.json` writes the answers that are kept.

A node has many log directories with one partition each. One file of each is damaged, so that one start tells of all of them.
What may end the node has a start for itself.
"""

import argparse
import json
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kspec.conformance.kafka.jars import Jars, KafkaMissingError, find_jars
from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.records.batch import header_at, is_intact
from kspec.impl.records.record import new_batch
from kspec.impl.storage.small_files import METADATA_FOLDER
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.faults.damage import DamageKind, FileKind, Others, damaged, files_of
from tests.impl.broker.process import BrokerClient
from tests.limits.turns import Turns

BATCHES = 36
PAYLOAD = 60_000
"""Of a batch (bytes): about three segments, as Kafka makes none smaller than a mebibyte."""

SETTINGS = {
    "log.segment.bytes": 1 << 20,
    "log.index.size.max.bytes": 1 << 16,
    "replica.high.watermark.checkpoint.interval.ms": 500,
    "log.flush.offset.checkpoint.interval.ms": 500,
    "log.flush.start.offset.checkpoint.interval.ms": 500,
    "log.cleaner.threads": 1,
    "metadata.log.max.snapshot.interval.ms": 0,
}
SETTLES_S, START_S = 60.0, 60.0
PAST_SECONDS = 1.0
"""The time that checkpoints are given (s)."""

MAY_END_THE_NODE = (FileKind.META, FileKind.OWNER)
"""Of a partition's files it is `partition.metadata`: an id that is none is no error that Kafka expects there."""

Damage = Callable[[Path, Random, "OtherDirectory"], str | None]
"""A change of files in a log directory that is down: what was done, none if nothing changes."""


class OtherDirectory(NamedTuple):
    """Other log directories: another replica's, and the same one some time before."""

    other: Path
    older: Path


class DamageCase(NamedTuple):
    """A cell of the table."""

    file: str
    kind: str
    damage: Damage


def partition_folder(data: Path) -> Path:
    """The folder of the only topic's partition."""
    (found,) = [one for one in data.iterdir() if one.is_dir() and one.name.startswith("case-")]
    return found


def by_kind(file: FileKind, kind: DamageKind, folder: str | None = None) -> Damage:
    """The damage of one kind of file."""

    def damage(data: Path, random: Random, elsewhere: OtherDirectory) -> str | None:
        partition = folder or partition_folder(data).name
        names = [str(one.relative_to(data)) for one in data.rglob("*") if one.is_file()]
        found = files_of(names, partition, file)
        if not found:
            return None
        name = random.choice(found)
        others = Others(*(content_of(root, name, folder) for root in elsewhere))
        before = (data / name).read_bytes()
        after = damaged(before, kind, random, others)
        if after == before:
            return None
        if after is None:
            (data / name).unlink()
        else:
            (data / name).write_bytes(after)
        return name

    return damage


def content_of(root: Path, name: str, folder: str | None) -> bytes:
    """The same file of another directory; nothing if it has none."""
    if not root.exists():
        return b""
    within = name.partition("/")[2]
    path = partition_folder(root) / within if within and folder is None else root / name
    return path.read_bytes() if path.is_file() else b""


def folder_gone(data: Path, random: Random, elsewhere: OtherDirectory) -> str:
    """The partition's folder is gone."""
    shutil.rmtree(partition_folder(data))
    return "the folder"


def folder_emptied(data: Path, random: Random, elsewhere: OtherDirectory) -> str:
    """All files of the partition's folder are gone."""
    for file in partition_folder(data).iterdir():
        file.unlink()
    return "the folder"


def segments(data: Path) -> list[Path]:
    """The segments of the partition."""
    return sorted(partition_folder(data).glob("*.log"))


def first_segment_gone(data: Path, random: Random, elsewhere: OtherDirectory) -> str:
    """The first segment is gone."""
    segments(data)[0].unlink()
    return segments(data)[0].name


def second_segment_gone(data: Path, random: Random, elsewhere: OtherDirectory) -> str:
    """A segment between others is gone."""
    segments(data)[1].unlink()
    return segments(data)[1].name


def indexes_that_lie(data: Path, random: Random, elsewhere: OtherDirectory) -> str:
    """Entries of the offset indexes are in order and within the file, and none names a batch."""
    for segment in segments(data):
        index, base = segment.with_suffix(".index"), int(segment.stem)
        entries, size = index.stat().st_size // 8, segment.stat().st_size
        made = ((2 * one + 1, (one + 1) * size // (entries + 1) + 7) for one in range(entries))
        index.write_bytes(b"".join(offset.to_bytes(4) + place.to_bytes(4) for offset, place in made if base + offset))
    return ".index"


def changed_batch(number: int, first: int, content: bytes) -> Damage:
    """Bytes of a batch of the active segment are others, at a place in it."""

    def damage(data: Path, random: Random, elsewhere: OtherDirectory) -> str:
        path = segments(data)[-1]
        log, position = bytearray(path.read_bytes()), 0
        for _ in range(number):
            position += header_at(bytes(log), position).size
        log[position + first : position + first + len(content)] = content
        path.write_bytes(bytes(log))
        return path.name

    return damage


def cases() -> Iterator[DamageCase]:
    """All cells that one start tells of."""
    for file in FileKind:
        if file not in MAY_END_THE_NODE:
            for kind in DamageKind:
                yield DamageCase(file.name, kind.name, by_kind(file, kind))
    yield DamageCase("FOLDER", "DELETE", folder_gone)
    yield DamageCase("FOLDER", "EMPTY", folder_emptied)
    yield DamageCase("OLDER_SEGMENT", "FIRST_GONE", first_segment_gone)
    yield DamageCase("OLDER_SEGMENT", "SECOND_GONE", second_segment_gone)
    yield DamageCase("OFFSET_INDEX", "LIES", indexes_that_lie)
    yield DamageCase("ACTIVE_SEGMENT", "EPOCH_BACK", changed_batch(1, 12, bytes(4)))
    yield DamageCase("ACTIVE_SEGMENT", "OTHER_FORMAT", changed_batch(1, 16, b"\x07"))
    yield DamageCase("ACTIVE_SEGMENT", "REACHES_TOO_FAR", changed_batch(1, 8, (1 << 24).to_bytes(4)))


def cases_alone() -> Iterator[DamageCase]:
    """The cells that may end the node: each has a start."""
    for file in MAY_END_THE_NODE:
        for kind in DamageKind:
            yield DamageCase(file.name, kind.name, by_kind(file, kind))
    for file in (FileKind.ACTIVE_SEGMENT, FileKind.EPOCHS):
        for kind in (DamageKind.CUT_ONE, DamageKind.CUT, DamageKind.FLIP, DamageKind.EMPTY, DamageKind.DELETE):
            yield DamageCase(f"METADATA_{file.name}", kind.name, by_kind(file, kind, METADATA_FOLDER))


class PartitionContent(NamedTuple):
    """The content of a partition before it is damaged."""

    batches: list[bytes]
    """From the leader epoch on, which the broker sets no more."""
    epochs: dict[int, int]
    """The end offset of each epoch."""
    producer_id: int


# ---- asking


def body(batch: bytes) -> bytes:
    """The part of a batch that its checksum covers."""
    return batch[21:]


def filled(client: BrokerClient, topic: str, first: int, count: int, producer_id: int) -> list[bytes]:
    """Batches of two records, by one producer."""
    made = []
    for number in range(first, first + count):
        random = Random(f"{topic} {number}")
        now_ms = int(time.time() * 1_000)  # a producer whose records are old is forgotten
        records: list[tuple[int, bytes | None, bytes | None]] = [
            (now_ms + one, None, random.randbytes(PAYLOAD // 2)) for one in range(2)
        ]
        batch = new_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=2 * number)
        answer = client.produce(topic, batch)
        assert answer.error_code == 0, (topic, number, answer)
        made.append(batch)
    return made


def end_of_epoch(client: BrokerClient, topic: str, epoch: int) -> int:
    """The end offset of an epoch by OffsetForLeaderEpoch."""
    wanted = Message(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    topics = [Message(topic=topic, partitions=[wanted])]
    (answer,) = client.call("OffsetForLeaderEpoch", 4, replica_id=-1, topics=topics).topics[0].partitions
    return int(answer.end_offset) if not answer.error_code else -answer.error_code - 100


def listed(client: BrokerClient, topic: str, timestamp: int) -> tuple[Error, int]:
    """The first offset (-2) or the end (-1) of the log."""
    wanted = Message(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    topics = [Message(name=topic, partitions=[wanted])]
    (answer,) = client.call("ListOffsets", 7, replica_id=-1, isolation_level=0, topics=topics).topics[0].partitions
    return Error(answer.error_code), int(answer.offset)


def stretches(found: list[tuple[int, str]]) -> str:
    """Offsets with what was found at each, joined where it is the same."""
    words: list[str] = []
    for told, same in groupby(found, key=lambda one: one[1]):
        offsets = [offset for offset, _ in same]
        words.append(f"{offsets[0]}..{offsets[-1] + 1} {told}")
    return ", ".join(words)


def at(client: BrokerClient, topic: str, offset: int, written: PartitionContent) -> str:
    """The batch that a reader of an offset gets, beside the one that was written there."""
    part = client.fetch(topic, offset)
    if part.error_code:
        return Error(part.error_code).name
    data = bytes(part.records or b"")
    if not data:
        return "nothing"
    try:
        header = header_at(data)
    except Exception as error:  # whatever it is, no batch can be made of it
        return f"no batch ({type(error).__name__})"
    batch = data[: header.size]
    if len(batch) < header.size:
        return "a part of a batch"
    if header.base_offset > offset:
        return "skipped"
    if not is_intact(batch, header):
        return "wrong checksum"
    return "as written" if body(batch) == body(written.batches[offset // 2]) else "another batch"


def looked_at(client: BrokerClient, topic: str, written: PartitionContent) -> str:
    """All that clients see of a partition after the start."""
    (error, start), (error_of_end, end) = listed(client, topic, -2), listed(client, topic, -1)
    if (error, error_of_end) != (Error.NONE, Error.NONE):
        return f"offline ({(error_of_end if error == Error.NONE else error).name})"
    all_of_them = 2 * len(written.batches)
    told = [f"log {start}..{end} of 0..{all_of_them}"]
    found = [(offset, at(client, topic, offset, written)) for offset in range(start, min(end, all_of_them))]
    told.append(stretches(found))
    epochs = {epoch: end_of_epoch(client, topic, epoch) for epoch in written.epochs}
    told.append("epochs kept" if epochs == written.epochs else f"epochs {epochs}, were {written.epochs}")
    again = client.produce(topic, written.batches[-1])
    if again.error_code:
        told.append(f"duplicate: {Error(again.error_code).name}")
    else:
        told.append(
            "producer kept" if again.base_offset == all_of_them - 2 else f"duplicate appended at {again.base_offset}"
        )
    more = client.produce(topic, new_batch([(1, None, b"more")]))
    told.append(f"append at {more.base_offset}" if not more.error_code else f"append: {Error(more.error_code).name}")
    return "; ".join(word for word in told if word)


# ---- a node


class NodeWithCases:
    """A node of Kafka with a log directory for each case."""

    def __init__(self, jars: Jars, root: Path, count: int, metadata_apart: bool = True) -> None:
        self.root = root
        self.directories = [root / f"d{number:03d}" for number in range(count)]
        self.older = root / "older"
        more: dict[str, object] = dict(SETTINGS)
        more["log.dirs"] = ",".join(map(str, self.directories))
        if metadata_apart:
            more["metadata.log.dir"] = root / "metadata"
        self.kafka = SingleKafka(jars, root / "node", more)
        self.topics = [f"case-{number:03d}" for number in range(count)]
        self.written: dict[str, PartitionContent] = {}

    def prepare(self) -> None:
        """Write half of the records, keep a copy of the files, write the rest."""
        halves: dict[str, list[bytes]] = {}
        ids: dict[str, int] = {}
        with BrokerClient(self.kafka.port) as client:
            for number, topic in enumerate(self.topics):
                client.create(topic)
                assert await_leader(client, topic), topic
                ids[topic] = 5_000 + number
                halves[topic] = filled(client, topic, 0, BATCHES // 2, ids[topic])
        time.sleep(PAST_SECONDS)
        self.kafka.process.stop()
        for directory in self.directories:
            shutil.copytree(directory, self.older / directory.name)
        self.kafka.start()
        with BrokerClient(self.kafka.port) as client:
            for topic in self.topics:
                assert await_leader(client, topic), topic
                rest = filled(client, topic, BATCHES // 2, BATCHES - BATCHES // 2, ids[topic])
                epochs = {epoch: end_of_epoch(client, topic, epoch) for epoch in range(4)}
                known = {epoch: end for epoch, end in epochs.items() if end >= 0}
                self.written[topic] = PartitionContent(halves[topic] + rest, known, ids[topic])
        time.sleep(PAST_SECONDS)

    def directory_of(self, topic: str) -> Path:
        """The directory that Kafka has put a topic in."""
        (found,) = [one for one in self.directories if (one / f"{topic}-0").is_dir()]
        return found

    def start_again(self) -> str | None:
        """Start the node; none if it serves, or how it ended."""
        process = self.kafka.process
        process.start()
        end = time.monotonic() + START_S
        turns = Turns()
        while not (process.started and answers(self.kafka.port)):
            turns.go()
            if not process.running:
                return f"the node ends: {last_words(process.log_text(), self.root)}"
            if time.monotonic() > end:
                return f"the node does not start in {START_S:.0f} s: {last_words(process.log_text(), self.root)}"
            time.sleep(0.2)
        return None

    def complaints(self, directory: Path) -> str:
        """Whether the node has given the directory up, and what it first says of its files."""
        text = self.kafka.process.log_text()
        failed = re.search(rf"Stopping serving logs in dir {re.escape(str(directory))}\b", text)
        named = [line for line in text.splitlines() if re.search(rf"(WARN|ERROR|FATAL).*{directory.name}\b", line)]
        told = "directory offline; " if failed else ""
        return told + (f"log: {shortened(named[0], self.root)}" if named else "nothing in the log")


def shortened(line: str, root: Path) -> str:
    """A line of the log without what differs from run to run."""
    return re.sub(r"^\S+ \[[^]]*\] ", "", line).replace(f"{root}/", "")[:240]


def last_words(text: str, root: Path) -> str:
    """The first line that tells why the node ends, and its cause."""
    lines = text.splitlines()
    fatal = [number for number, line in enumerate(lines) if re.search("Fatal|FATAL|halt|error in one of the threads", line)]
    if not fatal:
        return "nothing said"
    causes = [line for line in lines[fatal[0] :] if "Exception" in line or line.startswith("Caused by")]
    return " <- ".join(shortened(line, root) for line in [lines[fatal[0]], *causes[:3]])


def answers(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def await_leader(client: BrokerClient, topic: str, seconds: float = SETTLES_S) -> bool:
    """Wait until a topic can be read and written; whether that comes."""
    end, turns = time.monotonic() + seconds, Turns()
    while time.monotonic() < end:
        turns.go()
        if listed(client, topic, -1)[0] == Error.NONE:
            return True
        time.sleep(0.1)
    return False


def ask_together(jars: Jars, root: Path, asked: list[DamageCase], clean: bool) -> dict[str, str]:
    """The outcome of each case, all of them in one start."""
    found: dict[str, str] = {}
    node = NodeWithCases(jars, root, len(asked) + 1)
    with node.kafka as kafka:
        node.prepare()
        places = {topic: node.directory_of(topic) for topic in node.topics}
        kafka.process.stop() if clean else kafka.process.kill()
        intact = node.topics[-1]
        done: dict[str, str] = {}
        for case, topic in zip(asked, node.topics, strict=False):
            data = places[topic]
            elsewhere = OtherDirectory(places[intact], node.older / data.name)
            changed = case.damage(data, Random(f"{case.file} {case.kind}"), elsewhere)
            if changed is not None:
                done[topic] = changed
        told = node.start_again()
        if told is not None:
            raise KafkaMissingError(told)
        with BrokerClient(kafka.port) as client:
            assert await_leader(client, intact)
            time.sleep(2 * PAST_SECONDS)
            for case, topic in zip(asked, node.topics, strict=False):
                name = f"{case.file} {case.kind}"
                if topic not in done:
                    found[name] = "nothing to damage"
                    continue
                seen = looked_at(client, topic, node.written[topic])
                found[name] = f"{seen}; {node.complaints(places[topic])}"
            found["NOTHING INTACT"] = looked_at(client, intact, node.written[intact])
        if not kafka.process.running:
            raise KafkaMissingError("the node has ended while it was asked")
    return found


def ask_alone(jars: Jars, root: Path, asked: list[DamageCase], clean: bool) -> dict[str, str]:
    """The outcome of each case, each in a start of its own on the same files."""
    found: dict[str, str] = {}
    node = NodeWithCases(jars, root, 2, metadata_apart=False)
    with node.kafka as kafka:
        node.prepare()
        places = {topic: node.directory_of(topic) for topic in node.topics}
        kafka.process.stop() if clean else kafka.process.kill()
        kept = root / "kept"
        for directory in node.directories:
            shutil.copytree(directory, kept / directory.name)
        damaged_one, other_one = node.directories
        for case in asked:
            for directory in node.directories:
                shutil.rmtree(directory)
                shutil.copytree(kept / directory.name, directory)
            elsewhere = OtherDirectory(other_one, node.older / damaged_one.name)
            changed = case.damage(damaged_one, Random(f"{case.file} {case.kind}"), elsewhere)
            name = f"{case.file} {case.kind}"
            if changed is None:
                found[name] = "nothing to damage"
                continue
            told = node.start_again()
            if told is None:
                with BrokerClient(kafka.port) as client:
                    seen = []
                    for topic in node.topics:
                        await_leader(client, topic, 5)
                        seen.append(f"{places[topic].name}: {looked_at(client, topic, node.written[topic])}")
                told = f"{' | '.join(seen)}; {node.complaints(damaged_one)}"
            found[name] = told
            kafka.process.kill()
    return found


def ask(jars: Jars, wanted: str = "", alone_too: bool = True) -> Mapping[str, dict[str, str]]:
    """All cells whose names contain a word, by how the node was stopped."""
    answers_of: dict[str, dict[str, str]] = {}
    for clean in (True, False):
        words = "after SIGTERM" if clean else "after SIGKILL"
        together = [one for one in cases() if wanted in f"{one.file} {one.kind}"]
        alone = [one for one in cases_alone() if alone_too and wanted in f"{one.file} {one.kind}"]
        answers_of[words] = {}
        for asked, how in ((together, ask_together), (alone, ask_alone)):
            if asked:
                with TemporaryDirectory(prefix="damaged-kafka-") as folder:
                    found = how(jars, Path(folder), asked, clean)
                sys.stderr.write("".join(f"{words}: {name}: {told}\n" for name, told in found.items()))
                answers_of[words] |= found
    return answers_of


def without_log(told: str) -> str:
    """The outcome of a cell without what differs from run to run: the log's words, and how soon a client asks."""
    return re.sub(r"; (log: .*|nothing in the log)$", "", re.sub(r"offline \([A-Z_]+\)", "offline", told))


def main() -> int:
    """Ask a release."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("release")
    parser.add_argument("--only", default="", help="cells whose names contain this, such as EPOCHS")
    parser.add_argument("--one-start", action="store_true", help="leave out the cells that need a start for themselves")
    parser.add_argument("--write", type=Path, help="a file for the answers, as JSON")
    asked = parser.parse_args()
    try:
        found = ask(find_jars(asked.release), asked.only, not asked.one_start)
    except KafkaMissingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    kept = {how: {name: without_log(told) for name, told in cells.items()} for how, cells in found.items()}
    text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
    if asked.write is None:
        sys.stdout.write(text)
    else:
        asked.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
