"""A controller's core on a simulated disk: requests go in and answers come out, without a socket or a clock."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from impl.broker.calls import AppendMetadata, Call, Effect, Respond, Then
from impl.config.controller import ControllerConfig
from impl.controller.core import ControllerCore
from impl.controller.dispatch import controller_handlers
from impl.controller.features import first_records
from impl.controller.timing import start_timers
from impl.metadata.log import MetadataLog
from impl.storage.simulated_disk import SimulatedDisk
from impl.wire.apis import CONTROLLER_APIS
from impl.wire.frames import framed, read_header
from impl.wire.reading import read_message
from impl.wire.values import Message, refused
from impl.wire.writing import joined
from model_check.cli.broker.serve import rules_of
from spec.controller.topics.cluster import NOT_STORED
from tests.impl.controller.requests import CLUSTER_ID, Moves, answer_of, request_of

FOLDER = Path("/controller")


class Somewhere:
    """Where the requests come from."""

    host = local_host = "127.0.0.1"


class InProcess(Moves):
    """The core, and what a shell does around it. `fails`: from now on the metadata log takes nothing."""

    def __init__(
        self, overrides: Mapping[str, str] | None = None, *, release: str = "next", disk: SimulatedDisk | None = None
    ):
        self.disk = disk or SimulatedDisk()
        self.now = 1_000_000
        self.fails = False
        self.answers: dict[int, bytes] = {}
        self._sent = 0
        given = {"node.id": "100", "controller.quorum.voters": "100@h:9", "listeners": "CONTROLLER://127.0.0.1:9"}
        self.config = ControllerConfig({**given, **(overrides or {})})
        self.disk.make_folder(str(FOLDER))
        self.log = MetadataLog(self.disk, FOLDER, self.now)
        self.log.epoch = max(self.log.epoch, type(self.log.epoch)(1))
        self.core = ControllerCore(self.config, rules_of(release, None).controller, self.log, self.log.image(), self.now)
        self.core.cluster_id = CLUSTER_ID
        self.handlers = controller_handlers(self.core)
        self.core.stored(self.log.begin_epoch(100, self.now), self.now)
        if not self.core.finalized_features:
            self.carry_out(self.core.change_metadata(first_records(self.core)))
        start_timers(self.core, self.now)

    def carry_out(self, effects: list[Effect]) -> None:
        for number, effect in enumerate(effects):
            if isinstance(effect, AppendMetadata):
                if self.fails:
                    self.core.not_stored()
                    refusals = [other for other in effects[number + 1 :] if isinstance(other, Respond)]
                    self.carry_out([Respond(one.call, refused(one.message, NOT_STORED.value)) for one in refusals])
                    return
                self.carry_out(self.core.stored(self.log.append(effect.records, self.now), self.now))
            elif isinstance(effect, Then):
                self.carry_out(effect.effects())
            else:
                assert isinstance(effect, Respond), effect
                header = effect.call.header
                assert header.api is not None
                parts = framed(header.api, header.version, header.correlation, effect.message)
                self.answers[header.correlation] = joined(parts)[4:]

    def send(self, name: str, version: int, message: Message) -> int:
        """Send a request; its number, by which its answer is found."""
        self._sent += 1
        frame = memoryview(request_of(name, version, self._sent, message))
        header = read_header(frame, CONTROLLER_APIS)
        decoded, _ = read_message(f"{name}Request", version, frame, header.body)
        self.carry_out(self.handlers[name](Call(Somewhere(), 0, header, decoded, self.now), self.now))
        return self._sent

    def call(self, name: str, version: int, **fields: Any) -> Message:
        return answer_of(name, version, self.answers.pop(self.send(name, version, Message(**fields))))

    def pass_time(self, ms: int) -> None:
        """Let the time go on, and do what is due."""
        end = self.now + ms
        while True:
            deadline = self.core.timers.next_deadline()
            if deadline is None or deadline > end:
                break
            self.now = max(self.now, deadline)
            self.carry_out(self.core.timers.due(self.now))
        self.now = end

    def others(self, *brokers: int) -> "list[Peer]":
        """More brokers, registered and unfenced."""
        return [Peer(self).join(broker) for broker in brokers]

    def partition(self, topic: str, index: int = 0) -> Any:
        """A partition's registration."""
        found = self.core.image.topics[topic].partitions[index]
        return self.core.cluster.registrations()[found]


class Peer(Moves):
    """Another broker of the same controller."""

    def __init__(self, controller: InProcess) -> None:
        self.controller = controller

    def call(self, name: str, version: int, **fields: Any) -> Message:
        return self.controller.call(name, version, **fields)
