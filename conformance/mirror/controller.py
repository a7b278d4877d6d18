"""A real Apache Kafka controller: one process, which believes in brokers that are played here.

It is formatted by Kafka's own `StorageTool`, forms a quorum of one, and listens on loopback. What it writes to
`__cluster_metadata` is fetched as an observer fetches it. One process serves any number of runs, one topic for each.
"""

import asyncio
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from kspec.conformance.kafka.codec import Codec, batches_in
from kspec.conformance.kafka.codec import MetadataRecord as Written
from kspec.conformance.kafka.jars import Jars, java
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.kafka.process import CLUSTER_ID, HOST, KafkaProcess, free_port, write_properties
from kspec.conformance.mirror.taking import PARTITION, MirroredAnswer, MirroredRequest
from kspec.conformance.mirror.translation import (
    OtherRecord,
    RequestContext,
    answer_in_words_of_spec,
    on_the_wire,
    record_in_words_of_spec,
)
from kspec.impl.wire.values import Message
from kspec.spec.metadata import EMPTY_IMAGE, MetadataImage, MetadataRecord, replay
from kspec.spec.values import Offset

NODE = 100
OBSERVER = 1
METADATA_TOPIC = bytes(15) + b"\1"
FETCH_BYTES = 1 << 22
START_SECONDS = 90.0
ANSWER_SECONDS = 30.0
NEVER_MS = 1 << 30
CONTROLLER_REGISTERED = "RegisterControllerRecord"
"""The last record that a controller writes by itself, after it has become active."""

ELR_FEATURE = "eligible.leader.replicas.version"

SETTINGS: Mapping[str, object] = {
    "process.roles": "controller",
    "node.id": NODE,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
    # No session ends, and no election happens, but by a request.
    "broker.session.timeout.ms": NEVER_MS,
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.interval.ms": NEVER_MS,
    # No record is written but by a request, and at once.
    "metadata.max.idle.interval.ms": 0,
    "controller.quorum.append.linger.ms": 0,
    "num.io.threads": 2,
    "num.network.threads": 1,
}

Record: TypeAlias = MetadataRecord | OtherRecord
"""A record of the metadata log in words of `spec`, or one that `spec` does not have."""


class ControllerDiedError(Exception):
    """The controller ended, or did not answer: one line."""


class ControllerUnderTest:
    """The controller, connections to it, and the metadata log as far as it has been read."""

    def __init__(self, jars: Jars, folder: Path, *, eligible_leader_replicas: bool) -> None:
        self.codec = Codec(jars)
        self.process = KafkaProcess(jars, folder, {})
        self.eligible_leader_replicas = eligible_leader_replicas
        self.image: MetadataImage = EMPTY_IMAGE
        self.features: tuple[tuple[str, int, int], ...] = ()
        self._topic: tuple[str, tuple[tuple[str, str], ...], bytes] = ("", (), bytes(16))
        self._asking: NodeConnection | None = None
        self._reading: NodeConnection | None = None
        self._epochs = (0, 0)
        self._end = Offset(0)
        self._registered = False

    # ---- start and end

    async def start(self) -> None:
        """Format the log directory, start the process, and wait until the controller is active.

        Raises: `ControllerDiedError`, `KafkaMissingError`.
        """
        folder, port = self.process.folder, free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.process.settings = {
            **SETTINGS,
            "controller.quorum.voters": f"{NODE}@{HOST}:{port}",
            "listeners": f"CONTROLLER://{HOST}:{port}",
            "log.dirs": folder / "data",
        }
        write_properties(folder / "server.properties", self.process.settings)
        await asyncio.to_thread(self._format, folder / "server.properties")
        self.process.start()
        try:
            await asyncio.wait_for(self._become_active(port), START_SECONDS)
        except TimeoutError:
            raise self._died(f"is not active after {START_SECONDS:g} s") from None

    def _format(self, properties: Path) -> None:
        """**Kafka:** `StorageTool format`; features are chosen here and never changed."""
        jars = self.process.jars
        path = ":".join(map(str, jars.class_path))
        command = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", path]
        command += ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
        if not jars.release.startswith("3."):
            command += ["--feature", f"{ELR_FEATURE}={int(self.eligible_leader_replicas)}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines() or ["no reason given"]
            raise ControllerDiedError(f"Kafka {jars.release} does not format its log directory: {lines[-1]}")

    async def _become_active(self, port: int) -> None:
        while True:
            if not self.process.running:
                raise self._died("ended at its start")
            try:
                self._asking = await NodeConnection.open(self.codec, port)
                self._reading = await NodeConnection.open(self.codec, port)
                break
            except ConnectionError:
                await asyncio.sleep(0.05)
        while not self._registered or not await self._features():
            await self.written()
            await asyncio.sleep(0.02)

    async def _features(self) -> bool:
        """The features that a broker must support; none while the controller is not active."""
        versions = Message(client_software_name="kspec", client_software_version="1")
        answer = await self._ask("ApiVersions", 4, versions)
        if not answer.finalized_features:
            return False
        self.features = tuple(
            (feature.name, feature.min_version, feature.max_version) for feature in answer.supported_features
        )
        return True

    async def close(self) -> None:
        """End the process, and close the connections."""
        for connection in (self._asking, self._reading):
            if connection is not None:
                await connection.close()
        await asyncio.to_thread(self.process.kill)

    def _died(self, how: str) -> ControllerDiedError:
        lines = self.process.last_lines(1)
        return ControllerDiedError(f"the controller {how}" + "".join(f": {line}" for line in lines))

    # ---- requests

    def use_topic(self, name: str, settings: Mapping[str, str]) -> None:
        """Requests are about this topic from now on. It is created by a request with these settings."""
        self._topic = (name, tuple(settings.items()), bytes(16))

    async def answer(self, request: MirroredRequest) -> MirroredAnswer:
        """Send a request, and wait for the answer. Raises: `ControllerDiedError`."""
        name, settings, topic_id = self._topic
        place = RequestContext(CLUSTER_ID, name, topic_id, settings, self.features)
        sent = on_the_wire(request, place)
        return answer_in_words_of_spec(request, await self._ask(sent.api, sent.version, sent.message))

    async def remove_topic(self) -> None:
        """Delete the topic of the last run, if it was created."""
        name, settings, topic_id = self._topic
        if topic_id != bytes(16):
            deleted = Message(topics=[Message(name=None, topic_id=topic_id)], timeout_ms=int(ANSWER_SECONDS * 1000))
            await self._ask("DeleteTopics", 6, deleted)
            self._topic = (name, settings, bytes(16))
        await self.written()
        self.image = self.image._replace(partitions=(), following_partition=PARTITION, topics=EMPTY_IMAGE.topics)

    async def _ask(self, api: str, version: int, message: Message, *, reading: bool = False) -> Message:
        connection = self._reading if reading else self._asking
        assert connection is not None, "the controller has been started"
        try:
            return await connection.ask(api, version, message, ANSWER_SECONDS)
        except ConnectionError:
            raise self._died("closed the connection") from None
        except TimeoutError:
            raise self._died(f"did not answer {api} in {ANSWER_SECONDS:g} s") from None

    # ---- the metadata log

    async def written(self) -> tuple[Record, ...]:
        """The records that have been written since the last call, as far as `spec` has such records."""
        records: list[Record] = []
        while True:
            found = await self._fetch()
            if not found:
                return tuple(records)
            for one in found:
                self._note_topic(one)
                self._registered |= one.name == CONTROLLER_REGISTERED
                record = record_in_words_of_spec(one)
                at = self.image._replace(end_offset=Offset(one.offset))
                if record is not None:
                    records.append(record)
                if record is None or isinstance(record, OtherRecord):
                    self.image = at._replace(end_offset=Offset(one.offset + 1))
                else:
                    self.image = replay(at, record)
            self.image = self.image._replace(end_offset=self._end)

    def _note_topic(self, written: Written) -> None:
        name, settings, _ = self._topic
        if written.name == "TopicRecord" and written.message.name == name:
            self._topic = (name, settings, written.message.topic_id)

    async def _fetch(self) -> list[Written]:
        """One fetch of an observer."""
        controller_epoch, last_epoch = self._epochs
        partition = Message(
            partition=0,
            current_leader_epoch=controller_epoch,
            fetch_offset=self._end,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=FETCH_BYTES,
        )
        request = Message(
            cluster_id=CLUSTER_ID,
            replica_state=Message(replica_id=OBSERVER, replica_epoch=-1),
            max_wait_ms=0,
            topics=[Message(topic_id=METADATA_TOPIC, partitions=[partition])],
        )
        answer = await self._ask("Fetch", 17, request, reading=True)
        if answer.error_code or not answer.responses:
            return []
        (part,) = answer.responses[0].partitions
        if part.current_leader is not None:
            controller_epoch = max(controller_epoch, part.current_leader.leader_epoch)
        data = bytes(part.records or b"")
        for header, _ in batches_in(data):
            self._end, last_epoch = header.next_offset, header.leader_epoch
        self._epochs = (controller_epoch, last_epoch)
        return self.codec.metadata_in(data)
