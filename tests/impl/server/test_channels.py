"""Connections to other nodes: what an older one cannot be asked, and how long a silent one is waited for."""

import asyncio
import socket
import time
from collections.abc import Callable

from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.server.network.channels import Channels
from kspec.impl.wire.apis import CONTROLLER_APIS
from kspec.impl.wire.frames import framed
from kspec.impl.wire.requests import sent
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import joined
from kspec.spec.values import Error

WAIT_MS = 200


def answers_of(ask: Callable[[Channels], None], versions: Message | None) -> list[Message | None]:
    """The answers to requests to a node that says which versions it knows, or that says nothing at all."""
    found: list[Message | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        if versions is not None:
            correlation = int.from_bytes(frame[4:8], "big")
            writer.write(joined(framed(CONTROLLER_APIS[sent("ApiVersions").key], 0, correlation, versions)))
        await reader.read()
        writer.close()

    async def talk() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET)
        place = server.sockets[0].getsockname()[:2]
        done = asyncio.Event()

        def answered(asked: Ask, answer: Message | None) -> None:
            found.append(answer)
            done.set()

        channels = Channels(asyncio.get_running_loop(), lambda node: place, 1 << 20, answered)
        ask(channels)
        await asyncio.wait_for(done.wait(), 20)
        channels.close()
        server.close()

    asyncio.run(talk())
    return found


def vote(lowest: int) -> Ask:
    return Ask(ChannelKey(1, "votes"), "Vote", Message(topics=[]), lambda answer, now: [], WAIT_MS, lowest)


def test_a_node_without_the_version_counts_as_one_that_refuses_it() -> None:
    """So a question before an election does not become a vote on its way to an older release."""
    known = Message(error_code=0, api_keys=[Message(api_key=sent("Vote").key, min_version=0, max_version=1)])
    (answer,) = answers_of(lambda channels: channels.ask(vote(2)), known)
    assert answer == Message(error_code=Error.UNSUPPORTED_VERSION.value)


def test_a_silent_node_is_waited_for_as_long_as_the_first_request_may_take() -> None:
    begun = time.monotonic()
    assert answers_of(lambda channels: channels.ask(vote(0)), None) == [None]
    assert time.monotonic() - begun < 10, "and not for as long as a connection may take"


def test_what_waits_for_a_node_that_is_left_gets_no_answer() -> None:
    def ask(channels: Channels) -> None:
        channels.ask(vote(0))
        asyncio.get_running_loop().call_later(0.1, channels.leave, 1, None)

    assert answers_of(ask, None) == [None]
