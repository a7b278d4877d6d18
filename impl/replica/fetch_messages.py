"""A follower's requests and their answers, in the words of the wire and in those of `spec`."""

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.records.batch import BatchHeader, InvalidBatchError, headers, is_intact
from kspec.impl.records.markers import batch_in
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.fetch_sessions import ClientSession
from kspec.spec.broker.clients.offset_requests import EARLIEST, LATEST
from kspec.spec.broker.effects import FollowerRequest
from kspec.spec.log.batch import count_records
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kspec.spec.messages.list_offsets import OffsetSpec as WantedOffset
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.topics import TopicPartition
from kspec.spec.values import UNDEFINED_EPOCH_END, BrokerId, Epoch, EpochEndOffset, Error, Offset

RequestT = TypeVar("RequestT", bound=FollowerRequest)
ResponseT = TypeVar("ResponseT")


class FetchingPartition(NamedTuple, Generic[RequestT]):
    """A partition and its next request."""

    replica: Replica
    request: RequestT


class PartitionAnswer(NamedTuple, Generic[ResponseT]):
    """An answer for one partition in the words of `spec`, and the bytes of its batches."""

    response: ResponseT
    payloads: tuple[memoryview, ...] = ()


# ---- Fetch


def fetch_request(
    core: BrokerCore,
    session: ClientSession,
    broker_epoch: int,
    named: Sequence[FetchingPartition[FetchRequest]],
    forgotten: Iterable[Replica],
) -> Message:
    """A fetch of these partitions, in a session. **Kafka:** `RemoteLeaderEndPoint.buildFetch`."""
    config, self_id = core.config, core.cluster.self_id
    by_topic: dict[bytes, list[FetchingPartition[FetchRequest]]] = {}
    for one in named:
        by_topic.setdefault(one.replica.topic_id, []).append(one)
    topics = [
        Message(
            topic=asking[0].replica.place.topic,
            topic_id=asking[0].replica.topic_id,
            partitions=[_asked(one, config.number("replica.fetch.max.bytes")) for one in asking],
        )
        for asking in by_topic.values()
    ]
    left: dict[bytes, list[Replica]] = {}
    for replica in forgotten:
        left.setdefault(replica.topic_id, []).append(replica)
    gone = [
        Message(topic=one[0].place.topic, topic_id=topic_id, partitions=[replica.place.partition for replica in one])
        for topic_id, one in left.items()
    ]
    return Message(
        replica_id=self_id,
        replica_state=Message(replica_id=self_id, replica_epoch=broker_epoch),
        max_wait_ms=config.number("replica.fetch.wait.max.ms"),
        min_bytes=config.number("replica.fetch.min.bytes"),
        max_bytes=config.number("replica.fetch.response.max.bytes"),
        session_id=session.session_id,
        session_epoch=session.epoch,
        topics=topics,
        forgotten_topics_data=gone,
    )


def _asked(one: FetchingPartition[FetchRequest], most_bytes: int) -> Message:
    fetch = one.request.fetch
    return Message(
        partition=one.replica.place.partition,
        current_leader_epoch=fetch.current_leader_epoch,
        fetch_offset=fetch.fetch_offset,
        last_fetched_epoch=fetch.last_fetched_epoch,
        log_start_offset=one.request.start_offset,
        partition_max_bytes=most_bytes,
    )


def fetched(fetch_offset: Offset, part: Message) -> list[PartitionAnswer[FetchResponse]] | None:
    """The answer for a partition, in pieces where offsets are missing between batches. `None` if a batch is corrupt.

    A last batch that is cut off is left for the next fetch.
    """
    records = memoryview(part.records) if part.records is not None else memoryview(b"")
    diverging = part.diverging_epoch
    end = UNDEFINED_EPOCH_END
    if diverging is not None and diverging.end_offset >= 0:
        end = EpochEndOffset(Epoch(diverging.epoch), Offset(diverging.end_offset))
    response = FetchResponse(
        Error(part.error_code) if part.error_code else Error.NONE,
        fetch_offset,
        (),
        Offset(part.high_watermark),
        Offset(part.log_start_offset),
        Offset(part.last_stable_offset),
        end,
    )
    runs: list[list[BatchHeader]] = []
    try:
        for header in headers(_whole(records)):
            if not is_intact(records, header):
                return None
            if runs and runs[-1][-1].next_offset == header.base_offset:
                runs[-1].append(header)
            else:
                runs.append([header])
    except InvalidBatchError:
        return None
    if not runs:
        return [PartitionAnswer(response)]
    return [
        PartitionAnswer(
            response._replace(base_offset=run[0].base_offset, records=tuple(batch_in(header, records) for header in run)),
            tuple(records[header.position : header.position + header.size] for header in run),
        )
        for run in runs
    ]


def end_of(answered: PartitionAnswer[FetchResponse]) -> Offset:
    """The end of a piece of an answer: the next piece follows only a log that has taken all of this one."""
    response = answered.response
    return Offset(response.base_offset + count_records(response.records))


LENGTH_AT, LENGTH_END = 8, 12


def _whole(records: memoryview) -> memoryview:
    """The part of the records that has whole batches only."""
    position = 0
    while position + LENGTH_END <= len(records):
        following = position + LENGTH_END + int.from_bytes(records[position + LENGTH_AT : position + LENGTH_END], "big")
        if following > len(records):
            break
        position = following
    return records[:position]


# ---- OffsetForLeaderEpoch


def _by_topic(asking: Sequence[FetchingPartition[RequestT]]) -> dict[str, list[FetchingPartition[RequestT]]]:
    found: dict[str, list[FetchingPartition[RequestT]]] = {}
    for one in asking:
        found.setdefault(one.replica.place.topic, []).append(one)
    return found


def epochs_request(self_id: BrokerId, asking: Sequence[FetchingPartition[OffsetForLeaderEpochRequest]]) -> Message:
    """The question where epochs end. **Kafka:** `RemoteLeaderEndPoint.fetchEpochEndOffsets`."""
    topics = [
        Message(
            topic=topic,
            partitions=[
                Message(
                    partition=one.replica.place.partition,
                    current_leader_epoch=one.request.current_leader_epoch,
                    leader_epoch=one.request.leader_epoch,
                )
                for one in asked
            ],
        )
        for topic, asked in _by_topic(asking).items()
    ]
    return Message(replica_id=self_id, topics=topics)


def epoch_ends(answer: Message) -> dict[TopicPartition, OffsetForLeaderEpochResponse]:
    """Ends of epochs, by partition."""
    return {
        TopicPartition(topic.topic, part.partition): OffsetForLeaderEpochResponse(
            Error(part.error_code), EpochEndOffset(Epoch(part.leader_epoch), Offset(part.end_offset))
        )
        for topic in answer.topics
        for part in topic.partitions
    }


# ---- ListOffsets


def list_offsets_request(self_id: BrokerId, asking: Sequence[FetchingPartition[ListOffsetsRequest]]) -> Message:
    """The question where logs end or begin. **Kafka:** `RemoteLeaderEndPoint.fetchOffset`."""
    topics = [
        Message(
            name=topic,
            partitions=[
                Message(
                    partition_index=one.replica.place.partition,
                    current_leader_epoch=one.request.current_leader_epoch,
                    timestamp=LATEST if one.request.wanted == WantedOffset.LATEST else EARLIEST,
                )
                for one in asked
            ],
        )
        for topic, asked in _by_topic(asking).items()
    ]
    return Message(replica_id=self_id, topics=topics)


def listed_offsets(answer: Message) -> dict[TopicPartition, ListOffsetsResponse]:
    """Offsets, by partition."""
    return {
        TopicPartition(topic.name, part.partition_index): ListOffsetsResponse(Error(part.error_code), Offset(part.offset))
        for topic in answer.topics
        for part in topic.partitions
    }
