"""Controllers as processes whose voters change (KIP-853), by `kspec metadata-quorum`, while a broker has topics decided."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.impl.broker.process import COMMAND, first_line, replay_of
from tests.impl.controller.requests import CLUSTER_ID
from tests.limits.turns import Turns
from tests.trials.cluster.running import free_ports, kspec, until

pytestmark = pytest.mark.slow

FIRST, LATE, BROKER = (101, 102, 103), 104, 1
DIRECTORIES = {101: "AAAAAAAAAAAAAAAAAAABkQ", 102: "AAAAAAAAAAAAAAAAAAABkg", 103: "AAAAAAAAAAAAAAAAAAABkw"}


class Nodes:
    """Four controllers, of which three vote at first, and a broker that knows where to ask for them.

    `by_settings`: the three are named by settings (`kraft.version` 0), the fourth and the broker find them.
    """

    def __init__(self, folder: Path, by_settings: bool = False) -> None:
        self.folder, self.by_settings = folder, by_settings
        first = free_ports(5)
        self.ports = {node: first + place for place, node in enumerate((BROKER, *FIRST, LATE))}
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.traces: list[Path] = []
        self.servers = ",".join(f"127.0.0.1:{self.ports[one]}" for one in FIRST)
        voters = ",".join(f"{one}@127.0.0.1:{self.ports[one]}:{DIRECTORIES[one]}" for one in FIRST)
        for node in self.ports:
            self._write_settings(node)
            flags = ["-I", voters] if node in FIRST else ["-N"] if node == LATE else []
            flags = [] if by_settings and node in FIRST else flags
            done = kspec("storage", "format", "-c", str(self.file(node)), "-t", CLUSTER_ID, *flags)
            assert done.returncode == 0, done.stderr

    def file(self, node: int) -> Path:
        """The settings of a node."""
        return self.folder / f"{node}.properties"

    def _write_settings(self, node: int) -> None:
        is_broker = node == BROKER
        name = "PLAINTEXT" if is_broker else "CONTROLLER"
        lines = (
            f"process.roles={'broker' if is_broker else 'controller'}",
            f"node.id={node}",
            f"log.dirs={self.folder / str(node)}",
            f"listeners={name}://127.0.0.1:{self.ports[node]}",
            "controller.listener.names=CONTROLLER",
            self._voters() if self.by_settings and node in FIRST else f"controller.quorum.bootstrap.servers={self.servers}",
            "controller.quorum.fetch.timeout.ms=1000",
            "controller.quorum.election.timeout.ms=500",
            "metadata.log.max.record.bytes.between.snapshots=3000",
        )
        self.file(node).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _voters(self) -> str:
        return "controller.quorum.voters=" + ",".join(f"{one}@127.0.0.1:{self.ports[one]}" for one in FIRST)

    def features(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`kspec features`, by the broker."""
        return kspec("features", "--bootstrap-server", f"127.0.0.1:{self.ports[BROKER]}", *arguments)

    def level(self) -> str:
        """The level of `kraft.version` that the broker knows."""
        done = self.features("describe")
        assert done.returncode == 0, done.stderr
        (line,) = [one for one in done.stdout.splitlines() if one.startswith("Feature: kraft.version\t")]
        return dict(part.split(": ", 1) for part in line.split("\t"))["FinalizedVersionLevel"]

    def start(self, node: int) -> None:
        """Start a node, and wait until it serves."""
        trace = self.folder / f"{node}-{len(self.traces)}.trace"
        self.traces.append(trace)
        command = [sys.executable, "-c", COMMAND, "broker", "--config", str(self.file(node)), "--trace", str(trace)]
        with (self.folder / f"{node}.log").open("a", encoding="utf-8") as log:
            self.processes[node] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        stream = self.processes[node].stdout
        assert stream is not None
        assert first_line(stream).startswith("ready "), (self.folder / f"{node}.log").read_text(encoding="utf-8")

    def end(self, node: int, how: signal.Signals = signal.SIGKILL) -> None:
        """End a node."""
        process = self.processes.pop(node)
        process.send_signal(how)
        process.wait(timeout=60)
        if process.stdout is not None:
            process.stdout.close()

    def quorum(self, *arguments: str, by: str = "--bootstrap-server") -> subprocess.CompletedProcess[str]:
        """`kspec metadata-quorum`, by the broker or by the controllers."""
        servers = f"127.0.0.1:{self.ports[BROKER]}" if by == "--bootstrap-server" else self.servers
        return kspec("metadata-quorum", by, servers, *arguments)

    def status(self) -> dict[str, str]:
        """The quorum as its leader tells it."""
        done = self.quorum("describe", "--status")
        assert done.returncode == 0, done.stderr
        return {name: value.strip() for name, _, value in (line.partition(":") for line in done.stdout.splitlines())}

    def voters(self) -> list[int]:
        """The ids of the voters."""
        return sorted(map(int, re.findall(r'"id": (\d+)', self.status()["CurrentVoters"])))

    def create(self, topic: str) -> None:
        """Create a topic."""
        server = f"127.0.0.1:{self.ports[BROKER]}"
        done = kspec("topics", "--bootstrap-server", server, "--create", "--topic", topic, "--partitions", "8")
        assert done.returncode == 0, done.stderr

    def topics(self) -> list[str]:
        """The topics that there are."""
        return kspec("topics", "--bootstrap-server", f"127.0.0.1:{self.ports[BROKER]}", "--list").stdout.split()


@contextmanager
def running(folder: Path, by_settings: bool = False) -> Iterator[Nodes]:
    """All of them, until the end; then each step of a rule is run through `spec` once more."""
    nodes = Nodes(folder, by_settings)
    try:
        for node in (*FIRST, BROKER):
            nodes.start(node)
        yield nodes
    finally:
        for node in list(nodes.processes):
            nodes.end(node)
    assert sum(map(replay_of, nodes.traces)) > 0


def test_voters_change_while_a_broker_has_topics_decided(tmp_path: Path) -> None:
    with running(tmp_path) as nodes:
        nodes.create("before")
        assert nodes.voters() == list(FIRST)
        add = ("--command-config", str(nodes.file(LATE)), "add-controller")
        early = nodes.quorum(*add)
        assert (early.returncode, "REQUEST_TIMED_OUT" in early.stderr) == (1, True), early.stderr
        nodes.start(LATE)
        until(lambda: f'"id": {LATE}' in nodes.status()["CurrentObservers"])
        dry = nodes.quorum(*add, "--dry-run")
        assert dry.stdout.startswith(f"DRY RUN of adding controller {LATE} with directory id ")
        until(lambda: nodes.quorum(*add).returncode == 0)
        assert nodes.voters() == [*FIRST, LATE]
        again = nodes.quorum(*add, by="--bootstrap-controller")
        assert (again.returncode, "DUPLICATE_VOTER" in again.stderr) == (1, True), again.stderr

        active = int(nodes.status()["LeaderId"])
        if active == LATE:
            nodes.end(LATE)
            nodes.start(LATE)
            active = int(nodes.status()["LeaderId"])
        named = ("-i", str(active), "-d", DIRECTORIES[active])
        removed = nodes.quorum("remove-controller", *named)
        assert removed.stdout == f"Removed  KRaft controller {active} with directory id {DIRECTORIES[active]}\n"
        rest = sorted({*FIRST, LATE} - {active})
        assert nodes.voters() == rest
        assert int(nodes.status()["LeaderId"]) in rest
        unknown = nodes.quorum("remove-controller", *named)
        assert (unknown.returncode, "VOTER_NOT_FOUND" in unknown.stderr) == (1, True), unknown.stderr
        nodes.create("after")

        nodes.end(active, signal.SIGTERM)
        leader = int(nodes.status()["LeaderId"])
        nodes.end(leader)
        nodes.create("without-the-leader")
        nodes.start(leader)
        nodes.start(active)
        assert nodes.voters() == rest, "the one that was removed reads on"
        assert nodes.topics() == ["after", "before", "without-the-leader"]


def test_one_that_is_killed_amid_a_change_has_it_or_has_it_not(tmp_path: Path) -> None:
    with running(tmp_path) as nodes:
        nodes.start(LATE)
        until(lambda: f'"id": {LATE}' in nodes.status()["CurrentObservers"])
        add = ("--command-config", str(nodes.file(LATE)), "add-controller")
        turns = Turns()
        for number in range(3):
            turns.go()
            nodes.create(f"t{number}")
            before, leader = nodes.voters(), int(nodes.status()["LeaderId"])
            directory = re.search(rf'"id": {LATE}, "directoryId": "(\S{{22}})"', nodes.status()["CurrentVoters"])
            change = add if directory is None else ("remove-controller", "-i", str(LATE), "-d", directory[1])
            server = ("metadata-quorum", "--bootstrap-server", f"127.0.0.1:{nodes.ports[BROKER]}")
            asked = subprocess.Popen(
                [sys.executable, "-c", COMMAND, *server, *change],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            time.sleep(0.3 * (number + 1))
            nodes.end(leader)
            said, _ = asked.communicate(timeout=120)
            nodes.start(leader)
            after = nodes.voters()
            assert after in (list(FIRST), [*FIRST, LATE])
            if asked.returncode == 0 and said:
                assert after != before
            assert nodes.topics() == [f"t{one}" for one in range(number + 1)]


def test_voters_of_settings_are_raised_into_the_log_and_then_change(tmp_path: Path) -> None:
    with running(tmp_path, by_settings=True) as nodes:
        nodes.create("before")
        assert (nodes.level(), nodes.voters()) == ("0", list(FIRST))
        nodes.start(LATE)
        until(lambda: f'"id": {LATE}' in nodes.status()["CurrentObservers"])
        add = ("--command-config", str(nodes.file(LATE)), "add-controller")
        early = nodes.quorum(*add)
        assert (early.returncode, "UNSUPPORTED_VERSION" in early.stderr) == (1, True), early.stderr
        wanted = ("upgrade", "--feature", "kraft.version=1")
        until(lambda: nodes.features(*wanted, "--dry-run").returncode == 0)
        assert nodes.features(*wanted, "--dry-run").stdout == "kraft.version can be upgraded to 1.\n"
        both = nodes.features(*wanted, "--feature", "transaction.version=9")
        assert (both.returncode, "2 out of 2 operation(s) failed" in both.stderr) == (1, True), both
        assert nodes.level() == "0"
        done = nodes.features(*wanted)
        assert done.stdout == "kraft.version was upgraded to 1.\n", done
        until(lambda: nodes.level() == "1")
        down = nodes.features("downgrade", "--feature", "kraft.version=0", "--unsafe")
        said = "Could not downgrade kraft.version to 0. INVALID_UPDATE_VERSION"
        assert (down.returncode, said in down.stdout) == (1, True), down
        until(lambda: nodes.quorum(*add).returncode == 0)
        assert nodes.voters() == [*FIRST, LATE]
        leader = int(nodes.status()["LeaderId"])
        nodes.end(leader)
        nodes.create("without-the-leader")
        nodes.start(leader)
        nodes.end(BROKER)
        nodes.start(BROKER)
        until(lambda: nodes.level() == "1")
        assert nodes.voters() == [*FIRST, LATE]
        assert nodes.topics() == ["before", "without-the-leader"]
