"""Heartbeat: a member says that it is alive, and learns of a rebalance."""

from dataclasses import dataclass

from kspec.spec.values import Error, Generation, GroupId, MemberId


@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    """A member is alive. Kafka: `HeartbeatRequestData`."""

    group_id: GroupId
    generation: Generation
    member_id: MemberId
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """Nothing has changed, or why the member has to act. Kafka: `HeartbeatResponseData`."""

    error: Error
