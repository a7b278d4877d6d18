"""Options that the tools share: options by Kafka's names, and a client library of others (extra `tools`)."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from kspec.cli.statuses import RefusedError
from kspec.impl.config.properties import ConfigError, parse_overrides, read_properties
from kspec.model_check.extras import install

TIMEOUT_S = 30

ResultT = TypeVar("ResultT")

bootstrap = click.option("--bootstrap-server", required=True, metavar="HOST:PORT,...", help="Where the cluster is reached.")
command_config = click.option("--command-config", metavar="FILE", help="Settings of the client library.")


def library() -> Any:
    """The client library. Missing, it is bad usage that says what to install."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError:
        raise click.UsageError(f"this command needs confluent-kafka; install it with: {install('tools')}") from None
    return confluent_kafka


def properties(servers: str, config: str | None, given: Iterable[str] = ()) -> dict[str, str]:
    """The settings of a client: from a file, and as NAME=VALUE, several of which may be joined by commas."""
    try:
        found = read_properties(Path(config)) if config else {}
        found |= parse_overrides(one for text in given for one in text.split(",") if one)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    found.pop("key.serializer", None)
    found.pop("value.serializer", None)
    return {**found, "bootstrap.servers": servers}


def admin(servers: str, config: str | None) -> Any:
    """A client that administers the cluster."""
    return library().admin.AdminClient({**properties(servers, config), "socket.timeout.ms": TIMEOUT_S * 1000})


def outcome(future: Any) -> Any:
    """The result of a request; an error of the broker, or no answer in time, is one line."""
    try:
        return future.result(TIMEOUT_S)
    except TimeoutError as error:
        raise RefusedError(f"the cluster has not answered within {TIMEOUT_S} s") from error
    except library().KafkaException as error:
        raise RefusedError(f"{error.args[0].name()}: {error.args[0].str()}") from error


def tried(call: Callable[[], ResultT]) -> ResultT:
    """The result of a call to the library; its errors are one line."""
    try:
        return call()
    except library().KafkaException as error:
        raise RefusedError(f"{error.args[0].name()}: {error.args[0].str()}") from error


def topics_of(client: Any) -> dict[str, Any]:
    """The topics of the cluster by their names."""
    found: dict[str, Any] = tried(lambda: client.list_topics(timeout=TIMEOUT_S)).topics
    return found


def ranges(text: str) -> set[int]:
    """Numbers such as `0,2,5-7`. Raises: bad usage."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise click.UsageError(f"partitions are numbers and ranges such as 0,2,5-7, not {text!r}")
        found |= set(range(int(first), int(last or first) + 1))
    return found
