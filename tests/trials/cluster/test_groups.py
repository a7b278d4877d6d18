"""Groups on three brokers: what is acknowledged is there, whoever commits beside, and members settle."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from kspec.impl.wire.schema import NO_UUID
from kspec.impl.wire.values import Message
from kspec.trials.cluster.asking import ask_once
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.trials.cluster.group_client import RETRIED, GroupMember, Line, commit, committed, coordinator_of
from tests.trials.cluster.running import RunningCluster, kspec, kspec_program

MEMBERS = 4
SETTLES_S = 30.0
"""So long may members take to settle at most. It is an emergency stop: they take a second."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Three brokers and a controller. Each test has a topic and a group of its own."""
    kspec_program()
    with RunningCluster(tmp_path_factory.mktemp("groups") / "cluster", brokers=3, combined=False) as running:
        yield running


def made(cluster: RunningCluster, topic: str, partitions: int) -> dict[int, tuple[str, int]]:
    """The brokers of a cluster, in which there is a topic of so many partitions now."""
    places = {broker: ("127.0.0.1", cluster.port + broker - 1) for broker in (1, 2, 3)}
    addresses = ",".join(f"{host}:{port}" for host, port in places.values())
    command = ("topics", "--bootstrap-server", addresses, "--create", "--topic", topic, "--replication-factor", "3")
    created = kspec(*command, "--partitions", str(partitions))
    assert created.returncode == 0, created.stderr
    return places


@pytest.mark.slow
@pytest.mark.parametrize("rounds", marked([20, 200], nightly=[200]))
def test_each_acknowledged_commit_is_there_whoever_commits_at_the_same_time(cluster: RunningCluster, rounds: int) -> None:
    topic = f"together-{rounds}"
    asyncio.run(_commit_together(made(cluster, topic, MEMBERS), topic, rounds))


async def _commit_together(places: dict[int, tuple[str, int]], topic: str, rounds: int) -> None:
    group = f"of-{topic}"
    place = await coordinator_of(places, group)
    members = [GroupMember(Line(place), group, topic) for _ in range(MEMBERS)]
    await asyncio.gather(*(member.settle() for member in members))
    reader = Line(place)
    for number in range(1, rounds + 1):
        errors = await asyncio.gather(*(member.commit(index, number) for index, member in enumerate(members)))
        assert set(errors) == {0}
        assert await committed(reader, group, topic, MEMBERS) == dict.fromkeys(range(MEMBERS), number)
    for line in (reader, *(member.line for member in members)):
        line.close()


@pytest.mark.slow
def test_members_that_come_one_after_the_other_settle(cluster: RunningCluster) -> None:
    """Each joins while the one before it may still be on its way through a rebalance."""
    asyncio.run(_join_one_by_one(made(cluster, "joined", MEMBERS)))


async def _join_one_by_one(places: dict[int, tuple[str, int]]) -> None:
    place = await coordinator_of(places, "of-joined")
    members = [GroupMember(Line(place), "of-joined", "joined") for _ in range(6)]
    stop = asyncio.Event()

    async def live(member: GroupMember, after_s: float) -> float:
        """Join, and follow every rebalance until all have settled; how long the first assignment took (s)."""
        await asyncio.sleep(after_s)
        begun = time.monotonic()
        await member.settle()
        took = time.monotonic() - begun
        turns = Turns()
        while not stop.is_set():
            turns.go()
            error = await member.heartbeat()
            if error in (25, 27):
                await member.settle()
            await asyncio.sleep(0.1)
        return took

    lives = [asyncio.create_task(live(member, 0.5 * number)) for number, member in enumerate(members)]
    end = time.monotonic() + SETTLES_S
    turns = Turns()
    while len({member.generation for member in members}) != 1 or not all(member.assignment for member in members):
        turns.go()
        assert time.monotonic() < end, "the members have not settled"
        await asyncio.sleep(0.1)
    stop.set()
    assert max(await asyncio.gather(*lives)) < SETTLES_S
    for member in members:
        member.line.close()


@pytest.mark.slow
def test_offsets_go_with_their_topic_and_groups_with_theirs(cluster: RunningCluster) -> None:
    """A broker of a cluster hears of a deletion by the metadata. Who waits for a group that is gone is told so."""
    asyncio.run(_delete(made(cluster, "t", MEMBERS)))


async def _delete(places: dict[int, tuple[str, int]]) -> None:
    place = await coordinator_of(places, "group")
    line = Line(place)
    turns = Turns()
    while await commit(line, "group", "t", 0, 5) in RETRIED:
        turns.go()
        await asyncio.sleep(0.1)
    assert await committed(line, "group", "t", 1) == {0: 5}
    await ask_once(places[1], "DeleteTopics", 6, topics=[Message(name="t", topic_id=NO_UUID)], timeout_ms=10_000)
    async with asyncio.timeout(SETTLES_S):
        turns = Turns()
        while await committed(line, "group", "t", 1) != {0: -1}:
            turns.go()
            await asyncio.sleep(0.1)
    other = await coordinator_of(places, "other")
    first, waiting = (GroupMember(Line(other), "other", "t") for _ in range(2))
    await first.settle()
    joining = asyncio.create_task(waiting.join())  # and waits until the first one joins again
    await asyncio.sleep(1)
    gone = [Message(name="__consumer_offsets", topic_id=NO_UUID)]
    await ask_once(places[1], "DeleteTopics", 6, topics=gone, timeout_ms=10_000)
    assert await asyncio.wait_for(joining, SETTLES_S) in RETRIED
    for one in (line, first.line, waiting.line):
        one.close()
