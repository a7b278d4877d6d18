"""The families of transactional clients: each has a program that takes the same arguments and prints the same lines."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
BUILD_S = 300
LIBRDKAFKA, JAVA, FRANZ_GO = "librdkafka", "java", "franz-go"
FAMILIES = (LIBRDKAFKA, JAVA, FRANZ_GO)
JVM = ("-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


class MissingFamilyError(Exception):
    """A family that cannot be tried here, and why, in one line."""


class ClientFamily(NamedTuple):
    """A family of clients, and the command to which arguments are added."""

    name: str
    command: tuple[str, ...]


def built(name: str, folder: Path, class_path: Callable[[], Sequence[Path]]) -> ClientFamily:
    """Build the program of a family in a folder. `class_path`: of Kafka's Java client. Raises: `MissingFamilyError`."""
    folder.mkdir(parents=True, exist_ok=True)
    return {LIBRDKAFKA: _librdkafka, JAVA: _java, FRANZ_GO: _franz_go}[name](folder, class_path)


def _librdkafka(folder: Path, class_path: Callable[[], Sequence[Path]]) -> ClientFamily:
    try:
        import confluent_kafka  # noqa: PLC0415, F401 (an extra)
    except ImportError:
        raise MissingFamilyError("confluent-kafka is not installed: .venv/bin/pip install -e '.[tools]'") from None
    return ClientFamily(LIBRDKAFKA, (sys.executable, "-m", "kspec.trials.faults.transactors.librdkafka"))


def java_program(name: str) -> str | None:
    """A program of `$JAVA_HOME`; of the path, where that has none: it may run Java and not compile."""
    home = os.environ.get("JAVA_HOME")
    return (shutil.which(str(Path(home) / "bin" / name)) if home else None) or shutil.which(name)


def _java(folder: Path, class_path: Callable[[], Sequence[Path]]) -> ClientFamily:
    java, compiler = java_program("java"), java_program("javac")
    if java is None or compiler is None:
        raise MissingFamilyError("there is no Java compiler: install a JDK of 17 or later, or set JAVA_HOME")
    path = os.pathsep.join(map(str, class_path()))
    build([compiler, "-cp", path, "-d", str(folder), str(HERE / "Transactor.java")], folder)
    return ClientFamily(JAVA, (java, *JVM, "-cp", os.pathsep.join([str(folder), path]), "Transactor"))


def _franz_go(folder: Path, class_path: Callable[[], Sequence[Path]]) -> ClientFamily:
    go = shutil.which("go")
    if go is None:
        raise MissingFamilyError("there is no Go")
    source = HERE / "franz_go"
    if not source.is_dir():
        raise MissingFamilyError("its program comes with a clone of the repository only")
    program = folder / "transactor"
    build([go, "build", "-o", str(program), "."], source)
    return ClientFamily(FRANZ_GO, (str(program),))


def build(command: Sequence[str], folder: Path) -> None:
    """Run the command that builds a program. Raises: `MissingFamilyError`, with the last line that it says."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=BUILD_S, check=False)
    except subprocess.TimeoutExpired:
        raise MissingFamilyError(f"its program is not built within {BUILD_S} s") from None
    if done.returncode:
        raise MissingFamilyError(f"its program cannot be built: {(done.stderr.splitlines() or ['?'])[-1]}")
