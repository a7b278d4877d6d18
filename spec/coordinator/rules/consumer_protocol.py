"""Bytes that consumers put into JoinGroup and SyncGroup: subscriptions, read, and assignments, read and written.

A coordinator needs them when members of the classic protocol are in a consumer group. Later versions append to what earlier
ones have. Kafka: `ConsumerProtocol`, `ConsumerProtocolSubscription`, `ConsumerProtocolAssignment`.
"""

from typing import NamedTuple

NamedPartitions = frozenset[tuple[str, int]]
"""Partitions by the names of their topics."""


class SubscriptionInBytes(NamedTuple):
    """A consumer's subscription; `owned` is what it has, from layout 1 on. Kafka: `ConsumerProtocolSubscription`.

    **Leaves out:** the generation (layout 2), which the coordinator does not look at, and the rack (layout 3).
    """

    layout: int
    topics: frozenset[str]
    owned: NamedPartitions


class AssignmentInBytes(NamedTuple):
    """A consumer's assignment, and what its assignor adds. Kafka: `ConsumerProtocolAssignment`."""

    partitions: NamedPartitions
    user_data: bytes


class TopicsInBytes(NamedTuple):
    """Something read from bytes, and where it ends; `None` if it cannot be read."""

    value: tuple[tuple[str, tuple[int, ...]], ...]
    end: int


def read_subscription(data: bytes) -> SubscriptionInBytes | None:
    """The subscription in these bytes, `None` if they are none.

    **Kafka:** `ConsumerProtocol.deserializeConsumerProtocolSubscription`.
    """
    layout = _integer(data, 0, 2)
    topics = _read_topics(data, 2, with_partitions=False)
    if layout < 0 or topics is None:
        return None
    after = _end_of_bytes(data, topics.end)
    names = frozenset(name for name, _ in topics.value)
    if after is None:
        return None
    if layout == 0:
        return SubscriptionInBytes(layout, names, frozenset())
    owned = _read_topics(data, after, with_partitions=True)
    return None if owned is None else SubscriptionInBytes(layout, names, _partitions(owned))


def read_assignment(data: bytes) -> AssignmentInBytes | None:
    """The assignment in these bytes, `None` if they are none. **Kafka:** `deserializeConsumerProtocolAssignment`."""
    partitions = _read_topics(data, 2, with_partitions=True)
    if _integer(data, 0, 2) < 0 or partitions is None:
        return None
    end = _end_of_bytes(data, partitions.end)
    return None if end is None else AssignmentInBytes(_partitions(partitions), data[partitions.end + 4 : end])


def write_assignment(layout: int, partitions: NamedPartitions) -> bytes:
    """The bytes of an assignment. **Kafka:** `ConsumerProtocol.serializeAssignment`."""
    names = sorted({name for name, _ in partitions})
    written = [layout.to_bytes(2, "big"), len(names).to_bytes(4, "big")]
    for name in names:
        indexes = sorted(index for of, index in partitions if of == name)
        encoded = name.encode("utf-8", "replace")
        written += [len(encoded).to_bytes(2, "big"), encoded, len(indexes).to_bytes(4, "big")]
        written += [index.to_bytes(4, "big") for index in indexes]
    return b"".join((*written, b"\xff\xff\xff\xff"))


def _partitions(read: TopicsInBytes) -> NamedPartitions:
    return frozenset((name, index) for name, indexes in read.value for index in indexes)


def _read_topics(data: bytes, position: int, with_partitions: bool) -> TopicsInBytes | None:
    """An array of names, each with an array of numbers where `with_partitions` says so."""
    count, position, found = _integer(data, position, 4), position + 4, []
    if position > len(data) or count < 0:
        return None
    for _ in range(count):
        length = _integer(data, position, 2)
        name, position = data[position + 2 : position + 2 + length], position + 2 + length
        if length < 0 or position > len(data):
            return None
        numbers = _integer(data, position, 4) if with_partitions else 0
        position += 4 if with_partitions else 0
        if numbers < 0 or position + 4 * numbers > len(data):
            return None
        indexes = tuple(_integer(data, position + 4 * number, 4) for number in range(numbers))
        position += 4 * numbers
        found.append((name.decode("utf-8", "replace"), indexes))
    return TopicsInBytes(tuple(found), position)


def _end_of_bytes(data: bytes, position: int) -> int | None:
    """The end of bytes that begin here with their length, which may be -1 for none."""
    end = position + 4 + max(_integer(data, position, 4), 0)
    return end if end <= len(data) else None


def _integer(data: bytes, position: int, size: int) -> int:
    return int.from_bytes(data[position : position + size], "big", signed=True)
