"""Running cases on a driver: what it cannot do, what does not start, and drivers in files."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from click.testing import CliRunner

from kspec.cli.conformance.levels import WORLD
from kspec.cli.main import cli
from kspec.conformance.cluster.cases import ClusterCase, all_cases
from kspec.conformance.cluster.driver import KILL, ClusterDriver, DriverError, factory_in
from kspec.conformance.cluster.results import CaseOutcome
from kspec.conformance.cluster.suite import LevelRun
from kspec.conformance.wire.run.results import Status
from kspec.trials.faults.links import Link


class OnlyKills:
    """A driver that can do one thing, and whose cluster nobody needs."""

    title = "nothing"
    abilities: Collection[str] = (KILL,)
    brokers: Mapping[str, tuple[str, int]] = MappingProxyType({"1": ("127.0.0.1", 1)})

    def __init__(self, folder: Path, *, starts: bool = True) -> None:
        self.folder = folder
        self.starts = starts
        self.open_now = False

    async def open(self) -> None:
        if not self.starts:
            raise DriverError("nothing does not start: it is nothing")
        self.open_now = True

    async def close(self) -> None:
        self.open_now = False

    async def start(self, broker: str) -> None: ...
    async def stop(self, broker: str) -> None: ...
    async def kill(self, broker: str) -> None: ...
    async def pause(self, broker: str) -> None: ...
    async def resume(self, broker: str) -> None: ...
    async def partition(self, links: Collection[Link]) -> None: ...
    async def elect(self, topic: str, replicas: Sequence[int]) -> None: ...
    async def erase(self, broker: str) -> None: ...


def case() -> ClusterCase:
    (found,) = [one for one in all_cases() if one.source == "min-isr-of-one" and not one.by_hand]
    return found


def test_what_the_driver_cannot_do_is_not_applicable_and_the_cluster_is_ended(tmp_path: Path) -> None:
    drivers: list[OnlyKills] = []
    told: list[CaseOutcome] = []

    def factory(folder: Path) -> ClusterDriver:
        drivers.append(OnlyKills(folder))
        return drivers[-1]

    asyncio.run(LevelRun(factory, tmp_path, {}, told.append).run_cases([case()]))
    assert [(one.status, one.reason) for one in told] == [(Status.NOT_APPLICABLE, "the driver cannot partition")]
    assert [one.open_now for one in drivers] == [False]


def test_a_cluster_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    run = LevelRun(lambda folder: OnlyKills(folder, starts=False), tmp_path, {}, lambda outcome: None)
    with pytest.raises(DriverError, match="it is nothing"):
        asyncio.run(run.run_cases([case()]))


def test_a_driver_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = "class mine:\n    def __init__(self, folder):\n        self.title = folder.name\nnumber = 1\n"
    file.write_text(text, encoding="utf-8")
    assert factory_in(f"{file}:mine")(tmp_path).title == tmp_path.name
    for text, complaint in (
        (f"{file}:other", "has no driver 'other'"),
        (f"{file}:number", "has no driver 'number'"),
        (f"{tmp_path / 'none.py'}:mine", "No such file"),
    ):
        with pytest.raises(DriverError, match=complaint):
            factory_in(text)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--level", "2"], WORLD),
        (["--level", "1"], "level 1 needs --driver"),
        (["--level", "1", "--driver", "kspec", "--bootstrap-server", "h:1"], "in place of --bootstrap-server"),
        (["--level", "1", "--driver", "nothing"], "there is no driver 'nothing'"),
        (["--level", "1", "--driver", "none.py:mine"], "No such file"),
        (["--level", "1", "--driver", "kspec:no-such-mutant"], "there is no mutant 'no-such-mutant'"),
        (["--driver", "kspec", "--bootstrap-server", "h:1"], "--driver is for --level 1"),
        ([], "level 0 needs --bootstrap-server"),
    ],
)
def test_bad_usage_is_one_line(options: list[str], complaint: str) -> None:
    result = CliRunner().invoke(cli, ["conformance", "run", *options])
    assert result.exit_code == 2
    assert complaint in result.output


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        ("rules/nothing", "there is no case 'rules/nothing'"),
        ("random", "random cases need --rounds or --minutes"),
    ],
)
def test_a_choice_of_no_case_is_bad_usage_and_leaves_nothing(
    tmp_path: Path, case: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    file = tmp_path / "mine.py"
    file.write_text("mine = lambda folder: None\n", encoding="utf-8")
    options = ["--level", "1", "--driver", f"{file}:mine", "--case", case]
    result = CliRunner().invoke(cli, ["conformance", "run", *options])
    assert result.exit_code == 2
    assert complaint in result.output
    assert list(temporary.iterdir()) == []


def test_the_list_of_level_1() -> None:
    result = CliRunner().invoke(cli, ["conformance", "list", "--level", "1", "--case", "acks-1/"])
    assert result.exit_code == 0
    assert result.output.splitlines()[0] == "acks-1/leader-dies-alone"
