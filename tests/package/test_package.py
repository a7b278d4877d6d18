"""The package that is installed: one at the top, whatever else is there, and one way to import each of its rooms."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.limits.marks import marked
from tests.package.wheels import EMERGENCY_S, installed
from tests.places import REPOSITORY
from tests.rooms import LINKED

EXPLORER = REPOSITORY / "model_check" / "explorer" / "page"

NAMESAKE = "spec==1.4.1"
"""Another's package on PyPI. It installs a folder `spec` at the top."""


@pytest.fixture(scope="module")
def wheel(made_wheel: Path | str) -> Path:
    if isinstance(made_wheel, str):
        pytest.skip(f"NOT CHECKED: what a wheel installs, because none can be built here: {made_wheel}")
    return made_wheel


def test_one_package_is_installed_with_all_its_rooms(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"kspec"}
    for room in LINKED:
        sources = {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / room).rglob("*.py")}
        assert {
            name.removeprefix("kspec/") for name in names if name.startswith(f"kspec/{room}/") and name.endswith(".py")
        } == sources
    page = {path.relative_to(REPOSITORY).as_posix() for path in EXPLORER.rglob("*") if path.is_file()}
    assert {f"kspec/{name}" for name in page} <= set(names)
    runner = "kspec/conformance/runners/go"
    assert {name.rpartition("/")[0] for name in names if name.endswith(".go")} == {runner, f"{runner}/level0"}
    assert f"{runner}/level0/cases.tar.gz" in names


@pytest.mark.slow
@pytest.mark.parametrize("order", marked([(0, 1), (1, 0)], nightly=[(0, 1)]), ids=["ours last", "ours first"])
def test_it_runs_beside_a_package_called_spec(wheel: Path, order: tuple[int, int], tmp_path: Path) -> None:
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path), NAMESAKE]
    done = subprocess.run(download, capture_output=True, text=True, timeout=EMERGENCY_S, check=False)
    if done.returncode:
        pytest.skip(f"NOT CHECKED: beside {NAMESAKE}, which cannot be downloaded: {done.stderr.strip().splitlines()[-1]}")
    (namesake,) = tmp_path.glob("spec-*.whl")
    wheels = namesake, wheel
    python = installed(tmp_path / "venv", *(wheels[number] for number in order))
    theirs = subprocess.run(
        [python, "-c", "import spec"], capture_output=True, text=True, cwd=tmp_path, timeout=EMERGENCY_S, check=False
    )
    assert "import kspec" not in theirs.stderr
    command = [str(tmp_path / "venv" / "bin" / "kspec"), "history"]
    history = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=EMERGENCY_S, check=False)
    assert history.returncode == 0, history.stderr
    assert "every possible next leader" in " ".join(history.stdout.split())


@pytest.mark.parametrize("room", LINKED)
def test_a_room_of_a_clone_cannot_be_imported_a_second_time(room: str) -> None:
    for line in (f"import {room}", f"import kspec.{room}, {room}", f"from {room} import *"):
        done = subprocess.run(
            [sys.executable, "-c", line], capture_output=True, text=True, cwd=REPOSITORY, timeout=EMERGENCY_S, check=False
        )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(f"ImportError: import kspec.{room} instead")


@pytest.mark.parametrize("room", LINKED)
def test_a_room_is_a_folder_at_the_top_and_linked_into_the_package(room: str) -> None:
    link = REPOSITORY / "kspec" / room
    assert link.is_symlink()
    assert link.readlink() == Path("..") / room
    assert (link / "py.typed").is_file()
