"""`./run` and `./test` before Python runs: what goes wrong while they set up is told in one line, with exit status 2."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.places import REPOSITORY, nightly_tests


def set_up(folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """What `./run` does first, in this folder. Programs in the folders `path` are found first."""
    if not (folder / "pyproject.toml").exists():  # a newer one is installed again
        (folder / "pyproject.toml").touch()
    script = f". {REPOSITORY}/.ci/setup.sh; set_up ."
    environment = {**os.environ, "PATH": ":".join([*map(str, path), os.environ["PATH"]]), "PYTHON": ""}
    return subprocess.run(["sh", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("indent", ["", "      "])
def test_a_failure_of_pip_is_one_line(indent: str, tmp_path: Path) -> None:
    """Also one of the pip that pip starts, whose lines are indented."""
    error = f"{indent}ERROR: No matching distribution found for numba"
    told = f"echo Looking; echo 'WARNING: Retrying' >&2; echo '{error}' >&2; echo 'note: this is pip' >&2; exit 1"
    program(tmp_path / ".venv" / "bin" / "python", told)
    done = set_up(tmp_path)
    installing, complaint = done.stderr.splitlines()
    assert (done.returncode, done.stdout, installing) == (2, "", "Installing . ...")
    assert complaint == (
        "Cannot install .: ERROR: No matching distribution found for numba (all that pip says is in .venv/pip.log)"
    )
    assert "Retrying" in (tmp_path / ".venv" / "pip.log").read_text()
    assert set_up(tmp_path).returncode == 2, "what is not installed is installed by the next call"


def test_a_failure_of_pip_without_an_error_is_told_by_its_last_line(tmp_path: Path) -> None:
    program(tmp_path / ".venv" / "bin" / "python", "echo Killed; exit 137")
    assert "Cannot install .: Killed (all" in set_up(tmp_path).stderr


def test_what_is_installed_is_not_installed_again(tmp_path: Path) -> None:
    program(tmp_path / ".venv" / "bin" / "python", "exit 0")
    assert set_up(tmp_path).stderr == "Installing . ...\n"
    assert set_up(tmp_path).stderr == ""


TOOLS = ("sh", "awk", "head", "tr")


def found_python(*path: Path) -> subprocess.CompletedProcess[str]:
    """The Python that would be taken, where these folders have all that there is beside a few tools."""
    tools = path[0].parent / "tools"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(str(shutil.which(name)))
    environment = {"PATH": ":".join(map(str, (*path, tools))), "PYTHON": ""}
    script = ". ./.ci/setup.sh; find_python"
    return subprocess.run(
        [str(tools / "sh"), "-euc", script], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )


def test_a_python_that_is_too_old_is_one_line(tmp_path: Path) -> None:
    for name in ("python3", *(f"python3.{minor}" for minor in range(11, 15))):
        program(tmp_path / "old" / name, "exit 1")
    done = found_python(tmp_path / "old")
    complaint = "This needs Python 3.11 or later; none was found. Set PYTHON to its path if it is not on PATH.\n"
    assert (done.returncode, done.stderr) == (2, complaint)


def a_python(path: Path, seconds: float, modules: str = "venv") -> None:
    """One that takes so long for the work by which Pythons are compared, and has these modules."""
    answer = f'*{modules}*sys.executable*) echo "$0" ;; *sys.executable*) exit 1 ;; *) echo {seconds} ;;'
    program(path, f'[ "$1" = -c ] || exec {sys.executable} "$@"\ncase "$2" in {answer} esac')


@pytest.mark.parametrize(
    ("times", "chosen"), [((1.0,), 0), ((1.0, 0.7, 0.8), 1), ((1.0, 0.95), 0), ((0.7, 1.0), 0), ((1.0, 0.95, 0.8), 2)]
)
def test_the_fastest_python_is_taken_and_of_two_alike_the_first(
    times: tuple[float, ...], chosen: int, tmp_path: Path
) -> None:
    folders = [tmp_path / f"{number}" for number in range(len(times))]
    for folder, seconds in zip(folders, times, strict=True):
        a_python(folder / "python3.11", seconds)
    assert found_python(*folders).stdout == f"{folders[chosen]}/python3.11\n"


def test_a_python_that_can_make_environments_comes_before_one_that_cannot(tmp_path: Path) -> None:
    a_python(tmp_path / "bare" / "python3.12", 1.0, modules="nothing")
    a_python(tmp_path / "whole" / "python3.11", 9.0)
    assert found_python(tmp_path / "bare", tmp_path / "whole").stdout == f"{tmp_path}/whole/python3.11\n"


def test_a_python_without_the_part_for_environments_is_better_than_none(tmp_path: Path) -> None:
    a_python(tmp_path / "bare" / "python3.11", 1.0, modules="', os'")
    assert found_python(tmp_path / "bare").stdout == f"{tmp_path}/bare/python3.11\n"


def test_a_folder_that_cannot_be_written_to_is_one_line() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "setup.sh").write_text((REPOSITORY / ".ci" / "setup.sh").read_text())
        folder.chmod(0o555)
        nobody = 65534 if os.geteuid() == 0 else None  # root may write everywhere
        done = subprocess.run(
            ["sh", "-euc", ". ./setup.sh; set_up ."], cwd=folder, user=nobody, capture_output=True, text=True, check=False
        )
        folder.chmod(0o755)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"Cannot write into {folder}")


def test_each_nightly_test_is_one_of_its_file() -> None:
    names = nightly_tests()
    assert names == sorted(set(names))
    for name in names:
        file, _, test = name.partition("::")
        tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
        assert test.partition("[")[0] in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}, name
