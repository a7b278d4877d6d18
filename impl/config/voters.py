"""The controllers of a cluster, as settings name them: ID@HOST:PORT. Kafka: `QuorumConfig.parseVoterConnections`."""

from collections.abc import Iterable
from typing import NamedTuple

from kspec.impl.config.properties import ConfigError
from kspec.impl.config.settings import Setting

VOTERS = "controller.quorum.voters"
BOOTSTRAP = "controller.quorum.bootstrap.servers"


class Place(NamedTuple):
    """The address of a controller."""

    host: str
    port: int


QUORUM_SETTINGS = (
    Setting("controller.quorum.election.timeout.ms", "int", "1000", "How long a controller waits for votes (ms).", lowest=1),
    Setting(
        "controller.quorum.fetch.timeout.ms", "int", "2000", "How long a controller waits for its leader (ms).", lowest=1
    ),
    Setting(
        "controller.quorum.election.backoff.max.ms",
        "int",
        "1000",
        "How long the last of the controllers waits when the active one stops (ms).",
        lowest=0,
    ),
    Setting(
        "controller.quorum.auto.join.enable",
        "boolean",
        "false",
        "Whether a controller that does not vote asks for its vote itself, if the voters are in the log.",
    ),
    Setting(
        "controller.quorum.request.timeout.ms",
        "int",
        "2000",
        "How long a request to one of several controllers may take (ms).",
        lowest=1,
    ),
    Setting(
        "controller.quorum.retry.backoff.ms", "int", "20", "The pause before a controller asks another again (ms).", lowest=1
    ),
)
"""The quorum: its times, and who joins it. Kafka: `QuorumConfig`."""


def bootstrap_of(listed: Iterable[str]) -> dict[int, Place]:
    """The servers by which a node finds the controllers, HOST:PORT: by ids below -1, as theirs are not known.

    Raises: `ConfigError`. Kafka: `QuorumConfig.parseBootstrapServers`.
    """
    found: dict[int, Place] = {}
    for number, one in enumerate(listed):
        host, colon, port = one.rpartition(":")
        if not colon or not host or not _is_port(port):
            raise ConfigError(f"{BOOTSTRAP} must have the form HOST:PORT, not {one!r}")
        found[-2 - number] = Place(host.strip("[]"), int(port))
    return found


def places_of(listed: Iterable[str]) -> dict[int, Place]:
    """The controllers by their ids. Raises: `ConfigError`."""
    found: dict[int, Place] = {}
    for one in listed:
        node, at, address = one.partition("@")
        host, colon, port = address.rpartition(":")
        if not at or not colon or not host or not _is_id(node) or not _is_port(port):
            raise ConfigError(f"{VOTERS} must have the form ID@HOST:PORT, not {one!r}")
        place = Place(host.strip("[]"), int(port))
        if int(node) in found:
            raise ConfigError(f"{VOTERS} must name each controller once, and names {node} twice")
        if place in found.values() and place.port:
            raise ConfigError(f"{VOTERS} must name each address once, and names {address} twice")
        found[int(node)] = place
    return found


def _is_port(text: str) -> bool:
    return text.isdecimal() and int(text) < 2**16


def _is_id(text: str) -> bool:
    return text.isdecimal() and int(text) < 2**31
