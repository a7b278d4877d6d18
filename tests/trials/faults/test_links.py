"""Links between processes: who comes is known by the process, and what is cut or held arrives when that is over."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kspec.conformance.kafka.process import free_port
from kspec.impl.wire.requests import sent
from kspec.trials.faults.links import CLIENTS, Links, owner_of
from kspec.trials.faults.parcels import read_frame, with_length
from tests.limits.turns import Turns

LINUX = sys.platform == "linux"
pytestmark = pytest.mark.skipif(not LINUX, reason="NOT RUN: the process of a connection is read in /proc, which Linux has")

SOON_S, LIMIT_S = 0.3, 30.0
"""The wait for messages that must not arrive; the longest wait for those that must."""

OTHER = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as other:
    for line in sys.stdin:
        frame = line.encode()
        other.sendall(len(frame).to_bytes(4, "big") + frame)
        length = int.from_bytes(other.recv(4, socket.MSG_WAITALL), "big")
        print(other.recv(length, socket.MSG_WAITALL).decode(), end="", flush=True)
"""


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        turns = Turns()
        while True:
            turns.go()
            writer.write(with_length(b"back " + await read_frame(reader)))
    writer.close()


@asynccontextmanager
async def linked(pids: Callable[[], dict[str, int]] = dict) -> AsyncIterator[tuple[Links, int]]:
    """A node that echoes, behind its proxy; the port that is told."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    told = free_port()
    links = Links({"node": (told, server.sockets[0].getsockname()[1])}, pids)
    await links.open()
    try:
        yield links, told
    finally:
        await links.close()
        server.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, LIMIT_S))


async def answer(reader: asyncio.StreamReader, seconds: float) -> bytes | None:
    try:
        return await asyncio.wait_for(read_frame(reader), seconds)
    except TimeoutError:
        return None


async def line(reader: asyncio.StreamReader, seconds: float) -> bytes | None:
    try:
        return await asyncio.wait_for(reader.readuntil(b"\n"), seconds)
    except TimeoutError:
        return None


def test_the_process_at_the_other_end_of_a_connection_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as mine:
            own = mine.getsockname()[1]
            assert owner_of(own, port, {"1": os.getppid(), "me": os.getpid()}) == "me"
            assert owner_of(own, port, {"1": os.getppid(), "gone": 2**22}) == CLIENTS
    assert owner_of(1, 1, {"me": os.getpid()}) == CLIENTS


@pytest.mark.parametrize("link", [(CLIENTS, "node"), ("node", CLIENTS)])
def test_what_is_cut_arrives_when_it_is_mended(link: tuple[str, str]) -> None:
    async def work() -> None:
        async with linked() as (links, told):
            reader, writer = await asyncio.open_connection("127.0.0.1", told)
            writer.write(with_length(b"one\n"))
            assert await answer(reader, LIMIT_S) == b"back one\n"
            links.cut([link])
            writer.write(with_length(b"two\n"))
            assert await answer(reader, SOON_S) is None
            links.mend([link])
            assert await answer(reader, LIMIT_S) == b"back two\n"
            writer.close()

    run(work())


def test_who_connects_through_a_cut_waits() -> None:
    async def work() -> None:
        async with linked() as (links, told):
            links.cut([(CLIENTS, "node")])
            reader, writer = await asyncio.open_connection("127.0.0.1", told)
            writer.write(with_length(b"one\n"))
            assert await answer(reader, SOON_S) is None
            links.mend()
            assert await answer(reader, LIMIT_S) == b"back one\n"
            writer.close()

    run(work())


def test_a_cut_between_two_nodes_is_none_for_clients() -> None:
    async def work() -> None:
        other: dict[str, int] = {}
        async with linked(lambda: other) as (links, told):
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", OTHER, str(told), stdin=pipe, stdout=pipe)
            other["other"] = process.pid
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"one\n")
            assert await line(process.stdout, LIMIT_S) == b"back one\n"
            links.cut([("other", "node"), ("node", "other")])
            process.stdin.write(b"two\n")
            reader, writer = await asyncio.open_connection("127.0.0.1", told)
            writer.write(with_length(b"mine\n"))
            assert await answer(reader, LIMIT_S) == b"back mine\n"
            assert await line(process.stdout, SOON_S) is None
            links.mend()
            assert await line(process.stdout, LIMIT_S) == b"back two\n"
            writer.close()
            process.stdin.close()
            await asyncio.wait_for(process.wait(), LIMIT_S)

    run(work())


def test_a_node_that_is_not_there_closes_the_connection() -> None:
    async def work() -> None:
        links = Links({"node": (told := free_port(), free_port())}, dict)
        await links.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", told)
        assert await reader.read() == b""
        writer.close()
        await links.close()

    run(work())


def asks(api: str, text: bytes) -> bytes:
    """A request of an API, as far as a proxy reads it."""
    return with_length(sent(api).key.to_bytes(2, "big") + b"\0\0" + text)


def test_what_is_held_waits_while_another_api_passes_on_its_own_connection() -> None:
    async def work() -> None:
        async with linked() as (links, told):
            hold = links.hold(CLIENTS, "node", "Fetch")
            fetcher, fetches = await asyncio.open_connection("127.0.0.1", told)
            other, writes = await asyncio.open_connection("127.0.0.1", told)
            fetches.write(asks("Fetch", b"one"))
            writes.write(asks("Produce", b"two"))
            assert (await answer(other, LIMIT_S) or b"").endswith(b"two")
            assert await answer(fetcher, SOON_S) is None
            assert len(hold.held) == links.holds_now == 1
            hold.let_go()
            assert (await answer(fetcher, LIMIT_S) or b"").endswith(b"one")
            assert links.holds_now == 0
            fetches.close()
            writes.close()

    run(work())


def test_held_answers_are_released_one_by_one_or_lost_with_their_connection() -> None:
    async def work() -> None:
        async with linked() as (links, told):
            hold = links.hold(CLIENTS, "node", "Fetch", answers=True)
            reader, writer = await asyncio.open_connection("127.0.0.1", told)
            writer.write(asks("Fetch", b"one") + asks("Fetch", b"two"))
            assert await answer(reader, SOON_S) is None
            hold.release_one()
            assert (await answer(reader, LIMIT_S) or b"").endswith(b"one")
            assert await answer(reader, SOON_S) is None
            hold.lose()
            with pytest.raises(asyncio.IncompleteReadError):
                await answer(reader, LIMIT_S)
            writer.close()

    run(work())


def test_a_held_request_arrives_though_its_sender_has_gone() -> None:
    came: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            turns = Turns()
            while True:
                turns.go()
                came.append(await read_frame(reader))
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(note, "127.0.0.1", 0)
        told = free_port()
        links = Links({"node": (told, server.sockets[0].getsockname()[1])}, dict)
        await links.open()
        hold = links.hold(CLIENTS, "node", "Produce", most=1)
        _, writer = await asyncio.open_connection("127.0.0.1", told)
        writer.write(asks("Produce", b"early"))
        turns = Turns()
        while not hold.held:
            turns.go()
            await asyncio.sleep(0.01)
        writer.close()
        _, second = await asyncio.open_connection("127.0.0.1", told)
        second.write(asks("Produce", b"late"))
        turns = Turns()
        while not came:
            turns.go()
            await asyncio.sleep(0.01)
        hold.let_go()
        turns = Turns()
        while len(came) < 2:
            turns.go()
            await asyncio.sleep(0.01)
        second.close()
        await links.close()
        server.close()

    run(work())
    assert [text[4:] for text in came] == [b"late", b"early"]
