"""DescribeGroups: a group's state and members."""

from dataclasses import dataclass

from kspec.spec.values import Error, GroupId, MemberId


@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest:
    """Describe a group. `reports_missing_group`: the client understands `GROUP_ID_NOT_FOUND` (v6 and later).

    Kafka: one of `DescribeGroupsRequestData.groups`.
    """

    group_id: GroupId
    reports_missing_group: bool = False


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member of a group; `metadata` is that of the group's protocol, empty unless the group is stable.

    Kafka: `DescribedGroupMember`.
    """

    member_id: MemberId
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribeGroupsResponse:
    """A group's state, by Kafka's words for it. Kafka: `DescribeGroupsResponseData.DescribedGroup`."""

    error: Error
    group_id: GroupId
    group_state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()
