"""A group whose members are processes that read an input, as the models `transactions` and `delivery` have it.

How members join, and what they are assigned, is the subject of model `group`: here a generation begins in one step.
"""

from kspec.spec.coordinator.group import Group, new_group
from kspec.spec.coordinator.loading import replay
from kspec.spec.coordinator.records import GroupMetadataRecord, MemberRecord
from kspec.spec.messages.groups.join_group import CONSUMER
from kspec.spec.values import Generation, GroupId, MemberId, TimestampMs

GROUP = GroupId("group")
INPUT = "input"
"""The topic that processes read."""


def member_name(process: int) -> MemberId:
    """The member of the group that a process is."""
    return MemberId(f"m{process}")


def group_with(group: Group, process: int) -> Group:
    """The group in its next generation, with a process that is to read, beside former ones: as a load of it gives it."""
    name = member_name(process)
    names = sorted({name, *(member.member_id for member in group.members)})
    members = tuple(MemberRecord(one, None, "", "", 0, 0, b"", b"") for one in names)
    return replay(
        group, GroupMetadataRecord(GROUP, CONSUMER, Generation(group.generation + 1), "range", name, None, members)
    )


FIRST_GROUP = group_with(new_group(GROUP, TimestampMs(0)), 1)
"""The group in the beginning: the first process is its member."""
