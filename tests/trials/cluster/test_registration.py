"""A broker that no controller registers in time ends, with one line that says why, and as after any stop in order."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.impl.controller.process import ControllerProcess
from tests.impl.controller.requests import CLUSTER_ID
from tests.trials.cluster.running import KSPEC, free_ports, kspec

pytestmark = pytest.mark.slow

SECONDS = 120
"""An emergency stop, far away."""


def broker_file(folder: Path, controller_port: int, wait_ms: int) -> Path:
    """The settings of a broker of a cluster, in a folder that is formatted."""
    folder.mkdir()
    file = folder / "broker.properties"
    settings = {
        "process.roles": "broker",
        "node.id": 1,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"100@127.0.0.1:{controller_port}",
        "initial.broker.registration.timeout.ms": wait_ms,
        "log.dirs": folder / "data",
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    assert kspec("storage", "format", "-c", str(file), "-t", CLUSTER_ID).returncode == 0
    return file


def test_nobody_answers(tmp_path: Path) -> None:
    file = broker_file(tmp_path / "broker", free_ports(1), 500)
    done = kspec("broker", "--config", str(file))
    assert done.returncode == 3, done.stderr
    limit = "initial.broker.registration.timeout.ms"
    told = f"kspec: no controller has registered broker 1 in 500 ms ({limit}): it has not answered"
    assert done.stderr.splitlines()[-1] == told
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "broker" / "data" / ".kafka_cleanshutdown").exists(), "nobody has looked at the logs"


def test_what_was_clean_stays_so(tmp_path: Path) -> None:
    """The start has deleted the note of a clean stop, and touched no log."""
    file = broker_file(tmp_path / "broker", free_ports(1), 500)
    note = tmp_path / "broker" / "data" / ".kafka_cleanshutdown"
    note.write_text('{"version":0,"brokerEpoch":7}', encoding="utf-8")
    assert kspec("broker", "--config", str(file)).returncode == 3
    assert json.loads(note.read_text(encoding="utf-8"))["brokerEpoch"] == -1, "clean, and not known to the controller"


def test_the_controller_refuses(tmp_path: Path) -> None:
    """Another process with this node.id is alive."""
    with ControllerProcess(tmp_path / "controller", traced=False) as controller:
        first = broker_file(tmp_path / "first", controller.port, 60_000)
        with subprocess.Popen([*KSPEC, "broker", "--config", str(first)], stdout=subprocess.PIPE, text=True) as running:
            try:
                assert running.stdout is not None
                assert running.stdout.readline().startswith("ready ")
                second = broker_file(tmp_path / "second", controller.port, 1_500)
                done = kspec("broker", "--config", str(second))
            finally:
                running.send_signal(signal.SIGTERM)
                assert running.wait(SECONDS) == 0
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].endswith(": it has answered DUPLICATE_BROKER_REGISTRATION")
    assert "Traceback" not in done.stderr
