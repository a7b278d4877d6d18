"""A broker as a process of its own, started by the tests, and a client that speaks the wire format field by field."""

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

from kspec.cli.broker.serve import rules_of
from kspec.conformance.kafka.process import free_port
from kspec.impl.trace.steps import header_of, replay
from kspec.impl.wire.apis import APIS
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import write_message
from kspec.trials.cluster.clocks import MISSING, faketime_library, forget_shared, with_clock
from tests.limits.turns import Turns

KEYS = {api.name: api for api in APIS.values()}
COMMAND = "import sys; from kspec.cli.main import main; sys.exit(main())"

START_S, STOP_S = 120, 60
"""Emergency stops, far away: a broker that hangs is a failure with a message, and not a test that never ends."""


class BrokerProcess:
    """`kspec broker` on a free port of the loopback.

    Each start writes a trace, unless `traced` is false. Leaving the `with` block runs all of them through `spec` again: so
    the run of every test is a run of the rules.
    """

    begins_with = ""
    """Python that is run before the command."""

    def __init__(
        self, folder: Path, *options: str, overrides: Sequence[str] = (), traced: bool = True, clock: Path | None = None
    ) -> None:
        self.folder = folder
        self.clock = clock
        """By how much its wall clock is off, if that can be moved."""
        self._options = options
        self._traced = traced
        self.traces: list[Path] = []
        self.overrides = overrides
        self.process: subprocess.Popen[str] | None = None
        self.port = 0
        self.log = folder.parent / f"{folder.name}.log"

    @property
    def address(self) -> str:
        """The address to which clients connect."""
        return f"127.0.0.1:{self.port}"

    def settings(self) -> list[str]:
        """Its settings; a port is chosen at the first start, and kept."""
        listeners = [f"listeners=PLAINTEXT://127.0.0.1:{self.port or free_port()}"]
        own = ["group.initial.rebalance.delay.ms=0", *self.overrides]
        return [*own, *listeners] if self.port else [*listeners, *own]

    def start(self) -> Self:
        """Start it, and wait until it serves."""
        given = [part for override in self.settings() for part in ("--override", override)]
        if self._traced:
            self.traces.append(self.folder.parent / f"{self.folder.name}-{len(self.traces)}.trace")
            given += ["--trace", str(self.traces[-1])]
        command = [
            sys.executable,
            "-c",
            self.begins_with + COMMAND,
            "broker",
            "--log-dir",
            str(self.folder),
            *given,
            *self._options,
        ]
        if self.clock is not None:
            library = faketime_library()
            assert library is not None, MISSING
            command = with_clock(library, self.clock, command)
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = first_line(self.process.stdout)
        if not line.startswith("ready 127.0.0.1:"):
            self.kill()
            raise AssertionError(f"it said {line!r}, not that it is ready:\n{self.text_of_log()}")
        self.port = int(line.rpartition(":")[2])
        return self

    def stop(self) -> int:
        """Stop it in order; the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self._ended()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the broker does not stop within {STOP_S} s:\n{self.text_of_log()}") from None

    def kill(self) -> None:
        """End it as by kill -9."""
        assert self.process is not None
        self.process.kill()
        self._ended()
        forget_shared(self.process.pid)

    def _ended(self) -> int:
        assert self.process is not None
        status = self.process.wait(timeout=STOP_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def text_of_log(self) -> str:
        """The text that it has logged."""
        return self.log.read_text(encoding="utf-8")

    def replay_traces(self) -> int:
        """Run all steps that it has recorded through `spec` again; how many they are."""
        return sum(map(replay_of, self.traces))

    def ended(self) -> int:
        """Its exit status, when it ends by itself."""
        try:
            return self._ended()
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the broker goes on:\n{self.text_of_log()}") from None

    def restart(self) -> None:
        """Stop it, and start it on the same folder and port."""
        assert self.stop() == 0
        self.start()

    def memory(self) -> int:
        """Its resident memory in bytes."""
        assert self.process is not None
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            if error is None and self._traced:
                assert self.stop() == 0
            else:
                self.kill()
        if error is None:
            self.replay_traces()


def replay_of(trace: Path) -> int:
    """Run all steps of a trace through `spec` again; how many they are."""
    rules = rules_of(*header_of(trace))
    steps = 0
    for difference in replay(trace, rules.broker, rules.controller.protocol, rules.quorum):
        assert difference is None, f"{trace}: {difference}"
        steps += 1
    return steps


def first_line(stream: IO[str]) -> str:
    """The first line that a process writes, or nothing if it writes none in time."""
    return stream.readline() if select.select([stream], [], [], START_S)[0] else ""


class BrokerClient:
    """A connection to a broker: requests as fields, answers as fields. `apis`: those that it knows, by their names."""

    apis = KEYS

    def __init__(self, port: int, timeout: float = 60) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.settimeout(timeout)
        self._correlation = 0
        self._gathered: bytearray | None = None

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, name: str, version: int, message: Message, client_id: str = "probe") -> int:
        """Send a request; its number."""
        self._correlation += 1
        api = self.apis[name]
        head = struct.pack(">hhih", api.key, version, self._correlation, len(client_id)) + client_id.encode()
        body = head + (b"\0" if version in api.flexible else b"") + write_message(f"{name}Request", version, message)
        self.send_frame(body)
        return self._correlation

    def send_frame(self, frame: bytes) -> None:
        """Send any bytes as a frame."""
        framed = struct.pack(">i", len(frame)) + frame
        if self._gathered is not None:
            self._gathered += framed
        else:
            self.socket.sendall(framed)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Send all that is sent within by one call."""
        self._gathered = bytearray()
        yield
        gathered, self._gathered = self._gathered, None
        self.socket.sendall(gathered)

    def receive_frame(self) -> bytes:
        """The next frame. Raises: `ConnectionError`, if the broker has closed the connection."""
        return self._exactly(struct.unpack(">i", self._exactly(4))[0])

    def _exactly(self, count: int) -> bytes:
        found = b""
        turns = Turns()
        while len(found) < count:
            turns.go()
            more = self.socket.recv(count - len(found))
            if not more:
                raise ConnectionError("the broker has closed the connection")
            found += more
        return found

    def receive(self, name: str, version: int) -> Message:
        """The answer to the oldest request that has none."""
        frame = memoryview(self.receive_frame())
        start = 5 if version in self.apis[name].flexible and name != "ApiVersions" else 4
        message, end = read_message(f"{name}Response", version, frame, start)
        assert end == len(frame), f"{len(frame) - end} bytes behind the answer"
        return message

    def call(self, name: str, version: int, **fields: Any) -> Message:
        """Send a request, and wait for its answer."""
        self.send(name, version, Message(**fields))
        return self.receive(name, version)

    def create(self, topic: str, partitions: int = 1, **configs: str) -> Message:
        """Create a topic; settings have `_` in place of `.`."""
        given = [Message(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        wanted = Message(name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=given)
        answer = self.call("CreateTopics", 7, topics=[wanted], timeout_ms=5000)
        created: Message = answer.topics[0]
        assert created.error_code == 0, created
        return created

    def produce(self, topic: str, records: bytes, acks: int = -1, partition: int = 0, version: int = 9) -> Message:
        """Produce one batch; the partition's answer."""
        data = Message(name=topic, partition_data=[Message(index=partition, records=records)])
        answer = self.call("Produce", version, acks=acks, timeout_ms=10000, topic_data=[data])
        found: Message = answer.responses[0].partition_responses[0]
        return found

    def fetch(self, topic: str, offset: int, partition: int = 0, max_wait_ms: int = 0, version: int = 12) -> Message:
        """Fetch from one partition; its answer."""
        wanted = Message(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        answer = self.call(
            "Fetch",
            version,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 24,
            topics=[Message(topic=topic, partitions=[wanted])],
        )
        found: Message = answer.responses[0].partitions[0]
        return found


def wait_until(condition: Any, seconds: float = 60) -> None:
    """Wait until something holds; the limit is an emergency stop."""
    end = time.monotonic() + seconds
    turns = Turns()
    while not condition():
        turns.go()
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.01)
