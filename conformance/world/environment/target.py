"""The broker under test: Apache Kafka's, or this project's own, possibly with one rule weakened."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.kafka.jars import Jars
from kspec.conformance.kafka.process import KafkaProcess

LOGGED = {"kafka.server.metadata.BrokerMetadataPublisher": "debug"}
READY = "ready 127.0.0.1:"
"""The output of a broker of this project when it serves."""


class Own(NamedTuple):
    """This project's broker, by the rules of a release."""

    release: str
    mutant: str | None = None


class OwnProcess(KafkaProcess):
    """A broker of this project as the node under test, with the interface of a process of Kafka."""

    def __init__(self, jars: Jars, folder: Path, settings: Mapping[str, object], own: Own) -> None:
        super().__init__(jars, folder, settings)
        self._own = own

    @property
    def started(self) -> bool:
        """Whether the broker says that it serves."""
        return READY in self.log_text()

    def command(self) -> list[str]:
        """The command of the process."""
        start = "from kspec.cli.start import main; main()"
        given = ["--config", str(self.folder / "server.properties"), "--release", self._own.release]
        weakened = ["--mutant", self._own.mutant] if self._own.mutant else []
        return [sys.executable, "-u", "-c", start, "broker", *given, *weakened]


class WorldTarget(NamedTuple):
    """The broker under test. `jars` have the schemas of the messages, and the rules are those of their release."""

    jars: Jars
    own: Own | None = None

    @property
    def name(self) -> str:
        """The broker's name in a verdict."""
        if self.own is None:
            return "Kafka"
        return f"kspec with {self.own.mutant}" if self.own.mutant else "kspec"

    def process(self, folder: Path) -> KafkaProcess:
        """The process, not started yet."""
        if self.own is None:
            return KafkaProcess(self.jars, folder, {}, LOGGED)
        return OwnProcess(self.jars, folder, {}, self.own)
