"""Requests of a broker to itself: handled at once by the function that answers those of others, over no network.

Whoever asks another broker need not know whether it is another one: see `BrokerShell.ask`.
"""

from collections.abc import Callable, Sequence
from itertools import count

from kspec.impl.wire.apis import Api
from kspec.impl.wire.frames import RequestHeader, framed
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.requests import CLIENT_ID, read_response, request_parts, sent
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import Part, joined

LENGTH_END = 4
"""Bytes of a frame before what its length counts."""

HEAD_END = LENGTH_END + 10 + len(CLIENT_ID)
"""Bytes of a request up to the end of its client id."""


class OwnRequest:
    """One request of a broker to itself, in the place of the connection that another's would come on.

    It is encoded and decoded as others are, so that both sides see every field of its version, and nothing more.
    """

    def __init__(self, api: Api, message: Message, taken: Callable[[Message | None], None]) -> None:
        self.host, self.port = "127.0.0.1", 0
        self.last_used = 0.0
        self.closed = False
        self._taken = taken
        self._places = count()
        version = api.offered.last
        self.header = RequestHeader(api.key, version, 0, CLIENT_ID.decode(), api, 0)
        parts = request_parts(sent(api.name), version, 0, message)
        body = HEAD_END + (version in sent(api.name).flexible_request)
        self.message, _ = read_message(f"{api.name}Request", version, memoryview(joined(parts)), body)

    def new_place(self) -> int:
        """The number of its answer."""
        return next(self._places)

    def hold(self) -> None:
        """Do nothing: no request follows."""

    def release(self) -> None:
        """Do nothing, as `hold`."""

    def take(self, message: Message) -> None:
        """Take the answer."""
        api = self.header.api
        assert api is not None
        frame = memoryview(joined(framed(api, self.header.version, 0, message)))
        self._end(read_response(api.name, self.header.version, frame[LENGTH_END:])[1])

    def answer(self, place: int, parts: Sequence[Part]) -> None:
        """Take that there is no answer."""
        self._end(None)

    def close(self) -> None:
        """Take no answer: the request has failed."""
        self._end(None)

    def _end(self, answer: Message | None) -> None:
        if not self.closed:
            self.closed = True
            self._taken(answer)
