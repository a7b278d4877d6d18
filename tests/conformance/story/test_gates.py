"""The gates between nodes, before a node that answers with what it was asked."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from conformance.story.gates import Gates, until
from conformance.story.words import StoryError
from impl.cluster.plan import HOST
from impl.faults.links import CLIENTS
from impl.faults.parcels import LENGTH, Parcel
from tests.impl.cluster.running import free_ports

REQUEST = b"\0\1\0\7request"
"""API 1, version 7."""


def parcel_bytes(frame: bytes) -> bytes:
    return len(frame).to_bytes(LENGTH, "big") + frame


async def read_parcel(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(LENGTH), "big"))


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            writer.write(parcel_bytes(await read_parcel(reader)))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def with_gates(passes: Callable[[Parcel], bool], play: Callable[[Gates, int], Awaitable[None]]) -> None:
    async def run() -> None:
        told = free_ports(2)
        node = await asyncio.start_server(echo, HOST, told + 1)
        gates = Gates({"1": (told, told + 1)}, dict, passes)
        await gates.open()
        try:
            await play(gates, told)
        finally:
            await gates.close()
            node.close()

    asyncio.run(run())


def test_a_parcel_that_may_pass_arrives_and_its_answer_too() -> None:
    parcels: list[Parcel] = []

    def note(parcel: Parcel) -> bool:
        parcels.append(parcel)
        return True

    async def play(gates: Gates, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(parcel_bytes(REQUEST))
        assert await read_parcel(reader) == REQUEST
        writer.close()

    with_gates(note, play)
    told = [(one.source, one.target, one.key, one.version, one.is_answer) for one in parcels]
    assert told == [(CLIENTS, "1", 1, 7, False), (CLIENTS, "1", 1, 7, True)]


def test_a_parcel_waits_until_it_is_released() -> None:
    async def play(gates: Gates, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(parcel_bytes(REQUEST))
        held = await gates.until_held(lambda parcel: not parcel.is_answer, "a request")
        assert not reader.at_eof()
        held.release()
        assert await read_parcel(reader) == REQUEST
        writer.close()

    with_gates(lambda parcel: parcel.is_answer, play)


def test_with_a_parcel_that_is_lost_its_connection_is_lost() -> None:
    async def play(gates: Gates, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(parcel_bytes(REQUEST))
        await gates.until_held(lambda parcel: parcel.is_answer, "an answer")
        gates.lose(lambda parcel: parcel.is_answer)
        assert await reader.read() == b""
        writer.close()

    with_gates(lambda parcel: not parcel.is_answer, play)


def test_a_parcel_whose_sender_has_gone_does_not_arrive() -> None:
    async def play(gates: Gates, port: int) -> None:
        _, writer = await asyncio.open_connection(HOST, port)
        writer.write(parcel_bytes(REQUEST))
        await gates.until_held(lambda parcel: True, "a request")
        writer.close()
        await until(lambda: not gates.held, "it is held no more")

    with_gates(lambda parcel: False, play)


def test_what_is_waited_for_too_long_ends_the_story() -> None:
    with pytest.raises(StoryError, match="a sign: not within 0 s"):
        asyncio.run(until(lambda: False, "a sign", 0))
