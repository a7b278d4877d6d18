"""Requests of clients that a broker hands on, each in an envelope with its own header. Kafka: `EnvelopeUtils`."""

from collections.abc import Callable, Mapping
from typing import Any

from impl.broker.calls import Call, Effect, Respond
from impl.wire.apis import CONTROLLER_APIS, FORWARDED
from impl.wire.frames import LENGTH, framed, read_header
from impl.wire.reading import read_message
from impl.wire.values import DecodeError, Message
from impl.wire.writing import joined
from spec.values import Error


class ForwardedCall(Call):
    """A request in an envelope: its answer goes out in the answer to the envelope."""

    __slots__ = ("envelope",)

    def __init__(self, envelope: Call, inner: Call) -> None:
        super().__init__(envelope.peer, envelope.place, inner.header, inner.message, envelope.received_ms)
        self.envelope = envelope

    def respond(self, **fields: Any) -> Respond:
        """The effect of answering with these fields."""
        header = self.header
        assert header.api is not None
        parts = framed(header.api, header.version, header.correlation, Message(**fields))
        content = joined(parts)[LENGTH.size :]
        return Respond(self.envelope, Message(error_code=0, response_data=content))


def envelope_of(handlers: Mapping[str, Callable[[Call, int], list[Effect]]]) -> Callable[[Call, int], list[Effect]]:
    """The handler of envelopes: it opens them, and lets the others answer.

    Who has sent the request is not looked at: nobody is authenticated. **Kafka:** `EnvelopeUtils.handleEnvelopeRequest`.
    """

    def envelope(call: Call, now: int) -> list[Effect]:
        data = memoryview(call.message.request_data)
        try:
            header = read_header(data, CONTROLLER_APIS)
            if header.api is None or header.api.name not in FORWARDED:
                return [_refused(call, Error.INVALID_REQUEST)]
            if header.version not in header.api.known:
                return [_refused(call, Error.UNSUPPORTED_VERSION)]
            message, _ = read_message(f"{header.api.name}Request", header.version, data, header.body)
        except DecodeError:
            return [_refused(call, Error.INVALID_REQUEST)]
        inner = Call(call.peer, call.place, header, message, call.received_ms)
        return handlers[header.api.name](ForwardedCall(call, inner), now)

    return envelope


def _refused(call: Call, error: Error) -> Effect:
    return call.respond(error_code=error.value, response_data=None)
