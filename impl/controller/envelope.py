"""Requests of clients that a broker hands on, each in an envelope with its own header. Kafka: `EnvelopeUtils`."""

import struct
from collections.abc import Mapping

from kspec.impl.broker.calls import Call, Effect, RequestHandler, Respond
from kspec.impl.wire.apis import CONTROLLER_APIS, FORWARDED
from kspec.impl.wire.frames import LENGTH, framed, read_header
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.values import DecodeError, Message
from kspec.impl.wire.writing import joined
from kspec.spec.broker.clients.versions import check_forwarded
from kspec.spec.values import Error, Instant

OF_THE_QUORUM = frozenset({"AddRaftVoter", "RemoveRaftVoter"})
"""The requests that the quorum answers: their answers rest on nothing that this controller has decided, and it may lead no
more when they come.
"""


class ForwardedCall(Call):
    """A request in an envelope: its answer goes out in the answer to the envelope."""

    __slots__ = ("envelope",)

    def __init__(self, envelope: Call, inner: Call) -> None:
        super().__init__(envelope.peer, envelope.place, inner.header, inner.message, envelope.received)
        self.envelope = envelope

    def respond(self, **fields: object) -> Respond:
        """The effect of answering with these fields."""
        header = self.header
        assert header.api is not None
        parts = framed(header.api, header.version, header.correlation, Message(**fields))
        content = joined(parts)[LENGTH.size :]
        return Respond(self.envelope, Message(error_code=0, response_data=content))


def envelope_of(handlers: Mapping[str, RequestHandler]) -> RequestHandler:
    """The handler of envelopes: it opens them, and lets the others answer.

    Nobody is authenticated, so of who asks only the form is looked at. **Kafka:** `EnvelopeUtils.handleEnvelopeRequest`.
    """

    def envelope(call: Call, now: Instant) -> list[Effect]:
        data = memoryview(call.message.request_data)
        principal = bytes(call.message.request_principal or b"")[: PRINCIPAL_VERSION.size] == PRINCIPAL_VERSION.pack(0)
        header, message = None, None
        try:
            header = read_header(data, CONTROLLER_APIS)
            if header.api is not None and header.version in header.api.known:
                message, _ = read_message(f"{header.api.name}Request", header.version, data, header.body)
        except DecodeError:
            header = None
        api = None if header is None else header.api
        known = header is not None and api is not None and header.version in api.known
        error = check_forwarded(principal, header is not None, api is not None and api.name in FORWARDED, known)
        if header is None or api is None or message is None or error != Error.NONE:
            return [call.respond(error_code=error.value, response_data=None)]
        if api.name in OF_THE_QUORUM:
            call.term = None
        inner = Call(call.peer, call.place, header, message, call.received)
        return handlers[api.name](ForwardedCall(call, inner), now)

    return envelope


PRINCIPAL_VERSION = struct.Struct(">h")
"""With which who asks begins. Kafka: `DefaultKafkaPrincipalBuilder.serialize`."""
