"""The messages of a story that are held, before a node that answers with what it was asked."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kspec.cli.broker.serve import rules_of
from kspec.conformance.story.errors import StoryError
from kspec.conformance.story.messages import ParcelHold, Wanted
from kspec.conformance.story.simulated import SimulatedStoryCluster
from kspec.trials.cluster.plan import HOST
from kspec.trials.cluster.waiting import within
from kspec.trials.faults.links import CLIENTS, Links
from kspec.trials.faults.parcels import LENGTH, Parcel
from tests.limits.turns import Turns
from tests.trials.cluster.running import free_ports

REQUEST = b"\0\1\0\7request"
"""API 1, version 7."""


def parcel_bytes(frame: bytes) -> bytes:
    return len(frame).to_bytes(LENGTH, "big") + frame


async def read_parcel(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(LENGTH), "big"))


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        turns = Turns()
        while True:
            turns.go()
            writer.write(parcel_bytes(await read_parcel(reader)))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def with_hold(passes: Callable[[Parcel], bool], use: Callable[[ParcelHold, int], Awaitable[None]]) -> None:
    async def run() -> None:
        told = free_ports(2)
        node = await asyncio.start_server(echo, HOST, told + 1)
        links, hold = Links({"1": (told, told + 1)}, dict), ParcelHold(passes)
        links.add_hold(hold)
        await links.open()
        try:
            await use(hold, told)
        finally:
            await links.close()
            node.close()

    asyncio.run(run())


async def until_held(hold: ParcelHold, wanted: Wanted) -> Parcel:
    assert await within(60, lambda: any(map(wanted, hold.held)), 0.01)
    return next(filter(wanted, hold.held))


def test_a_parcel_that_may_pass_arrives_and_its_answer_too() -> None:
    parcels: list[Parcel] = []

    def note(parcel: Parcel) -> bool:
        parcels.append(parcel)
        return True

    async def use(hold: ParcelHold, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(parcel_bytes(REQUEST))
        assert await read_parcel(reader) == REQUEST
        writer.close()

    with_hold(note, use)
    told = [(one.source, one.target, one.key, one.version, one.is_answer) for one in parcels]
    assert told == [(CLIENTS, "1", 1, 7, False), (CLIENTS, "1", 1, 7, True)]


def test_a_parcel_waits_until_it_is_released() -> None:
    async def use(hold: ParcelHold, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(parcel_bytes(REQUEST))
        held = await until_held(hold, lambda parcel: not parcel.is_answer)
        assert not reader.at_eof()
        held.release()
        assert await read_parcel(reader) == REQUEST
        writer.close()

    with_hold(lambda parcel: parcel.is_answer, use)


def test_with_a_parcel_that_is_lost_its_connection_is_lost() -> None:
    async def use(hold: ParcelHold, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(parcel_bytes(REQUEST))
        (await until_held(hold, lambda parcel: parcel.is_answer)).lose()
        assert await reader.read() == b""
        writer.close()

    with_hold(lambda parcel: not parcel.is_answer, use)


def test_a_parcel_whose_sender_has_gone_does_not_arrive() -> None:
    async def use(hold: ParcelHold, port: int) -> None:
        _, writer = await asyncio.open_connection(HOST, port)
        writer.write(parcel_bytes(REQUEST))
        await until_held(hold, lambda parcel: True)
        writer.close()
        assert await within(60, lambda: not hold.held)

    with_hold(lambda parcel: False, use)


def test_what_is_waited_for_too_long_ends_the_story() -> None:
    cluster = SimulatedStoryCluster(2, rules_of("next", None), {}, None)
    with pytest.raises(StoryError, match="a sign: not within 3 s"):
        cluster.carried_out(cluster.until(lambda: False, "a sign", 3))
    assert cluster.carried_out(cluster.within(0, lambda: True))
