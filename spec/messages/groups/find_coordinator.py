"""FindCoordinator: which broker coordinates a group."""

from dataclasses import dataclass

from kspec.spec.values import NO_LEADER, BrokerId, Error, GroupId


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest:
    """Ask for the coordinator of a group. Kafka: one of `FindCoordinatorRequestData.coordinatorKeys`, key type GROUP."""

    group_id: GroupId


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse:
    """The broker that leads the group's partition of `__consumer_offsets`.

    Kafka: `FindCoordinatorResponseData.Coordinator`.
    """

    error: Error
    group_id: GroupId
    coordinator: BrokerId = NO_LEADER
