"""Clusters of three as processes: brokers with a controller, and controllers with a broker."""

import os
import re
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


IDS = {"controller-1": 101, "controller-2": 102, "controller-3": 103}


def described(cluster: RunningCluster, *flags: str) -> str:
    """The quorum, as a broker has it told by the active controller."""
    done = kspec("metadata-quorum", "--bootstrap-server", f"127.0.0.1:{cluster.port}", "describe", *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def status_of(cluster: RunningCluster) -> dict[str, str]:
    lines = (line.partition(":") for line in described(cluster, "--status").splitlines())
    return {name: value.strip() for name, _, value in lines}


@pytest.mark.slow
def test_three_controllers_outlive_the_active_one(tmp_path: Path) -> None:
    with RunningCluster(tmp_path / "c", "--controllers", "3", "--no-restart", combined=False) as cluster:
        assert set(cluster.pids()) == {"1", *IDS}
        server = ("--bootstrap-server", f"127.0.0.1:{cluster.port}")
        assert kspec("topics", *server, "--create", "--topic", "before").returncode == 0
        status = status_of(cluster)
        assert re.findall(r'"id": (\d+)', status["CurrentVoters"]) == ["101", "102", "103"]
        assert re.findall(r'"id": (\d+)', status["CurrentObservers"]) == ["1"]
        active = next(name for name, node_id in IDS.items() if str(node_id) == status["LeaderId"])
        rows = [line.split("\t") for line in described(cluster, "--replication").splitlines()]
        assert [[one.strip() for one in (row[0], row[6])] for row in rows[1:2]] == [[status["LeaderId"], "Leader"]]
        assert sorted(row[6].strip() for row in rows[2:]) == ["Follower", "Follower", "Observer"]

        cluster.kill(active)
        made = kspec("topics", *server, "--create", "--topic", "after")
        assert made.returncode == 0, made.stderr
        after = status_of(cluster)
        assert after["LeaderId"] != status["LeaderId"]
        assert int(after["LeaderEpoch"]) > int(status["LeaderEpoch"])
        assert kspec("topics", *server, "--list").stdout.split() == ["after", "before"]
        started = kspec("cluster", "--log-dir", str(tmp_path / "c"), "--start", active)
        assert (started.returncode, started.stdout[:6]) == (0, "ready ")
        until(lambda: int(status_of(cluster)["MaxFollowerLag"]) == 0)
