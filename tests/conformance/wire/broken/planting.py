"""Planting: a module's source is changed when it is imported."""

import importlib.machinery
import tomllib
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from tests.places import DATA, REPOSITORY

FILE = DATA / "broker-bugs.toml"


class BrokerBug(NamedTuple):
    """In a module (below `kspec`, such as `spec.log.producers`), `after` stands in the place of `before`.

    `unseen`: why no case can tell it, if that is so.
    """

    name: str
    subject: str
    module: str
    before: str
    after: str
    unseen: str = ""


BUGS = {name: BrokerBug(name, **fields) for name, fields in tomllib.loads(FILE.read_text(encoding="utf-8")).items()}


def file_of(bug: BrokerBug) -> Path:
    """The file of a bug's module."""
    return REPOSITORY / f"{bug.module.replace('.', '/')}.py"


def source_with(bug: BrokerBug) -> str:
    """The module's source with the bug in it."""
    source = file_of(bug).read_text(encoding="utf-8")
    assert source.count(bug.before) == 1, f"{bug.name}: {source.count(bug.before)} places in {bug.module}"
    return source.replace(bug.before, bug.after)


def plant(bug: BrokerBug) -> None:
    """From now on the module is imported with the bug. Nothing of `kspec` may be imported before."""
    sound = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
        if fullname != f"kspec.{bug.module}":
            return sound(loader, fullname)
        return compile(source_with(bug), loader.get_filename(fullname), "exec", dont_inherit=True)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
