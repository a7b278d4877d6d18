"""The coordinator's assignor `uniform`: as even as it can be, and then as sticky as it can be.

Kafka goes through members in the order of a hash table, so its very sets are no function of what the members are. Here they
are gone through in order of their ids. What counts is the same: everything is assigned, sizes, and what members keep.
"""

from kspec.spec.assignors.subscribers import (
    Assignment,
    PartitionCounts,
    Subscriber,
    TopicT,
    all_partitions,
    by_units,
    existing,
)
from kspec.spec.values import MemberId

MAX_ROUNDS = 16
"""The rounds through all topics for a better balance, at most. Kafka: `MAX_ITERATION_COUNT`."""


def assign_uniformly(members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT]) -> Assignment[TopicT]:
    """Even shares; among members that subscribe to different topics, as even as their subscriptions allow.

    **Kafka:** `UniformAssignor.assign`.
    """
    ordered = tuple(sorted(members, key=lambda member: by_units(member.member_id)))
    if len({member.topics for member in ordered}) <= 1:
        return _shared_equally(ordered, counts)
    return _balanced(ordered, counts)


def _shared_equally(members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT]) -> Assignment[TopicT]:
    """All subscribe to the same: each keeps what it had up to its share, and what is left fills up who has less.

    **Kafka:** `UniformHomogeneousAssignmentBuilder.build`, `maybeRevokePartitions`, `assignRemainingPartitions`.
    """
    partitions = all_partitions(existing(members, counts), counts)
    share, more = divmod(len(partitions), max(len(members), 1))
    there = frozenset(partitions)
    kept: dict[MemberId, set[tuple[TopicT, int]]] = {}
    taken: set[tuple[TopicT, int]] = set()
    quotas = {member.member_id: share + (place < more) for place, member in enumerate(members)}
    for member in members:
        kept[member.member_id] = set(sorted((member.owned & there) - taken)[: quotas[member.member_id]])
        taken |= kept[member.member_id]
    left = [one for one in partitions if one not in taken]
    for member in members:
        missing = quotas[member.member_id] - len(kept[member.member_id])
        kept[member.member_id] |= set(left[:missing])
        left = left[missing:]
    return {member_id: frozenset(given) for member_id, given in kept.items()}


def _balanced(members: tuple[Subscriber[TopicT], ...], counts: PartitionCounts[TopicT]) -> Assignment[TopicT]:
    """Members keep what they had, what nobody had goes to who has least, and then partitions move to even things out.

    Topics come in order of partitions for each subscriber (most first), of subscribers (fewest first), and of the topic.

    **Kafka:** `UniformHeterogeneousAssignmentBuilder.build`, `assignRemainingPartitions`, `balance`.
    """
    subscribers = {
        topic: tuple(member.member_id for member in members if topic in member.topics) for topic in existing(members, counts)
    }
    topics = sorted(subscribers, key=lambda one: (-counts[one] / len(subscribers[one]), len(subscribers[one]), one))
    owner = {
        (topic, index): member.member_id
        for member in members
        for topic, index in sorted(member.owned)
        if topic in member.topics and topic in counts and index < counts[topic]
    }
    sizes = {member.member_id: 0 for member in members}
    for member_id in owner.values():
        sizes[member_id] += 1
    for topic in topics:
        for partition in all_partitions((topic,), counts):
            if partition not in owner:
                least = min(subscribers[topic], key=lambda one: sizes[one])
                owner[partition] = least
                sizes[least] += 1
    moved = (
        sum(_evened_out(all_partitions((topic,), counts), subscribers[topic], owner, sizes) for topic in topics)
        for _ in range(MAX_ROUNDS)
    )
    all(moved)  # round after round, until one moves nothing
    return {
        member.member_id: frozenset(one for one, member_id in owner.items() if member_id == member.member_id)
        for member in members
    }


def _evened_out(
    partitions: tuple[tuple[TopicT, int], ...],
    subscribers: tuple[MemberId, ...],
    owner: dict[tuple[TopicT, int], MemberId],
    sizes: dict[MemberId, int],
) -> int:
    """Move partitions of one topic from who has most to who has least, while that makes them more even; how many moved.

    **Kafka:** `UniformHeterogeneousAssignmentBuilder.balanceTopic`.
    """
    moved = 0
    for partition in reversed(partitions):
        before, least = owner[partition], min(subscribers, key=lambda one: sizes[one])
        most = max((owner[one] for one in partitions), key=lambda one: sizes[one])
        if sizes[before] == sizes[most] and sizes[before] - sizes[least] > 1:
            owner[partition] = least
            sizes[before] -= 1
            sizes[least] += 1
            moved += 1
    return moved
