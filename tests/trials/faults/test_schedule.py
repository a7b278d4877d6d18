"""Faults are drawn from a seed, and from nothing else."""

import pytest

from kspec.trials.faults.kinds import KINDS, ProcessFault
from kspec.trials.faults.links import CLIENTS
from kspec.trials.faults.schedule import schedule

BROKERS = ["1", "2", "3"]
NODES = ["controller", *BROKERS]


def drawn(seed: int, *kinds: str) -> list[ProcessFault]:
    return schedule(seed, NODES, BROKERS, 60.0, kinds or tuple(KINDS))


def test_a_seed_gives_the_same_faults_again_and_another_seed_others() -> None:
    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(20)}) == 20


@pytest.mark.parametrize("seed", range(20))
def test_no_node_has_two_faults_at_a_time(seed: int) -> None:
    faults = drawn(seed)
    assert faults
    for one in faults:
        for other in faults:
            if (
                one is not other
                and (one.node or one.links)
                and bool(one.links) == bool(other.links)
                and one.node == other.node
            ):
                assert one.at + one.seconds <= other.at or other.at + other.seconds <= one.at, (one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_about_whom_it_should_be(kind: str) -> None:
    faults = [fault for seed in range(30) for fault in drawn(seed, kind)]
    assert {fault.kind for fault in faults} == {kind}
    about = {fault.node for fault in faults}
    whom = {"kill": set(NODES), "pause": set(NODES), "disk": set(BROKERS), "clock": set(NODES), "voters": {"controller"}}
    assert about == whom.get(kind, {""})
    if kind == "cut":
        assert all({*fault.links} == {(second, first) for first, second in fault.links} for fault in faults)
        assert any(CLIENTS in link for fault in faults for link in fault.links)
    if kind == "clock":
        assert any(fault.jump < 0 for fault in faults)
        assert any(fault.jump > 0 for fault in faults)
    if kind == "one-way":
        assert {len(fault.links) for fault in faults} == {1}


def test_a_fault_in_words() -> None:
    assert str(ProcessFault(1.0, 2.5, "kill", "2")) == "kill 2 at 1.0 s for 2.5 s"
    assert str(ProcessFault(1.0, 0.0, "roll")) == "roll at 1.0 s"
    assert str(ProcessFault(1.0, 2.0, "clock", "3", jump=-4.0)) == "clock 3 by -4.0 s at 1.0 s for 2.0 s"
    assert str(ProcessFault(1.0, 2.0, "one-way", links=(("1", "2"),))) == "one-way 1 to 2 at 1.0 s for 2.0 s"
    links = (("1", "2"), ("2", "1"), ("1", "3"), ("3", "1"))
    assert str(ProcessFault(1.0, 2.0, "cut", links=links)) == "cut 1 from 2+3 at 1.0 s for 2.0 s"
