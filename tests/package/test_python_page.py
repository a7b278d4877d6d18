"""Examples of docs/python.md run with an installed wheel, outside of the repository.

Where no wheel can be built, the sources stand for it, and one test is skipped that says so.

Blocks of Python run in order, each in a process of its own, or are files, if they begin with a comment that names one. What
they print is written in them behind `# ->`. Commands end with status 0 unless `# status N` says otherwise.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.package.wheels import installed
from tests.places import DOCS, REPOSITORY

PAGE = (DOCS / "python.md").read_text(encoding="utf-8")
EMERGENCY_S = 900.0

pytestmark = pytest.mark.slow


class Workshop(NamedTuple):
    """A folder with the page's files, a Python that runs its blocks, and the command `kspec`."""

    folder: Path
    python: str
    kspec: list[str]
    environment: dict[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=EMERGENCY_S,
            check=False,
        )


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def file_of(block: str) -> str | None:
    """The name of the file that a block is, if it is one."""
    found = re.match(r"# (\w+\.py)\n", block)
    return found[1] if found else None


FILES = {name: block for block in blocks("python") if (name := file_of(block))}
PROGRAMS = [block for block in blocks("python") if not file_of(block)]
COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]


def from_sources(folder: Path) -> Workshop:
    command = [sys.executable, "-c", "from kspec.cli.main import main; main()"]
    return Workshop(folder, sys.executable, command, {**os.environ, "PYTHONPATH": str(REPOSITORY)})


def from_wheel(folder: Path, wheel: Path) -> Workshop:
    """A wheel installed beside the libraries that these tests use."""
    place = folder / "venv"
    python = installed(place, wheel)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return Workshop(folder, python, [str(place / "bin" / "kspec")], environment)


@pytest.fixture(scope="module")
def workshop(made_wheel: Path | str, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = tmp_path_factory.mktemp("workshop")
    for name, block in FILES.items():
        (folder / name).write_text(block, encoding="utf-8")
    return from_wheel(folder, made_wheel) if isinstance(made_wheel, Path) else from_sources(folder)


def test_the_page_has_examples() -> None:
    assert set(FILES) == {"eager.py", "urn.py"}
    assert len(PROGRAMS) >= 3
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_prints_what_the_page_says(workshop: Workshop, number: int) -> None:
    (workshop.folder / "program.py").write_text(PROGRAMS[number], encoding="utf-8")
    done = workshop.run(workshop.python, "program.py")
    assert done.stderr == ""
    assert done.stdout.splitlines() == re.findall(r"# -> (.*)$", PROGRAMS[number], re.MULTILINE)


@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_a_command_ends_as_the_page_says(workshop: Workshop, number: int) -> None:
    command, _, remark = COMMANDS[number].partition("  #")
    name, *arguments = shlex.split(command)
    assert name == "kspec"
    done = workshop.run(*workshop.kspec, *arguments)
    status = re.match(r" status (\d)(?:: (.*))?", remark)
    assert (done.returncode, "Traceback" in done.stderr) == (int(status[1]) if status else 0, False), done.stderr
    assert not (status and status[2]) or status[2] in done.stderr


def test_a_wheel_was_installed_and_its_packages_are_typed(workshop: Workshop, made_wheel: Path | str) -> None:
    if isinstance(made_wheel, str):
        pytest.skip(f"NOT CHECKED: the page ran with the sources, because no wheel can be built here: {made_wheel}")
    show = "from kspec import model_check, proofs, spec; print(*(one.__path__[0] for one in (model_check, proofs, spec)))"
    folders = [Path(folder) for folder in workshop.run(workshop.python, "-c", show).stdout.split()]
    assert [(folder / "py.typed").is_file() for folder in folders] == [True] * 3
    assert all(folder.is_relative_to(workshop.folder / "venv") for folder in folders)
