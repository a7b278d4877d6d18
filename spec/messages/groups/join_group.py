"""JoinGroup: a member joins a group, or joins again for a new generation."""

from dataclasses import dataclass

from kspec.spec.values import NO_GENERATION, NO_MEMBER_ID, Error, Generation, GroupId, MemberId, RequestNumber

CONSUMER = "consumer"
"""The protocol type of consumers. Kafka: `ConsumerProtocol.PROTOCOL_TYPE`."""


@dataclass(frozen=True, slots=True)
class GroupProtocol:
    """A way to assign partitions that a member offers, with what the leader needs to know of the member for it.

    Kafka: `JoinGroupRequestData.JoinGroupRequestProtocol`.
    """

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupRequest:
    """A member joins. `protocols` are in its order of preference; time-outs are in milliseconds.

    `request` is the number that the connection gave the request: the answer may come much later. `new_member_id` is the id
    that the member gets if it brings none. `requires_member_id`: a new dynamic member is told its id first, and joins again
    with it (KIP-394; JoinGroup v4 and later). `skips_assignment`: the member understands an answer that tells the leader to
    assign nothing (KIP-814; v9 and later). Kafka: `JoinGroupRequestData`. **Leaves out:** the reason, which is only logged.
    """

    request: RequestNumber
    group_id: GroupId
    member_id: MemberId
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]
    new_member_id: MemberId = NO_MEMBER_ID
    requires_member_id: bool = False
    skips_assignment: bool = False


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as the leader is told of it. Kafka: `JoinGroupResponseMember`."""

    member_id: MemberId
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupResponse:
    """A member is in a generation; the leader gets the `members` as well. Kafka: `JoinGroupResponseData`."""

    error: Error
    member_id: MemberId = NO_MEMBER_ID
    generation: Generation = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: MemberId = NO_MEMBER_ID
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False
