"""The handlers that look at groups, and delete them; which broker coordinates a group."""

from spec.coordinator.effects import PersistRecords
from spec.coordinator.group import Group, GroupState, GroupStep, Member, absent, exists, metadata_for
from spec.coordinator.protocol import Coordinator
from spec.coordinator.records import GroupRecord, GroupTombstone, OffsetTombstone
from spec.coordinator.rules.hashing import partition_for
from spec.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from spec.messages.groups.describe_groups import DescribedMember, DescribeGroupsRequest, DescribeGroupsResponse
from spec.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from spec.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from spec.step import Reply, Step
from spec.values import NO_LEADER, BrokerId, Error

CLASSIC = "classic"
"""The type of groups of this protocol. Kafka: `Group.GroupType.CLASSIC`."""


def find_coordinator(leaders: tuple[BrokerId, ...], request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """The broker that leads the group's partition of `__consumer_offsets`.

    `leaders` are the leaders of its partitions, in order; there are none before the topic is created.

    Errors: `COORDINATOR_NOT_AVAILABLE`.

    **Kafka:** `KafkaApis.getCoordinator`, `GroupCoordinatorService.partitionFor`.
    """
    leader = leaders[partition_for(request.group_id, len(leaders))] if leaders else NO_LEADER
    error = Error.COORDINATOR_NOT_AVAILABLE if leader == NO_LEADER else Error.NONE
    return FindCoordinatorResponse(error, request.group_id, leader)


def handle_describe_groups(coordinator: Coordinator, group: Group, request: DescribeGroupsRequest, now: int) -> GroupStep:
    """A group's state and members. A group that does not exist is dead, which older clients take for an answer.

    Errors: `GROUP_ID_NOT_FOUND`, for newer clients.

    **Kafka:** `GroupMetadataManager.describeGroups`, `ClassicGroupMember.describe`.
    """
    missing = request.reports_missing_group and not exists(group)
    stable = group.state == GroupState.STABLE
    answer = DescribeGroupsResponse(
        Error.GROUP_ID_NOT_FOUND if missing else Error.NONE,
        group.group_id,
        group.state.value,
        group.protocol_type or "",
        (group.protocol_name or "") if stable else "",
        tuple(_described(member, group.protocol_name if stable else None) for member in group.members),
    )
    return Step(group, (Reply(answer),))


def _described(member: Member, protocol_name: str | None) -> DescribedMember:
    return DescribedMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        metadata_for(member, protocol_name),
        member.assignment,
    )


def handle_list_groups(coordinator: Coordinator, group: Group, request: ListGroupsRequest, now: int) -> GroupStep:
    """The group, if it passes the filters. The answers of a broker's groups make its list.

    **Kafka:** `GroupMetadataManager.listGroups`, `ClassicGroup.asListedGroup`.
    """
    states = {state.strip().lower() for state in request.states}
    types = {one.strip().lower() for one in request.types}
    listed = exists(group) and (not states or group.state.value.lower() in states) and (not types or CLASSIC in types)
    entry = ListedGroup(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)
    return Step(group, (Reply(ListGroupsResponse(Error.NONE, (entry,) if listed else ())),))


def handle_delete_groups(coordinator: Coordinator, group: Group, request: DeleteGroupsRequest, now: int) -> GroupStep:
    """Forget an empty group, and its offsets.

    Errors: `GROUP_ID_NOT_FOUND`, `NON_EMPTY_GROUP`.

    **Kafka:** `GroupCoordinatorShard.deleteGroups`, `ClassicGroup.validateDeleteGroup`,
    `OffsetMetadataManager.deleteAllOffsets`.
    """
    if group.state != GroupState.EMPTY:
        error = Error.NON_EMPTY_GROUP if exists(group) else Error.GROUP_ID_NOT_FOUND
        return Step(group, (Reply(DeleteGroupsResponse(error, request.group_id)),))
    commits = (*group.offsets, *(pending.commit for pending in group.pending_offsets))
    partitions = sorted({(commit.topic, commit.partition) for commit in commits})
    records: tuple[GroupRecord, ...] = (
        *(OffsetTombstone(group.group_id, topic, partition) for topic, partition in partitions),
        GroupTombstone(group.group_id),
    )
    answer = DeleteGroupsResponse(Error.NONE, request.group_id)
    return Step(absent(group.group_id), (PersistRecords(records), Reply(answer)))
