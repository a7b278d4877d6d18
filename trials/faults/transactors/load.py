"""Transactional clients of several families, each family a process, as the load of a cluster, and their history.

A program of a family gets its arguments, ends when its standard input does, and prints a line, with tabs between its
fields, when something happens: `begun T`, `sent T PARTITION VALUE`, `stored T PARTITION VALUE OFFSET`,
`consumed T PARTITION OFFSET VALUE`, `ended T KIND MS ERROR`, and `anew NAME ERROR` when a client could not go on and another
one takes its place. A client writes by one of these modes:

- `plain`: two to four records to any partitions; one transaction of seven is aborted;
- `transform`: a member of a group reads what is committed of the topic, writes a record for each to the topic of output, and
  commits its offsets in the same transaction;
- `bank`: an amount moves from an account to another one: two records, each in the partition of its account.
"""

import contextlib
import subprocess
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import IO, Any, ClassVar, NamedTuple

from kspec.trials.faults.load import CLIENT, LoadConsumer, Recorder, library
from kspec.trials.faults.transactors.families import ClientFamily
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    ConsumedTo,
    Consumption,
    Event,
    SendOutcome,
    SendStart,
    TransactionEnd,
)

PLAIN, TRANSFORM, BANK = "plain", "transform", "bank"
END_S = 200.0
"""The longest wait for the clients of a process to end their transactions."""

Lines = Sequence[str]


class TransactionTopics(NamedTuple):
    """The topic that clients write to, and that of those which transform; the partitions of each."""

    topic: str
    output: str
    partitions: int


class TransactionLoad:
    """Processes with transactional clients, from `start` to `stop`. `modes`: of each client of a family, by its name."""

    def __init__(
        self,
        servers: str,
        topics: TransactionTopics,
        recorder: Recorder,
        *,
        accounts: int = 2,
        pause_ms: int = 20,
        seed: int = 1,
    ) -> None:
        self._servers, self.topics, self._recorder = servers, topics, recorder
        self._shared = [str(topics.partitions), str(accounts), str(pause_ms), str(seed)]
        self._processes: list[tuple[str, subprocess.Popen[str]]] = []
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._outputs: dict[str, str] = {}
        self._modes: set[str] = set()
        self.gave_up: list[str] = []
        """Clients that could not go on, and their errors; another one took the place of each."""
        self.failed: list[str] = []
        """Processes that did not end as they should."""

    def start(self, family: ClientFamily, clients: Mapping[str, str]) -> None:
        """Start a process of a family, with clients by their names and modes."""
        topics = self.topics
        given = [self._servers, topics.topic, topics.output, *self._shared]
        named = [f"{name}={mode}" for name, mode in clients.items()]
        self._outputs |= {name: topics.output if mode == TRANSFORM else topics.topic for name, mode in clients.items()}
        self._modes |= set(clients.values())
        process = subprocess.Popen(
            [*family.command, *given, *named],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        thread = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        thread.start()
        self._processes.append((family.name, process))
        self._threads.append(thread)

    def stop(self) -> None:
        """Let all clients end their transactions, and those that transform consume all that is left."""
        for _, process in self._processes:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
        for name, process in self._processes:
            try:
                status = process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
            if status:
                assert process.stderr is not None
                told = process.stderr.read().strip().splitlines() if status > 0 else []
                self.failed.append(f"the clients of {name} ended with status {status}: {' '.join(told[-3:])}")
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def kill(self) -> None:
        """End all processes at once."""
        self._ended.set()
        for _, process in self._processes:
            process.kill()
            process.wait()

    def read(self) -> None:
        """Let a consumer of each topic read what is committed, until the end."""
        for topic in self.all_topics:
            thread = threading.Thread(target=self._read_topic, args=(topic,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _read_topic(self, topic: str) -> None:
        reader = CommittedConsumer(self._servers, topic, range(self.topics.partitions), f"reader-of-{topic}", self._recorder)
        try:
            while not self._ended.is_set():
                reader.poll()
        finally:
            reader.close()

    def read_at_the_end(self) -> None:
        """Read all that is committed once more. Raises: `ClusterError`, also if a transaction never ends."""
        for topic in self.all_topics:
            reader = CommittedConsumer(self._servers, topic, range(self.topics.partitions), "last-reading", self._recorder)
            try:
                reader.read_to_the_end()
            finally:
                reader.close()
        if TRANSFORM in self._modes:
            self._note_progress()

    @property
    def all_topics(self) -> tuple[str, ...]:
        """The topics; none, if they have no partitions."""
        return tuple(dict.fromkeys((self.topics.topic, self.topics.output))) if self.topics.partitions else ()

    # ---- lines

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._note(line.rstrip("\n").split("\t"))

    def _note(self, line: Lines) -> None:
        note, topic = self._recorder.note, self.topics.topic
        match line:
            case ["sent", name, partition, value]:
                key = f"{self._output_of(name)}-{partition}"
                note(lambda ms: SendStart(name.rpartition(".")[0], key, value, ms, name))
            case ["stored", name, partition, value, offset]:
                key, place = f"{self._output_of(name)}-{partition}", int(offset) if int(offset) >= 0 else None
                note(lambda ms: SendOutcome(key, value, ACKNOWLEDGED, place, None, ms, name))
            case ["consumed", name, partition, offset, value]:
                note(partial(Consumption, name, f"{topic}-{partition}", int(offset), value))
            case ["ended", name, kind, took, error]:
                who = name.rpartition(".")[0]
                note(lambda ms: TransactionEnd(who, name, kind, error or None, ms - int(took), ms))
            case ["anew", name, error]:
                self.gave_up.append(f"{name}: {error}")
            case ["begun", _]:
                pass
            case _:
                self.failed.append(f"a client prints {line!r}")

    def _output_of(self, transaction: str) -> str:
        return self._outputs[transaction.rpartition(".")[0]]

    # ---- the end

    def _note_progress(self) -> None:
        """Note how far the group has committed the offsets of the topic."""
        kafka, topics = library(), self.topics
        settings = {"bootstrap.servers": self._servers, "group.id": f"{topics.topic}-group", "enable.auto.commit": False}
        consumer = kafka.Consumer({**CLIENT, **settings})
        try:
            wanted = [kafka.TopicPartition(topics.topic, number) for number in range(topics.partitions)]
            for one in consumer.committed(wanted, timeout=30):
                if one.error is None and one.offset > 0:
                    self._recorder.note(partial(ConsumedTo, f"{topics.topic}-{one.partition}", one.offset))
        finally:
            consumer.close()


class CommittedConsumer(LoadConsumer):
    """A consumer of what is committed. Its end is where nothing is undecided."""

    settings: ClassVar[Mapping[str, Any]] = {"isolation.level": "read_committed", "enable.partition.eof": True}


def counts_of_transactions(events: Sequence[Event]) -> dict[str, int]:
    """The numbers of transactions by their ends, and of records that transactions have consumed."""
    ends = Counter(event.kind for event in events if isinstance(event, TransactionEnd))
    names = {"acknowledged": "committed", "refused": "aborted", "unknown": "of unknown end"}
    consumed = sum(isinstance(event, Consumption) for event in events)
    return {f"transactions {name}": ends[kind] for kind, name in names.items()} | {"consumed": consumed} if ends else {}
