"""The membership of a consumer in a consumer group: its state, and what it has been assigned."""

from enum import Enum
from typing import NamedTuple, TypeAlias

from kspec.spec.consumer.membership import (
    AddPartitions,
    AskCoordinator,
    Fail,
    ForgetCoordinator,
    LosePartitions,
    RevokePartitions,
)
from kspec.spec.messages.groups.consumer_group_heartbeat import JOIN_EPOCH
from kspec.spec.step import Step
from kspec.spec.values import NO_MEMBER_ID, GroupEpoch, MemberId


class ConsumerMemberState(Enum):
    """The state of a consumer in its consumer group. Kafka: `consumer.internals.MemberState`.

    **Leaves out:** states that wait for a callback of the user, which is one step here: `FENCED`, `PREPARE_LEAVING`,
    `LEAVING`, `STALE`.
    """

    UNSUBSCRIBED = "Unsubscribed"
    JOINING = "Joining"
    RECONCILING = "Reconciling"
    ACKNOWLEDGING = "Acknowledging"
    STABLE = "Stable"
    FATAL = "Fatal"


class ConsumerMembership(NamedTuple):
    """A consumer in its consumer group.

    `owned` are the partitions that it reads; `reconciled` those of the last assignment that it has come to in full, `None`
    if there is none since it joined. `assigned` is the newest assignment, `in_progress` that which it is coming to.
    `is_told`: the coordinator has been told who it is; `is_acknowledged`: and what is reconciled.

    Kafka: the fields of `AbstractMembershipManager`: `state`, `memberId`, `memberEpoch`, `currentAssignment`,
    `currentTargetAssignment`, `reconciliationInProgress`; `SubscriptionState.assignedPartitions`; and
    `ConsumerHeartbeatRequestManager.SentFields`.
    """

    state: ConsumerMemberState = ConsumerMemberState.UNSUBSCRIBED
    member_id: MemberId = NO_MEMBER_ID
    epoch: GroupEpoch = JOIN_EPOCH
    owned: frozenset[int] = frozenset()
    reconciled: frozenset[int] | None = None
    assigned: frozenset[int] | None = None
    in_progress: frozenset[int] | None = None
    is_told: bool = False
    is_acknowledged: bool = False


ConsumerEffect: TypeAlias = AskCoordinator | RevokePartitions | LosePartitions | AddPartitions | ForgetCoordinator | Fail
ConsumerStep: TypeAlias = Step[ConsumerMembership, ConsumerEffect]
