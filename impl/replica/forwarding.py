"""Requests of this broker that only the controller decides: clients' requests in envelopes, missing topics, producer ids.

Kafka: `ForwardingManager`, `AutoTopicCreationManager`, `RPCProducerIdManager`.
"""

import ipaddress
from collections.abc import Callable
from functools import partial

from kspec.impl.broker.calls import CONTROLLER, TURN_SIZE, Ask, Call, ChannelKey, Drop, Effect, aside
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.replica.isr_changes import IsrChanges
from kspec.impl.wire.requests import read_response, request_bytes
from kspec.impl.wire.values import DecodeError, Message
from kspec.spec.controller.topics.producer_ids import allocated
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.messages.producers.allocate_producer_ids import AllocateProducerIdsResponse
from kspec.spec.messages.topics.create_topics import DEFAULT, NewTopic
from kspec.spec.values import Error, Instant, MonotonicMs, ProducerId

CHANNEL = ChannelKey(CONTROLLER, "forward")
RETRY_MS, MOST_MS = 100, 30_000
"""The pause before a retry of a request that did not reach the controller; the timeout. Kafka: `request.timeout.ms`."""

ANONYMOUS = b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0\0"
"""The principal of every request, without authentication. Kafka: `DefaultKafkaPrincipalBuilder.serialize`, version 0."""


LARGE_ANSWER = 64 << 10
"""Bytes from which the controller's answer to a client is read in a thread."""


def _read_answer(api: str, version: int, data: memoryview) -> Message | None:
    try:
        return read_response(api, version, data)[1]
    except DecodeError:
        return None


class RemoteController:
    """The controller, as this broker reaches it: by requests."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._isr_changes = IsrChanges(core)
        self._creating: set[str] = set()
        self._waiting_for_ids: list[Callable[[Instant], list[Effect]]] = []

    def ask_for_isr(self, replica: Replica, request: AlterPartitionRequest, now: Instant) -> list[Effect]:
        """A leader wants another ISR."""
        return self._isr_changes.submit(replica, request, now)

    # ---- clients' requests

    def forward(self, call: Call, now: Instant) -> list[Effect]:
        """Hand a request on to the controller, and its answer back."""
        assert call.header.api is not None
        write = partial(request_bytes, call.header.api.name, call.version, call.header.correlation, call.message)
        if any(isinstance(value, list) and len(value) > TURN_SIZE for value in call.message.__dict__.values()):
            return [aside(call, write, lambda data, later: self._put_in(call, data, later))]
        return self._put_in(call, write(), now)

    def _put_in(self, call: Call, data: bytes, now: Instant) -> list[Effect]:
        address = ipaddress.ip_address(call.peer.host).packed
        envelope = Message(request_data=data, request_principal=ANONYMOUS, client_host_address=address)
        return self._forward(call, envelope, now.after(MOST_MS))

    def _forward(self, call: Call, envelope: Message, deadline: MonotonicMs) -> list[Effect]:
        return [
            Ask(CHANNEL, "Envelope", envelope, lambda answer, now: self._answered(call, envelope, deadline, answer, now))
        ]

    def _answered(
        self, call: Call, envelope: Message, deadline: MonotonicMs, answer: Message | None, now: Instant
    ) -> list[Effect]:
        unsure = answer is None or Error(answer.error_code) == Error.NOT_CONTROLLER
        if unsure and now.monotonic < deadline:
            self._core.timers.at(now.after(RETRY_MS), lambda now: self._forward(call, envelope, deadline))
            return []
        if answer is None or answer.error_code or answer.response_data is None:
            return [Drop(call)]
        assert call.header.api is not None
        size = len(answer.response_data)
        read = partial(_read_answer, call.header.api.name, call.version, memoryview(answer.response_data))
        if size > LARGE_ANSWER:
            return [aside(call, read, lambda found, _: self._hand_back(call, found, is_long=True))]
        return self._hand_back(call, read(), is_long=False)

    def _hand_back(self, call: Call, message: Message | None, is_long: bool) -> list[Effect]:
        return [Drop(call) if message is None else call.respond(**message.__dict__).long_if(is_long)]

    # ---- topics that are missing

    def create_topics(self, topics: list[NewTopic], now: Instant) -> list[Effect]:
        """Have topics created; nobody waits for the answer. A topic is asked for once at a time."""
        wanted = [topic for topic in topics if topic.name not in self._creating]
        if not wanted:
            return []
        names, config = {topic.name for topic in wanted}, self._core.config
        self._creating |= names

        def answered(answer: Message | None, now: Instant) -> list[Effect]:
            self._creating -= names
            return []

        message = Message(
            topics=[
                Message(
                    name=topic.name,
                    num_partitions=_given(topic.partitions, config.number("num.partitions")),
                    replication_factor=_given(topic.replication_factor, config.number("default.replication.factor")),
                    configs=[Message(name=name, value=value) for name, value in topic.configs],
                )
                for topic in wanted
            ],
            timeout_ms=MOST_MS,
        )
        return [Ask(CHANNEL, "CreateTopics", message, answered)]

    # ---- producer ids

    def producer_ids(self, then: Callable[[Instant], list[Effect]], now: Instant) -> list[Effect]:
        """Ask for the next block of ids, and go on when it is there, or when there is none to be had."""
        self._waiting_for_ids.append(then)
        return [] if len(self._waiting_for_ids) > 1 else self._ask_for_ids(now)

    def _ask_for_ids(self, now: Instant) -> list[Effect]:
        message = Message(broker_id=self._core.cluster.self_id, broker_epoch=self._core.broker_epoch)
        return [Ask(CHANNEL, "AllocateProducerIds", message, self._ids_given)]

    def _ids_given(self, answer: Message | None, now: Instant) -> list[Effect]:
        if answer is not None and answer.error_code == Error.NOT_CONTROLLER.value:
            self._core.timers.at(now.after(RETRY_MS), self._ask_for_ids)
            return []
        if answer is not None and answer.error_code == Error.NONE.value:
            first, length = ProducerId(answer.producer_id_start), answer.producer_id_len
            self._core.producer_ids = allocated(AllocateProducerIdsResponse(Error.NONE, first, length))
        waiting, self._waiting_for_ids = self._waiting_for_ids, []
        return [effect for then in waiting for effect in then(now)]


def _given(number: int, default: int) -> int:
    """A number of a new topic, or this broker's own default. **Kafka:** `AutoTopicCreationManager.creatableTopic`."""
    return default if number == DEFAULT else number
