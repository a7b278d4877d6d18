"""The clients' assignors `sticky` and `cooperative-sticky`: even shares, and members keep what they had."""

from collections import Counter

from kspec.spec.assignors.subscribers import (
    Assignment,
    PartitionCounts,
    Partitions,
    Subscriber,
    TopicT,
    all_partitions,
    by_units,
    existing,
)
from kspec.spec.assignors.turns import adjusted
from kspec.spec.values import MemberId


def assign_sticky(members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT]) -> Assignment[TopicT]:
    """Even shares, and as much as can be stays where it was.

    Of two members that say they had the same partition, that of the later generation is believed, and none of two in the
    same.

    **Kafka:** `AbstractStickyAssignor.assign`. Members come in order of their ids where Kafka goes through a hash table.
    """
    ordered = tuple(sorted(members, key=lambda member: by_units(member.member_id)))
    kept = _believed(ordered, counts)
    if len({member.topics for member in ordered}) <= 1:
        return _same_for_all(ordered, counts, kept)
    return _as_even_as_can_be(ordered, counts, kept)


def assign_cooperatively(members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT]) -> Assignment[TopicT]:
    """As `assign_sticky`, but a partition that another member has yet to give up is given to nobody.

    **Kafka:** `CooperativeStickyAssignor.assignPartitions`.
    """
    return adjusted(members, assign_sticky(members, counts))


def _believed(
    members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT]
) -> dict[MemberId, Partitions[TopicT]]:
    """The partitions that each had, as far as they are there, and nobody else had them since, or at the same time.

    **Kafka:** `AbstractStickyAssignor.allSubscriptionsEqual`.
    """
    claims = [
        (member.generation, member.member_id, one)
        for member in members
        for one in member.owned
        if one[1] < counts.get(one[0], 0)
    ]
    newest: dict[tuple[TopicT, int], int] = {}
    for generation, _, one in claims:
        newest[one] = max(generation, newest.get(one, generation))
    at_last = [(member_id, one) for generation, member_id, one in claims if generation == newest[one]]
    owners = Counter(one for _, one in at_last)
    return {
        member.member_id: frozenset(
            one
            for member_id, one in at_last
            if member_id == member.member_id and owners[one] == 1 and one[0] in member.topics
        )
        for member in members
    }


def _same_for_all(
    members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT], kept: dict[MemberId, Partitions[TopicT]]
) -> Assignment[TopicT]:
    """All subscribe to the same. What is left over goes round, first to who has less than the even share.

    **Kafka:** `AbstractStickyAssignor.ConstrainedAssignmentBuilder.build`.
    """
    partitions = all_partitions(existing(members, counts), counts)
    share, more = divmod(len(partitions), max(len(members), 1))
    found: dict[MemberId, list[tuple[TopicT, int]]] = {}
    for member in members:
        had = sorted(kept[member.member_id], key=lambda one: (one[1], one[0]))
        has_more = len(had) > share and more > 0
        more -= has_more
        found[member.member_id] = had[: share + has_more]
    given = {one for mine in found.values() for one in mine}
    below = [member_id for member_id, mine in found.items() if len(mine) < share]
    exact = [member_id for member_id, mine in found.items() if len(mine) == share and more > 0]
    place = 0
    for one in partitions:
        if one in given:
            continue
        if not below:
            found[exact.pop(0)].append(one)
            continue
        member_id = below[place]
        found[member_id].append(one)
        if len(found[member_id]) == share:
            del below[place]
            exact.append(member_id)
        else:
            place += 1
        place = place if place < len(below) else 0
    return {member_id: frozenset(mine) for member_id, mine in found.items()}


def _as_even_as_can_be(
    members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT], kept: dict[MemberId, Partitions[TopicT]]
) -> Assignment[TopicT]:
    """Members subscribe to different topics. What is free goes to who has least; then what makes shares more even moves.

    If that does not help in the end, it is taken back.

    **Kafka:** `AbstractStickyAssignor.GeneralAssignmentBuilder.build`, `balance`.
    """
    subscribers = {
        topic: tuple(member.member_id for member in members if topic in member.topics) for topic in existing(members, counts)
    }
    partitions = all_partitions(sorted(subscribers, key=lambda topic: (len(subscribers[topic]), topic)), counts)
    owner = {one: member_id for member_id, mine in kept.items() for one in mine}
    sizes = Counter(owner.values())
    initializing = not owner
    free = [one for one in partitions if one not in owner]
    for one in free:
        owner[one] = _least(subscribers[one[0]], sizes)
        sizes[owner[one]] += 1
    movable = [one for one in partitions if len(subscribers[one[0]]) > 1]
    must_give_up = any(one[0] in subscribers and one[0] not in member.topics for member in members for one in member.owned)
    after, earlier = dict(owner), _earlier(members)
    moved: dict[tuple[TopicT, int], tuple[MemberId, MemberId]] = {}
    if not must_give_up:
        _even_out([one for one in movable if one in free], subscribers, earlier, after, moved)
    _even_out(movable, subscribers, earlier, after, moved)
    if not initializing and _unevenness(members, after) >= _unevenness(members, owner):
        after = owner
    return {
        member.member_id: frozenset(one for one, member_id in after.items() if member_id == member.member_id)
        for member in members
    }


def _earlier(members: tuple[Subscriber[TopicT], ...]) -> dict[tuple[TopicT, int], MemberId]:
    """The owners of partitions in earlier generations than the newest that any member knows.

    **Kafka:** `GeneralAssignmentBuilder.prepopulateCurrentAssignments`.
    """
    newest = max((member.generation for member in members), default=0)
    late = sorted((member for member in members if member.generation < newest), key=lambda member: member.generation)
    return {one: member.member_id for member in late for one in member.owned}


def _least(subscribers: tuple[MemberId, ...], sizes: Counter[MemberId]) -> MemberId:
    return min(subscribers, key=lambda member_id: sizes[member_id])


def _unevenness(members: tuple[Subscriber[TopicT], ...], owner: dict[tuple[TopicT, int], MemberId]) -> int:
    """The sum of all differences of shares. **Kafka:** `GeneralAssignmentBuilder.getBalanceScore`."""
    counted = Counter(owner.values())
    sizes = [counted[member.member_id] for member in members]
    return sum(abs(one - other) for place, one in enumerate(sizes) for other in sizes[:place])


def _even_out(
    partitions: list[tuple[TopicT, int]],
    subscribers: dict[TopicT, tuple[MemberId, ...]],
    earlier: dict[tuple[TopicT, int], MemberId],
    owner: dict[tuple[TopicT, int], MemberId],
    moved: dict[tuple[TopicT, int], tuple[MemberId, MemberId]],
) -> None:
    """Move partitions while a share so grows that is smaller by two: to who had it earlier, or else to who has least.

    Of a topic nothing goes from one to the other and something else back: what went the other way goes back.

    **Kafka:** `GeneralAssignmentBuilder.performReassignments`, `PartitionMovements.getTheActualPartitionToBeMoved`,
    `movePartition`.
    """
    sizes, again = Counter(owner.values()), True
    while again:
        again = False
        for one in partitions:
            before, to = owner[one], earlier.get(one)
            if to not in subscribers[one[0]] or sizes[before] <= sizes[to] + 1:
                to = _least(subscribers[one[0]], sizes)
            if sizes[before] <= sizes[to] + 1:
                continue
            again = True
            origin = moved[one][0] if one in moved else before
            returns = [other for other, pair in sorted(moved.items()) if other[0] == one[0] and pair == (to, origin)]
            taken = next((other for other in returns if owner[other] == before), one)
            origin = moved.pop(taken)[0] if taken in moved else before
            moved.update({} if origin == to else {taken: (origin, to)})
            owner[taken] = to
            sizes[before] -= 1
            sizes[to] += 1
