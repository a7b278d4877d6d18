"""Processor time of a produce request: `python -m benchmarks.broker.produce_path [--beside FOLDER] [--turns 60]`.

A broker and its client in one thread, which takes turns: the client sends 32 requests, each with a batch of 64 KiB for one
of three partitions, acks=all. Only what the broker does counts, the system's calls included. FOLDER is another checkout of
this repository: both then take turns of a few milliseconds, so that other work touches both alike. The least of four turns
counts each time. This file runs in both checkouts, so it imports only what both have.
"""

import argparse
import asyncio
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from kspec.cli.broker.serve import rules_of
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.records.record import new_batch
from kspec.impl.server.process import begin
from kspec.impl.server.startup import RunningBroker
from kspec.impl.wire.apis import APIS
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import write_message

AT_ONCE, PARTITIONS, RECORDS, RECORD = 32, 3, 63, 1024
PRODUCE_VERSION, METADATA_VERSION = 10, 9
KEYS = {api.name: api.key for api in APIS.values()}
T = TypeVar("T")
HERE = Path(__file__).parents[2]


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, if it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return made


class BrokerAndClient:
    """A broker, and its client, in one thread."""

    def __init__(self, folder: str) -> None:
        given = {"log.dirs": folder, "listeners": "PLAINTEXT://127.0.0.1:0", "num.partitions": str(PARTITIONS)}
        config = BrokerConfig(given)
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        running = RunningBroker(config, rules_of("4.4", None), listening)
        self._loop = new_loop()
        begin(self._loop, lambda: None)
        running.start(self._loop)
        self._client = socket.create_connection(listening.getsockname())
        self._client.setblocking(False)
        topics = [Message(name="load")]
        self._talk(request("Metadata", METADATA_VERSION, Message(topics=topics, allow_auto_topic_creation=True)), 1)
        records = new_batch([(int(time.time() * 1000), None, os.urandom(RECORD))] * RECORDS)
        self._requests = b"".join(
            request("Produce", PRODUCE_VERSION, produced(number % PARTITIONS, records)) for number in range(AT_ONCE)
        )

    def turn(self) -> float:
        """Microseconds of processor time for a request."""
        return self._talk(self._requests, AT_ONCE) / AT_ONCE * 1e6

    def _talk(self, requests: bytes, answers: int) -> float:
        """Send requests, and take their answers: the seconds of processor time that the broker took."""
        left, received, spent = memoryview(requests), b"", 0.0
        while answers:
            left = left[attempt(partial(self._client.send, left), 0) :] if left else left
            before = time.thread_time()
            self._loop.call_soon(self._loop.stop)
            self._loop.run_forever()
            spent += time.thread_time() - before
            received += attempt(partial(self._client.recv, 1 << 20), b"")
            while len(received) >= 4 and len(received) >= (size := 4 + int.from_bytes(received[:4], "big")):
                received, answers = received[size:], answers - 1
        return spent


def attempt(action: Callable[[], T], otherwise: T) -> T:
    """The result of an action that may have to wait."""
    try:
        return action()
    except BlockingIOError:
        return otherwise


def produced(partition: int, records: bytes) -> Message:
    """A produce request with one batch."""
    data = Message(name="load", partition_data=[Message(index=partition, records=records)])
    return Message(acks=-1, timeout_ms=30_000, topic_data=[data])


def request(api: str, version: int, message: Message) -> bytes:
    """A request with its header, as bytes."""
    head = struct.pack(">hhih", KEYS[api], version, 1, 4) + b"load\0"
    body = head + write_message(f"{api}Request", version, message)
    return struct.pack(">i", len(body)) + body


def serve() -> None:
    """For each line of input so many turns, and a line with their times."""
    folder = tempfile.mkdtemp(prefix="kspec-benchmark-")
    try:
        pair = BrokerAndClient(folder)
        for _ in range(10):
            pair.turn()
        for line in sys.stdin:
            print(min(pair.turn() for _ in range(int(line))), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Checkout:
    """A process with the code of a checkout."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, __file__, "--serve"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.times: list[float] = []

    def measure(self) -> None:
        """The least of four turns."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("4\n")
        self.process.stdin.flush()
        self.times.append(float(self.process.stdout.readline()))

    def end(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def main() -> None:
    """Take turns, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--beside", type=Path, metavar="FOLDER")
    parser.add_argument("--turns", type=int, default=60, metavar="N")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    checkouts = [Checkout(folder) for folder in (options.beside, HERE) if folder is not None]
    for number in range(options.turns):
        for one in checkouts if number % 2 else reversed(checkouts):
            one.measure()
    print("| | least (us) | quarter (us) | median (us) | median of the ratios |")
    print("|---|---|---|---|---|")
    for one, name in zip(checkouts, ("beside", "this")[-len(checkouts) :], strict=True):
        ratio = statistics.median(mine / first for mine, first in zip(one.times, checkouts[0].times, strict=True))
        quarter, median, _ = statistics.quantiles(one.times, n=4)
        print(f"| {name} | {min(one.times):.1f} | {quarter:.1f} | {median:.1f} | {ratio:.2f}x |")
        one.end()


if __name__ == "__main__":
    main()
