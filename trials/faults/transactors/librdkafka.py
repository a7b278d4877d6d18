"""Transactional clients of librdkafka in threads of one process; `trials/faults/transactors/load.py` says what they print.

`python -m kspec.trials.faults.transactors.librdkafka SERVERS TOPIC OUTPUT PARTITIONS ACCOUNTS PAUSE_MS SEED NAME=MODE…`
"""

import contextlib
import os
import random
import sys
import threading
import time
from typing import Any

import confluent_kafka as kafka

COMMITS = 0.85
MOST_INPUT, IDLE_S, PATIENCE_S = 20, 4.0, 15.0
HANGS_S = 40.0
"""The time after which a call that was given `PATIENCE_S` counts as one that never returns: `send_offsets_to_transaction` of
librdkafka 2.16.1 sometimes does not."""

CLIENT = {
    "log_level": 0,
    "topic.metadata.refresh.interval.ms": 2000,
    "reconnect.backoff.max.ms": 500,
    "socket.timeout.ms": 6000,
    "socket.connection.setup.timeout.ms": 3000,
}


class FatalError(Exception):
    """The producer can do nothing more; another one takes its place."""


class Settings:
    """The arguments, and what all clients share."""

    def __init__(self, arguments: list[str]) -> None:
        self.servers, self.topic, self.output = arguments[:3]
        self.partitions, self.accounts, self.pause_ms, self.seed = map(int, arguments[3:7])
        self.clients = [one.split("=") for one in arguments[7:]]
        self.stopping = threading.Event()
        self.kept: list[Any] = []
        """Producers that are over, and clients: none of them is ended before the process is."""
        self._lock = threading.Lock()

    def say(self, *fields: object) -> None:
        """Print a line at once."""
        with self._lock:
            sys.stdout.write("\t".join(map(str, fields)) + "\n")
            sys.stdout.flush()


class Transactor:
    """One client: transactions one after the other, with a new producer after a fatal error."""

    def __init__(self, settings: Settings, name: str, mode: str, number: int = 0) -> None:
        self.settings, self.name, self.mode = settings, name, mode
        self.random = random.Random(f"{settings.seed} {name} {number}")
        self.number = number
        self.asked = False
        """Whether it has asked for the commit of its transaction."""
        self.is_open = False
        self.called_at: float | None = None
        """The time at which the call began that has not returned."""
        self.transaction = ""
        self.producer: Any = None
        self.consumer: Any = None
        self._began = self._busy = time.monotonic()

    def run(self) -> None:
        """Go on until told to stop; one that transforms until nothing more comes, too."""
        say, stopping = self.settings.say, self.settings.stopping
        if self.mode == "transform":
            self._subscribe()
        while not self._is_done():
            try:
                self._begin_anew()
                self._patiently(self.producer.init_transactions)
                if self.consumer is not None:
                    self._rewind()
                while not self._is_done():
                    self._once()
                    stopping.wait(self.settings.pause_ms / 1000)
            except (kafka.KafkaException, FatalError) as error:
                say("anew", self.name, str(error).replace("\t", " ").replace("\n", " "))
                time.sleep(0.5)
        if self.consumer is not None:
            with contextlib.suppress(kafka.KafkaException):
                self.consumer.close()

    def _begin_anew(self) -> None:
        """Make another producer. The one before is kept: its end may wait for ever, and all threads of Python with it."""
        self.settings.kept.append(self.producer)
        self.producer = kafka.Producer(self._producing())

    def _is_done(self) -> bool:
        idle = self.consumer is None or time.monotonic() - self._busy > IDLE_S
        return self.settings.stopping.is_set() and idle

    def _producing(self) -> dict[str, Any]:
        return {
            **CLIENT,
            "bootstrap.servers": self.settings.servers,
            "client.id": self.name,
            "transactional.id": self.name,
            "transaction.timeout.ms": 20_000,
            "linger.ms": 0,
            "request.timeout.ms": 5000,
        }

    # ---- one transaction

    def _once(self) -> None:
        given = self._input() if self.mode == "transform" else []
        if self.mode == "transform" and not given:
            return
        self.number += 1
        self.transaction = f"{self.name}.{self.number}"
        self.settings.say("begun", self.transaction)
        self._began = time.monotonic()
        self.asked, self.is_open = False, True
        try:
            self.producer.begin_transaction()
            for partition, value in self._records(given):
                self._send(partition, value)
            if given:
                offsets = {(one.topic(), one.partition()): one.offset() + 1 for one in given}
                wanted = [kafka.TopicPartition(*place, offset) for place, offset in offsets.items()]
                metadata = self.consumer.consumer_group_metadata()
                self._patiently(lambda limit: self.producer.send_offsets_to_transaction(wanted, metadata, limit))
            if self.mode == "transform" or self.random.random() < COMMITS:
                self._patiently(self._flushed)
                self.asked = True
                self._patiently(self.producer.commit_transaction)
                self._ended("acknowledged")
            else:
                self._abort("")
        except kafka.KafkaException as failure:
            error = failure.args[0]
            if not error.txn_requires_abort():
                self._ended("unknown" if self.asked else "refused", error.name())
                raise
            try:
                self._abort(error.name())
            except kafka.KafkaException:
                self._ended("unknown" if self.asked else "refused", error.name())
                raise
        except FatalError:
            self._ended("unknown" if self.asked else "refused", "_TIMED_OUT")
            raise

    @property
    def hangs(self) -> bool:
        """Whether a call does not return."""
        called_at = self.called_at
        return called_at is not None and time.monotonic() - called_at > HANGS_S

    def successor(self) -> "Transactor":
        """Another client in the place of this one, whose call does not return."""
        if self.is_open:
            self._ended("unknown" if self.asked else "refused", "hangs")
        self.settings.say("anew", self.name, "a call does not return")
        return Transactor(self.settings, self.name, self.mode, self.number + 1)

    def _ended(self, kind: str, error: str = "") -> None:
        self.is_open = False
        self.settings.say("ended", self.transaction, kind, int((time.monotonic() - self._began) * 1000), error)

    def _flushed(self, limit: float) -> None:
        if self.producer.flush(limit):
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT, "flush", False, True))

    def _abort(self, error: str) -> None:
        self._patiently(self.producer.abort_transaction)
        self._ended("refused", error)
        if self.mode == "transform":
            self._rewind()

    def _records(self, given: list[Any]) -> list[tuple[int, str]]:
        settings, name = self.settings, self.transaction
        if self.mode == "transform":
            return [(one.partition(), f"{name}/{one.partition()}-{one.offset()}") for one in given]
        if self.mode == "bank":
            giver, taker = self.random.sample(range(settings.accounts), 2)
            amount = self.random.randint(1, 100)
            entries = ((giver, -amount), (taker, amount))
            return [(account % settings.partitions, f"{name}|{account}|{change}") for account, change in entries]
        return [
            (self.random.randrange(settings.partitions), f"{name}/{place}") for place in range(self.random.randint(2, 4))
        ]

    def _send(self, partition: int, value: str) -> None:
        say, transaction = self.settings.say, self.transaction
        say("sent", transaction, partition, value)

        def told(error: Any, message: Any) -> None:
            if error is None:
                say("stored", transaction, partition, value, message.offset())

        topic = self.settings.output if self.mode == "transform" else self.settings.topic
        self.producer.produce(topic, value.encode(), partition=partition, on_delivery=told)

    def _patiently(self, call: Any) -> None:
        """Call again while the library says that this helps."""
        end = time.monotonic() + 6 * PATIENCE_S
        while True:
            try:
                self.called_at = time.monotonic()
                call(PATIENCE_S)
                return
            except kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise
                if time.monotonic() > end:
                    raise FatalError(str(error)) from error
                time.sleep(0.1)
            finally:
                self.called_at = None

    # ---- input

    def _subscribe(self) -> None:
        self._busy = time.monotonic()
        reading = {"isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        member = {"group.id": f"{self.settings.topic}-group", "session.timeout.ms": 6000, "client.id": self.name}
        times = {"fetch.wait.max.ms": 100, "heartbeat.interval.ms": 1000, "max.poll.interval.ms": 45_000}
        self.consumer = kafka.Consumer({**CLIENT, "bootstrap.servers": self.settings.servers, **reading, **member, **times})
        self.consumer.subscribe([self.settings.topic])

    def _input(self) -> list[Any]:
        given = [one for one in self.consumer.consume(MOST_INPUT, 0.3) if one.error() is None]
        if given:
            self._busy = time.monotonic()
            transaction = f"{self.name}.{self.number + 1}"
            for one in given:
                self.settings.say("consumed", transaction, one.partition(), one.offset(), one.value().decode())
        return given

    def _rewind(self) -> None:
        """Read again from what is committed, wherever this client is assigned."""
        self._busy = time.monotonic()
        while not self.settings.stopping.is_set() or time.monotonic() - self._busy < PATIENCE_S:
            try:
                found = self.consumer.committed(self.consumer.assignment(), timeout=PATIENCE_S)
                for one in found:
                    if one.error is not None:
                        raise kafka.KafkaException(one.error)
                    self.consumer.seek(kafka.TopicPartition(one.topic, one.partition, max(one.offset, 0)))
                return
            except kafka.KafkaException:
                self.consumer.poll(0.1)


def main() -> None:
    """Run all clients until standard input ends, and let them end their transactions."""
    settings = Settings(sys.argv[1:])
    clients: dict[threading.Thread, Transactor] = {}

    def begin(client: Transactor) -> None:
        thread = threading.Thread(target=client.run, daemon=True)
        thread.start()
        clients[thread] = client

    def wait_for_end() -> None:
        sys.stdin.read()
        settings.stopping.set()

    for name, mode in settings.clients:
        begin(Transactor(settings, name, mode))
    threading.Thread(target=wait_for_end, daemon=True).start()
    while clients:
        time.sleep(0.1)
        for thread, client in list(clients.items()):
            if not thread.is_alive():
                settings.kept.append(clients.pop(thread))
            elif client.hangs:
                del clients[thread]
                begin(client.successor())
    os._exit(0)  # a call that does not return would keep the library from ending


if __name__ == "__main__":
    main()
