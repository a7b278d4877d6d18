"""The families of clients that are members of groups: each has a program, and one or both protocols."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from kspec.trials.faults.transactors.families import JVM, ClientFamily, MissingFamilyError, build, java_program

HERE = Path(__file__).parent
CLASSIC, CONSUMER = "classic", "consumer"
BOTH = (CLASSIC, CONSUMER)
JAVA = "java"
PYTHON = {"librdkafka": "confluent_kafka", "kafka-python": "kafka", "aiokafka": "aiokafka"}
"""The families with a client in Python, and the packages that they need."""

GO = {"franz-go": "franz_go", "sarama": "sarama"}
"""The families with a program in Go, and its folder."""

PROTOCOLS: dict[str, tuple[str, ...]] = {
    "librdkafka": BOTH,
    JAVA: BOTH,
    "franz-go": BOTH,
    "kafka-python": (CLASSIC,),
    "aiokafka": (CLASSIC,),
    "sarama": (CLASSIC,),
}
"""The protocols that each family has: the classic one, and KIP-848."""


class MemberFamily(NamedTuple):
    """A family, the command to which arguments are added, and its protocols."""

    name: str
    command: tuple[str, ...]
    protocols: tuple[str, ...]


def built(name: str, folder: Path, class_path: Callable[[], Sequence[Path]]) -> MemberFamily:
    """Build the program of a family in a folder. `class_path`: of Kafka's Java client. Raises: `MissingFamilyError`."""
    folder.mkdir(parents=True, exist_ok=True)
    made = _java(folder, class_path) if name == JAVA else _go(name, folder) if name in GO else _python(name)
    return MemberFamily(name, made.command, PROTOCOLS[name])


def _python(name: str) -> ClientFamily:
    if importlib.util.find_spec(PYTHON[name]) is None:
        raise MissingFamilyError(f"the package {PYTHON[name]} is not installed")
    return ClientFamily(name, (sys.executable, "-m", "kspec.trials.faults.members.python_clients", name))


def _java(folder: Path, class_path: Callable[[], Sequence[Path]]) -> ClientFamily:
    java, compiler = java_program("java"), java_program("javac")
    if java is None or compiler is None:
        raise MissingFamilyError("there is no Java compiler: install a JDK of 17 or later, or set JAVA_HOME")
    path = os.pathsep.join(map(str, class_path()))
    build([compiler, "-cp", path, "-d", str(folder), str(HERE / "GroupMember.java")], folder)
    return ClientFamily(JAVA, (java, *JVM, "-cp", os.pathsep.join([str(folder), path]), "GroupMember"))


def _go(name: str, folder: Path) -> ClientFamily:
    go = shutil.which("go")
    if go is None:
        raise MissingFamilyError("there is no Go")
    source = HERE / GO[name]
    if not source.is_dir():
        raise MissingFamilyError("its program comes with a clone of the repository only")
    program = folder / "member"
    build([go, "build", "-o", str(program), "."], source)
    return ClientFamily(name, (str(program),))
