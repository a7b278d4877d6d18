"""The log directories of replicas."""

from kspec.spec.controller.rules.directories import (
    MIGRATING,
    UNASSIGNED,
    assigned_directories,
    check_assignment_to_directory,
    check_directories,
    default_directory,
    directories_of,
    is_reserved,
)
from kspec.spec.controller.rules.features import FeatureLevel
from kspec.spec.values import BrokerId, Error

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


def test_a_directory_is_one_broker_s() -> None:
    level = (FeatureLevel("metadata.version", 17),)
    registered = {BrokerId(1): (A, B)}

    def answer(*directories: bytes, broker: int = 2, finalized: tuple[FeatureLevel, ...] = level) -> Error:
        return check_directories(finalized, BrokerId(broker), directories, registered)

    assert answer(C) == answer(A, B, broker=1) == answer(C, broker=1) == Error.NONE
    for refused in [(), (A,), (C, B), (C, C), (UNASSIGNED,), (C, MIGRATING)]:
        assert answer(*refused) == Error.INVALID_REGISTRATION, refused
        before = (FeatureLevel("another", 20), FeatureLevel("metadata.version", 16))
        assert answer(*refused, finalized=before) == Error.NONE, "before 3.7-IV2 brokers name none"


def test_the_first_hundred_ids_are_reserved() -> None:
    first, last = bytes(16), bytes(15) + b"\x63"
    assert is_reserved(first)
    assert is_reserved(last)
    assert is_reserved(bytes(8) + b"\xff" * 8)
    assert not is_reserved(bytes(15) + b"\x64")
    assert not is_reserved(b"\1" + bytes(15))
