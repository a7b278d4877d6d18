"""A controller and three brokers as processes: the command as its users have it."""

import os
import signal
from pathlib import Path

import pytest

from tests.trials.cluster.running import RunningCluster, kspec, kspec_program, until
from tests.trials.cluster.test_view import seen


@pytest.mark.slow
def test_three_brokers_replicate_outlive_their_leader_and_end_in_order(tmp_path: Path) -> None:
    kspec_program()
    with RunningCluster(tmp_path / "cluster", "--no-restart", brokers=3, combined=False) as cluster:
        ports = {broker: ("127.0.0.1", cluster.port + broker - 1) for broker in (1, 2, 3)}
        addresses = ",".join(f"{host}:{port}" for host, port in ports.values())
        assert cluster.said().splitlines() == [f"ready {addresses}"]
        assert set(cluster.pids()) == {"1", "2", "3", "controller"}
        made = kspec("topics", "--bootstrap-server", addresses, "--create", "--topic", "t", "--replication-factor", "3")
        assert made.returncode == 0, made.stderr

        def leader_of_three() -> int:
            found = seen(ports, "t")
            return found[0].leader if found and len(found[0].isr) == 3 else -1

        until(lambda: leader_of_three() > 0)
        leader = leader_of_three()
        os.kill(cluster.pids()[str(leader)], signal.SIGKILL)
        others = {broker: place for broker, place in ports.items() if broker != leader}
        until(lambda: seen(others, "t")[0].leader in others)
        assert set(cluster.pids()) == {"1", "2", "3", "controller"} - {str(leader)}
        started = kspec("cluster", "--log-dir", str(tmp_path / "cluster"), "--start", str(leader))
        assert (started.returncode, started.stdout) == (0, f"ready 127.0.0.1:{ports[leader][1]}\n")
        until(lambda: leader_of_three() in others)
    for node in ("1", "2", "3"):
        assert (tmp_path / "cluster" / node / "data" / ".kafka_cleanshutdown").exists()
