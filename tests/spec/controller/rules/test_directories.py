"""The log directories of replicas."""

from spec.controller.rules.directories import (
    MIGRATING,
    UNASSIGNED,
    assigned_directories,
    check_assignment_to_directory,
    default_directory,
    directories_of,
)
from spec.values import BrokerId, Error

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


def brokers(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


def test_the_directory_of_a_new_replica() -> None:
    assert default_directory((A,)) == A
    assert default_directory((A, B)) == default_directory(None) == UNASSIGNED
    assert default_directory(()) == MIGRATING


def test_who_was_a_replica_keeps_its_directory() -> None:
    assert directories_of(brokers(3, 1), brokers(1, 2), (A, B), lambda broker: C) == (C, A)
    assert directories_of(brokers(1), (), (), lambda broker: C) == (C,)


def test_a_broker_says_where_its_replica_lies() -> None:
    assert assigned_directories(brokers(1, 2), (A, B), BrokerId(2), C) == (A, C)
    errors = [check_assignment_to_directory(replicas, BrokerId(2)) for replicas in (brokers(1, 2), brokers(1), None)]
    assert errors == [Error.NONE, Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION]
