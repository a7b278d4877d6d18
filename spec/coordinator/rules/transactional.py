"""Offsets that are committed in a transaction: when they are checked, when they count, and who waits for that."""

from collections.abc import Callable
from typing import TypeAlias

CountsOffset: TypeAlias = Callable[[bool, bool], bool]
"""Whether an offset counts when its transaction ends: if that is committed, and if a later offset has been."""


def counts_if_latest(committed: bool, is_overtaken: bool) -> bool:
    """An offset counts if its transaction is committed, and no record of a later one has been since.

    **Kafka:** `OffsetMetadataManager.replayEndTransactionMarker`, which compares the offsets of the records in the log; the
    older coordinator in `GroupMetadata.completePendingTxnOffsetCommit`.
    """
    return committed and not is_overtaken


def is_unstable(require_stable: bool, is_pending: bool) -> bool:
    """Whether an OffsetFetch is told that an offset is open: if it wants stable ones, and a transaction will commit one.

    **Kafka:** `OffsetMetadataManager.fetchOffsets` (KIP-447).
    """
    return require_stable and is_pending
