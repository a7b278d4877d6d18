"""Members of a group by a client in Python: librdkafka, kafka-python or aiokafka. The lines are those of `load.py`.

`python -m kspec.trials.faults.members.python_clients FAMILY SERVERS TOPIC PARTITIONS PAUSE_MS STAYS_S NAME=PROTOCOL=NUMBER…`
"""

import asyncio
import contextlib
import os
import random
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

SESSION_MS, HEARTBEAT_MS, REQUEST_MS = 10_000, 2_000, 6_000
ERROR_PAUSE_S = 0.5
MOST_AT_ONCE = 3
"""The partitions of which a member commits at once, at most."""

NUMBERS = 1_000
"""No more members than this: an offset says by its last digits whose commit it is, so no other client commits it."""

PRINTING, STAYING, STOPPING = threading.Lock(), threading.Event(), threading.Event()


def say(*fields: object) -> None:
    """Print a line at once."""
    with PRINTING:
        told = (int(time.time() * 1000), *fields)
        sys.stdout.write("\t".join(str(field).replace("\n", " ") for field in told) + "\n")
        sys.stdout.flush()


class Arguments:
    """The arguments after the family."""

    def __init__(self, given: list[str]) -> None:
        self.servers, self.topic = given[:2]
        self.pause_s, self.stays_s = int(given[3]) / 1000, float(given[4])
        self.members = [one.split("=") for one in given[5:]]


class FamilyMember:
    """One member: it joins, commits offsets of what it has, leaves after a while, and joins again."""

    def __init__(self, arguments: Arguments, name: str, protocol: str, number: str) -> None:
        self.given, self.name, self.protocol, self.number = arguments, name, protocol, int(number)
        self.group = f"{arguments.topic}-{protocol}"
        self.turn = 0
        self.owned: set[int] = set()
        self.random = random.Random(name)

    def own(self, partitions: Iterable[int]) -> None:
        """Partitions are this member's from now on."""
        for partition in sorted({*partitions} - self.owned):
            say("owns", self.name, partition)
            self.owned.add(partition)

    def give(self, partitions: Iterable[int]) -> None:
        """Partitions are no longer this member's."""
        for partition in sorted({*partitions} & self.owned):
            say("gives", self.name, partition)
            self.owned.discard(partition)

    def next_offsets(self) -> dict[int, int]:
        """The next commit: an offset of each partition, which nobody has committed."""
        self.turn += 1
        chosen = self.random.sample(sorted(self.owned), min(len(self.owned), MOST_AT_ONCE))
        offsets = dict.fromkeys(chosen, self.turn * NUMBERS + self.number)
        for partition, offset in offsets.items():
            say("commits", self.name, partition, offset)
        return offsets

    def tell(self, offsets: dict[int, int], error: object = None) -> None:
        """Say how the commit ended."""
        kind = "acknowledged" if error is None else "unknown"
        for partition, offset in offsets.items():
            say("committed", self.name, partition, offset, kind, error or "")

    def stay(self) -> float:
        """The time at which it leaves, by the monotonic clock (s)."""
        return time.monotonic() + self.given.stays_s * (1 + 2 * self.random.random())

    def stays(self, end: float) -> bool:
        """Whether it does not leave yet."""
        return not STOPPING.is_set() and (STAYING.is_set() or time.monotonic() < end)


class ThreadedMember(FamilyMember):
    """A member in a thread of its own, by a library that waits."""

    errors: tuple[type[BaseException], ...]

    def run(self) -> None:
        """Live, again and again, until standard input ends."""
        while not STOPPING.is_set():
            try:
                client = self.join()
                try:
                    end = self.stay()
                    while self.stays(end):
                        self.poll(client)
                        if self.owned:
                            self.commit(client, self.next_offsets())
                finally:
                    self.give(set(self.owned))
                    client.close()
            except self.errors as error:
                say("anew", self.name, repr(error))
                time.sleep(ERROR_PAUSE_S)

    @abstractmethod
    def join(self) -> Any:
        """A client that has subscribed."""

    @abstractmethod
    def poll(self, client: Any) -> None:
        """Let the client work for a while."""

    @abstractmethod
    def commit(self, client: Any, offsets: dict[int, int]) -> None:
        """Commit, and tell."""


class LibrdkafkaMember(ThreadedMember):
    """By confluent-kafka."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        import confluent_kafka  # noqa: PLC0415 (an extra)

        self.library = confluent_kafka
        self.errors = (confluent_kafka.KafkaException, RuntimeError)

    def join(self) -> Any:
        """A client that has subscribed."""
        own: dict[str, Any] = {"group.protocol": "consumer"}
        if self.protocol == "classic":
            own = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
            own["partition.assignment.strategy"] = "range"
        client = self.library.Consumer(
            {
                "bootstrap.servers": self.given.servers,
                "group.id": self.group,
                "client.id": self.name,
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "log_level": 0,
                "topic.metadata.refresh.interval.ms": 2000,
                "reconnect.backoff.max.ms": 500,
                "socket.timeout.ms": REQUEST_MS,
                **own,
            }
        )

        def assigned(_: Any, partitions: list[Any]) -> None:
            self.own(one.partition for one in partitions)

        def revoked(_: Any, partitions: list[Any]) -> None:
            self.give(one.partition for one in partitions)

        client.subscribe([self.given.topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        return client

    def poll(self, client: Any) -> None:
        """Let the client work for a while."""
        client.poll(self.given.pause_s)

    def commit(self, client: Any, offsets: dict[int, int]) -> None:
        """Commit, and tell."""
        wanted = [self.library.TopicPartition(self.given.topic, one, offset) for one, offset in offsets.items()]
        try:
            answers = {one.partition: one.error for one in client.commit(offsets=wanted, asynchronous=False)}
        except self.library.KafkaException as failure:
            answers = dict.fromkeys(offsets, failure.args[0])
        for partition, offset in offsets.items():
            error = answers[partition]
            self.tell({partition: offset}, None if error is None else error.name())


class KafkaPythonMember(ThreadedMember):
    """By kafka-python, which has the classic protocol only."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        import kafka  # noqa: PLC0415 (an extra)
        import kafka.errors  # noqa: PLC0415

        self.library = kafka
        self.errors = (kafka.errors.KafkaError, AssertionError)

    def join(self) -> Any:
        """A client that has subscribed."""
        from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415

        client = self.library.KafkaConsumer(
            bootstrap_servers=self.given.servers.split(","),
            group_id=self.group,
            client_id=self.name,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=2000,
            reconnect_backoff_max_ms=500,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        member = self

        class RebalanceListener(self.library.ConsumerRebalanceListener):  # type: ignore[misc, name-defined]
            def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                member.give(one.partition for one in revoked)

            def on_partitions_lost(self, lost: Iterable[Any]) -> None:
                member.give(one.partition for one in lost)

            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                member.own(one.partition for one in assigned)

        client.subscribe([self.given.topic], listener=RebalanceListener())
        return client

    def poll(self, client: Any) -> None:
        """Let the client work for a while."""
        client.poll(timeout_ms=int(self.given.pause_s * 1000))

    def commit(self, client: Any, offsets: dict[int, int]) -> None:
        """Commit, and tell."""
        wanted = {
            self.library.TopicPartition(self.given.topic, one): self.library.OffsetAndMetadata(offset, "", -1)
            for one, offset in offsets.items()
        }
        try:
            client.commit(wanted)
            self.tell(offsets)
        except self.errors as error:
            self.tell(offsets, type(error).__name__)


class AiokafkaMember(FamilyMember):
    """By aiokafka, which has the classic protocol only; all its members are in one loop."""

    async def live(self) -> None:
        """Live, again and again, until standard input ends."""
        import aiokafka  # noqa: PLC0415 (an extra)
        import aiokafka.errors  # noqa: PLC0415

        while not STOPPING.is_set():
            try:
                await self._once(aiokafka)
            except (aiokafka.errors.KafkaError, OSError, TimeoutError) as error:
                say("anew", self.name, repr(error))
                await asyncio.sleep(ERROR_PAUSE_S)

    async def _once(self, library: Any) -> None:
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415

        member = self
        client = library.AIOKafkaConsumer(
            bootstrap_servers=self.given.servers,
            group_id=self.group,
            client_id=self.name,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            request_timeout_ms=REQUEST_MS + 4_000,
            metadata_max_age_ms=2000,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )

        class RebalanceListener(library.ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                member.give(one.partition for one in revoked)

            async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                member.own(one.partition for one in assigned)

        client.subscribe([self.given.topic], listener=RebalanceListener())
        try:
            await client.start()
            end = self.stay()
            while self.stays(end):
                await client.getmany(timeout_ms=int(self.given.pause_s * 1000))
                if self.owned:
                    await self._commit(library, client, self.next_offsets())
        finally:
            self.give(set(self.owned))
            await client.stop()

    async def _commit(self, library: Any, client: Any, offsets: dict[int, int]) -> None:
        wanted = {library.TopicPartition(self.given.topic, one): offset for one, offset in offsets.items()}
        try:
            await client.commit(wanted)
            self.tell(offsets)
        except (library.errors.KafkaError, TimeoutError) as error:
            self.tell(offsets, type(error).__name__)


THREADED: dict[str, type[ThreadedMember]] = {"librdkafka": LibrdkafkaMember, "kafka-python": KafkaPythonMember}


def main() -> None:
    """Run members until standard input ends."""
    family, arguments = sys.argv[1], Arguments(sys.argv[2:])

    def wait() -> None:
        sys.stdin.readline()
        STAYING.set()
        sys.stdin.read()
        STOPPING.set()

    threading.Thread(target=wait, daemon=True).start()
    if family in THREADED:
        members = [THREADED[family](arguments, *one) for one in arguments.members]
        threads = [threading.Thread(target=member.run) for member in members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        asyncio.run(_all([AiokafkaMember(arguments, *one) for one in arguments.members]))
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(0)  # what a library has left running is no matter


async def _all(members: list[AiokafkaMember]) -> None:
    await asyncio.gather(*(member.live() for member in members))


if __name__ == "__main__":
    main()
