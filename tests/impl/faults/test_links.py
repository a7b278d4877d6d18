"""Links between processes: who comes is known by the process, and what is cut arrives when it is mended."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from conformance.kafka.process import free_port
from impl.faults.links import CLIENTS, Links, owner_of

LINUX = sys.platform == "linux"
pytestmark = pytest.mark.skipif(not LINUX, reason="NOT RUN: who opens a connection is read in /proc, which Linux has")

SOON_S, LIMIT_S = 0.3, 30.0
"""How long is waited for what must not come; an emergency stop for what must."""

OTHER = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as other:
    for line in sys.stdin:
        other.sendall(line.encode())
        print(other.recv(100).decode(), end="", flush=True)
"""


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(b"back " + data)
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
            writer.write(b"one\n")
            assert await answer(reader, LIMIT_S) == b"back one\n"
            links.cut([link])
            writer.write(b"two\n")
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
            writer.write(b"one\n")
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
            assert await answer(process.stdout, LIMIT_S) == b"back one\n"
            links.cut([("other", "node"), ("node", "other")])
            process.stdin.write(b"two\n")
            reader, writer = await asyncio.open_connection("127.0.0.1", told)
            writer.write(b"mine\n")
            assert await answer(reader, LIMIT_S) == b"back mine\n"
            assert await answer(process.stdout, SOON_S) is None
            links.mend()
            assert await answer(process.stdout, LIMIT_S) == b"back two\n"
            writer.close()
            process.stdin.close()
            await process.wait()

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
