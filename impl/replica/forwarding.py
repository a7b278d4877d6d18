"""What only the controller decides, asked by this broker: clients' requests in envelopes, missing topics, producer ids.

Kafka: `ForwardingManager`, `AutoTopicCreationManager`, `RPCProducerIdManager`.
"""

import ipaddress
from collections.abc import Callable

from impl.broker.calls import CONTROLLER, Ask, Call, Channel, Drop, Effect
from impl.broker.core import Core
from impl.broker.replica import Replica
from impl.replica.isr_changes import IsrChanges
from impl.wire.requests import read_response, request_bytes
from impl.wire.values import DecodeError, Message
from spec.controller.topics.producer_ids import allocated
from spec.messages.alter_partition import AlterPartitionRequest
from spec.messages.producers.allocate_producer_ids import AllocateProducerIdsResponse
from spec.messages.topics.create_topics import DEFAULT, NewTopic
from spec.values import Error, ProducerId

CHANNEL = Channel(CONTROLLER, "forward")
RETRY_MS, MOST_MS = 100, 30_000
"""When a request is repeated that the controller could not be asked, and for how long. Kafka: `request.timeout.ms`."""

ANONYMOUS = b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0\0"
"""Who asks: there is no authentication. Kafka: `DefaultKafkaPrincipalBuilder.serialize`, version 0."""


class RemoteController:
    """The controller, as this broker reaches it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._isr_changes = IsrChanges(core)
        self._creating: set[str] = set()
        self._waiting_for_ids: list[Callable[[int], list[Effect]]] = []

    def ask_for_isr(self, replica: Replica, request: AlterPartitionRequest, now: int) -> list[Effect]:
        """A leader wants another ISR."""
        return self._isr_changes.submit(replica, request, now)

    # ---- clients' requests

    def forward(self, call: Call, now: int) -> list[Effect]:
        """Hand a request on to the controller, and its answer back."""
        assert call.header.api is not None
        name, version = call.header.api.name, call.version
        data = request_bytes(name, version, call.header.correlation, call.message)
        address = ipaddress.ip_address(call.peer.host).packed
        envelope = Message(request_data=data, request_principal=ANONYMOUS, client_host_address=address)
        return self._forward(call, envelope, now + MOST_MS)

    def _forward(self, call: Call, envelope: Message, deadline: int) -> list[Effect]:
        return [
            Ask(CHANNEL, "Envelope", envelope, lambda answer, now: self._answered(call, envelope, deadline, answer, now))
        ]

    def _answered(self, call: Call, envelope: Message, deadline: int, answer: Message | None, now: int) -> list[Effect]:
        unsure = answer is None or Error(answer.error_code) == Error.NOT_CONTROLLER
        if unsure and now < deadline:
            self._core.timers.at(now + RETRY_MS, lambda now: self._forward(call, envelope, deadline))
            return []
        if answer is None or answer.error_code or answer.response_data is None:
            return [Drop(call)]
        assert call.header.api is not None
        try:
            _, message = read_response(call.header.api.name, call.version, memoryview(answer.response_data))
        except DecodeError:
            return [Drop(call)]
        return [call.respond(**message.__dict__)]

    # ---- topics that are missing

    def create_topics(self, topics: list[NewTopic], now: int) -> list[Effect]:
        """Have topics created; nobody waits for the answer. A topic is asked for once at a time."""
        wanted = [topic for topic in topics if topic.name not in self._creating]
        if not wanted:
            return []
        names, config = {topic.name for topic in wanted}, self._core.config
        self._creating |= names

        def answered(answer: Message | None, now: int) -> list[Effect]:
            self._creating -= names
            return []

        message = Message(
            topics=[
                Message(
                    name=topic.name,
                    num_partitions=_given(topic.partitions, config["num.partitions"]),
                    replication_factor=_given(topic.replication_factor, config["default.replication.factor"]),
                    configs=[Message(name=name, value=value) for name, value in topic.configs],
                )
                for topic in wanted
            ],
            timeout_ms=MOST_MS,
        )
        return [Ask(CHANNEL, "CreateTopics", message, answered)]

    # ---- producer ids

    def producer_ids(self, then: Callable[[int], list[Effect]], now: int) -> list[Effect]:
        """Ask for the next block of ids, and go on when it is there, or when there is none to be had."""
        self._waiting_for_ids.append(then)
        if len(self._waiting_for_ids) > 1:
            return []
        message = Message(broker_id=self._core.cluster.self_id, broker_epoch=self._core.broker_epoch)
        return [Ask(CHANNEL, "AllocateProducerIds", message, self._ids_given)]

    def _ids_given(self, answer: Message | None, now: int) -> list[Effect]:
        if answer is not None and answer.error_code == Error.NONE.value:
            first, length = ProducerId(answer.producer_id_start), answer.producer_id_len
            self._core.producer_ids = allocated(AllocateProducerIdsResponse(Error.NONE, first, length))
        waiting, self._waiting_for_ids = self._waiting_for_ids, []
        return [effect for then in waiting for effect in then(now)]


def _given(number: int, default: int) -> int:
    """A number of a new topic, or this broker's own default. **Kafka:** `AutoTopicCreationManager.creatableTopic`."""
    return default if number == DEFAULT else number
