"""A cluster's partitions by its responses: leader, epoch, ISR, and the log end and high watermark of each replica."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from kspec.impl.wire.values import Message
from kspec.trials.cluster.asking import NOT_REACHED, NodeClient, by_topic

METADATA, LIST_OFFSETS, FETCH = 9, 7, 12
"""Versions of the requests: the last ones with topic names."""

CONSUMER, DEBUGGING_CONSUMER, LATEST, NONE = -1, -2, -1, -1


class ReportedReplica(NamedTuple):
    """A replica by its broker's responses. `high_watermark`: none where the broker does not report it."""

    end_offset: int
    high_watermark: int | None


class PartitionView(NamedTuple):
    """A partition by a broker's metadata, and each replica whose broker responds."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    seen: Mapping[int, ReportedReplica]


class ReportedPartition(NamedTuple):
    """A partition by one broker's metadata, which may be stale."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


Key = tuple[str, int]


class ClusterProbe:
    """A probe of the brokers of a cluster; a broker that does not respond is left out."""

    def __init__(self, ports: Mapping[int, tuple[str, int]]) -> None:
        self._nodes = {broker: NodeClient(*place) for broker, place in ports.items()}

    def close(self) -> None:
        """Close the connections."""
        for node in self._nodes.values():
            node.close()

    async def partitions(self, only: str | None = None) -> list[PartitionView]:
        """All partitions, or those of one topic, by the first broker that responds; none if no broker does."""
        told = await self._metadata(only)
        of_broker: dict[int, list[Key]] = {}
        for key, partition in told.items():
            for broker in partition.replica_nodes:
                of_broker.setdefault(broker, []).append(key)
        brokers = [broker for broker in of_broker if broker in self._nodes]
        found = await asyncio.gather(*(self._replicas(broker, of_broker[broker]) for broker in brokers))
        by_broker = dict(zip(brokers, found, strict=True))
        return [
            PartitionView(
                *key,
                partition.leader_id,
                partition.leader_epoch,
                tuple(partition.replica_nodes),
                tuple(partition.isr_nodes),
                {broker: seen[key] for broker, seen in by_broker.items() if key in seen},
            )
            for key, partition in sorted(told.items())
        ]

    async def told_by(self, broker: int, topic: str) -> ReportedPartition | None:
        """One broker's report of a topic's first partition; none if it does not respond, or does not know the topic."""
        answer = await self._tried(broker, "Metadata", METADATA, topics=[Message(name=topic)])
        part = None if answer is None else _partitions_of(answer).get((topic, 0))
        return None if part is None else ReportedPartition(part.leader_id, part.leader_epoch, tuple(part.isr_nodes))

    async def _metadata(self, only: str | None) -> dict[Key, Message]:
        topics = None if only is None else [Message(name=only)]
        answers = (self._tried(broker, "Metadata", METADATA, topics=topics) for broker in self._nodes)
        best: dict[Key, Message] = {}
        for answer in await asyncio.gather(*answers):
            told = {} if answer is None else _partitions_of(answer)
            newer = {
                key: part for key, part in told.items() if key not in best or best[key].leader_epoch < part.leader_epoch
            }
            best |= newer
        return best

    async def _replicas(self, broker: int, keys: list[Key]) -> dict[Key, ReportedReplica]:
        asked = [
            (topic, Message(partition_index=number, current_leader_epoch=NONE, timestamp=LATEST)) for topic, number in keys
        ]
        topics = [Message(name=topic, partitions=parts) for topic, parts in by_topic(asked).items()]
        listed = await self._tried(
            broker, "ListOffsets", LIST_OFFSETS, replica_id=DEBUGGING_CONSUMER, isolation_level=0, topics=topics
        )
        if listed is None:
            return {}
        ends = {
            (topic.name, part.partition_index): int(part.offset)
            for topic in listed.topics
            for part in topic.partitions
            if part.error_code == 0
        }
        looked = [
            (topic, Message(partition=number, fetch_offset=end, partition_max_bytes=1))
            for (topic, number), end in ends.items()
        ]
        wanted = [Message(topic=topic, partitions=parts) for topic, parts in by_topic(looked).items()]
        fetched = await self._tried(
            broker, "Fetch", FETCH, replica_id=CONSUMER, max_wait_ms=0, min_bytes=0, max_bytes=1, topics=wanted
        )
        marks = {
            (topic.topic, part.partition_index): int(part.high_watermark)
            for topic in (fetched.responses if fetched is not None else ())
            for part in topic.partitions
            if part.error_code == 0
        }
        return {key: ReportedReplica(end, marks.get(key)) for key, end in ends.items()}

    async def _tried(self, broker: int, name: str, version: int, **fields: object) -> Message | None:
        try:
            return await self._nodes[broker].ask(name, version, **fields)
        except NOT_REACHED:
            return None


def _partitions_of(metadata: Message) -> dict[Key, Message]:
    return {
        (topic.name, part.partition_index): part
        for topic in metadata.topics
        if topic.error_code == 0
        for part in topic.partitions
    }
