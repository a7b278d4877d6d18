"""ListGroups: the groups of a coordinator."""

from dataclasses import dataclass

from kspec.spec.values import Error, GroupId


@dataclass(frozen=True, slots=True)
class ListGroupsRequest:
    """List groups in these states, of these types; all if a filter is empty. Capital letters make no difference.

    Kafka: `ListGroupsRequestData`.
    """

    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in the list. Kafka: `ListGroupsResponseData.ListedGroup`."""

    group_id: GroupId
    protocol_type: str
    group_state: str
    group_type: str


@dataclass(frozen=True, slots=True)
class ListGroupsResponse:
    """The groups that pass the filters. Kafka: `ListGroupsResponseData`."""

    error: Error
    groups: tuple[ListedGroup, ...] = ()
