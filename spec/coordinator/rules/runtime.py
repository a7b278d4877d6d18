"""On which state of a group a step is taken, and when it is answered."""

from typing import TypeVar

GroupT = TypeVar("GroupT")


def newest(latest: GroupT, committed: GroupT) -> GroupT:
    """A step is taken on the state with all that was written, committed or not.

    **Kafka:** `CoordinatorContext.coordinator`, whose timeline runs ahead of `lastCommittedOffset`.
    """
    return latest


def what_is_committed(latest: GroupT, committed: GroupT) -> GroupT:
    """A read sees what is committed alone. **Kafka:** `CoordinatorReadEvent.run`, by `lastCommittedOffset`."""
    return committed


def unless_stable_or_loaded(is_stable: bool, is_loaded: bool) -> bool:
    """A read of offsets waits if it wants stable ones, or if records were loaded of which it is not known whether they are
    committed.

    **Departs from Kafka** from 4.0 on, whose new coordinator answers from what it knows to be committed
    (`CoordinatorLoaderImpl`: the high watermark of a leader that has just begun), so from before what was acknowledged.
    """
    return not is_stable and not is_loaded


def is_committed(end: int, committed: int) -> bool:
    """Whether an answer may be given that depends on the log up to the offset `end`.

    **Kafka:** `CoordinatorContext.waitForPendingWrites`, `DeferredEventQueue`.
    """
    return end <= committed
