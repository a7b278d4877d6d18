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


def is_committed(end: int, committed: int) -> bool:
    """Whether an answer may be given that depends on the log up to the offset `end`.

    **Kafka:** `CoordinatorContext.waitForPendingWrites`, `DeferredEventQueue`.
    """
    return end <= committed
