"""A coordinator reads a long log of groups while others are served, and tells its members to come again."""

from pathlib import Path

import pytest

from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.limits.turns import Turns

PARTITIONS, ROUNDS = 500, 120
LEAST_SERVED = 2
"""Requests of a neighbour that are answered at least while a log is read: without a thread of its own, none would be."""


TRIES = 4
"""Starts until the neighbour is served so often: the machine may be busy."""


def commit(client: BrokerClient, group: str, offset: int) -> set[int]:
    partitions = [
        Message(partition_index=index, committed_offset=offset, committed_metadata="m") for index in range(PARTITIONS)
    ]
    topics = [Message(name="t", partitions=partitions)]
    given = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    answer = client.call("OffsetCommit", 7, **given, topics=topics)
    return {one.error_code for one in answer.topics[0].partitions}


def fetched(client: BrokerClient, group: str) -> tuple[Error, set[int]]:
    answer = client.call("OffsetFetch", 7, group_id=group, topics=None, require_stable=False)
    return Error(answer.error_code), {one.committed_offset for topic in answer.topics for one in topic.partitions}


@pytest.mark.slow
def test_a_neighbour_is_served_while_groups_are_read(tmp_path: Path) -> None:
    settings = ("offsets.topic.num.partitions=1", "offsets.topic.segment.bytes=104857600")
    with BrokerProcess(tmp_path / "logs", overrides=settings, traced=False) as broker:
        with BrokerClient(broker.port) as client:
            client.create("t", PARTITIONS)
            wait_until(lambda: client.call("FindCoordinator", 3, key="g", key_type=0).error_code == 0)
            wait_until(lambda: commit(client, "g", 0) == {0})
            for number in range(1, ROUNDS):
                assert commit(client, "g", number) == {0}
        served: list[int] = []
        for _ in range(TRIES):
            broker.kill()
            broker.start()
            served.append(served_while_read(broker))
            if served[-1] >= LEAST_SERVED:
                break
    assert served[-1] >= LEAST_SERVED, served


def served_while_read(broker: BrokerProcess) -> int:
    """The number of requests of a neighbour that are answered while the log of groups is read."""
    served, seen, turns = 0, set(), Turns()
    with BrokerClient(broker.port) as client, BrokerClient(broker.port) as neighbour:
        while True:
            turns.go()
            error, offsets = fetched(client, "g")
            seen.add(error)
            if error == Error.NONE:
                break
            assert error in (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR)
            listed = neighbour.call("ListGroups", 0)
            assert (Error(listed.error_code), listed.groups) in [
                (Error.COORDINATOR_LOAD_IN_PROGRESS, []),
                (Error.NONE, listed.groups),
            ]
            served += error == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert offsets == {ROUNDS - 1}
    assert Error.COORDINATOR_LOAD_IN_PROGRESS in seen
    return served
