"""ConsumerGroupHeartbeat (KIP-848): a member joins, is alive, says what it owns and learns what it is to own, and leaves."""

from dataclasses import dataclass

from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import NO_MEMBER_ID, Error, GroupEpoch, GroupId, MemberId

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = GroupEpoch(0), GroupEpoch(-1), GroupEpoch(-2)
"""The epochs of a member that joins, that leaves, and that leaves as a static member which means to come back.

Kafka: `JOIN_GROUP_MEMBER_EPOCH`, `LEAVE_GROUP_MEMBER_EPOCH` and `LEAVE_GROUP_STATIC_MEMBER_EPOCH` of the request.
"""

UNCHANGED_MS = -1
"""The rebalance time-out of a request that does not change it."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatRequest:
    """A member's heartbeat. `None`, and `UNCHANGED_MS`, mean that nothing has changed since the last one.

    `owned`: the partitions that the member owns. `topics` and `regex`: what it subscribes to. `assignor`: that of the
    coordinator which it prefers. `new_member_id` is the id that the member gets if it brings none, `requires_member_id`: it
    has to bring one (v1, KIP-1082). `regex_is_valid`: whether the caller could compile the expression (RE2), which is no
    matter of rules. Kafka: `ConsumerGroupHeartbeatRequestData`. **Leaves out:** the rack decides nothing.
    """

    group_id: GroupId
    member_id: MemberId
    member_epoch: GroupEpoch
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED_MS
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: frozenset[TopicIdPartition] | None = None
    client_id: str = ""
    client_host: str = ""
    new_member_id: MemberId = NO_MEMBER_ID
    requires_member_id: bool = False
    regex_is_valid: bool = True


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, when to send the next heartbeat (milliseconds), and its partitions, `None` if they are as before.

    Kafka: `ConsumerGroupHeartbeatResponseData`.
    """

    error: Error
    member_id: MemberId = NO_MEMBER_ID
    member_epoch: GroupEpoch = JOIN_EPOCH
    heartbeat_interval_ms: int = 0
    assignment: frozenset[TopicIdPartition] | None = None
