"""A signal in the middle of a round: whatever the round has done to the cluster, it stops in order, and soon."""

import asyncio
import signal
import threading
import time
from pathlib import Path

import pytest

from kspec.cli.statuses import STOPPED
from kspec.trials.cluster.foreground import in_thread
from tests.trials.cluster.running import RunningCluster, until

SOON_S = 30.0
"""Less than a node is waited for that does not stop, and less than producers are for their last records."""

ALL = {"controller", "1", "2", "3"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "gone"),
    [
        pytest.param("stop-and-controller", {"controller"}, marks=pytest.mark.nightly),
        ("follower-behind", set()),
        pytest.param("late-news", set(), marks=pytest.mark.nightly),
    ],
)
def test_a_signal_in_the_middle_of_a_plan_stops_all_in_order_within_seconds(
    plan: str, gone: set[str], tmp_path: Path
) -> None:
    """The controller is killed; two brokers are; or what the leader asks the controller is held."""
    pytest.importorskip("confluent_kafka", reason="NOT RUN: confluent-kafka (librdkafka) is not installed")
    folder = tmp_path / "cluster"
    options = "--rounds", "1", "--plans", plan, "--plain"
    with RunningCluster(folder, *options, brokers=3, combined=False) as cluster:
        if plan == "late-news":
            time.sleep(12.0)
        else:
            until(lambda: (bool(gone) and gone <= ALL - set(cluster.pids())) or len(cluster.pids()) == 2)
        up = set(cluster.pids()) - {"controller"}
        began = time.monotonic()
        assert cluster.end(signal.SIGINT) == STOPPED, cluster.said()
        assert time.monotonic() - began < SOON_S, cluster.said()
    assert "was killed" not in cluster.said()
    assert all((folder / broker / "data" / ".kafka_cleanshutdown").exists() for broker in up)


def test_the_end_does_not_wait_for_a_thread_whose_outcome_nobody_wants_any_more() -> None:
    """`asyncio.run` waits for the threads of `asyncio.to_thread`."""
    forever = threading.Event()

    async def one_is_given_up() -> int:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_thread(forever.wait), 0.01)
        return await in_thread(int, "7")

    assert asyncio.run(one_is_given_up()) == 7
    assert not forever.is_set()


def test_what_a_thread_raises_is_raised_where_it_is_awaited() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(in_thread(int, "seven"))
