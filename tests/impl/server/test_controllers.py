"""The address that a controller tells others."""

import socket
from pathlib import Path

import pytest

from kspec.cli.broker.serve import rules_of
from kspec.impl.config.controller import ControllerConfig
from kspec.impl.server.controller import RunningController


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({}, "127.0.0.1"),
        ({"listeners": "CONTROLLER://:{port}"}, socket.gethostname()),
        ({"listeners": "CONTROLLER://:{port}", "advertised.listeners": "CONTROLLER://elsewhere:{port}"}, "elsewhere"),
    ],
)
def test_the_host_that_others_are_told(settings: dict[str, str], host: str, tmp_path: Path) -> None:
    """One that listens at every address names its machine, since none of the others could reach it at no address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        given = {
            "process.roles": "controller",
            "node.id": "101",
            "controller.quorum.voters": f"101@127.0.0.1:{port},102@127.0.0.1:1",
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "log.dirs": str(tmp_path / "logs"),
            **{name: value.replace("{port}", port) for name, value in settings.items()},
        }
        rules = rules_of("next", None)
        running = RunningController(ControllerConfig(given), rules.controller, listening, quorum=rules.quorum)
        told = running.core.endpoints[101]
        assert (told.listener, told.host, told.port) == ("CONTROLLER", host, int(port))
