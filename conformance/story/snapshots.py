"""Snapshots of a cluster: replicas' files, acknowledgements, the controller's log; and the violations in them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kspec.impl.metadata.image import ClusterImage
from kspec.impl.records.batch import InvalidBatchError, headers
from kspec.impl.records.record import records_of
from kspec.spec.metadata import PartitionRegistration, partition_of
from kspec.spec.values import Record

HIGH_WATERMARKS = "replication-offset-checkpoint"

Log = tuple[Record, ...]


class ReplicaSnapshot(NamedTuple):
    """A replica. `log`: the records in its files; `high_watermark`: of its checkpoint, which is written every 20 ms."""

    log: Log
    high_watermark: int


class AckedRecord(NamedTuple):
    """A record that was acknowledged at an offset."""

    offset: int
    value: int


class ClusterSnapshot(NamedTuple):
    """The visible state of a cluster at one time. `eligible`: the eligible leader replicas."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]
    replicas: Mapping[int, ReplicaSnapshot]
    acknowledged: frozenset[AckedRecord]
    eligible: frozenset[int] = frozenset()

    @property
    def next_leaders(self) -> list[int]:
        """The brokers that may lead next."""
        return sorted(self.isr | self.eligible)


def value_of(number: int) -> bytes:
    """The value of the record that the model calls by this number."""
    return b"m%d" % number


def replica_in(data: Path, topic: str) -> ReplicaSnapshot:
    """The replica of partition 0 in a broker's folder."""
    segments = sorted((data / f"{topic}-0").glob("*.log"))
    return ReplicaSnapshot(log_of(segment.read_bytes() for segment in segments), checkpoints_in(data).get(f"{topic} 0", 0))


def log_of(segments: Iterable[bytes]) -> Log:
    """The records in the content of segments, in their order. A batch that is being written does not count yet."""
    found: list[Record] = []
    for content in segments:
        try:
            for header in headers(content):
                batch = content[header.position : header.position + header.size]
                found += [Record(int((one.value or b"m0")[1:]), header.leader_epoch) for one in records_of(batch)]
        except InvalidBatchError:
            pass
    return tuple(found)


def checkpoints_in(data: Path) -> dict[str, int]:
    """The checkpoint of high watermarks: by topic and partition. Kafka: `OffsetCheckpointFile`."""
    try:
        lines = (data / HIGH_WATERMARKS).read_text(encoding="utf-8").splitlines()[2:]
    except OSError:
        return {}
    return {place: int(offset) for place, _, offset in (line.rpartition(" ") for line in lines)}


def partition_in(image: ClusterImage, topic: str) -> PartitionRegistration | None:
    """The story's partition, if it has been created."""
    known = image.topics.get(topic)
    return None if known is None else partition_of(image.spec, known.partitions[0])


# ---- violations


def wrongs(seen: ClusterSnapshot) -> dict[str, str]:
    """Violations in a cluster, by the names of the properties of model `kafka` that fail: a sentence for each."""
    return {name: told for name, told in (_on_leader(seen), _in_isr(seen), _committed(seen), _same_logs(seen)) if told}


def _lacks(log: Log, one: AckedRecord) -> bool:
    return len(log) <= one.offset or log[one.offset].value != one.value


def _on_leader(seen: ClusterSnapshot) -> tuple[str, str]:
    lost = [one for one in sorted(seen.acknowledged) if seen.leader > 0 and _lacks(seen.replicas[seen.leader].log, one)]
    told = [
        f"m{one.value} was acknowledged at offset {one.offset}, and leader {seen.leader} does not have it" for one in lost
    ]
    return "AcknowledgedOnLeader", "; ".join(told)


def _in_isr(seen: ClusterSnapshot) -> tuple[str, str]:
    told = [
        f"m{one.value} was acknowledged at offset {one.offset}, and broker {member}, which may lead, lacks it"
        for one in sorted(seen.acknowledged)
        for member in seen.next_leaders
        if _lacks(seen.replicas[member].log, one)
    ]
    return "AcknowledgedOnNextLeader", "; ".join(told)


def _committed(seen: ClusterSnapshot) -> tuple[str, str]:
    """The records below some replica's high watermark that a possible next leader lacks."""
    told = [
        f"m{record.value} at offset {offset} is committed on broker {broker}, and broker {member}, which may lead, lacks it"
        for broker, replica in sorted(seen.replicas.items())
        for offset, record in enumerate(replica.log[: replica.high_watermark])
        for member in seen.next_leaders
        if seen.replicas[member].log[offset : offset + 1] != (record,)
    ]
    return "CommittedOnNextLeader", "; ".join(told)


def _same_logs(seen: ClusterSnapshot) -> tuple[str, str]:
    told = []
    replicas = sorted(seen.replicas.items())
    for position, (first, one) in enumerate(replicas):
        for second, other in replicas[position + 1 :]:
            both = min(one.high_watermark, other.high_watermark)
            for offset, (here, there) in enumerate(zip(one.log[:both], other.log[:both], strict=False)):
                if here != there:
                    told.append(
                        f"offset {offset} is committed on both, m{here.value} of epoch {here.leader_epoch} on broker {first}"
                        f" and m{there.value} of epoch {there.leader_epoch} on broker {second}"
                    )
    return "LogMatching", "; ".join(told)
