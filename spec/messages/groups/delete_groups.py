"""DeleteGroups: an empty group is forgotten, with its offsets."""

from dataclasses import dataclass

from kspec.spec.values import Error, GroupId


@dataclass(frozen=True, slots=True)
class DeleteGroupsRequest:
    """Delete a group. Kafka: one of `DeleteGroupsRequestData.groupsNames`."""

    group_id: GroupId


@dataclass(frozen=True, slots=True)
class DeleteGroupsResponse:
    """Whether it is deleted. Kafka: `DeletableGroupResult`."""

    error: Error
    group_id: GroupId
