"""Write `tests/data/kafka-4.4.0-apis.json`: which APIs a node of Apache Kafka offers, and how it answers each.

`python -m kspec.conformance.kafka.answers 4.4.0 --write tests/data/kafka-4.4.0-apis.json`

Asked are one node that is broker and controller, on both of its listeners, and a controller with three brokers, on the
listener of the controller and on one of a broker. Every API is asked in its newest version with nothing in it, and in one
version too many; `CASES` are more requests. An answer is noted with every field but those that differ from run to run.
"""

import argparse
import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kspec.conformance.kafka.api_cases import CASES, TOPIC
from kspec.conformance.kafka.jars import KafkaMissingError, find_jars
from kspec.conformance.kafka.process import HOST, free_port
from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.wire.requests import read_response, request_bytes, sent
from kspec.impl.wire.schema import names as messages
from kspec.impl.wire.schema import schema
from kspec.impl.wire.values import DecodeError, Message

SECONDS = 10.0
"""The longest wait for an answer (s)."""

START_SECONDS = 120.0
KNOWN_SECONDS = 0.3
"""The time (s) for a broker to hear of a setting that has changed."""

CLOSED, SILENT = "closed", "no answer"
"""Outcomes in place of an answer."""

VARYING = frozenset(
    {
        *("cluster_id", "topic_id", "member_id", "producer_id", "producer_epoch", "session_id", "client_instance_id"),
        *("host", "port", "log_dir", "total_bytes", "usable_bytes", "partition_size", "replica_directory_id"),
        *("leader_epoch", "current_leader_epoch", "broker_epoch", "finalized_features_epoch", "subscription_id"),
        *("high_watermark", "log_end_offset", "log_start_offset", "last_stable_offset", "offset", "base_offset"),
        *("throttle_time_ms", "last_fetch_timestamp", "last_caught_up_timestamp", "timestamp"),
        *("error_message", "documentation"),
    }
)
"""Fields that differ from run to run, or by their words only."""


def messages_of(value: Any) -> Any:
    """Dictionaries as messages, at any depth."""
    if isinstance(value, Mapping):
        return Message(**{name: messages_of(one) for name, one in value.items()})
    return [messages_of(one) for one in value] if isinstance(value, list) else value


def plain(value: Any, name: str = "") -> Any:
    """An answer as data; in place of what varies stands a star."""
    if name in VARYING:
        return None if value is None else "*"
    if isinstance(value, Message):
        return {key: plain(one, key) for key, one in value.__dict__.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, (int, str, float, bool)) else "*"


def all_apis() -> dict[str, int]:
    """The keys of all APIs that the table of messages has, by their names."""
    names = [name.removesuffix("Request") for name in messages() if name.endswith("Request")]
    keys = {name: schema(f"{name}Request").key for name in names}
    return dict(sorted(((name, key) for name, key in keys.items() if key >= 0), key=lambda one: one[1]))


def exchange(port: int, api: str, version: int, fields: Mapping[str, Any], writable: int | None = None) -> Any:
    """Ask a node, on a connection of its own: the answer as data, or that there is none.

    `writable`: the version by whose fields the request is written, if the one that is named has none.
    """
    known = version if writable is None else writable
    body = bytearray(request_bytes(api, known, 7, messages_of(dict(fields))))
    struct.pack_into(">h", body, 2, version)
    with socket.create_connection((HOST, port), SECONDS) as client:
        client.settimeout(SECONDS)
        try:
            client.sendall(struct.pack(">i", len(body)) + body)
            frame = _frame(client)
        except ConnectionError:
            return CLOSED
        except TimeoutError:
            return SILENT
    if frame is None:
        return CLOSED
    try:
        return plain(read_response(api, 0 if writable is not None else version, memoryview(frame))[1])
    except DecodeError:
        return "unreadable"


def _frame(client: socket.socket) -> bytes | None:
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        more = client.recv(1 << 16)
        if not more:
            return None
        data += more
    return data[4:]


def offered(port: int) -> dict[str, tuple[int, int]]:
    """The versions of each API that a node offers."""
    names = {key: name for name, key in all_apis().items()}
    answer = exchange(port, "ApiVersions", 4, {"client_software_name": "kspec", "client_software_version": "1"})
    return {
        names.get(one["api_key"], str(one["api_key"])): (one["min_version"], one["max_version"])
        for one in answer["api_keys"]
    }


def asked(newest: Mapping[str, int]) -> Iterator[tuple[str, str, int, Mapping[str, Any], int | None]]:
    """All that a node is asked: the name of the case, the API, its version, its fields, the version of its fields.

    `newest`: the version of each API that Kafka offers on any listener.
    """
    for api in all_apis():
        known = sent(api).versions.last
        last = min(newest.get(api, known), known)
        if api != "ApiVersions":
            yield f"{api}: nothing in it", api, last, {}, None
        yield f"{api}: version too high", api, last + 100, {}, last
    for case in CASES:
        last = newest.get(case.api, sent(case.api).versions.last) if case.version is None else case.version
        yield f"{case.api}: {case.name}", case.api, last, case.fields, None


def answers_of(port: int, newest: Mapping[str, int]) -> dict[str, Any]:
    """A node's answers to all requests."""
    found = {}
    for name, api, version, fields, known in asked(newest):
        found[name] = exchange(port, api, version, fields, known)
        if api == "IncrementalAlterConfigs":
            time.sleep(KNOWN_SECONDS)
    return found


def prepare(port: int, brokers: int) -> None:
    """Make the topic that requests name."""
    of = [[1], [1], [1]] if brokers == 1 else [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    assignments = [{"partition_index": index, "broker_ids": replicas} for index, replicas in enumerate(of)]
    topic = {"name": TOPIC, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
    end = time.monotonic() + START_SECONDS
    exchange(port, "CreateTopics", 7, {"topics": [topic], "timeout_ms": 10_000})
    while time.monotonic() < end:
        listed = exchange(port, "Metadata", 12, {"topics": [{"topic_id": bytes(16), "name": TOPIC}]})["topics"][0]
        if [one["leader_id"] for one in listed["partitions"]] == [replicas[0] for replicas in of]:
            return
        time.sleep(0.2)
    raise KafkaMissingError(f"the topic {TOPIC} was not made in {START_SECONDS:.0f} s")


def forms(broker: int, controller: int, brokers: int, newest: Mapping[str, int]) -> dict[str, Any]:
    """The answers of a cluster of this form on the listener of a broker, and on that of its controller."""
    prepare(broker, brokers)
    found = {}
    for listener, port in (("broker", broker), ("controller", controller)):
        found[listener] = {"versions": offered(port), "answers": answers_of(port, newest)}
    return found


def newest_of(*ports: int) -> dict[str, int]:
    """The newest version of each API that is offered on any of these ports."""
    found: dict[str, int] = {}
    for port in ports:
        for api, (_, last) in offered(port).items():
            found[api] = max(last, found.get(api, 0))
    return found


def _of_kafka(release: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="kspec-answers-") as folder:
        with SingleKafka(find_jars(release), Path(folder) / "one") as single:
            controller = int(str(single.process.settings["controller.quorum.voters"]).rpartition(":")[2])
            newest = newest_of(single.port, controller)
            one = forms(single.port, controller, 1, newest)
        first = free_port()
        command = [sys.executable, "-c", "from kspec.cli.start import main; main()", "cluster", "--plain"]
        command += ["--kafka", release, "--log-dir", str(Path(folder) / "three"), "--port", str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                if not process.stdout.readline().startswith("ready"):
                    raise KafkaMissingError("the cluster does not start")
                three = forms(first, first + 3, 3, newest)
            finally:
                process.terminate()
                process.wait(START_SECONDS)
    return {"release": release, "newest": newest, "one": one, "three": three}


def as_text(found: Mapping[str, Any]) -> str:
    """The file: a line for each answer."""
    parts = [f'"release": {json.dumps(found["release"])}', f'"newest": {json.dumps(found["newest"])}']
    for form in ("one", "three"):
        listeners = []
        for listener, about in found[form].items():
            answers = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in about["answers"].items())
            versions = json.dumps(about["versions"])
            listeners.append(f'{json.dumps(listener)}: {{"versions": {versions}, "answers": {{\n{answers}\n}}}}')
        parts.append(f'"{form}": {{\n{",".join(listeners)}\n}}')
    return "{" + ",\n".join(parts) + "}\n"


def main() -> int:
    """Ask a release, and write what it answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release")
    parser.add_argument("--write", type=Path, required=True)
    given = parser.parse_args()
    try:
        found = _of_kafka(given.release)
    except KafkaMissingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    given.write.write_text(as_text(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
