"""The high watermark of a leader: up to which offset records are committed, that is, on every in-sync replica."""

from kspec.spec.values import Offset


def awaited_if_in_isr(in_isr: bool, caught_up: bool, eligible: bool) -> bool:
    """Whether a leader waits for a follower before it moves its high watermark: for members of the (maximal) ISR.

    **Kafka:** `Partition.maybeIncrementLeaderHW` up to 0.10.1.
    """
    return in_isr


def awaited_if_caught_up(in_isr: bool, caught_up: bool, eligible: bool) -> bool:
    """As `awaited_if_in_isr`, and for a caught-up follower, so that the high watermark does not overtake it while it joins.

    The leader also waits for a replica that may not join, as long as that counts as caught up (KAFKA-15021).

    **Kafka:** `Partition.maybeIncrementLeaderHW` from 0.10.2 (KAFKA-4485) to 3.5.
    """
    return in_isr or caught_up


def awaited_if_about_to_join(in_isr: bool, caught_up: bool, eligible: bool) -> bool:
    """As `awaited_if_in_isr`, and for a follower that is caught up and may join.

    **Kafka:** `Partition.maybeIncrementLeaderHW` (KAFKA-15021, since 3.6).
    """
    return in_isr or (caught_up and eligible)


def advance_at_any_isr_size(isr_size: int, min_isr: int) -> bool:
    """A leader moves its high watermark however few replicas are in sync.

    So consumers can read records of acks 0 and 1 that one failure may lose.

    **Kafka:** `Partition.maybeIncrementLeaderHW` up to 3.6.
    """
    return True


def advance_at_min_isr(isr_size: int, min_isr: int) -> bool:
    """A leader moves its high watermark only while enough replicas are in sync, by the committed ISR.

    **Kafka:** `Partition.maybeIncrementLeaderHW`, `isUnderMinIsr` (KIP-966, KAFKA-15583, since 3.7).
    """
    return isr_size >= min_isr


def lowest_end_offset(end_offset: Offset, awaited: tuple[Offset, ...]) -> Offset:
    """The smallest log end offset among the leader and the followers that it waits for.

    **Kafka:** `Partition.maybeIncrementLeaderHW`.
    """
    return min((end_offset, *awaited))


def leader_high_watermark(
    high_watermark: Offset, end_offset: Offset, awaited: tuple[Offset, ...], may_advance: bool
) -> Offset:
    """A leader's high watermark: the smallest log end offset among itself and the followers that it waits for.

    It never goes back. It stays where it is while a follower's log end is unknown (`UNKNOWN_OFFSET`).

    Parameters: the high watermark so far; the leader's log end offset; those of the followers `awaited`; whether it may
    advance at all.

    **Kafka:** `Partition.maybeIncrementLeaderHW`, `UnifiedLog.maybeIncrementHighWatermark`.
    """
    return max(high_watermark, lowest_end_offset(end_offset, awaited)) if may_advance else high_watermark


# ---- when it is looked at


def advances_if_end_moved(end_moved: bool) -> bool:
    """Whether a leader looks at its high watermark after a follower's fetch: if the follower's log end has changed.

    **Kafka:** `Partition.updateFollowerFetchState`, since 2.4.
    """
    return end_moved


def advances_after_every_fetch(end_moved: bool) -> bool:
    """A leader looks at its high watermark after every fetch of a follower: it may wait for fewer replicas than before.

    **Kafka:** `Partition.maybeExpandIsr` up to 2.3.
    """
    return True


def advances_when_granted(before: Offset, possible: Offset) -> Offset:
    """The high watermark when the controller has granted an ISR: as far as the new ISR allows.

    Parameters: the high watermark before; the `possible` one by the new ISR.

    **Kafka:** `Partition.handleAlterPartitionUpdate` (KAFKA-13091, since 3.1); up to 2.6 `Partition.maybeShrinkIsr`, which
    writes the ISR itself.
    """
    return possible


def stays_when_granted(before: Offset, possible: Offset) -> Offset:
    """The high watermark when the controller has granted an ISR: as it was, until the next fetch or append.

    A producer waits on after the last member that held it up has left the ISR.

    **Kafka:** `Partition.handleAlterIsrResponse`, 2.7 to 3.0.
    """
    return before


def answered_before_fetch(before: Offset, after: Offset) -> Offset:
    """The high watermark in the answer to a follower's fetch: the one before this fetch.

    **Kafka:** `Partition.readRecords`; up to 0.11, and since 2.0.
    """
    return before


def answered_after_fetch(before: Offset, after: Offset) -> Offset:
    """The high watermark in the answer to a follower's fetch: with what this fetch has added to it.

    **Kafka:** `ReplicaManager.updateFollowerLogReadResults`, `LogReadResult.updateLeaderReplicaInfo`, 1.0 and 1.1.
    """
    return after
