"""A follower's requests and their answers, in the words of the wire and in those of `spec`."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from impl.broker.core import Core
from impl.broker.replica import Place, Replica
from impl.records.batch import BatchHeader, InvalidBatchError, headers, is_intact
from impl.wire.values import Message
from spec.broker.clients.fetch_sessions import ClientSession
from spec.broker.clients.offset_requests import EARLIEST, LATEST
from spec.log.batch import Batch
from spec.messages.fetch import FetchResponse
from spec.messages.list_offsets import ListOffsetsResponse
from spec.messages.list_offsets import Wanted as WantedOffset
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from spec.values import UNDEFINED_EPOCH_END, BrokerId, Epoch, EpochEndOffset, Error, Offset


class Asking(Protocol):
    """A partition and its request."""

    @property
    def replica(self) -> Replica:
        """The partition."""

    @property
    def request(self) -> Any:
        """What it asks."""


class Answered(NamedTuple):
    """An answer for one partition in the words of `spec`, and the bytes of its batches."""

    response: Any
    payloads: tuple[memoryview, ...] = ()


# ---- Fetch


def fetch_request(
    core: Core, session: ClientSession, broker_epoch: int, named: Sequence[Asking], forgotten: Iterable[Replica]
) -> Message:
    """A fetch of these partitions, in a session. **Kafka:** `RemoteLeaderEndPoint.buildFetch`."""
    config, self_id = core.config, core.cluster.self_id
    by_topic: dict[bytes, list[Asking]] = {}
    for one in named:
        by_topic.setdefault(one.replica.topic_id, []).append(one)
    topics = [
        Message(
            topic=asking[0].replica.place.topic,
            topic_id=asking[0].replica.topic_id,
            partitions=[_asked(one, config["replica.fetch.max.bytes"]) for one in asking],
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
        max_wait_ms=config["replica.fetch.wait.max.ms"],
        min_bytes=config["replica.fetch.min.bytes"],
        max_bytes=config["replica.fetch.response.max.bytes"],
        session_id=session.session_id,
        session_epoch=session.epoch,
        topics=topics,
        forgotten_topics_data=gone,
    )


def _asked(one: Asking, most_bytes: int) -> Message:
    fetch = one.request.fetch
    return Message(
        partition=one.replica.place.partition,
        current_leader_epoch=fetch.current_leader_epoch,
        fetch_offset=fetch.fetch_offset,
        last_fetched_epoch=fetch.last_fetched_epoch,
        log_start_offset=one.request.start_offset,
        partition_max_bytes=most_bytes,
    )


def fetched(fetch_offset: Offset, part: Message) -> list[Answered] | None:
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
        return [Answered(response)]
    return [
        Answered(
            response._replace(base_offset=run[0].base_offset, records=tuple(map(_batch, run))),
            tuple(records[header.position : header.position + header.size] for header in run),
        )
        for run in runs
    ]


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


def _batch(header: BatchHeader) -> Batch:
    return Batch(
        header.last_offset_delta + 1,
        header.leader_epoch,
        payload=0,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        first_sequence=header.base_sequence,
    )


# ---- OffsetForLeaderEpoch


def _by_topic(asking: Sequence[Asking]) -> dict[str, list[Asking]]:
    found: dict[str, list[Asking]] = {}
    for one in asking:
        found.setdefault(one.replica.place.topic, []).append(one)
    return found


def epochs_request(self_id: BrokerId, asking: Sequence[Asking]) -> Message:
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


def epoch_ends(answer: Message) -> dict[Place, OffsetForLeaderEpochResponse]:
    """Where epochs end, by partition."""
    return {
        Place(topic.topic, part.partition): OffsetForLeaderEpochResponse(
            Error(part.error_code), EpochEndOffset(Epoch(part.leader_epoch), Offset(part.end_offset))
        )
        for topic in answer.topics
        for part in topic.partitions
    }


# ---- ListOffsets


def list_offsets_request(self_id: BrokerId, asking: Sequence[Asking]) -> Message:
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


def listed_offsets(answer: Message) -> dict[Place, ListOffsetsResponse]:
    """Offsets, by partition."""
    return {
        Place(topic.name, part.partition_index): ListOffsetsResponse(Error(part.error_code), Offset(part.offset))
        for topic in answer.topics
        for part in topic.partitions
    }
