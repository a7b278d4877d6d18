"""The suite takes long to make, and is kept: in a file whose name is the digest of all that it was made from."""

import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from kspec.conformance.wire.cases.suite import SuiteContent, suite_of
from kspec.model_check.core.files import write_whole

ROOT = Path(__file__).parents[3]
"""The folder that has the rooms: that of the repository, or of the installed package."""

WIRE = tuple(f"conformance/wire/{name}" for name in ("__init__.py", "cases", "choice", "model", "exchange.py", "timing.py"))
SOURCES = (*WIRE, "spec", "impl/wire", "impl/records", "model_check/core", "model_check/search", "model_check/version.py")
"""All that cases are made from. A test looks whether making them reads anything else."""

MOST_KEPT = 4
"""Files of former contents are of no use for long."""


def sources() -> Iterator[Path]:
    """The files that cases are made from, in order of their names."""
    for name in SOURCES:
        place = ROOT / name
        yield from [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.suffix in (".py", ".json"))


@cache
def digest() -> str:
    """The SHA-256 of all sources, their names, and the version of Python."""
    found = hashlib.sha256(sys.version.encode())
    for path in sources():
        content = path.read_bytes()
        found.update(f"\n{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def kept_folder() -> Path:
    """The folder of what is kept: `kspec/level-0` in `$XDG_CACHE_HOME`, by default in `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kspec" / "level-0"


def is_kept() -> bool:
    """Whether nothing has to be made anew."""
    return (kept_folder() / digest()).is_file()


def kept_text(make: Callable[[], str]) -> str:
    """The text that was kept; where there is none that is whole, it is made, and kept if that is possible.

    Where several processes ask at once, one makes it and the others wait.
    """
    file = kept_folder() / digest()
    text = _whole_text(file)
    if text is not None:
        return text
    with _making_alone(file.parent):
        text = _whole_text(file)
        if text is None:
            text = make()
            with suppress(OSError):
                write_whole(file, f"{_sum(text)}\n{text}")
                _forget(file.parent)
    return text


def _whole_text(file: Path) -> str | None:
    """The text in a file, unless it is not there, or was spoilt."""
    with suppress(OSError, UnicodeDecodeError):
        told, _, text = file.read_text(encoding="utf-8").partition("\n")
        if told == _sum(text):
            return text
    return None


@contextmanager
def _making_alone(folder: Path) -> Iterator[None]:
    """Keep other processes waiting; where nothing can be kept, each makes its own."""
    with ExitStack() as stack:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((folder.parent / f"{folder.name}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget(folder: Path) -> None:
    """Remove what was kept longest ago."""
    known = sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in known[MOST_KEPT:]:
        old.unlink(missing_ok=True)


@cache
def whole_suite(when_made: Callable[[], None] = lambda: None) -> SuiteContent:
    """All cases, by the rules of the newest release; those that were kept, unless their sources have changed.

    `when_made` is called before it is made anew, which takes some seconds.
    """

    def make() -> str:
        from kspec.conformance.wire.cases.generation import generated  # noqa: PLC0415 (loads all models)

        when_made()
        return generated().as_text()

    return suite_of(kept_text(make))


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
