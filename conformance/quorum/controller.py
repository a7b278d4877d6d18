"""The real controller: one process of Apache Kafka, one of three voters, and what is seen of it from outside.

Its role is read in its output, its election in the file `quorum-state`, and its log in the segments.
"""

import asyncio
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.kafka.codec import batches_in
from kspec.conformance.kafka.jars import Jars
from kspec.conformance.kafka.process import (
    CLUSTER_ID,
    HOST,
    JVM_FLAGS,
    KafkaProcess,
    free_port,
    run_storage_tool,
    uuid_text,
    write_properties,
)
from kspec.spec.values import NO_LEADER, BrokerId, DirectoryId, Epoch, Offset

REAL = 1
ELECTION_MS = 1000
FETCH_MS = 2000
NEVER_MS = 1 << 30
REQUEST_MS = 120_000

SETTINGS: Mapping[str, object] = {
    "process.roles": "controller",
    "node.id": REAL,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": NEVER_MS,
    "unclean.leader.election.interval.ms": NEVER_MS,
    "metadata.max.idle.interval.ms": 0,
    "controller.quorum.append.linger.ms": 0,
    "controller.quorum.election.timeout.ms": ELECTION_MS,
    "controller.quorum.election.backoff.max.ms": 100,
    "controller.quorum.fetch.timeout.ms": FETCH_MS,
    "num.io.threads": 2,
    "num.network.threads": 1,
}

FIRST_SNAPSHOT = "00000000000000000000-0000000000.checkpoint"
TRANSITION = re.compile(r"Completed transition to (\w+?)(?:State)?\(.*?\b[eE]poch=(-?\d+)")
"""The line by which `QuorumState` tells a transition. Kafka: `QuorumState.durableTransitionTo`, `memoryTransitionTo`."""


class ObservedVoter(NamedTuple):
    """A voter as it is seen: its role and epoch in memory; epoch, leader and vote on its disk; and its log there.

    `log`: the epoch of each record; `start`: the offset of the first.
    """

    role: str
    epoch: Epoch
    stored_epoch: Epoch
    leader: int
    voted: int
    log: tuple[Epoch, ...]
    start: Offset = Offset(0)

    @property
    def words(self) -> str:
        """As people read it."""
        parts = [f"{self.role} in epoch {self.epoch}"]
        if self.stored_epoch != self.epoch:
            parts.append(f"epoch {self.stored_epoch} on the disk")
        if self.leader != NO_LEADER:
            parts.append(f"leader {self.leader}")
        if self.voted != NO_LEADER:
            parts.append(f"voted for {self.voted}")
        epochs = sorted(set(self.log))
        kept = ", ".join(f"{self.log.count(epoch)} of epoch {epoch}" for epoch in epochs)
        begins = f" from {self.start} on" if self.start else ""
        return ", ".join([*parts, f"log of {len(self.log)}{begins}" + (f" ({kept})" if kept else "")])


class RealVoter:
    """The process, its port, and its files.

    `request_ms`: how long a request waits for its answer, or for its connection to be closed (milliseconds). `directories`:
    those of the voters, if they are to be in the log (`kraft.version` 1); else they are in the configuration, without.
    """

    def __init__(
        self,
        jars: Jars,
        folder: Path,
        request_ms: int = REQUEST_MS,
        directories: Mapping[BrokerId, DirectoryId] | None = None,
    ) -> None:
        self.process = KafkaProcess(jars, folder, {})
        self.port = free_port()
        self._request_ms = request_ms
        self._directories = directories

    @property
    def _log_folder(self) -> Path:
        return self.process.folder / "data" / "__cluster_metadata-0"

    async def start(self, ports: Mapping[int, int]) -> None:
        """Format the log directory if it is empty, and start the process; `ports`: those of the played voters.

        Raises: `KafkaMissingError`.
        """
        process, folder = self.process, self.process.folder
        folder.mkdir(parents=True, exist_ok=True)
        voters = {one: f"{HOST}:{port}" for one, port in {REAL: self.port, **ports}.items()}
        named = ",".join(f"{one}@{address}" for one, address in voters.items())
        known = {"controller.quorum.voters": named}
        more = list[str]()
        if self._directories is not None:
            known = {"controller.quorum.bootstrap.servers": ",".join(voters.values())}
            told = (f"{one}@{voters[one]}:{uuid_text(bytes(id))}" for one, id in self._directories.items())
            more = ["--initial-controllers", ",".join(told)]
        process.settings = {
            **SETTINGS,
            **known,
            "controller.quorum.request.timeout.ms": self._request_ms,
            "listeners": f"CONTROLLER://{HOST}:{self.port}",
            "log.dirs": folder / "data",
        }
        if not (folder / "data").exists():
            properties = folder / "server.properties"
            write_properties(properties, process.settings)
            await asyncio.to_thread(run_storage_tool, process.jars, JVM_FLAGS, CLUSTER_ID, properties, *more)
        process.start()

    async def kill(self) -> None:
        """End the process."""
        await asyncio.to_thread(self.process.kill)

    def lose_disk(self) -> None:
        """Remove all that the process has written."""
        shutil.rmtree(self.process.folder / "data")

    # ---- what is seen

    def observed(self) -> ObservedVoter | None:
        """The voter as it is, `None` if it has not yet told its first role."""
        found = TRANSITION.findall(self.process.log_text())
        file = self._log_folder / "quorum-state"
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        if not found:
            return None
        role, epoch = found[-1]
        on_disk = (Epoch(stored["leaderEpoch"]), stored["leaderId"], stored["votedId"])
        return ObservedVoter(role.lower(), Epoch(int(epoch)), *on_disk, self.log(), self.start_offset())

    @property
    def has_first_snapshot(self) -> bool:
        """Whether the log directory was formatted with a snapshot at offset 0. Kafka: `Snapshots.BOOTSTRAP_SNAPSHOT_ID`."""
        return (self._log_folder / FIRST_SNAPSHOT).exists()

    def transitions(self) -> int:
        """The number of transitions of the present process so far."""
        return len(TRANSITION.findall(self.process.log_text()))

    def log(self) -> tuple[Epoch, ...]:
        """The epoch of each record in the log."""
        return tuple(Epoch(header.leader_epoch) for header, records in batches_in(self._bytes()) for _ in records)

    def start_offset(self) -> Offset:
        """The offset at which the first segment begins, above 0 only after a snapshot of another voter."""
        return Offset(min((int(one.stem) for one in self._log_folder.glob("*.log")), default=0))

    def batches(self) -> dict[tuple[Offset, Epoch], bytes]:
        """The batches in the log, by their first offset and their epoch."""
        data, found = self._bytes(), {}
        for header, _ in batches_in(data):
            place = (Offset(header.base_offset), Epoch(header.leader_epoch))
            found[place] = data[header.position : header.position + header.size]
        return found

    def _bytes(self) -> bytes:
        try:
            segments = sorted(self._log_folder.glob("*.log"))
            return b"".join(segment.read_bytes() for segment in segments)
        except FileNotFoundError:
            return b""

    def reason_of_end(self) -> str:
        """The exception that ended the process, as its output tells it."""
        lines = self.process.log_text().splitlines()
        told = [line.strip() for line in lines if re.match(r"\s*(Caused by: )?[\w.]+(Exception|Error)\b", line)]
        return told[0] if told else (self.process.last_lines(1) or ["no reason given"])[0]
