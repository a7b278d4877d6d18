"""SyncGroup: the leader hands in the assignment of a generation, the others ask for theirs."""

from dataclasses import dataclass

from kspec.spec.values import Error, Generation, GroupId, MemberId, RequestNumber


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The leader's assignment to a member, in bytes that only members read. Kafka: `SyncGroupRequestAssignment`."""

    member_id: MemberId
    assignment: bytes


@dataclass(frozen=True, slots=True)
class SyncGroupRequest:
    """A member asks for its assignment; the leader brings everybody's.

    `request` is the number that the connection gave the request. `protocol_type` and `protocol_name` are `None` where the
    member's version sends none (before v5). Kafka: `SyncGroupRequestData`.
    """

    request: RequestNumber
    group_id: GroupId
    generation: Generation
    member_id: MemberId
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[MemberAssignment, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncGroupResponse:
    """A member's assignment. Kafka: `SyncGroupResponseData`."""

    error: Error
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
