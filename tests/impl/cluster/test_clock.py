"""The clock of a node is off by what its file says, also while it runs."""

import time
from pathlib import Path

import pytest

from impl.cluster.plan import BROKER, Node
from impl.server.clock import WallClock

NEAR_MS = 60_000


@pytest.mark.parametrize("ms", [3_600_000, -3_600_000])
def test_a_clock_is_off_by_what_the_file_of_its_node_says(tmp_path: Path, ms: int) -> None:
    node, clock = Node("1", 1, BROKER, tmp_path, 0, 0, {}), WallClock()
    node.move_clock(0)
    clock.move_by(node.clock)
    assert abs(clock() - time.time() * 1000) < NEAR_MS
    node.move_clock(ms)
    assert abs(clock() - time.time() * 1000 - ms) < NEAR_MS
    node.move_clock(0)
    assert abs(clock() - time.time() * 1000) < NEAR_MS


def test_a_clock_without_a_file_is_the_systems() -> None:
    assert abs(WallClock()() - time.time() * 1000) < NEAR_MS
