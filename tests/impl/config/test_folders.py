"""A folder that cannot be used: one line that says what stands in the way."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from kspec.cli.broker.cluster import cluster
from kspec.cli.broker.serve import broker
from kspec.impl.config.folders import check_folder
from kspec.impl.config.properties import ConfigError


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder with a file, and a link to nothing."""
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    return tmp_path


CASES = {
    "file": "/file is a file",
    "file/below": "/file is a file",
    "link": "/gone, which is not there",
    "link/below": "/gone",
}


@pytest.mark.parametrize("name", CASES)
def test_a_folder_that_cannot_be_is_told(odd: Path, name: str) -> None:
    with pytest.raises(ConfigError) as told:
        check_folder(odd / name, "log.dirs")
    assert str(told.value).startswith(f"log.dirs={odd / name} cannot be used: ")
    assert CASES[name] in str(told.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="everything may be written to by root")
def test_a_folder_that_may_not_be_written_to_is_told(odd: Path) -> None:
    odd.chmod(0o555)
    with pytest.raises(ConfigError, match="may not be written to"):
        check_folder(odd / "new", "log.dirs")
    odd.chmod(0o755)


def test_a_folder_that_can_be_made_or_is_there_is_fine(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_folder(odd, "log.dirs")
    check_folder(odd / "new" / "below", "log.dirs")
    (odd / "good").symlink_to(odd)
    check_folder(odd / "good", "log.dirs")
    monkeypatch.chdir(odd)
    check_folder(Path(), "log.dirs")
    check_folder(Path("relative"), "log.dirs")


@pytest.mark.parametrize("name", CASES)
def test_broker_and_cluster_say_it_in_one_line(odd: Path, name: str) -> None:
    for command in (broker, cluster):
        done = CliRunner().invoke(command, ["--log-dir", str(odd / name)])
        assert done.exit_code == 2
        assert CASES[name] in done.output
        assert "Errno" not in done.output
    done = CliRunner().invoke(broker, ["--override", f"log.dirs={odd / name}"])
    assert done.exit_code == 2
    assert CASES[name] in done.output


def test_an_empty_name_is_no_folder() -> None:
    done = CliRunner().invoke(broker, ["--log-dir", ""])
    assert done.exit_code == 2
    assert "--log-dir is empty" in done.output


TOO_LONG = f"/tmp/{'x' * 300}"


@pytest.mark.parametrize("path", ["/proc/x", "/dev/null", "/dev/null/below", TOO_LONG, ",", "nul\0"])
def test_a_path_at_which_nothing_can_be_kept_is_one_line_that_names_the_setting(path: str) -> None:
    """No look beforehand tells all of them: what fails when the folder is made is told in the same words."""
    done = CliRunner().invoke(broker, ["--override", f"log.dirs={path}", "--override", "listeners=PLAINTEXT://127.0.0.1:0"])
    assert done.exit_code == 2
    line = done.output.splitlines()[-1]
    assert line.startswith(("Error: log.dirs=", "Error: log.dirs is empty"))
    assert "Errno" not in line


def test_a_controller_names_the_setting_that_it_has_its_folder_from() -> None:
    given = {
        "process.roles": "controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "metadata.log.dir": "/dev/null",
    }
    overrides = [part for name, value in given.items() for part in ("--override", f"{name}={value}")]
    done = CliRunner().invoke(broker, overrides)
    assert done.exit_code == 2
    assert "metadata.log.dir=/dev/null cannot be used: /dev/null is no folder" in done.output
