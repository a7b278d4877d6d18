"""Apache Kafka as one process that is broker and controller: formatted, started, and awaited until it serves."""

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kspec.conformance.kafka.jars import Jars, KafkaMissingError
from kspec.conformance.kafka.process import (
    CLUSTER_ID,
    HOST,
    JVM_FLAGS,
    KafkaProcess,
    free_port,
    run_storage_tool,
    write_properties,
)

START_SECONDS = 180
"""An emergency stop, far away."""

NODE = 1


def settings_of(folder: Path, port: int, controller_port: int) -> dict[str, object]:
    """The settings of a node that is alone, and listens on loopback only."""
    return {
        "process.roles": "broker,controller",
        "node.id": NODE,
        "controller.quorum.voters": f"{NODE}@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": folder / "logs",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }


class StartedNode(Protocol):
    """A broker that is alone, at a port of the loopback that it keeps."""

    port: int

    def start(self) -> object:
        """Start it, and wait until it serves."""

    def kill(self) -> None:
        """End it at once."""


class SingleKafka:
    """A node of Kafka that is alone. It ends when the `with` block does."""

    def __init__(self, jars: Jars, folder: Path, more: Mapping[str, object] | None = None) -> None:
        self.port = free_port()
        settings = settings_of(folder, self.port, free_port()) | dict(more or {})
        self.process = KafkaProcess(jars, folder, settings)

    @property
    def address(self) -> str:
        """The address to which clients connect."""
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._format()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()

    def _format(self) -> None:
        process = self.process
        process.folder.mkdir(parents=True, exist_ok=True)
        properties = process.folder / "server.properties"
        write_properties(properties, process.settings)
        run_storage_tool(process.jars, JVM_FLAGS, CLUSTER_ID, properties)

    def kill(self) -> None:
        """End the process at once; its files stay."""
        self.process.kill()

    def start(self) -> None:
        """Start the process, and wait until it serves. Raises: `KafkaMissingError`, if it does not."""
        self.process.start()
        end = time.monotonic() + START_SECONDS
        while not self._serves():
            if not self.process.running or time.monotonic() > end:
                raise KafkaMissingError(f"Kafka does not start: {' '.join(self.process.last_lines())}")
            time.sleep(0.1)

    def _serves(self) -> bool:
        if not self.process.started:
            return False
        with socket.socket() as client:
            return client.connect_ex((HOST, self.port)) == 0

    def restart(self) -> None:
        """Stop the process in order, and start it again."""
        self.process.stop()
        self.start()
