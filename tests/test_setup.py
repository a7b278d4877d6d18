"""`./run` and `./test` before Python runs: what goes wrong while they set up is told in one line, with exit status 2."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.limits.marks import marked
from tests.places import REPOSITORY


def set_up(folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run the first part of `./run` in this folder. Programs in the folders `path` are found first."""
    if not (folder / "pyproject.toml").exists():  # a newer one is installed again
        (folder / "pyproject.toml").touch()
    script = f". {REPOSITORY}/.ci/setup.sh; set_up ."
    environment = {**os.environ, "PATH": ":".join([*map(str, path), os.environ["PATH"]]), "PYTHON": ""}
    return subprocess.run(
        ["sh", "-euc", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


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


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed'))",
            "the certificate of the package index is not trusted here; PIP_CERT=FILE names a file with the one that signs"
            " it",
        ),
        (
            "NewConnectionError('<pip._vendor.urllib3 object>: Failed to establish a new connection: [Errno -2]')",
            "the package index cannot be reached; PIP_INDEX_URL=URL names another, HTTPS_PROXY=URL a proxy",
        ),
    ],
)
def test_an_index_that_does_not_answer_is_not_told_as_a_missing_package(told: str, said: str, tmp_path: Path) -> None:
    script = f"""cat <<'END'
WARNING: Retrying (Retry(total=4)) after connection broken by '{told}': /simple/hatchling/
  ERROR: Could not find a version that satisfies the requirement hatchling (from versions: none)
  ERROR: No matching distribution found for hatchling
END
exit 1"""
    program(tmp_path / ".venv" / "bin" / "python", script)
    assert set_up(tmp_path).stderr.splitlines()[1] == f"Cannot install .: {said} (all that pip says is in .venv/pip.log)"


MAKES = """case "$*" in
*sys.executable*) echo "$0" ;;
--version) echo "Python 3.11.2" ;;
"-m venv .venv") exit 1 ;;
"-m venv --without-pip .venv")
    mkdir -p .venv/bin
    printf '#!/bin/sh\\nexit 0\\n' >.venv/bin/python
    chmod +x .venv/bin/python ;;
*--python*) exit {pip} ;;
*) exit 1 ;;
esac"""
"""A Python without ensurepip, as a bare Debian has it, with or without a pip of its own."""


def test_a_pip_that_is_there_makes_up_for_a_python_without_ensurepip(tmp_path: Path) -> None:
    folder, python = tmp_path / "folder", tmp_path / "bin"
    folder.mkdir()
    for name in ("python3", *(f"python3.{minor}" for minor in range(11, 15))):
        program(python / name, MAKES.format(pip=0))
    done = set_up(folder, python)
    assert (done.returncode, done.stderr.splitlines()[1:]) == (0, ["Installing . ..."])


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
        [str(tools / "sh"), "-euc", script],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
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
            ["sh", "-euc", ". ./setup.sh; set_up ."],
            cwd=folder,
            user=nobody,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        folder.chmod(0o755)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"Cannot write into {folder}")


@pytest.mark.parametrize(
    ("run_nightly", "outcome"), [("", "1 passed, 1 skipped"), ("1", "2 passed")], ids=["by day", "by night"]
)
def test_a_nightly_test_is_left_out_by_day_and_the_summary_says_so(run_nightly: str, outcome: str, tmp_path: Path) -> None:
    page = tmp_path / "test_one.py"
    page.write_text(
        "import pytest\nfrom tests.limits.marks import marked\n"
        "@pytest.mark.parametrize('name', marked(['short', 'long'], nightly=['long']))\n"
        "def test_one(name): pass\n"
    )
    options = ["-c", "pyproject.toml", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(page)],
        cwd=REPOSITORY,
        env={**os.environ, "KSPEC_NIGHTLY": run_nightly},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcome in done.stdout.splitlines()[-1]
    assert ("NOT RUN: 1 nightly tests; KSPEC_NIGHTLY=1 runs them, too" in done.stdout) is (not run_nightly)


def test_a_mark_at_a_value_that_no_parameter_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="no parameter has the value 'lnog'"):
        marked(["short", "long"], nightly=["lnog"])


def test_every_package_that_is_installed_has_types() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert [name for name in packages if not (REPOSITORY / name / "py.typed").is_file()] == []
