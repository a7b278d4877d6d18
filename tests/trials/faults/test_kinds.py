"""Each kind of fault of processes happens when its time has come, and is undone at its end."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.fault_kind import FaultKind
from kspec.trials.faults import kinds
from kspec.trials.faults.injector import FaultInjector
from kspec.trials.faults.kinds import CLOCK, KINDS, ProcessFault
from kspec.trials.faults.links import Links
from kspec.trials.simulated.kinds.catalogue import KINDS as SIMULATED_KINDS


class RecordedProcess:
    """A process that only notes what is done to it."""

    paused, serves = False, True

    def __init__(self, name: str, done: list[str], folder: Path) -> None:
        self._done = done
        self.node = SimpleNamespace(name=name, clock=folder / f"clock-{name}")

    def __getattr__(self, deed: str) -> Any:
        return lambda *given: self._done.append(" ".join([self.node.name, deed, *map(str, given)]))


class RecordedCluster:
    """Processes that note what is done to them."""

    def __init__(self, folder: Path) -> None:
        self.done: list[str] = []
        self.held: set[str] = set()
        self.processes = {name: RecordedProcess(name, self.done, folder) for name in ("controller", "1", "2")}
        self.brokers = [self.processes["1"], self.processes["2"]]

    async def restart(self, name: str) -> None:
        self.done.append(f"{name} restart")


class LastingInjector(FaultInjector):
    """An injector after which faults stay that were not undone by themselves."""

    def heal(self) -> None:
        """Do nothing."""


def carried_out(folder: Path, fault: ProcessFault) -> RecordedCluster:
    cluster = RecordedCluster(folder)
    injector = LastingInjector(cast("ClusterSupervisor", cluster), Links({}, dict))
    asyncio.run(injector.carry_out([fault]))
    return cluster


class RecordedOperator:
    """An operator who only notes what he does, and may not be let remove a voter."""

    may_remove = True

    def __init__(self, cluster: RecordedCluster) -> None:
        self._done = cluster.done

    async def take_vote(self, name: str) -> bool:
        self._done.append(f"{name} removed")
        return self.may_remove

    async def give_back(self, name: str) -> bool:
        self._done.append(f"{name} added")
        return True


S = 0.05
DONE = {
    "kill": ["1 kill"],
    "pause": ["1 pause", "1 resume"],
    "disk": ["1 limit_files 1", "1 limit_files -1", "1 kill"],
    "roll": ["1 restart", "2 restart"],
    "voters": ["1 removed", "1 added"],
}
"""The deeds of a fault and of its undoing."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_happens_and_is_undone(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "VoterOperator", RecordedOperator)
    cluster = carried_out(tmp_path, ProcessFault(0.0, S, kind, "1", (("1", "2"),), jump=5.0))
    assert cluster.done == DONE.get(kind, [])
    assert cluster.held == set()


def test_a_voter_that_was_not_removed_is_not_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "VoterOperator", RecordedOperator)
    monkeypatch.setattr(RecordedOperator, "may_remove", False)
    assert carried_out(tmp_path, ProcessFault(0.0, S, "voters", "1")).done == ["1 removed"]


def test_links_are_cut_and_mended() -> None:
    links = Links({}, dict)
    site = cast("Any", SimpleNamespace(cluster=None, links=links))
    fault = KINDS["cut"](site, ProcessFault(0, S, "cut", "", (("1", "2"),)))
    assert fault.act()
    assert links.is_cut(("1", "2"))
    fault.undo()
    assert not links.is_cut(("1", "2"))


@pytest.mark.parametrize(("drifts", "times"), [(False, [5_000, 0]), (True, [*range(250, 5_001, 250), 0])])
def test_a_clock_is_wrong_and_right_again(
    drifts: bool, times: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    monkeypatch.setattr(kinds, "move_clock", lambda clock, ms: found.append(ms))
    carried_out(tmp_path, ProcessFault(0.0, S, CLOCK, "1", jump=5.0, drifts=drifts))
    assert sorted(found) == sorted(times)
    assert found[0] == times[0]


def test_every_kind_of_fault_has_one_form() -> None:
    for kind in (*KINDS.values(), *SIMULATED_KINDS):
        assert issubclass(kind, FaultKind)
        assert kind.words
        assert kind.weight > 0
        undoes = kind.undo is not FaultKind.undo
        assert undoes == kind.is_undone, f"{kind.__name__} is undone by its own method, or not at all"
