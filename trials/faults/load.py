"""Producers and consumers that note their observations: librdkafka, an independent client (extra `tools`).

After an error of a send the record's fate is unknown: an earlier try may have stored it. A record counts as refused only if
the library refuses it before anything is sent.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from kspec.trials.cluster.plan import ClusterError
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    REFUSED,
    UNKNOWN,
    ConsumerAssignment,
    Event,
    PartitionEnd,
    Poll,
    SendOutcome,
    SendStart,
)

IN_FLIGHT = 1
"""A producer's requests in flight. With more, librdkafka begins a new epoch when a leader refuses one and finds a gap before
the next, and sends all unanswered records again: duplicates that no broker can recognize."""

GIVE_UP_S, FLUSH_S, QUIET_S = 600, 60, 60.0
"""The delivery timeout of a record: longer than any fault, for librdkafka begins a new producer epoch after it and sends
records again, which no broker can recognize. The longest time for the last records, and for a last reading without progress.
"""

CLIENT = {
    "log_level": 0,
    "topic.metadata.refresh.interval.ms": 2000,
    "reconnect.backoff.max.ms": 500,
    "socket.timeout.ms": 6000,
    "socket.connection.setup.timeout.ms": 3000,
}


GONE = {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE", "_LOG_TRUNCATION"}
"""Errors of a consumer whose offset is out of range."""


class LoadSettings(NamedTuple):
    """The load: producers and consumers, records per second of each producer, and the producers' acks.

    `one_by_one`: a batch has one record. Else it has all records that were sent while the one before was in flight.
    """

    producers: int = 2
    consumers: int = 2
    rate: int = 100
    acks: str = "all"
    one_by_one: bool = False


class Recorder:
    """The events of all clients, in one order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def note(self, make: Callable[[int], Event]) -> None:
        """Note an event, which is given its time (ms)."""
        with self._lock:
            self.events.append(make(int((time.monotonic() - self._began) * 1000)))


def library() -> Any:
    """The client library. Raises: `ClusterError`, if it is not installed."""
    try:
        import confluent_kafka  # noqa: PLC0415 (an extra)
        import confluent_kafka.admin  # noqa: PLC0415
    except ImportError:
        raise ClusterError("rounds need confluent-kafka: in a clone, .venv/bin/pip install -e '.[tools]'") from None
    return confluent_kafka


def create_topic(
    servers: str, topic: str, partitions: int, copies: int, settings: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Create a topic, and wait until it is there. Raises: `ClusterError`."""
    kafka = library()
    admin = kafka.admin.AdminClient({**CLIENT, "bootstrap.servers": servers})
    wanted = kafka.admin.NewTopic(topic, partitions, copies, config=dict(settings))
    end = time.monotonic() + QUIET_S
    while True:
        try:
            admin.create_topics([wanted], operation_timeout=10, request_timeout=10)[topic].result(20)
            return
        except kafka.KafkaException as error:
            if error.args[0].code() == kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if time.monotonic() > end:
                raise ClusterError(f"cannot create topic {topic}: {error.args[0].str()}") from error
            time.sleep(0.5)


def delete_topic(servers: str, topic: str) -> None:
    """Delete a topic. If that is refused, or gets no response, it stays."""
    kafka = library()
    admin = kafka.admin.AdminClient({**CLIENT, "bootstrap.servers": servers})
    with contextlib.suppress(kafka.KafkaException):
        admin.delete_topics([topic], operation_timeout=10, request_timeout=10)[topic].result(20)


class Load:
    """Clients in threads, from `start` to `stop`. `group`: a part of their names, if a topic has several loads."""

    def __init__(
        self, servers: str, topic: str, partitions: int, settings: LoadSettings, recorder: Recorder, group: str = ""
    ) -> None:
        self._servers = servers
        self._topic = topic
        self._partitions = range(partitions)
        self._settings = settings
        self._recorder = recorder
        self._group = f"{group}-" if group else ""
        self._ended = threading.Event()
        self._flush_s: float = FLUSH_S
        self._failures: list[BaseException] = []
        self.gave_up: list[str] = []
        """Producers that failed, and their errors; another one took the place of each."""
        self._threads: dict[str, threading.Thread] = {}

    def start(self) -> None:
        """Begin to send and to poll."""
        works = (
            ("producer", self._produce, self._settings.producers),
            ("consumer", self._consume, self._settings.consumers),
        )
        for what, work, count in works:
            for name in (f"{what}-{self._group}{number}" for number in range(1, count + 1)):
                self._threads[name] = threading.Thread(target=self._tried, args=(work, name), daemon=True)
        for thread in self._threads.values():
            thread.start()

    def stop(self, flush_s: float = FLUSH_S) -> None:
        """Send no more, and wait for the outcome of each record."""
        self._flush_s = flush_s
        self._ended.set()
        for thread in self._threads.values():
            thread.join(FLUSH_S + QUIET_S)
        if self._failures:
            raise self._failures[0]

    def _tried(self, work: Callable[[str], None], name: str) -> None:
        try:
            work(name)
        except BaseException as error:
            self._failures.append(error)

    # ---- producers

    def _produce(self, name: str) -> None:
        """Send until the end. A producer that fails is followed by another, with a new name."""
        number = incarnation = 0
        begin = time.monotonic()
        while not self._ended.is_set():
            incarnation += 1
            number = self._produce_with(f"{name}.{incarnation}", number, begin)

    def _produce_with(self, name: str, number: int, begin: float) -> int:
        kafka = library()
        fatal: list[Any] = []
        stumbled: list[str] = []
        idempotent = self._settings.acks == "all"

        def note_fatal(error: Any) -> None:
            if error.fatal():
                fatal.append(error)

        producer = kafka.Producer(
            {
                **CLIENT,
                "bootstrap.servers": self._servers,
                "client.id": name,
                "acks": self._settings.acks,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
                **({"batch.num.messages": 1} if self._settings.one_by_one else {}),
                **({"max.in.flight.requests.per.connection": IN_FLIGHT} if idempotent else {}),
                "request.timeout.ms": 4000,
                "message.timeout.ms": GIVE_UP_S * 1000,
                "error_cb": note_fatal,
            }
        )
        try:
            while not self._ended.is_set() and not fatal:
                due = int((time.monotonic() - begin) * self._settings.rate)
                while number < due and not fatal:
                    self._send(producer, name, number)
                    number += 1
                producer.poll(0.01)
            end = time.monotonic() + self._flush_s
            while (left := producer.flush(1)) and not fatal and time.monotonic() < end:
                pass
        except (kafka.KafkaException, SystemError) as error:  # the library stumbles over its own fatal error
            left = len(producer)
            stumbled.append(str(error))
        with contextlib.suppress(kafka.KafkaException, SystemError):
            if left:
                producer.purge()
                producer.flush(1)
        self.gave_up += [f"{name}: {reason}" for reason in [*(one.str() for one in fatal), *stumbled][:1]]
        return number

    def _send(self, producer: Any, name: str, number: int) -> None:
        partition = number % len(self._partitions)
        key, value = f"{self._topic}-{partition}", f"{name}:{number}"
        self._recorder.note(partial(SendStart, name, key, value))

        def told(error: Any, message: Any) -> None:
            if error is not None:
                self._recorder.note(partial(SendOutcome, key, value, UNKNOWN, None, error.name()))
                return
            offset = message.offset() if message.offset() >= 0 else None
            self._recorder.note(partial(SendOutcome, key, value, ACKNOWLEDGED, offset, None))

        try:
            producer.produce(self._topic, value.encode(), partition=partition, on_delivery=told)
        except (BufferError, library().KafkaException) as error:
            self._recorder.note(partial(SendOutcome, key, value, REFUSED, None, str(error)))
            producer.poll(0.1)

    # ---- consumers

    def _consume(self, name: str) -> None:
        reader = LoadConsumer(self._servers, self._topic, self._partitions, name, self._recorder)
        try:
            while not self._ended.is_set():
                reader.poll()
        finally:
            reader.close()


class LoadConsumer:
    """One consumer of all partitions of a topic, from their beginnings."""

    settings: ClassVar[Mapping[str, Any]] = {}
    """Settings of the library that its kind has besides."""

    def __init__(self, servers: str, topic: str, partitions: Sequence[int], name: str, recorder: Recorder) -> None:
        self._kafka = library()
        self._topic = topic
        self._name = name
        self._recorder = recorder
        self.at = dict.fromkeys(partitions, 0)
        """The partitions, and the next offset of each."""
        settings = {"bootstrap.servers": servers, "group.id": name, "client.id": name, "enable.auto.commit": False}
        reading = {"auto.offset.reset": "error", "fetch.wait.max.ms": 100, "check.crcs": True}
        self._consumer = self._kafka.Consumer({**CLIENT, **settings, **reading, **self.settings})
        self._assign()

    def _assign(self) -> None:
        for number in self.at:
            self.at[number] = 0
            self._recorder.note(partial(ConsumerAssignment, self._name, f"{self._topic}-{number}", 0))
        self._consumer.assign([self._partition(number) for number in self.at])

    def _partition(self, number: int) -> Any:
        return self._kafka.TopicPartition(self._topic, number, 0)

    def poll(self) -> int:
        """Poll once, and note the records; their number. A consumer whose offset is out of range restarts at 0."""
        found: dict[int, list[tuple[int, str]]] = {}
        ended: dict[int, int] = {}
        errors = set()
        for message in self._consumer.consume(500, 0.2):
            if message.error() is None:
                record = message.offset(), message.value().decode("utf-8", "replace")
                found.setdefault(message.partition(), []).append(record)
            elif message.error().name() == "_PARTITION_EOF":
                ended[message.partition()] = message.offset()
            else:
                errors.add(message.error().name())
        for number, records in found.items():
            self.at[number] = records[-1][0] + 1
            self._recorder.note(partial(Poll, self._name, f"{self._topic}-{number}", tuple(records)))
            self.take(number, records)
        for number, offset in ended.items():
            self.at[number] = max(self.at[number], offset)
        if errors & GONE:
            self._assign()
        return sum(map(len, found.values()))

    def take(self, partition: int, records: Sequence[tuple[int, str]]) -> None:
        """Take the records of a partition that a poll gave."""

    def read_to_the_end(self) -> None:
        """Poll until all partitions are read up to their present ends. Raises: `ClusterError`, without progress."""
        ends = {number: self._end_of(number) for number in self.at}
        since = time.monotonic()
        while any(self.at[number] < end for number, end in ends.items()):
            if self.poll():
                since = time.monotonic()
            elif time.monotonic() - since > QUIET_S:
                behind = [f"{self._topic}-{number} at {self.at[number]} of {end}" for number, end in ends.items()]
                raise ClusterError(f"the last reading makes no progress: {', '.join(behind)}")
        for number, end in ends.items():
            self._recorder.note(partial(PartitionEnd, self._name, f"{self._topic}-{number}", end))

    def _end_of(self, number: int) -> int:
        limit = time.monotonic() + QUIET_S
        while time.monotonic() < limit:
            with contextlib.suppress(self._kafka.KafkaException):
                end: int = self._consumer.get_watermark_offsets(self._partition(number), timeout=10)[1]
                return end
            time.sleep(0.2)
        raise ClusterError(f"no broker reports the end of {self._topic}-{number}")

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
