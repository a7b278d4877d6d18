"""`kspec cluster`: processes start, are started again, and are gone in the end. One process is the cluster here."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from kspec.impl.records.record import new_batch
from kspec.trials.cluster.plan import CLUSTER_ID
from tests.impl.broker.process import BrokerClient
from tests.model_check.commands import Command
from tests.trials.cluster.running import RunningCluster, alive, free_ports, kspec, until

pytestmark = pytest.mark.slow


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def test_it_says_where_it_serves_and_which_processes_it_has_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with RunningCluster(tmp_path / "cluster", "--override", "log.segment.bytes=4096") as cluster:
        assert cluster.said().splitlines() == [f"ready 127.0.0.1:{cluster.port}"]
        (pid,) = cluster.pids().values()
        assert alive(pid)
        properties = (tmp_path / "cluster" / "1" / "server.properties").read_text(encoding="utf-8")
        assert f"listeners=PLAINTEXT://127.0.0.1:{cluster.port}," in properties
        assert "log.segment.bytes=4096\n" in properties
        with BrokerClient(cluster.port) as client:
            client.create("kept")
            assert client.produce("kept", new_batch([(1, b"k", b"v")])).error_code == 0
    assert not alive(pid)
    assert (tmp_path / "cluster" / "1" / "data" / ".kafka_cleanshutdown").exists(), "it was stopped in order"


def test_who_is_killed_is_started_again_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    with RunningCluster(tmp_path / "cluster") as cluster:
        with BrokerClient(cluster.port) as client:
            client.create("kept")
            assert client.produce("kept", new_batch([(1, b"k", b"v")])).error_code == 0
        killed = cluster.kill("1")
        until(lambda: cluster.pids().get("1") not in (None, killed))
        until(lambda: socket.socket().connect_ex(("127.0.0.1", cluster.port)) == 0)
        with BrokerClient(cluster.port) as client:
            assert client.fetch("kept", 0).high_watermark == 1
        assert "broker 1 was ended by SIGKILL; it is started again" in cluster.said()


def test_without_restart_it_stays_down_until_it_is_started_by_hand(tmp_path: Path) -> None:
    with RunningCluster(tmp_path / "cluster", "--no-restart") as cluster:
        by_hand = "cluster", "--log-dir", str(tmp_path / "cluster"), "--start"
        refused = kspec(*by_hand, "1")
        assert (refused.returncode, refused.stderr) == (2, "kspec: broker 1 runs already\n")
        cluster.kill("1")
        until(lambda: cluster.pids() == {})
        assert "broker 1 was ended by SIGKILL\n" in cluster.said()
        started = kspec(*by_hand, "1")
        assert (started.returncode, started.stdout) == (0, f"ready 127.0.0.1:{cluster.port}\n")
        assert alive(cluster.pids()["1"])
        unknown = kspec(*by_hand, "9")
        assert (unknown.returncode, unknown.stderr) == (2, "kspec: there is no node '9'; nodes: 1\n")
    gone = kspec(*by_hand, "1")
    assert (gone.returncode, gone.stderr) == (2, f"kspec: no cluster runs in {tmp_path / 'cluster'}\n")


def test_a_folder_has_one_cluster_at_a_time_and_a_port_one_process(tmp_path: Path) -> None:
    with RunningCluster(tmp_path / "cluster") as cluster:
        again = kspec("cluster", "--log-dir", str(tmp_path / "cluster"))
        assert (again.returncode, again.stderr) == (2, f"kspec: a cluster runs already in {tmp_path / 'cluster'}\n")
        single = "--brokers", "1", "--combined", "--port", str(cluster.port)
        taken = kspec("cluster", "--log-dir", str(tmp_path / "other"), *single)
        assert taken.returncode == 2
        assert taken.stderr.startswith(f"kspec: broker 1 cannot listen on 127.0.0.1:{cluster.port}: ")
        assert alive(cluster.pids()["1"])


def test_a_start_that_fails_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    single = "--brokers", "1", "--combined", "--port", str(free_ports(2))
    data = tmp_path / "cluster" / "1" / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER_ID}\nnode.id=7\n", encoding="utf-8")
    failed = kspec("cluster", "--log-dir", str(tmp_path / "cluster"), *single)
    assert failed.returncode == 2
    assert failed.stderr.startswith("kspec: broker 1 ended with status 2: ")
    assert "node.id" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
    assert not (tmp_path / "cluster" / "pids.json").exists()


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("log.segment.bytes=1", "kspec: log.segment.bytes must be a number from 14, not '1'\n"),
        ("ssl.keystore.password=hunter2", "take them out: ssl.keystore.password: TLS\n"),
        ("listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL", "so it must be PLAINTEXT\n"),
    ],
)
def test_a_setting_that_no_node_takes_is_in_no_file(command: Command, override: str, complaint: str, tmp_path: Path) -> None:
    refused = command("cluster", "--log-dir", str(tmp_path / "cluster"), "--override", override)
    assert refused.mistake == (2, 1)
    assert refused.stderr.endswith(complaint)
    assert "hunter2" not in refused.stderr
    assert not (tmp_path / "cluster").exists()


def test_ctrl_c_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    cluster = RunningCluster(tmp_path / "cluster").start(wait=False)
    until((tmp_path / "cluster" / "pids.json").exists)
    cluster.pids()
    assert cluster.end(signal.SIGINT) == 0
    until(lambda: not any(map(alive, cluster.seen)))


def test_nobody_outlives_the_command(tmp_path: Path) -> None:
    """Linux ends the processes with who has started them, also by kill -9."""
    cluster = RunningCluster(tmp_path / "cluster").start()
    pids = cluster.pids()
    cluster.end(signal.SIGKILL)
    until(lambda: not any(map(alive, pids.values())))
    with RunningCluster(tmp_path / "cluster") as again:
        assert again.pids() != pids


def test_who_stands_still_is_stopped_in_order_all_the_same(tmp_path: Path) -> None:
    with RunningCluster(tmp_path / "cluster") as cluster:
        os.kill(cluster.pids()["1"], signal.SIGSTOP)
    assert (tmp_path / "cluster" / "1" / "data" / ".kafka_cleanshutdown").exists()


def test_steps_are_written_and_come_out_the_same(tmp_path: Path) -> None:
    with (
        RunningCluster(tmp_path / "cluster", "--trace", "--release", "1=3.9") as cluster,
        BrokerClient(cluster.port) as client,
    ):
        client.create("kept")
        assert client.produce("kept", new_batch([(1, b"k", b"v")])).error_code == 0
    file = tmp_path / "cluster" / "1" / "steps-1.jsonl"
    assert json.loads(file.read_text(encoding="utf-8").splitlines()[0])["release"] == "3.9"
    assert kspec("replay", str(file)).returncode == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--brokers", "0"], "a cluster has 1 to 99 brokers, not 0"),
        (["--combined"], "only a single broker can be the controller as well"),
        (["--port", "65535"], "the ports of 3 brokers and a controller begin at 1 to 65532, not at 65535"),
        (["--release", "0.0"], "there is no release '0.0'"),
        (["--release", "7=next"], "'7=next' is not NODE=VALUE with one of the nodes controller, 1, 2, 3"),
        (["--mutant", "2=nobody"], "there is no mutant 'nobody'"),
        (["--override", "a"], "an override has the form NAME=VALUE; number 1 has another"),
        (["--kafka", "4.4.0", "--mutant", "x"], "--release, --mutant and --trace are for brokers of this project"),
        (["--rounds", "1", "--faults", "kill,fire"], "there is no fault 'fire'; faults: kill, pause"),
        (
            ["--rounds", "1", "--faults", "voters"],
            "the fault 'voters' needs --controllers 3 or more, of releases from 3.9 on",
        ),
        (["--controllers", "3", "--release", "3.8", "--rounds", "1", "--faults", "voters"], "of releases from 3.9 on"),
        (["--rounds", "1", "--seconds", "0"], "a round takes more than 0 seconds"),
    ],
)
def test_bad_usage_is_one_line(command: Command, options: list[str], complaint: str, tmp_path: Path) -> None:
    refused = command("cluster", "--log-dir", str(tmp_path / "cluster"), *options)
    assert refused.mistake == (2, 1)
    assert complaint in refused.stderr
    assert not (tmp_path / "cluster").exists()
