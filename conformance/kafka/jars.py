"""The jars of a release of Apache Kafka: found in Maven's local repository, fetched once by Maven if they are not there.

The command that fetches them, once for each release:

    mvn -q -B -f conformance/kafka/pom.xml dependency:build-classpath -Dkafka.version=4.4.0 -DincludeScope=runtime

Maven keeps them in `~/.m2`; the class path that it found is kept in `~/.cache/kspec/`. `tools.xml` in the place of `pom.xml`
is for Kafka's command-line tools, which not every release has on Maven Central: 4.3.1 has, 4.4.0 has not. `streams.xml` is
for Kafka Streams.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

POM = Path(__file__).with_name("pom.xml")
"""The broker and controller."""

TOOLS = Path(__file__).with_name("tools.xml")
"""The command-line tools, such as `kafka-dump-log`."""

STREAMS = Path(__file__).with_name("streams.xml")
"""Kafka Streams."""

FETCH_SECONDS = 900


class KafkaMissingError(Exception):
    """No Java, no Maven, or no jars of the release that was asked for: one line that says what is missing."""


class Jars(NamedTuple):
    """A release of Kafka, and the jars on its class path."""

    release: str
    class_path: tuple[Path, ...]

    def named(self, artifact: str) -> Path:
        """The jar of an artifact of Kafka, such as `kafka-clients`. Raises: `KafkaMissingError`."""
        wanted = f"{artifact}-{self.release}.jar"
        for jar in self.class_path:
            if jar.name == wanted:
                return jar
        raise KafkaMissingError(f"the class path of Kafka {self.release} has no {wanted}")


def fetch_command(release: str, pom: Path = POM) -> list[str]:
    """The command that lets Maven fetch a release's jars into its local repository."""
    options = ["-q", "-B", "-f", str(pom), "dependency:build-classpath", "-DincludeScope=runtime"]
    return ["mvn", *options, f"-Dkafka.version={release}"]


def cache_folder() -> Path:
    """The folder in which class paths are kept: `kspec` in `$XDG_CACHE_HOME`, by default in `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kspec"


def kept_class_path(release: str, pom: Path = POM) -> Path:
    """The file in which the class path of a release is kept."""
    return cache_folder() / f"{'class-path' if pom == POM else pom.stem}-{release}.txt"


def java() -> str:
    """The program that runs Java: of `$JAVA_HOME`, or the one on the path. Raises: `KafkaMissingError`."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if found is None:
        raise KafkaMissingError("there is no Java: install Java 17 or later, or set JAVA_HOME")
    return found


def find_jars(release: str, *, fetch: bool = True, pom: Path = POM) -> Jars:
    """The jars of a release of Kafka, such as `4.4.0`, that `pom` names; what is missing is fetched by Maven, if `fetch`.

    Raises: `KafkaMissingError`.
    """
    if re.fullmatch(r"\d+\.\d+\.\d+", release) is None:
        raise KafkaMissingError(f"{release!r} is no release of Kafka; one looks like 4.4.0")
    kept = kept_class_path(release, pom)
    if kept.exists() and (jars := _present(kept)):
        return Jars(release, jars)
    if not fetch:
        command = " ".join(fetch_command(release, pom))
        raise KafkaMissingError(f"the jars of Kafka {release} are not there; fetch them: {command}")
    if shutil.which("mvn") is None:
        raise KafkaMissingError(f"the jars of Kafka {release} are not there, and neither is Maven (mvn) to fetch them")
    kept.parent.mkdir(parents=True, exist_ok=True)
    found = kept.with_suffix(f".{os.getpid()}")
    try:
        _fetch(release, pom, found)
        found.replace(kept)
    finally:
        found.unlink(missing_ok=True)
    jars = _present(kept)
    if not jars:
        raise KafkaMissingError(f"Maven has found no jars of Kafka {release}")
    return Jars(release, jars)


def _fetch(release: str, pom: Path, file: Path) -> None:
    command = [*fetch_command(release, pom), f"-Dmdep.outputFile={file}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise KafkaMissingError(f"Maven has not fetched Kafka {release} in {FETCH_SECONDS} s") from None
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line] or ["no reason given"]
        raise KafkaMissingError(f"Maven cannot fetch Kafka {release}: {lines[0]}")


def _present(file: Path) -> tuple[Path, ...]:
    """The jars that a file lists, if all of them are there."""
    jars = tuple(Path(name) for name in file.read_text(encoding="utf-8").strip().split(os.pathsep) if name)
    return jars if all(jar.exists() for jar in jars) else ()
