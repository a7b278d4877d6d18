"""Settings by which an operator expects what this project does not give: protection, limits, durability.

Every setting of Kafka is one of three: given (`SETTINGS`), promising (`PROMISES`: it ends the start unless it says what the
default says), or harmless (`HARMLESS`: it tunes what is not there, or is done otherwise). A test holds this against Kafka's
own list.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from kspec.impl.config.kafka import LISTENER, is_default, kafka_settings, without_listener
from kspec.impl.config.properties import ConfigError


class Promise(NamedTuple):
    """An expectation of settings, and their names; one that ends in a dot stands for all that begin so."""

    what: str
    names: tuple[str, ...]


PROMISES: tuple[Promise, ...] = (
    Promise("TLS", ("ssl.", "security.providers")),
    Promise("TLS or authentication between brokers", ("security.inter.broker.protocol",)),
    Promise("authentication", ("sasl.", "connections.max.reauth.ms", "principal.builder.class")),
    Promise("delegation tokens", ("delegation.token.",)),
    Promise("authorization", ("authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found")),
    Promise("quotas of clients", ("quota.", "controller.quota.", "client.quota.callback.class")),
    Promise("a limit for connections", ("max.connection.creation.rate", "max.connections.per.ip.overrides")),
    Promise("a limit for batches", ("max.decompressed.message.bytes",)),
    Promise("a limit for compaction", ("log.cleaner.io.max.bytes.per.second",)),
    Promise("a check of requests", ("create.topic.policy.class.name", "alter.config.policy.class.name")),
    Promise("a folder that gets no more partitions", ("cordoned.log.dirs",)),
    Promise("tiered storage", ("remote.log.storage.system.enable",)),
    Promise("values that are kept elsewhere", ("config.providers", "config.providers.")),
    Promise("protection of ZooKeeper", ("zookeeper.set.acl", "zookeeper.ssl.")),
)
"""Promises of Kafka's that are not kept. Names missing in Kafka's list are its authorizer's, or of earlier releases."""

OF_A_LISTENER = Promise("a limit for the connections of a listener", ("max.connections", "max.connection.creation.rate"))
"""Limits that Kafka takes for one listener."""

ASKS_FOR_NOTHING = {"allow.everyone.if.no.acl.found": "true", "zookeeper.set.acl": "false"}
"""Values of names that Kafka's list does not have, by which nothing is expected."""

SUSPICIOUS = frozenset(
    (
        *("acl", "acls", "auth", "authentication", "authorization", "authorizer"),
        *("encryption", "kerberos", "oauthbearer", "quota", "quotas", "sasl", "ssl", "tls"),
    )
)
"""Words by which a name that nobody knows promises protection."""

HARMLESS: tuple[str, ...] = (
    # Transactions, share groups and streams groups are refused by name: nothing of them is to be tuned. Of consumer groups
    # the bounds of settings of single groups are left, which there are not.
    "transaction.",
    "transactional.id.expiration.ms",
    "add.partitions.to.txn.",
    "group.consumer.",
    "group.share.",
    "group.streams.",
    "group.coordinator.",
    "share.coordinator.",
    "share.fetch.purgatory.purge.interval.requests",
    "errors.deadletterqueue.",
    # Tiered storage: without remote.log.storage.system.enable Kafka looks at none of these either.
    "remote.",
    "log.remote.",
    "log.local.",
    "follower.fetch.last.tiered.offset.enable",
    # Authentication delays nobody where there is none; nobody starts before an authorizer that is not there.
    "connection.failed.authentication.delay.ms",
    "early.start.listeners",
    # How Kafka divides its work, and how long it waits for it.
    "alter.log.dirs.replication.quota.",
    "background.threads",
    "delete.records.purgatory.purge.interval.requests",
    "fetch.purgatory.purge.interval.requests",
    "producer.purgatory.purge.interval.requests",
    "num.network.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.alter.log.dirs.threads",
    "num.replica.fetchers",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.threads",
    "log.preallocate",
    "log.initial.task.delay.ms",
    "log.dir.failure.timeout.ms",
    "log.flush.start.offset.checkpoint.interval.ms",
    "log.roll.jitter.",
    "offsets.commit.timeout.ms",
    "offsets.load.buffer.size",
    "replica.socket.",
    "replica.selector.class",
    "server.max.startup.time.ms",
    "socket.connection.setup.timeout.",
    # Compression: batches are stored as they come.
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "offsets.topic.compression.codec",
    # The metadata log, and a quorum of one.
    "controller.performance.",
    "controller.quorum.",
    "controller.socket.timeout.ms",
    "internal.metadata.",
    "metadata.log.",
    "metadata.max.",
    # What Kafka tells of itself.
    "kafka.metrics.",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "telemetry.max.bytes",
    # What is not released yet.
    "unstable.",
    # Listeners: `impl.config.listeners` looks at these.
    "inter.broker.listener.name",
    "listener.security.protocol.map",
)
"""Settings of Kafka without effect here: nothing that an operator relies on is missing. A warning, unless silent."""


def promise_of(name: str) -> Promise | None:
    """The expectation of a setting, if it promises what is not given; capital letters do not matter."""
    name = name.lower()
    if name.startswith(LISTENER):
        rest = without_listener(name)
        behind = promise_of(rest)
        if behind is None and _is_among(rest, OF_A_LISTENER.names):
            return OF_A_LISTENER
        return behind or promise_of(rest.partition(".")[2])
    for promise in PROMISES:
        if _is_among(name, promise.names):
            return promise
    if name not in kafka_settings() and not is_harmless(name) and SUSPICIOUS.intersection(re.split("[._-]", name)):
        return Promise("protection", ())
    return None


def is_harmless(name: str) -> bool:
    """Whether a setting of Kafka has no effect here, and nobody misses it."""
    return _is_among(name, HARMLESS)


def _is_among(name: str, names: Iterable[str]) -> bool:
    return any(name == one or (one.endswith(".") and name.startswith(one)) for one in names)


def check_promises(given: Mapping[str, str], offered: Container[str]) -> None:
    """Refuse settings that promise what is not given, unless they say what Kafka's default says. `offered`: what is given.

    Raises: `ConfigError`, one line that names them, and shows no value.
    """
    broken: dict[str, list[str]] = {}
    for name, text in sorted(given.items()):
        promise = None if name in offered else promise_of(name)
        if promise is not None and not _asks_for_nothing(name.lower(), text):
            broken.setdefault(promise.what, []).append(name)
    if broken:
        told = "; ".join(f"{', '.join(names)}: {what}" for what, names in broken.items())
        raise ConfigError(f"settings promise what this node does not give, so take them out: {told}")


def _asks_for_nothing(name: str, text: str) -> bool:
    if not text.strip():
        return True
    setting = kafka_settings().get(without_listener(name))
    if setting is not None:
        return is_default(setting, text)
    return ASKS_FOR_NOTHING.get(name) == text.strip().lower()


def ignored(given: Iterable[str], offered: Container[str], silent: Container[str]) -> list[str]:
    """A line for each setting without effect: those of Kafka, and those that nobody knows. No value is in it."""
    lines = []
    for name in sorted(given):
        if name in offered or name in silent:
            continue
        known = without_listener(name) in kafka_settings()
        lines.append(f"{name} has no effect here, and is ignored" if known else f"{name} is not known, and ignored")
    return lines
