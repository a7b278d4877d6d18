"""LeaveGroup: members leave a group."""

from dataclasses import dataclass

from kspec.spec.values import Error, GroupId, MemberId


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """A member that leaves: by its id, or a static member by its instance id alone.

    Kafka: `LeaveGroupRequestData.MemberIdentity`. **Leaves out:** the reason (KIP-800), which is only logged.
    """

    member_id: MemberId
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroupRequest:
    """Members leave. Up to v2 a request names one member, and the one answer's error is its error (`single_error`).

    Kafka: `LeaveGroupRequestData`.
    """

    group_id: GroupId
    members: tuple[MemberIdentity, ...]


@dataclass(frozen=True, slots=True)
class LeftMember:
    """The outcome for one member. Kafka: `LeaveGroupResponseData.MemberResponse`."""

    error: Error
    member_id: MemberId
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse:
    """The outcome for the group, and for each member. Kafka: `LeaveGroupResponseData`."""

    error: Error
    members: tuple[LeftMember, ...] = ()


def single_error(response: LeaveGroupResponse) -> Error:
    """The error that an answer up to v2 has: the request's, else that of the first member.

    **Kafka:** the constructor `LeaveGroupResponse(data, version)`, `LeaveGroupResponse.getError`.
    """
    errors = (response.error, *(member.error for member in response.members))
    return next((error for error in errors if error != Error.NONE), Error.NONE)
