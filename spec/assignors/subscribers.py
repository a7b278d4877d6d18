"""The input of an assignor: members with what they subscribe to and had, and the topics with their partitions.

A topic is named by its name at clients, and by its id at the coordinator: an assignor asks only that topics can be ordered.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from kspec.spec.values import NO_GENERATION, Generation, MemberId

TopicT = TypeVar("TopicT", str, bytes)

Partitions: TypeAlias = frozenset[tuple[TopicT, int]]
"""Partitions as pairs of a topic and a number."""

PartitionCounts: TypeAlias = Mapping[TopicT, int]
"""The number of partitions of each topic that there is."""

Assignment: TypeAlias = dict[MemberId, Partitions[TopicT]]
"""The partitions of each member."""


class Subscriber(NamedTuple, Generic[TopicT]):
    """A member as an assignor sees it. `owned`: what it had, in the generation `generation`.

    Kafka: `ConsumerPartitionAssignor.Subscription` and `AbstractPartitionAssignor.MemberInfo` of clients;
    `MemberSubscription` and `MemberAssignment` of the coordinator. **Leaves out:** racks (KIP-881).
    """

    member_id: MemberId
    topics: frozenset[TopicT]
    owned: Partitions[TopicT] = frozenset()
    generation: Generation = NO_GENERATION
    instance_id: str | None = None


def by_units(text: str) -> bytes:
    """The key that sorts strings as Java does, by UTF-16 units. **Kafka:** `String.compareTo`."""
    return text.encode("utf-16-be", "surrogatepass")


def in_order(members: Iterable[Subscriber[TopicT]]) -> tuple[Subscriber[TopicT], ...]:
    """Static members by their instance ids, then the others by their member ids.

    **Kafka:** `AbstractPartitionAssignor.MemberInfo.compareTo`, `RangeAssignor.sortMemberIds` of the coordinator.
    """

    def place(member: Subscriber[TopicT]) -> tuple[bool, bytes]:
        is_dynamic = member.instance_id is None
        return is_dynamic, by_units(member.instance_id or "") if not is_dynamic else by_units(member.member_id)

    return tuple(sorted(members, key=place))


def existing(members: Iterable[Subscriber[TopicT]], counts: PartitionCounts[TopicT]) -> tuple[TopicT, ...]:
    """The topics that there are of those that anybody subscribes to, in order."""
    return tuple(sorted({topic for member in members for topic in member.topics if topic in counts}))


def all_partitions(topics: Iterable[TopicT], counts: PartitionCounts[TopicT]) -> tuple[tuple[TopicT, int], ...]:
    """All partitions of these topics, in order of both. **Kafka:** `AbstractPartitionAssignor.partitions`."""
    return tuple((topic, index) for topic in topics for index in range(counts[topic]))
