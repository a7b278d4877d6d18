"""A broker with its controller in the same process: a controller without a listener, and a member, joined in memory.

The member's requests go to the handlers that a controller's listener calls, and clients' requests that others put into
envelopes go to them as they are. One shell carries out what both want, in its order. The metadata log is the controller's:
the broker has no copy, and reads the controller's image, which shows what is on the disk and nothing more.

Kafka: `SharedServer`, which gives one `KafkaRaftManager` to both.
"""

import logging
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from kspec.impl.broker.calls import CONTROLLER, Ask, Call, Effect, Then
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replicas import Replicas
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.dispatch import controller_handlers
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.metadata.records import LogRecord
from kspec.impl.replica.member import ClusterMember
from kspec.impl.server.broker import BrokerShell
from kspec.impl.server.controller import ControllingShell
from kspec.impl.storage import StorageError
from kspec.impl.wire.apis import CONTROLLER_APIS, FORWARDED
from kspec.impl.wire.frames import LENGTH, read_header
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.requests import read_response, request_bytes, sent
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import Part, joined
from kspec.spec.controller.protocol import Controller
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.values import Incarnation, Instant, Offset

LOG = logging.getLogger("kspec.broker")


class LocalMetadata:
    """The metadata log of the controller in this process, the only one. Its image is the broker's, too: all is committed."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self.acted: Callable[[Instant], list[Effect]] = lambda now: []
        self.end_at_start: Offset | None = None

    @property
    def end_offset(self) -> Offset:
        """The end of the log."""
        return self._core.image.spec.end_offset

    def fetch(self, now: Instant) -> list[Effect]:
        """Act on what is there; what comes later is told."""
        self.end_at_start = self.end_offset
        return [Then(lambda: self.acted(now))]


class LocalConnection:
    """The connection of a request of this process to itself. Its answer is read as one that came over a network."""

    host, port, closed = "127.0.0.1", 0, False

    def __init__(self, api: str, version: int, take: Callable[[Message | None], None]) -> None:
        self._api, self._version, self._take = api, version, take

    def answer(self, place: int, parts: list[Part]) -> None:
        """Take the answer."""
        data = memoryview(joined(parts))[LENGTH.size :]
        self._take(read_response(self._api, self._version, data)[1])

    def close(self) -> None:
        """End without an answer."""
        if not self.closed:
            self.closed = True
            self._take(None)

    def hold(self) -> None:
        """Do nothing: no other request comes on it."""

    def release(self) -> None:
        """Do nothing."""


class CombinedShell(ControllingShell, BrokerShell):
    """The shell around a broker and its controller."""

    def __init__(
        self, core: BrokerCore, replicas: Replicas, log: MetadataLog, controller: ControllerCore, member: ClusterMember
    ) -> None:
        super().__init__(core, replicas, log)
        self.controller = controller
        controller.after_commit = self.take_snapshot
        self._member = member
        self._of_controller = controller_handlers(controller)
        self.handlers = {**self.handlers, **{name: self._of_controller[name] for name in FORWARDED}}
        self._events: deque[Callable[[], None]] = deque()
        """Requests to the controller, and its answers, which have not been taken yet."""

    def ask(self, asked: Ask) -> None:
        """A request to the controller stays here."""
        if asked.channel.node == CONTROLLER:
            self._add(partial(self._handle, asked))
        else:
            super().ask(asked)

    def _add(self, event: Callable[[], None]) -> None:
        """Let something happen once what is being carried out is complete."""
        self._events.append(event)
        if self.loop is not None and len(self._events) == 1:
            self.loop.call_soon(self.deliver)

    def deliver(self) -> None:
        """Hand over all requests and answers, also those that follow from them."""
        while self._events:
            self._events.popleft()()
        self.set_timer()

    def _handle(self, asked: Ask) -> None:
        api = sent(asked.api)
        version = CONTROLLER_APIS[api.key].offered.last
        data = memoryview(request_bytes(api.name, version, 0, asked.message))
        header = read_header(data, CONTROLLER_APIS)
        message, _ = read_message(f"{api.name}Request", version, data, header.body)
        connection = LocalConnection(api.name, version, lambda answer: self._add(partial(self._take, asked, answer)))
        call = Call(connection, 0, header, message, self.now())
        try:
            self.carry_out(self._of_controller[api.name](call, call.received))
        except (OSError, StorageError) as error:
            self.fail(error, "a partition cannot be opened or written")
        except Exception:
            LOG.exception("%s to the controller in this process failed", api.name)
            connection.close()

    def _take(self, asked: Ask, answer: Message | None) -> None:
        """Take the controller's answer. By then the registration that it tells of may be gone again."""
        self.answered(asked, answer)
        self.carry_out(self._register_again(self.now()))

    def _register_again(self, now: Instant) -> list[Effect]:
        """A broker that is no longer registered, and lives, registers as another incarnation."""
        return self._member.register_again(Incarnation(uuid.uuid4().int), now)

    def do_what_is_due(self) -> None:
        """Do what is due, one after the other: the controller has a heartbeat before it looks for one."""
        for effects in self.node.timers.due(self.now()):
            self.carry_out(effects)
            self.deliver()

    def metadata_stored(self, records: Sequence[LogRecord]) -> list[Effect]:
        """The controller goes on, and so does the broker."""
        now = self.now()
        self.controller.stored(records)
        return [*self._member.metadata.acted(now), *self._register_again(now)]


def new_controller(
    core: BrokerCore, rules: Controller, log: MetadataLog, now: Instant, quorum: QuorumProtocol | None = None
) -> ControllerCore:
    """The controller in the process of a broker, whose timers and endpoint it shares.

    The lock on the folder shows that no other process of this broker is alive: its session is long over.
    """
    long_ago = now.after(-core.config.number("broker.session.timeout.ms") - 1)
    controller = ControllerCore(core.config, rules, log, quorum=quorum)
    controller.heard_ms = long_ago
    controller.cluster_id = core.cluster_id
    controller.use_timers(core.timers)
    at = core.cluster.endpoint
    controller.listener, controller.host, controller.port = at.name, at.host, at.port
    core.cluster.use_image(controller.image)
    core.features = controller.supported_features
    return controller
