"""Assignors that go through members in order: range, for both protocols, and round-robin."""

from kspec.spec.assignors.subscribers import (
    Assignment,
    PartitionCounts,
    Partitions,
    Subscriber,
    TopicT,
    all_partitions,
    existing,
    in_order,
)
from kspec.spec.values import MemberId


def assign_ranges(members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT]) -> Assignment[TopicT]:
    """Each topic by itself: every subscriber gets a range of its partitions, the first ones one more if they do not go up.

    Topics with the same subscribers and as many partitions so have the same ranges. Nothing is sticky but instance ids.

    **Kafka:** `RangeAssignor.assign` of clients without racks, `RangeAssignor.assign` of the coordinator.
    """
    found: dict[MemberId, set[tuple[TopicT, int]]] = {member.member_id: set() for member in members}
    for topic in existing(members, counts):
        subscribers = [member for member in in_order(members) if topic in member.topics]
        share, more = divmod(counts[topic], len(subscribers))
        begin = 0
        for place, member in enumerate(subscribers):
            end = begin + share + (place < more)
            found[member.member_id] |= {(topic, index) for index in range(begin, end)}
            begin = end
    return {member_id: frozenset(partitions) for member_id, partitions in found.items()}


def assign_in_turn(members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT]) -> Assignment[TopicT]:
    """All partitions in order of topic and number, to members in turn; who has not subscribed to a topic is passed over.

    **Kafka:** `RoundRobinAssignor.assign`.
    """
    found: dict[MemberId, set[tuple[TopicT, int]]] = {member.member_id: set() for member in members}
    waiting: list[Subscriber[TopicT]] = list(in_order(members))
    for topic, index in all_partitions(existing(members, counts), counts):
        place = next(number for number, member in enumerate(waiting) if topic in member.topics)
        found[waiting[place].member_id].add((topic, index))
        waiting = waiting[place + 1 :] + waiting[: place + 1]
    return {member_id: frozenset(partitions) for member_id, partitions in found.items()}


def adjusted(members: tuple[Subscriber[TopicT], ...], assignment: Assignment[TopicT]) -> Assignment[TopicT]:
    """An assignment without the partitions that other members have yet to give up: they come with the next rebalance.

    Nobody so gets a partition in the same rebalance in which another loses it (KIP-429).

    **Kafka:** `CooperativeStickyAssignor.adjustAssignment`, `computePartitionsTransferringOwnership`.
    """
    had: dict[tuple[TopicT, int], MemberId] = {one: member.member_id for member in members for one in member.owned}

    def without_moving(member_id: MemberId, partitions: Partitions[TopicT]) -> Partitions[TopicT]:
        return frozenset(one for one in partitions if had.get(one, member_id) == member_id)

    return {member_id: without_moving(member_id, partitions) for member_id, partitions in assignment.items()}
