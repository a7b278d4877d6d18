"""Owners of partitions as the members of a group know it, and the times for which two had one at once."""

from collections.abc import Iterable
from typing import NamedTuple

from kspec.trials.history.events import Event, OwnershipEnd, OwnershipStart


class SharedTime(NamedTuple):
    """A time (ms) for which two members have held a partition at once: from `began` to `ended`."""

    partition: str
    members: tuple[str, str]
    began: int
    ended: int

    @property
    def took(self) -> int:
        """The length of it (ms)."""
        return self.ended - self.began


def shared_times(events: Iterable[Event], end_ms: int) -> list[SharedTime]:
    """All times for which two members have held one partition. `end_ms`: the end of a time that nobody has ended."""
    held: dict[str, dict[str, int]] = {}
    found: list[SharedTime] = []
    for event in events:
        match event:
            case OwnershipStart():
                held.setdefault(event.partition, {}).setdefault(event.client, event.ms)
            case OwnershipEnd():
                owners = held.get(event.partition, {})
                began = owners.pop(event.client, None)
                if began is not None:
                    found += _with_others(event.partition, event.client, began, owners, event.ms)
    for partition, owners in held.items():
        left = dict(owners)
        for member, began in owners.items():
            del left[member]
            found += _with_others(partition, member, began, left, end_ms)
    return found


def _with_others(partition: str, member: str, began: int, owners: dict[str, int], ended: int) -> Iterable[SharedTime]:
    return [SharedTime(partition, (member, other), max(began, since), ended) for other, since in owners.items()]


def owners_at_the_end(events: Iterable[Event]) -> dict[str, set[str]]:
    """The owners of each partition that anybody has held, at the end."""
    held: dict[str, set[str]] = {}
    for event in events:
        match event:
            case OwnershipStart():
                held.setdefault(event.partition, set()).add(event.client)
            case OwnershipEnd():
                held.setdefault(event.partition, set()).discard(event.client)
    return held
