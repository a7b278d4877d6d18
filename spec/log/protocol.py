"""The rules of a log's upkeep (retention and compaction) in which Kafka's releases differ: a broker keeps no other state."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kspec.spec.log.compaction import DirtySegment, EmptyBatch, SegmentSize
from kspec.spec.log.segments import Retention, StoredSegment
from kspec.spec.values import Offset, TimestampMs


@dataclass(frozen=True, slots=True)
class UpkeepProtocol:
    """The rules of retention and compaction of one release. `spec.releases.upkeep` has the releases."""

    name: str

    deletable_segments: Callable[[tuple[StoredSegment, ...], Offset, Offset, Offset, Retention, TimestampMs], int]
    """The number of segments that retention deletes."""

    first_dirty_offset: Callable[[Offset, Offset, Offset, Offset], Offset]
    """The first offset that was not compacted yet."""

    compacted_end: Callable[[Offset, Offset], Offset]
    """The latest end of compaction, by the high watermark and the first offset of an open transaction."""

    first_uncleanable_offset: Callable[[Offset, Offset, Iterable[DirtySegment], int, TimestampMs], Offset]
    """The end of the part that may be compacted now."""

    is_cleanable: Callable[[int, int, float, int, int, TimestampMs], bool]
    """Whether a log is worth compacting."""

    keeps_record: Callable[[Offset, Offset, bool, bool, Offset, int, TimestampMs], bool]
    """Whether a record stays."""

    tombstone_horizon: Callable[[int, int, int, int], int]
    """The time from which the tombstones of a batch may go, by its delete horizon, when its segment and the last
    compacted one were written, and delete.retention.ms."""

    new_delete_horizon: Callable[[int, bool, TimestampMs, int], int]
    """The delete horizon of a batch that stays."""

    empty_batch: Callable[[Offset, Offset, Offset, int, int], EmptyBatch]
    """The treatment of a batch without records."""

    group: Callable[[tuple[SegmentSize, ...], int, int, int], tuple[int, ...]]
    """The numbers of segments that are made into one."""
