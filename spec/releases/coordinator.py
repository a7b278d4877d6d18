"""The history of Kafka's group coordinator, classic protocol: each release is the one before with some rules replaced.

Read for what differs were `GroupMetadata` and `GroupCoordinator` of 2.1.0, 2.3.0, 2.4.0, 2.8.0, 3.0.0, 3.0.1, 3.1.0, 3.1.1,
3.2.0, 3.3.0, 3.3.1, 3.3.2 and 3.4.0, for the expiry of offsets and the update of members alone, and `ClassicGroup` of 4.3.1.
Everything else of the classic protocol is as in 4.4, in all releases.

Of consumer groups (KIP-848) `GroupMetadataManager`, `ConsumerGroup` and `CurrentAssignmentBuilder` of 4.0.0, 4.1.0, 4.2.0
and 4.3.1 were read. What differs in 4.1.1 and in 4.4 is known from their class files.
"""

from dataclasses import replace

from kspec.spec.coordinator.protocol import CoordinatorProtocol
from kspec.spec.coordinator.rules import committing, consumers, expiry, joining
from kspec.spec.values import Error, GroupEpoch

COORDINATOR_0_10 = CoordinatorProtocol(
    name="0.10",
    expires_with_members=expiry.never_with_members,
    renewed_timeout=joining.keep_timeout,
    commits_while_empty=committing.if_unnamed,
    stays_stable=joining.stays_with_protocol,
    is_released=consumers.released_by_leaving,
    first_epoch=GroupEpoch(0),
    knows_epoch=consumers.is_known_epoch,
    epoch_after_revocation=consumers.next_epoch_after_revocation,
    free_partitions=consumers.free_if_unowned,
    target_of_member=consumers.whole_target,
    shrinks=consumers.never_shrinks,
    previous_after_shrinking=consumers.keeps_previous,
    may_assign=consumers.at_once,
    commits_of_old_epoch=consumers.never_of_old_epoch,
    owned_at=consumers.as_it_says,
    previous_after_moving=consumers.epoch_before,
    described=consumers.without_pending,
    is_behind=consumers.behind_group,
    assigns_anew=consumers.no_new_target,
    targets_follow=consumers.not_without_members,
    has_place=consumers.only_by_member_id,
    malformed_subscription=Error.UNKNOWN_SERVER_ERROR,
    assignment_waits=False,
)
"""Up to 2.3. Rules of consumer groups are those of 4.0, which has them first.

(Before 2.1 and KIP-211 offsets expired by the time of their commit alone, which is left out.)
"""

COORDINATOR_2_4 = replace(COORDINATOR_0_10, name="2.4", expires_with_members=expiry.whenever_topics_are_known)
"""2.4 to 3.1: offsets of topics that nobody reads expire, in a rebalancing group as well (KIP-496, KAFKA-13636)."""

COORDINATOR_3_2 = replace(COORDINATOR_2_4, name="3.2", expires_with_members=expiry.while_stable)
"""3.2: only in a stable group (KAFKA-13636)."""

COORDINATOR_3_3 = replace(COORDINATOR_3_2, name="3.3", commits_while_empty=committing.also_if_named)
"""3.3: a consumer that assigns partitions to itself may have an instance id (KAFKA-14201)."""

COORDINATOR_3_4 = replace(COORDINATOR_3_3, name="3.4", renewed_timeout=joining.take_timeout)
"""3.4 to 4.0: a member that joins again has the time-outs that it asks for (KAFKA-14009)."""

COORDINATOR_4_1 = replace(
    COORDINATOR_3_4,
    name="4.1",
    assigns_before_downgrade=False,
    downgrade_rebalances=consumers.rebalances_if_it_reads_others,
)
"""4.1, from 4.1.1 on: a group whose last consumer joins by JoinGroup becomes classic before a target is computed."""

COORDINATOR_4_2 = replace(
    COORDINATOR_4_1,
    name="4.2",
    knows_epoch=consumers.is_known_epoch_or_joins,
    epoch_after_revocation=consumers.same_epoch_after_revocation,
    free_partitions=consumers.free_if_unowned_or_own,
    target_of_member=consumers.subscribed_target,
    shrinks=consumers.shrinks_if_changed,
)
"""4.2: a consumer may always join again (KAFKA-19233), and gives up at once what it no longer subscribes to."""

COORDINATOR_4_3 = replace(
    COORDINATOR_4_2,
    name="4.3",
    first_epoch=GroupEpoch(1),
    previous_after_shrinking=consumers.epoch_is_previous,
    may_assign=consumers.after_interval,
    commits_of_old_epoch=consumers.if_owned_since,
    described=consumers.with_pending,
    is_behind=consumers.behind_targets,
    downgrade_rebalances=consumers.rebalances_if_targets_are_old,
)
"""4.3: targets wait for each other (KIP-1263), a commit on its way while the epoch moves counts (KIP-1251), a group
begins in epoch 1, so that no member stays in epoch 0, which is that of one that joins, a member is described with what
it has to give up, and a group that becomes classic rebalances if its targets are old."""

COORDINATOR_4_4 = replace(
    COORDINATOR_4_3,
    name="4.4",
    assigns_anew=consumers.new_target_if_other,
    targets_follow=consumers.if_nobody_is_left,
    has_place=consumers.by_member_or_instance_id,
    malformed_subscription=Error.INCONSISTENT_GROUP_PROTOCOL,
)
"""4.4: another assignor is a reason for a new target, and a full group lets a static member start again."""

COORDINATOR_NEXT = replace(
    COORDINATOR_4_4,
    name="next",
    stays_stable=joining.stays_with_topics,
    is_released=consumers.released_to_itself,
    assignment_waits=True,
)
"""The newest with known defects repaired: a static member may read other topics (KAFKA-12759), and may join again; and no
assignment is given out that the next coordinator may not know."""

LATE_REQUESTS_REPAIRED = replace(
    COORDINATOR_NEXT,
    name="next-late-requests",
    owned_at=consumers.unless_it_joins,
    previous_after_moving=consumers.last_other_epoch,
)
"""`next`; and a late join gives nothing up, and answers that are lost fence nobody: proposals that no release has."""

COORDINATOR_RELEASES: tuple[CoordinatorProtocol, ...] = tuple(
    release for name, release in vars().items() if name.startswith("COORDINATOR_")
)
"""The releases above, the oldest first."""
