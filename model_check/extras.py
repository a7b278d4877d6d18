"""Libraries that only some commands need: they come with an extra of the distribution."""

import re
import shlex
import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

MEGABYTES: Mapping[str, int] = {"explore": 3, "graph": 400, "prove": 110, "site": 90, "spark": 770}
"""The size of an extra's libraries on disk, about."""


class MissingExtraError(RuntimeError):
    """A library that is not installed."""


def need(libraries: tuple[str, ...], purpose: str, extra: str = "graph") -> None:
    """Make sure that these libraries are there before work begins; `MissingExtraError` says how to get them."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        raise MissingExtraError(
            f"{purpose} needs {' and '.join(missing)}; install it ({MEGABYTES[extra]} MB) with: {install(extra)}"
        )


def install(extra: str) -> str:
    """The command that installs an extra, as it works in the folder that the user is in."""
    python, repository = shlex.quote(_from_here(Path(sys.executable))), Path(__file__).parents[2]
    if (repository / "pyproject.toml").exists():
        return f"{python} -m pip install -e {shlex.quote(f'{_from_here(repository)}[{extra}]')}"
    libraries = " ".join(map(shlex.quote, requirements(extra)))
    return f"{python} -m pip install {libraries}"  # nothing is published under this project's own name


def requirements(extra: str) -> list[str]:
    """The libraries of an extra, with their versions, as the installed distribution names them."""
    named = metadata.requires("kafka-replication-spec") or []
    split = (one.partition(";") for one in named)
    return [library.strip() for library, _, marker in split if re.search(rf"extra == ['\"]{extra}['\"]", marker)]


def _from_here(path: Path) -> str:
    """The path from the current folder on, if it lies in it."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
