"""Connections to other nodes: what an older one cannot be asked, and how long a silent one is waited for."""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.server.network.channels import Channels
from kspec.impl.wire.apis import CONTROLLER_APIS
from kspec.impl.wire.frames import framed
from kspec.impl.wire.requests import sent
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import joined
from kspec.spec.values import Error

WAIT_MS = 200


def answers_of(
    ask: Callable[[Channels], None], versions: Message | None, name: str | None = None, number: int = 1
) -> list[Message | None]:
    """The answers to requests to a node that says which versions it knows, or that says nothing at all.

    `name`: its machine's, by which it is asked; `number`: of answers that are waited for.
    """
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
            if len(found) == number:
                done.set()

        at = (name or place[0], place[1])
        channels = Channels(asyncio.get_running_loop(), lambda node: at, 1 << 20, answered)
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
    assert answers_of(lambda channels: channels.ask(vote(2)), KNOWN) == [REFUSED]


def test_a_silent_node_is_waited_for_as_long_as_the_first_request_may_take() -> None:
    begun = time.monotonic()
    assert answers_of(lambda channels: channels.ask(vote(0)), None) == [None]
    assert time.monotonic() - begun < 10, "and not for as long as a connection may take"


KNOWN = Message(error_code=0, api_keys=[Message(api_key=sent("Vote").key, min_version=0, max_version=1)])
REFUSED = Message(error_code=Error.UNSUPPORTED_VERSION.value)
"""An answer: to a vote of version 2, by a node that knows versions 0 and 1."""


class NameServer:
    """Names of machines, in place of those of the network. `asked`: the names that were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **known: Sequence[str]) -> None:
        self.known, self.asked, self.seconds = known, list[str](), 0.0
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: str, port: int, *_: Any, type: int, flags: int = 0) -> list[Any]:
        if flags or host not in self.known:
            with suppress(socket.gaierror):
                return self._real(host, port, type=type, flags=socket.AI_NUMERICHOST)
            if not flags:
                self.asked.append(host)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        self.asked.append(host)
        time.sleep(self.seconds)
        return [one for address in self.known[host] for one in self._real(address, port, type=type)]


def test_a_name_is_tried_at_each_of_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    names = NameServer(monkeypatch, machine=("::1", "127.0.0.3", "127.0.0.1"))
    assert answers_of(lambda channels: channels.ask(vote(2)), KNOWN, "machine") == [REFUSED]
    assert names.asked == ["machine"]


def test_a_name_that_is_not_known_gets_no_answer_and_is_not_asked_for_again_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = NameServer(monkeypatch)

    def ask(channels: Channels) -> None:
        for number in range(21):
            asyncio.get_running_loop().call_later(0.05 * (number > 0), channels.ask, vote(2))

    assert answers_of(ask, KNOWN, "nobody", 21) == [None] * 21
    assert names.asked == ["nobody"]
    assert [one.getMessage() for one in caplog.records] == ["the name of node 1, nobody, is not known"]


@pytest.mark.parametrize("name", ["two..dots.invalid", f"{'long' * 20}.invalid"])
def test_a_name_that_cannot_be_one_is_not_known(name: str) -> None:
    assert answers_of(lambda channels: channels.ask(vote(2)), KNOWN, name) == [None]


def test_a_name_that_takes_long_stops_nobody_and_comes_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    names = NameServer(monkeypatch, machine=("127.0.0.1",))
    names.seconds = 5 * WAIT_MS / 1000
    turns: list[float] = []

    def ask(channels: Channels) -> None:
        channels.ask(vote(2))
        begun = time.monotonic()
        asyncio.get_running_loop().call_later(0.01, lambda: turns.append(time.monotonic() - begun))

    assert answers_of(ask, KNOWN, "machine") == [None]
    assert turns[0] < names.seconds


def test_what_waits_for_a_node_that_is_left_gets_no_answer() -> None:
    def ask(channels: Channels) -> None:
        channels.ask(vote(0))
        asyncio.get_running_loop().call_later(0.1, channels.leave, 1, None)

    assert answers_of(ask, None) == [None]
