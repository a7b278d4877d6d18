"""A controller's core on a simulated disk: requests go in and answers come out, without a socket or a clock."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kspec.cli.broker.serve import rules_of
from kspec.impl.broker.calls import AppendMetadata, Call, Effect, InTurns, Respond, Steps, Then
from kspec.impl.config.controller import ControllerConfig
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.dispatch import controller_handlers
from kspec.impl.controller.timing import start_timers
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.wire.apis import CONTROLLER_APIS
from kspec.impl.wire.frames import framed, read_header
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.values import Message, refused
from kspec.impl.wire.writing import joined
from kspec.spec.controller.state import NOT_STORED
from kspec.spec.metadata import partition_of
from kspec.trials.simulated.disk import SimulatedDisk
from tests.impl.controller.requests import CLUSTER_ID, Moves, answer_of, request_of
from tests.limits.turns import Turns
from tests.times import at_ms

FOLDER = Path("/controller")


class Somewhere:
    """The connection from which the requests come."""

    host = "127.0.0.1"


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
        self.log = MetadataLog(self.disk, FOLDER, at_ms(self.now))
        self.core = ControllerCore(self.config, rules_of(release, None).controller, self.log)
        self.core.cluster_id = CLUSTER_ID
        self.handlers = controller_handlers(self.core)
        self.carry_out(self.core.start(at_ms(self.now)))
        start_timers(self.core, at_ms(self.now))

    def carry_out(self, effects: list[Effect]) -> bool:
        """Carry out effects; whether all records could be stored."""
        for number, effect in enumerate(effects):
            if isinstance(effect, AppendMetadata):
                if self.fails:
                    self.core.not_stored()
                    self._refuse(effects[number + 1 :])
                    return False
                follows = self.core.append(effect.records, at_ms(self.now))
                assert follows is not None, "the only voter leads"
                self.core.stored(effect.records)
                self.carry_out(follows)
            elif isinstance(effect, Then):
                self.carry_out(effect.effects())
            elif isinstance(effect, InTurns):
                self._take_steps(effect.steps)
            else:
                assert isinstance(effect, Respond), effect
                header = effect.call.header
                assert header.api is not None
                parts = framed(header.api, header.version, header.correlation, effect.message)
                self.answers[header.correlation] = joined(parts)[4:]

        return True

    def _take_steps(self, steps: Steps) -> None:
        stored = True
        turns = Turns()
        while True:
            turns.go()
            try:
                stored = self.carry_out(next(steps)) and stored
            except StopIteration as end:
                if stored:
                    self.carry_out(end.value)
                else:
                    self._refuse(end.value)
                return

    def _refuse(self, effects: list[Effect]) -> None:
        refusals = [other for other in effects if isinstance(other, Respond)]
        self.carry_out([Respond(one.call, refused(one.message, NOT_STORED.value)) for one in refusals])

    def send(self, name: str, version: int, message: Message) -> int:
        """Send a request; its number, by which its answer is found."""
        self._sent += 1
        frame = memoryview(request_of(name, version, self._sent, message))
        header = read_header(frame, CONTROLLER_APIS)
        decoded, _ = read_message(f"{name}Request", version, frame, header.body)
        self.carry_out(self.handlers[name](Call(Somewhere(), 0, header, decoded, at_ms(self.now)), at_ms(self.now)))
        return self._sent

    def call(self, name: str, version: int, **fields: Any) -> Message:
        return answer_of(name, version, self.answers.pop(self.send(name, version, Message(**fields))))

    def pass_time(self, ms: int) -> None:
        """Let the time go on, and do what is due."""
        end = self.now + ms
        turns = Turns()
        while True:
            turns.go()
            deadline = self.core.timers.next_deadline()
            if deadline is None or deadline > end:
                break
            self.now = max(self.now, deadline)
            for effects in self.core.timers.due(at_ms(self.now)):
                self.carry_out(effects)
        self.now = end

    def others(self, *brokers: int) -> "list[InProcessPeer]":
        """More brokers, registered and unfenced."""
        return [InProcessPeer(self).join(broker) for broker in brokers]

    def partition(self, topic: str, index: int = 0) -> Any:
        """A partition's registration."""
        found = self.core.image.topics[topic].partitions[index]
        return partition_of(self.core.image.spec, found)


class InProcessPeer(Moves):
    """Another broker of the same controller."""

    def __init__(self, controller: InProcess) -> None:
        self.controller = controller

    def call(self, name: str, version: int, **fields: Any) -> Message:
        return self.controller.call(name, version, **fields)
