"""The history of retention and compaction: each release is the one before with some rules replaced.

A release is Kafka's x.y.0, and is listed where a rule changed in it. See `docs/rules-by-release.md`. No model runs them; a
broker has those of its release.
"""

from dataclasses import replace

from kspec.spec.log import compaction, segments
from kspec.spec.log.protocol import UpkeepProtocol

UPKEEP_0_10 = UpkeepProtocol(
    name="0.10",
    deletable_segments=segments.deletable_segments_even_uncommitted,
    first_dirty_offset=compaction.first_dirty_offset_even_beyond,
    compacted_end=compaction.unbounded_without_transaction,
    first_uncleanable_offset=compaction.first_uncleanable_offset_without_lag,
    is_cleanable=compaction.is_cleanable_by_ratio,
    keeps_record=compaction.keeps_record_even_beyond,
    tombstone_horizon=compaction.horizon_of_segment,
    new_delete_horizon=compaction.no_new_delete_horizon,
    empty_batch=compaction.empty_batch_goes,
    group=compaction.group_by_offsets_of_all,
)
"""0.10: retention and compaction do not ask what is committed."""

UPKEEP_0_11 = replace(
    UPKEEP_0_10,
    name="0.11",
    first_uncleanable_offset=compaction.first_uncleanable_offset,
    keeps_record=compaction.keeps_record,
    empty_batch=compaction.empty_batch_of_sequence,
)
"""The last batch of an idempotent producer keeps its header (KAFKA-5490). Since 0.10.1 min.compaction.lag.ms (KIP-58), and
records whose keys were not noted stay."""

UPKEEP_1_0 = replace(UPKEEP_0_11, name="1.0", deletable_segments=segments.deletable_segments_by_policy)
"""Only committed records are deleted (KAFKA-5634)."""

UPKEEP_2_1 = replace(UPKEEP_1_0, name="2.1", deletable_segments=segments.deletable_segments_by_age_first)
"""Segments before the log start are deleted in compacted topics, too (KAFKA-7400)."""

UPKEEP_2_3 = replace(
    UPKEEP_2_1, name="2.3", is_cleanable=compaction.is_cleanable, empty_batch=compaction.empty_batch_of_producer
)
"""max.compaction.lag.ms (KIP-354). The last batch of a producer is known by its offset (KAFKA-8335)."""

UPKEEP_2_4 = replace(UPKEEP_2_3, name="2.4", first_dirty_offset=compaction.first_dirty_offset)
"""A checkpoint beyond the log's end counts for nothing (KAFKA-8724). The log begins with its log start."""

UPKEEP_3_0 = replace(UPKEEP_2_4, name="3.0", group=compaction.group, deletable_segments=segments.deletable_segments)
"""Empty segments are joined however far their offsets are (KAFKA-12889). Retention by time comes last (KAFKA-12177)."""

UPKEEP_3_1 = replace(
    UPKEEP_3_0,
    name="3.1",
    compacted_end=compaction.committed_end,
    tombstone_horizon=compaction.horizon_of_batch,
    new_delete_horizon=compaction.new_delete_horizon,
)
"""Only committed records are compacted (KAFKA-13194). A tombstone stays for delete.retention.ms from the time at which it is
compacted first (KIP-534)."""

UPKEEP_3_9_2 = replace(UPKEEP_3_1, name="3.9.2", empty_batch=compaction.empty_batch)
UPKEEP_4_0 = replace(UPKEEP_3_9_2, name="4.0")
"""The last batch of a compacted part keeps its header (KAFKA-17076)."""

NEWEST = UPKEEP_4_0
"""The rules of the newest release."""

UPKEEP_RELEASES: tuple[UpkeepProtocol, ...] = tuple(
    release for name, release in vars().items() if name.startswith("UPKEEP_")
)
"""The releases above, the oldest first."""
