"""Positions of a group: its partitions, with what is committed, where the log ends, and who reads them."""

from collections.abc import Iterable
from typing import NamedTuple

from kspec.cli.broker.asking import TopicAndPartition
from kspec.cli.broker.groups.asking import LATEST, GroupAdmin, OffsetOfGroup, ShownGroup


class Position(NamedTuple):
    """A partition of a group; `None` for what is not known, or not there."""

    of: TopicAndPartition
    offset: int | None
    leader_epoch: int | None
    end: int | None
    consumer: str | None = None
    host: str | None = None
    client: str | None = None

    @property
    def lag(self) -> int | None:
        """The number of records that are not read yet."""
        return None if self.offset is None or self.end is None else self.end - self.offset


def positions(admin: GroupAdmin, group: ShownGroup) -> list[Position]:
    """The partitions of members, those with most first, and then the partitions that nobody has."""
    committed = admin.committed(group.name)
    busy = sorted((one for one in group.members if one.assigned), key=lambda one: -len(one.assigned))
    assigned = {one for member in busy for one in member.assigned}
    ends = admin.offsets(assigned | set(committed), LATEST)
    found = []
    for member in busy:
        known = _known(member.assigned, committed, ends)
        found += [one._replace(consumer=member.name, host=member.host, client=member.client) for one in known]
    return found + _known(set(committed) - assigned, committed, ends)


def _known(
    partitions: Iterable[TopicAndPartition],
    committed: dict[TopicAndPartition, OffsetOfGroup],
    ends: dict[TopicAndPartition, int],
) -> list[Position]:
    found = []
    for one in sorted(partitions):
        own = committed.get(one)
        epoch = own.leader_epoch if own is not None and own.leader_epoch >= 0 else None
        found.append(Position(one, own.offset if own else None, epoch, ends.get(one)))
    return found
