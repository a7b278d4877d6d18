"""A process of Apache Kafka: its folder, its settings, its start, its log, its end.

Everything listens on loopback. The process ends with the one that has started it, however that one ends.
"""

import base64
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kspec.conformance.kafka.jars import Jars, KafkaMissingError, java

HOST = "127.0.0.1"
CLUSTER_ID = "a3NwZWMtY29uZm9ybWFuY2"
"""Of all clusters that are played: 16 bytes in URL-safe base64."""

STARTED = "Kafka Server started"
JVM_FLAGS = ("-Xmx512m", "-Xms128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
PR_SET_PDEATHSIG = 1
STOP_SECONDS = 30

FIRST_PORT, LAST_PORT = 20_000, 30_000
"""Below the ports that the system gives to whoever connects: so a node that is down for a while finds its port free."""


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """The first of some ports in a row on loopback that nobody listens on. No seed of a test decides which."""
    firsts = random.SystemRandom().sample(range(FIRST_PORT, LAST_PORT, count), LAST_PORT // count - FIRST_PORT // count)
    return next(first for first in firsts if all(_is_free(port) for port in range(first, first + count)))


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        return listener.connect_ex((HOST, port)) != 0


def uuid_text(uuid: bytes) -> str:
    """A UUID of 16 bytes in Kafka's words. Kafka: `Uuid.toString`."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def format_log_dir(folder: Path, node: int, directory_id: bytes) -> None:
    """Make a log directory of a new node, as far as a broker needs it: `meta.properties`, version 1."""
    folder.mkdir(parents=True, exist_ok=True)
    properties = {"version": 1, "cluster.id": CLUSTER_ID, "node.id": node, "directory.id": uuid_text(directory_id)}
    write_properties(folder / "meta.properties", properties)


def run_storage_tool(jars: Jars, flags: Sequence[str], cluster_id: str, properties: Path, *more: str) -> None:
    """Make a log directory as Kafka's own tool does, with `more` arguments. Raises: `KafkaMissingError`, with its reason.

    **Kafka:** `StorageTool format`.
    """
    path = os.pathsep.join(map(str, jars.class_path))
    command = [java(), *flags, "-cp", path, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)]
    command += more
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no reason given"]
        raise KafkaMissingError(f"Kafka {jars.release} does not format its log directory: {lines[-1]}")


def write_properties(file: Path, properties: Mapping[str, object]) -> None:
    """Write a properties file."""
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class KafkaProcess:
    """One node of Kafka, broker or controller, in a folder of its own. `starts` counts its incarnations.

    The output of each incarnation is kept in a file of its own beside the settings.
    """

    def __init__(self, jars: Jars, folder: Path, settings: Mapping[str, object], levels: Mapping[str, str] | None = None):
        self.jars = jars
        self.folder = folder
        self.settings = dict(settings)
        self.levels = dict(levels or {})
        self.flags: tuple[str, ...] = ()
        """More flags of Java, from the next start on."""
        self.starts = 0
        self._started = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, once it has been started."""
        return None if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log_file(self) -> Path:
        """The output of the present incarnation."""
        return self.folder / f"output-{self.starts}.txt"

    def log_text(self) -> str:
        """The log of the present incarnation so far."""
        return self.log_file.read_text(encoding="utf-8", errors="replace") if self.log_file.exists() else ""

    @property
    def started(self) -> bool:
        """Whether the node says that its start is complete."""
        if self._started != self.starts and STARTED in self.log_text():
            self._started = self.starts
        return 0 < self._started == self.starts

    def command(self) -> list[str]:
        """The command of the process."""
        shown = ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]
        levels = [f"-Dorg.slf4j.simpleLogger.log.{name}={level}" for name, level in self.levels.items()]
        path = ":".join(map(str, self.jars.class_path))
        properties = str(self.folder / "server.properties")
        return [java(), *JVM_FLAGS, *self.flags, *shown, *levels, "-cp", path, "kafka.Kafka", properties]

    def start(self) -> None:
        """Start the process; `running` and `started` say how far it is. Raises: `KafkaMissingError`."""
        assert not self.running, "the process runs already"
        self.folder.mkdir(parents=True, exist_ok=True)
        write_properties(self.folder / "server.properties", self.settings)
        self.starts += 1
        with self.log_file.open("wb") as output:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 (one system call)
            )

    def kill(self) -> None:
        """End the process without warning (SIGKILL), and wait for its end."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the process to stop (SIGTERM), and wait for its end; one that takes too long is killed."""
        self._end(signal.SIGTERM)

    def terminate(self) -> None:
        """Ask the process to stop (SIGTERM), and do not wait."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self.running:
            self._process.send_signal(how)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def last_lines(self, count: int = 3, words: Sequence[str] = ("ERROR", "FATAL", "Exception")) -> list[str]:
        """The last lines of the output that tell of an error; if there is none, the last ones."""
        lines = self.log_text().splitlines()
        return [line for line in lines if any(word in line for word in words)][-count:] or lines[-count:]
