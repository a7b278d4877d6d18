"""A controller as a process, and a client that speaks to it as a broker does."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from impl.wire.values import Message
from tests.impl.broker.process import COMMAND, START_S, STOP_S, Client, first_line, replay_of
from tests.impl.controller.requests import CLUSTER_ID, KEYS, Moves

NODE = 100


class ControllerProcess:
    """`kspec broker` with `process.roles=controller`. Leaving the `with` block runs its traces through `spec` again."""

    def __init__(self, folder: Path, *options: str, overrides: Sequence[str] = (), traced: bool = True) -> None:
        self.folder = folder
        self.port = 0
        self.traces: list[Path] = []
        self.log = folder.parent / f"{folder.name}.log"
        self.process: subprocess.Popen[str] | None = None
        self._options, self._overrides, self._traced = options, overrides, traced

    def settings(self) -> list[str]:
        """Its settings; a port is chosen at the first start, and kept."""
        return [
            "process.roles=controller",
            f"node.id={NODE}",
            f"cluster.id={CLUSTER_ID}",
            f"controller.quorum.voters={NODE}@127.0.0.1:{self.port}",
            "controller.listener.names=CONTROLLER",
            f"listeners=CONTROLLER://127.0.0.1:{self.port}",
            *self._overrides,
        ]

    def start(self) -> "ControllerProcess":
        """Start it, and wait until it serves."""
        given = [part for override in self.settings() for part in ("--override", override)]
        if self._traced:
            self.traces.append(self.folder.parent / f"{self.folder.name}-{len(self.traces)}.trace")
            given += ["--trace", str(self.traces[-1])]
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "broker", "--log-dir", str(self.folder), *given, *self._options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = first_line(self.process.stdout)
        if not line.startswith("ready 127.0.0.1:"):
            self.kill()
            raise AssertionError(f"the controller said {line!r} within {START_S} s:\n{self.log.read_text(encoding='utf-8')}")
        self.port = int(line.rpartition(":")[2])
        return self

    def stop(self) -> int:
        """Stop it in order; the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def kill(self) -> None:
        """End it as by kill -9."""
        assert self.process is not None
        self.process.kill()
        self._ended()

    def _ended(self) -> int:
        assert self.process is not None
        status = self.process.wait(timeout=STOP_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def __enter__(self) -> "ControllerProcess":
        return self.start()

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            if error is None:
                assert self.stop() == 0
            else:
                self.kill()
        if error is None:
            for trace in self.traces:
                replay_of(trace)


class Member(Moves, Client):
    """A connection to the controller, as a broker has it: requests as fields, answers as fields."""

    apis = KEYS

    def call(self, name: str, version: int, **fields: Any) -> Message:
        return Client.call(self, name, version, **fields)
