"""Members of groups by both protocols, and simple consumers, that commit offsets and read them: librdkafka (extra `tools`).

Each offset is a number that no client has committed before, so that a reader can tell whose commit it is; no record needs to
have that offset. The library retries a commit by itself after some errors, so an error leaves its fate unknown.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from random import Random
from typing import Any, NamedTuple

from kspec.trials.faults.load import CLIENT, Recorder, library
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    UNKNOWN,
    CommitOutcome,
    CommitStart,
    OffsetFetchOutcome,
    OffsetFetchStart,
)

ANSWER_S, JOIN_S = 10.0, 60.0
"""The timeout of a request, and the longest wait for the end of a client (s)."""

COMMIT_EVERY_S, STAYS_S = 0.05, (2.0, 8.0)
"""The interval of a client's commits, and the time after which a member leaves or dies, and joins again (s)."""

READS_ONE_IN = 5
SESSION = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000}
"""Times of a member of the classic protocol, and of nobody else."""

STRATEGIES = ("range", "roundrobin", "cooperative-sticky")


class GroupSettings(NamedTuple):
    """The number of members of one group, of simple consumers that commit offsets of another, and of members by KIP-848."""

    members: int = 0
    simple: int = 0
    consumers: int = 0


class GroupLoad:
    """Clients of three groups in threads, from `start` to `stop`. `seed`: of the assignment strategy and of departures."""

    def __init__(
        self, servers: str, topic: str, partitions: int, settings: GroupSettings, recorder: Recorder, seed: int
    ) -> None:
        self._servers, self._topic, self._partitions = servers, topic, list(range(partitions))
        self._settings, self._recorder = settings, recorder
        self._random = Random(f"groups {seed}")
        self._strategy = self._random.choice(STRATEGIES)
        self._numbers = count(1)
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    @property
    def groups(self) -> dict[str, int]:
        """The groups, with their numbers of clients."""
        settings = self._settings
        kinds = {"members": settings.members, "simple": settings.simple, "consumers": settings.consumers}
        return {f"{self._topic}-{kind}": clients for kind, clients in kinds.items()}

    def start(self) -> None:
        """Begin to join, commit and read."""
        for number in range(self._settings.members):
            self._begin(self._be_member, f"member-{number}", self._random.getrandbits(32))
        for number in range(self._settings.simple):
            own = self._partitions[number :: self._settings.simple]
            self._begin(self._be_simple, f"simple-{number}", own)
        for number in range(self._settings.consumers):
            self._begin(self._be_consumer, f"consumer-{number}", self._random.getrandbits(32))

    def _begin(self, work: Callable[..., None], name: str, *given: Any) -> None:
        def tried() -> None:
            try:
                work(name, *given)
            except BaseException as error:
                self._failures.append(error)

        thread = threading.Thread(target=tried, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, longest_s: float = JOIN_S) -> None:
        """Commit no more, and wait for the last responses; clients without one by then are abandoned."""
        self._ended.set()
        end = time.monotonic() + longest_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        if self._failures:
            raise self._failures[0]

    # ---- clients

    def _client(self, group: str, **settings: Any) -> Any:
        """A consumer of the library."""
        own = {"bootstrap.servers": self._servers, "group.id": group, "enable.auto.commit": False}
        return library().Consumer({**CLIENT, **own, "auto.offset.reset": "latest", **settings})

    def _be_member(self, name: str, seed: int) -> None:
        """Join, commit what is assigned, leave or vanish, and join again."""
        random, group = Random(seed), f"{self._topic}-members"
        static = {"group.instance.id": name} if random.random() < 0.5 else {}
        while not self._ended.is_set():
            given = {"partition.assignment.strategy": self._strategy, "client.id": name, **static, **SESSION}
            self._live(self._client(group, **given), name, group, random)

    def _be_consumer(self, name: str, seed: int) -> None:
        """The same by the newer protocol (KIP-848), whose times are the broker's."""
        random, group = Random(seed), f"{self._topic}-consumers"
        while not self._ended.is_set():
            self._live(self._client(group, **{"group.protocol": "consumer", "client.id": name}), name, group, random)

    def _live(self, client: Any, name: str, group: str, random: Random) -> None:
        client.subscribe([self._topic])
        self._stay(client, name, group, random)
        with contextlib.suppress(library().KafkaException):
            client.close()

    def _stay(self, client: Any, name: str, group: str, random: Random) -> None:
        turns = int(random.uniform(*STAYS_S) / COMMIT_EVERY_S)
        for turn in range(turns):
            if self._ended.is_set():
                return
            client.poll(COMMIT_EVERY_S)
            assigned = [one.partition for one in self._assignment(client)]
            if not assigned:
                continue
            if turn % READS_ONE_IN == 0:
                self.read(client, name, group, assigned)
            else:
                self._commit(client, name, group, random.sample(assigned, random.randint(1, len(assigned))))

    def _assignment(self, client: Any) -> Sequence[Any]:
        with contextlib.suppress(library().KafkaException):
            found: Sequence[Any] = client.assignment()
            return found
        return ()

    def _be_simple(self, name: str, partitions: list[int]) -> None:
        """Commit and read without being a member."""
        group = f"{self._topic}-simple"
        client = self._client(group, **{"client.id": name})
        for turn in count():
            if self._ended.wait(COMMIT_EVERY_S):
                break
            if turn % READS_ONE_IN == 0:
                self.read(client, name, group, partitions)
            else:
                self._commit(client, name, group, partitions)
        client.close()

    # ---- requests

    def _named(self, group: str, partition: int) -> str:
        return f"{group}/{self._topic}-{partition}"

    def _commit(self, client: Any, who: str, group: str, partitions: Sequence[int]) -> None:
        """Commit a new offset of each partition at once, and note the answers."""
        offsets = {partition: next(self._numbers) for partition in partitions}
        for partition, offset in offsets.items():
            self._recorder.note(partial(CommitStart, who, self._named(group, partition), offset))
        wanted = [library().TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
        try:
            answers = {one.partition: one.error for one in client.commit(offsets=wanted, asynchronous=False)}
        except library().KafkaException as failure:
            answers = dict.fromkeys(offsets, failure.args[0])
        for partition, offset in offsets.items():
            error = answers[partition]
            kind, name = (ACKNOWLEDGED, None) if error is None else (UNKNOWN, error.name())
            self._recorder.note(partial(CommitOutcome, self._named(group, partition), offset, kind, name))

    def read(self, client: Any, name: str, group: str, partitions: Sequence[int]) -> bool:
        """Read the committed offsets, and note them; whether the response had all of them."""
        for partition in partitions:
            self._recorder.note(partial(OffsetFetchStart, name, self._named(group, partition)))
        wanted = [library().TopicPartition(self._topic, partition) for partition in partitions]
        try:
            found = client.committed(wanted, timeout=ANSWER_S)
        except library().KafkaException:
            return False
        for one in found:
            if one.error is None:
                offset = one.offset if one.offset >= 0 else -1
                self._recorder.note(partial(OffsetFetchOutcome, name, self._named(group, one.partition), offset))
        return all(one.error is None for one in found)

    def read_at_the_end(self) -> bool:
        """Read all committed offsets of all groups once more; whether the responses had all of them."""
        whole = True
        for group, clients in self.groups.items():
            if clients:
                client = self._client(group, **{"client.id": "last-reading"})
                whole &= self.read(client, "last-reading", group, self._partitions)
                client.close()
        return whole
