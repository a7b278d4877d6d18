"""The handlers that look at groups, and delete them; which broker coordinates a group."""

from kspec.spec.coordinator.effects import PersistRecords
from kspec.spec.coordinator.group import Group, GroupState, GroupStep, Member, absent, exists, metadata_for
from kspec.spec.coordinator.modern.group_steps import forgetting
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.records import GroupRecord, OffsetTombstone
from kspec.spec.coordinator.rules.hashing import partition_for
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kspec.spec.messages.groups.describe_groups import DescribedMember, DescribeGroupsRequest, DescribeGroupsResponse
from kspec.spec.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kspec.spec.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_LEADER, BrokerId, Error, Instant

CLASSIC = "classic"
"""The type of groups of the classic protocol. Kafka: `Group.GroupType.CLASSIC`."""

MODERN = "consumer"
"""The type of groups of KIP-848. Kafka: `Group.GroupType.CONSUMER`."""


def find_coordinator(leaders: tuple[BrokerId, ...], request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """The broker that leads the group's partition of `__consumer_offsets`, or a transactional id's of `__transaction_state`.

    `leaders` are the leaders of the topic's partitions, in order; there are none before it is created.

    Errors: `COORDINATOR_NOT_AVAILABLE`.

    **Kafka:** `KafkaApis.getCoordinator`, `GroupCoordinatorService.partitionFor`.
    """
    leader = leaders[partition_for(request.group_id, len(leaders))] if leaders else NO_LEADER
    error = Error.COORDINATOR_NOT_AVAILABLE if leader == NO_LEADER else Error.NONE
    return FindCoordinatorResponse(error, request.group_id, leader)


GROUP_KEY, TRANSACTION_KEY = 0, 1
"""The kind of coordinator that FindCoordinator asks for. Kafka: `FindCoordinatorRequest.CoordinatorType`."""


def check_coordinator_key(key_type: int) -> Error:
    """Whether there are coordinators of this kind: of groups and of transactions.

    Errors: `INVALID_REQUEST` for any other kind.

    **Kafka:** `KafkaApis.getCoordinator`.
    """
    return Error.NONE if key_type in (GROUP_KEY, TRANSACTION_KEY) else Error.INVALID_REQUEST


def check_coordinated(of_request: Error, is_loading: bool) -> Error:
    """The error for a group that this broker does not coordinate, or not yet, unless the request is wrong in itself.

    `is_loading`: whether the broker leads the partition of the group, and reads its log.

    Errors: `of_request`, `COORDINATOR_LOAD_IN_PROGRESS`, `NOT_COORDINATOR`.

    **Kafka:** `CoordinatorRuntime.withActiveContextOrThrow`.
    """
    if of_request != Error.NONE:
        return of_request
    return Error.COORDINATOR_LOAD_IN_PROGRESS if is_loading else Error.NOT_COORDINATOR


def check_listable(is_loading: bool) -> Error:
    """Whether a broker can list its groups. Errors: `COORDINATOR_LOAD_IN_PROGRESS`, while it reads the log of some.

    **Kafka:** `GroupCoordinatorService.listGroups`.
    """
    return Error.COORDINATOR_LOAD_IN_PROGRESS if is_loading else Error.NONE


def handle_describe_groups(
    coordinator: Coordinator, group: Group, request: DescribeGroupsRequest, now: Instant
) -> GroupStep:
    """A group's state and members. A group that does not exist is dead, which older clients take for an answer; so is a
    consumer group (KIP-848), which has a request of its own.

    Errors: `GROUP_ID_NOT_FOUND`, for newer clients.

    **Kafka:** `GroupMetadataManager.describeGroups`, `ClassicGroupMember.describe`.
    """
    if group.consumer is not None:
        return handle_describe_groups(coordinator, absent(group.group_id), request, now)._replace(state=group)
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


def handle_list_groups(coordinator: Coordinator, group: Group, request: ListGroupsRequest, now: Instant) -> GroupStep:
    """The group, if it passes the filters. The answers of a broker's groups make its list.

    **Kafka:** `GroupMetadataManager.listGroups`, `ClassicGroup.asListedGroup`.
    """
    states = {state.strip().lower() for state in request.states}
    types = {one.strip().lower() for one in request.types}
    kind = CLASSIC if group.consumer is None else MODERN
    listed = exists(group) and (not states or group.state.value.lower() in states) and (not types or kind in types)
    entry = ListedGroup(group.group_id, group.protocol_type or "", group.state.value, kind)
    return Step(group, (Reply(ListGroupsResponse(Error.NONE, (entry,) if listed else ())),))


def handle_delete_groups(coordinator: Coordinator, group: Group, request: DeleteGroupsRequest, now: Instant) -> GroupStep:
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
        *forgetting(group),
    )
    answer = DeleteGroupsResponse(Error.NONE, request.group_id)
    return Step(absent(group.group_id), (PersistRecords(records), Reply(answer)))
