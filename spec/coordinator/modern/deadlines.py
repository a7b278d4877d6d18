"""Changes of a consumer group in time: sessions end, and what has to be given up or asked for is not (KIP-848)."""

from kspec.spec.coordinator.group import Group, GroupStep
from kspec.spec.coordinator.modern.conversion import to_classic_if_last
from kspec.spec.coordinator.modern.group_steps import in_session
from kspec.spec.coordinator.modern.state import ConsumerGroup, ConsumerGroupMember, MemberState
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.step import Step
from kspec.spec.values import Instant, MonotonicMs


def deadlines_of(member: ConsumerGroupMember) -> tuple[MonotonicMs | None, ...]:
    """The times (milliseconds) at which a member may be out. **Kafka:** the timers that `cancelTimers` ends."""
    return (
        member.session_deadline_ms,
        member.rebalance_deadline_ms,
        member.join_deadline_ms,
        member.sync_deadline_ms,
    )


def next_deadline_of_consumers(group: ConsumerGroup) -> MonotonicMs | None:
    """The earliest of these times, `None` if there is none."""
    return min((due for member in group.members for due in deadlines_of(member) if due is not None), default=None)


def on_deadline_of_consumers(coordinator: Coordinator, group: Group, consumer: ConsumerGroup, now: Instant) -> GroupStep:
    """Fence who has been silent for its session, or has not given up, joined or asked in time.

    The time to give up partitions ends with the epoch in which they were to be given up.

    **Kafka:** `GroupMetadataManager.scheduleConsumerGroupSessionTimeout`, `scheduleConsumerGroupRebalanceTimeout`,
    `scheduleConsumerGroupJoinTimeoutIfAbsent`, `scheduleConsumerGroupSyncTimeout`. **Departs from it:** members whose time
    ends together are out in one step.
    """
    gone = tuple(member.member_id for member in consumer.members if _is_over(member, now))
    if gone:
        return to_classic_if_last(coordinator, group, gone, now)
    passed = tuple(
        member._replace(rebalance_deadline_ms=None) if _has_passed(member.rebalance_deadline_ms, now) else member
        for member in consumer.members
    )
    return Step(group._replace(consumer=consumer._replace(members=passed)))


def _is_over(member: ConsumerGroupMember, now: Instant) -> bool:
    late = _has_passed(member.rebalance_deadline_ms, now) and member.epoch == member.rebalance_epoch
    silent = (member.session_deadline_ms, member.join_deadline_ms, member.sync_deadline_ms)
    return late or any(_has_passed(deadline, now) for deadline in silent)


def _has_passed(deadline_ms: MonotonicMs | None, now: Instant) -> bool:
    return deadline_ms is not None and deadline_ms <= now.monotonic


def on_activation_of_consumers(coordinator: Coordinator, group: Group, consumer: ConsumerGroup, now: Instant) -> GroupStep:
    """A consumer group has been loaded: sessions begin, and the time to give up what is pending.

    **Kafka:** `GroupMetadataManager.onLoaded`.
    """
    members = tuple(_begun(coordinator, member, now) for member in consumer.members)
    return Step(group._replace(consumer=consumer._replace(members=members)))


def _begun(coordinator: Coordinator, member: ConsumerGroupMember, now: Instant) -> ConsumerGroupMember:
    begun = in_session(coordinator, member._replace(classic=None), now)._replace(classic=member.classic)
    if member.state != MemberState.UNREVOKED_PARTITIONS:
        return begun
    return begun._replace(rebalance_deadline_ms=now.after(member.rebalance_timeout_ms), rebalance_epoch=member.epoch)


def later(group: Group, consumer: ConsumerGroup, coordinator: Coordinator, now: Instant) -> Group:
    """The group after the log has refused the records of what was due: it is due once more, a little later.

    **Kafka:** `CoordinatorTimerImpl`, whose operations are tried again.
    """
    again = now.after(coordinator.settings.consumer_retry_ms)

    def put_off(deadline_ms: MonotonicMs | None) -> MonotonicMs | None:
        return again if _has_passed(deadline_ms, now) else deadline_ms

    members = tuple(
        member._replace(
            session_deadline_ms=put_off(member.session_deadline_ms),
            rebalance_deadline_ms=put_off(member.rebalance_deadline_ms),
            join_deadline_ms=put_off(member.join_deadline_ms),
            sync_deadline_ms=put_off(member.sync_deadline_ms),
        )
        for member in consumer.members
    )
    return group._replace(consumer=consumer._replace(members=members))
