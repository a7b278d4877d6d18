"""Clusters of three as processes: brokers with a controller, and controllers with a broker."""

import asyncio
import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kspec.impl.storage import RealDisk
from kspec.impl.storage.small_files import read_meta
from kspec.trials.cluster.plan import nodes_of, ports_from
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.faults.controllers.voters import VoterOperator
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

        where = tmp_path / "c" / active
        directory = read_meta(RealDisk(), str(where / "data"))["directory.id"]
        about = ("--controller-id", str(IDS[active]), "--controller-directory-id", directory)
        removed = kspec("metadata-quorum", *server, "remove-controller", *about)
        assert removed.returncode == 0, removed.stderr
        others = [str(one) for name, one in IDS.items() if name != active]
        assert re.findall(r'"id": (\d+)', status_of(cluster)["CurrentVoters"]) == others
        added = kspec("metadata-quorum", *server, "--command-config", str(where / "server.properties"), "add-controller")
        assert added.returncode == 0, added.stderr
        assert re.findall(r'"id": (\d+)', status_of(cluster)["CurrentVoters"]) == ["101", "102", "103"]

        operator = VoterOperator(a_cluster_at(tmp_path / "c", cluster.port))
        assert asyncio.run(operator.take_vote("controller-2"))
        assert re.findall(r'"id": (\d+)', status_of(cluster)["CurrentVoters"]) == ["101", "103"]
        assert not asyncio.run(operator.take_vote("controller-1")), "two voters stay"
        assert asyncio.run(operator.give_back("controller-2"))
        assert re.findall(r'"id": (\d+)', status_of(cluster)["CurrentVoters"]) == ["101", "102", "103"]


def a_cluster_at(folder: Path, port: int) -> ClusterSupervisor:
    """A cluster that somebody else runs, as far as an operator needs it."""
    nodes = nodes_of(folder, 1, ports_from(port, 1, 3), {})
    return cast("ClusterSupervisor", SimpleNamespace(processes={node.name: SimpleNamespace(node=node) for node in nodes}))
