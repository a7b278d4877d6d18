"""The high watermark of a leader: up to which offset records are committed, that is, on every in-sync replica."""

from spec.values import UNKNOWN_OFFSET, Offset


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


def last_stable_offset(high_watermark: Offset, first_unstable_offset: Offset) -> Offset:
    """The last stable offset: the end of what a consumer that reads committed transactions may read.

    Parameters: the high watermark; the first offset of a transaction that is still open, `UNKNOWN_OFFSET` if none is.

    **Kafka:** `UnifiedLog.lastStableOffset`.
    """
    none_below = first_unstable_offset == UNKNOWN_OFFSET or first_unstable_offset >= high_watermark
    return high_watermark if none_below else first_unstable_offset
