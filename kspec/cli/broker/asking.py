"""Requests to a cluster, each to the broker that answers it: a coordinator, a leader, any."""

import asyncio
import time
from pathlib import Path
from typing import Any, NamedTuple

import click

from kspec.cli.statuses import RefusedError
from kspec.impl.config.properties import ConfigError, read_properties
from kspec.impl.wire.requests import sent
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.administration import GROUP_KEY
from kspec.spec.values import Error
from kspec.trials.cluster.asking import NOT_REACHED, ask_once

PAUSE_S = 0.1

AGAIN = {
    error.value
    for error in (
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.LEADER_NOT_AVAILABLE,
        Error.NOT_LEADER_OR_FOLLOWER,
    )
}
"""Errors that pass: the request is sent again, to whom it may concern by then."""

KNOWN = {error.value: error.name for error in Error}

Place = tuple[str, int]


class TopicAndPartition(NamedTuple):
    """A partition by the name of its topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def error_name(code: int) -> str:
    """Kafka's name of an error, or its number."""
    return KNOWN.get(code, f"error {code}")


def check_plaintext(file: str | None) -> None:
    """Refuse settings of clients that mean a connection which this one is not; others change nothing here."""
    try:
        settings = read_properties(Path(file)) if file else {}
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    if (protocol := settings.get("security.protocol", "PLAINTEXT").upper()) != "PLAINTEXT":
        raise click.UsageError(f"security.protocol={protocol}: this command connects by PLAINTEXT only")


class ClusterAdmin:
    """Requests to a cluster. Each call has until `seconds` are over. Raises: `RefusedError`."""

    def __init__(self, servers: str, seconds: float) -> None:
        self.servers = [_place(one) for one in servers.split(",")]
        self.seconds = seconds
        self._versions: dict[Place, dict[int, tuple[int, int]]] = {}

    def metadata(self, topics: list[str]) -> Message:
        """The brokers, and these topics."""
        asked = {"topics": [Message(name=name) for name in topics], "allow_auto_topic_creation": False}
        return self.somewhere("Metadata", 12, **asked)

    def coordinator(self, key: str, key_type: int = GROUP_KEY) -> tuple[int, Place]:
        """The coordinator of a group, or of a transactional id: its broker, and where that is."""
        end = time.monotonic() + self.seconds
        while True:
            answer = self.somewhere("FindCoordinator", 3, key=key, key_type=key_type)
            if answer.error_code not in AGAIN or time.monotonic() > end:
                found = self.good(answer, key)
                return found.node_id, (found.host, found.port)
            time.sleep(PAUSE_S)

    def somewhere(self, api: str, version: int, **fields: Any) -> Message:
        """The answer of the first of the given servers that gives one."""
        for place in self.servers[:-1]:
            try:
                return self.asked(place, api, version, **fields)
            except RefusedError:
                continue
        return self.asked(self.servers[-1], api, version, **fields)

    def asked(self, place: Place, api: str, newest: int, **fields: Any) -> Message:
        """The answer of a broker, in the newest version that both sides know."""
        return self._sent(place, api, self._version(place, api, newest), **fields)

    def _sent(self, place: Place, api: str, version: int, **fields: Any) -> Message:
        try:
            return asyncio.run(ask_once(place, api, version, self.seconds, **fields))
        except NOT_REACHED as error:
            said = str(error) or "it does not answer, or closes the connection"
            raise RefusedError(f"{place[0]}:{place[1]}: {api}: {said}") from error

    def known(self, place: Place) -> dict[int, tuple[int, int]]:
        """The APIs of a broker by their keys, each with its first and last version."""
        if place not in self._versions:
            answer = self._sent(place, "ApiVersions", 0)
            self._versions[place] = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        return self._versions[place]

    def _version(self, place: Place, api: str, newest: int) -> int:
        oldest, last = self.known(place).get(sent(api).key, (0, -1))
        if not oldest <= min(last, newest):
            raise RefusedError(f"{place[0]}:{place[1]} does not know {api}")
        return min(last, newest)

    def good(self, part: Message, about: str) -> Any:
        """An answer, or a part of one, that has no error. Raises: `RefusedError`."""
        if getattr(part, "error_code", 0):
            raise RefusedError(f"{about}: {error_name(part.error_code)}")
        return part


def _place(server: str) -> Place:
    host, _, port = server.strip().rpartition(":")
    if not host or not port.isdigit():
        raise RefusedError(f"a server has the form HOST:PORT, not {server!r}")
    return host.strip("[]"), int(port)
