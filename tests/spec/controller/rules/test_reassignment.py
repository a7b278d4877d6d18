"""Limits of a reassignment."""

import pytest

from kspec.spec.controller.rules.reassignment import (
    check_reassignment,
    check_replication_factor,
    reverted,
    wrong_with_assignment,
)
from kspec.spec.metadata import NOBODY, BrokerRegistration, PartitionRegistration
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Error, Incarnation, PartitionEpoch
from tests.places import REPOSITORY
from tests.spec.controller_driver import ids


def partition(*replicas: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()) -> PartitionRegistration:
    assigned = tuple(map(BrokerId, replicas))
    registration = PartitionRegistration(assigned, NOBODY, assigned[0], Epoch(0), PartitionEpoch(0))
    return registration._replace(adding=ids(*adding), removing=ids(*removing))


@pytest.mark.parametrize(
    ("before", "wanted", "error"),
    [
        (partition(1, 2), (2, 3), Error.NONE),
        (partition(1, 2), (1, 2, 3), Error.INVALID_REPLICATION_FACTOR),
        (partition(1, 2, 3, 4, adding=(3, 4), removing=(1, 2)), (1, 2), Error.NONE),
        (partition(1, 2, 3, adding=(3,), removing=(2,)), (1, 2, 3), Error.INVALID_REPLICATION_FACTOR),
        (partition(1), None, Error.NONE),
        (None, (1, 2), Error.NONE),
    ],
)
def test_the_number_of_replicas(before: PartitionRegistration | None, wanted: tuple[int, ...] | None, error: Error) -> None:
    replicas = None if wanted is None else tuple(map(BrokerId, wanted))
    assert check_replication_factor(False, before, replicas) == error
    assert check_replication_factor(True, before, replicas) == Error.NONE


@pytest.mark.parametrize(("isr", "left"), [((1, 3), (1,)), ((3,), (1,)), ((2,), (2,))])
def test_who_is_in_sync_after_a_cancelled_reassignment(isr: tuple[int, ...], left: tuple[int, ...]) -> None:
    """Added replicas are gone; if no other was in sync, the first one counts as if it were."""
    before = partition(1, 2, 3, adding=(3,), removing=(2,))._replace(isr=ids(*isr))
    target = reverted(before)
    assert (target.replicas, target.isr, target.adding, target.removing) == ((1, 2), ids(*left), NOBODY, NOBODY)


@pytest.mark.parametrize(
    ("replicas", "factor", "wrong"),
    [
        ((1, 2), None, None),
        ((1, 2), 2, None),
        ((), None, "a partition has no replica"),
        ((1, 1), None, "a broker is twice among the replicas (1, 1)"),
        ((1, 4), None, "broker 4 is not registered"),
        ((1, 2), 3, "a partition has 2 replicas, and another 3"),
        ((4, 4, 4), 2, "a broker is twice among the replicas (4, 4, 4)"),
    ],
)
def test_an_assignment(replicas: tuple[int, ...], factor: int | None, wrong: str | None) -> None:
    """A new partition and one that is moved have the same rule, but that a move may have any number of replicas."""
    brokers = tuple(BrokerRegistration(BrokerId(one), BrokerEpoch(one), Incarnation(one), fenced=False) for one in (1, 2, 3))
    assigned = tuple(map(BrokerId, replicas))
    assert wrong_with_assignment(brokers, assigned, factor) == wrong
    if factor is None:
        error = Error.NONE if wrong is None else Error.INVALID_REPLICA_ASSIGNMENT
        assert check_reassignment(False, brokers, partition(1, 2), assigned) == error


def test_the_rule_of_assignments_stands_once() -> None:
    files = (REPOSITORY / "spec").rglob("*.py")
    assert sum(path.read_text(encoding="utf-8").count("validateManualPartitionAssignment") for path in files) == 1
