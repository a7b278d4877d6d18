"""What a reassignment may change."""

import pytest

from spec.controller.rules.reassignment import check_replication_factor
from spec.metadata import NOBODY, PartitionRegistration
from spec.values import BrokerId, Epoch, Error, PartitionEpoch
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
