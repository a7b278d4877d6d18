"""What is seen of a cluster: each replica's files, what producers are told, what the controller has written.

And what is wrong with it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from impl.metadata.image import ClusterImage
from impl.records.batch import InvalidBatchError, headers
from impl.records.record import records_of
from spec.metadata import PartitionRegistration, partition_of
from spec.values import Record

HIGH_WATERMARKS = "replication-offset-checkpoint"

Log = tuple[Record, ...]


class Replica(NamedTuple):
    """A replica. `log`: the records in its files; `high_watermark`: of its checkpoint, which is written all the time."""

    log: Log
    high_watermark: int


class Acknowledged(NamedTuple):
    """A record whose producer was told that it is stored at an offset."""

    offset: int
    value: int


class Seen(NamedTuple):
    """A cluster at one time, by what can be seen of it. `eligible`: out of the ISR, and may lead all the same."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]
    replicas: Mapping[int, Replica]
    acknowledged: frozenset[Acknowledged]
    eligible: frozenset[int] = frozenset()

    @property
    def next_leaders(self) -> list[int]:
        """Who may lead next."""
        return sorted(self.isr | self.eligible)


def value_of(number: int) -> bytes:
    """The value of the record that the model calls by this number."""
    return b"m%d" % number


def replica_in(data: Path, topic: str) -> Replica:
    """The replica of partition 0 in a broker's folder. A batch that is being written does not count yet."""
    found: list[Record] = []
    for segment in sorted((data / f"{topic}-0").glob("*.log")):
        content = segment.read_bytes()
        try:
            for header in headers(content):
                batch = content[header.position : header.position + header.size]
                found += [Record(int((one.value or b"m0")[1:]), header.leader_epoch) for one in records_of(batch)]
        except InvalidBatchError:
            pass
    return Replica(tuple(found), checkpoints_in(data).get(f"{topic} 0", 0))


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


# ---- what is wrong


def wrongs(seen: Seen) -> dict[str, str]:
    """What is wrong with a cluster, by the names of the properties of model `kafka` that fail: a sentence for each."""
    return {name: told for name, told in (_on_leader(seen), _in_isr(seen), _committed(seen), _same_logs(seen)) if told}


def _lacks(log: Log, one: Acknowledged) -> bool:
    return len(log) <= one.offset or log[one.offset].value != one.value


def _on_leader(seen: Seen) -> tuple[str, str]:
    lost = [one for one in sorted(seen.acknowledged) if seen.leader > 0 and _lacks(seen.replicas[seen.leader].log, one)]
    told = [
        f"m{one.value} was acknowledged at offset {one.offset}, and leader {seen.leader} does not have it" for one in lost
    ]
    return "AcknowledgedOnLeader", "; ".join(told)


def _in_isr(seen: Seen) -> tuple[str, str]:
    told = [
        f"m{one.value} was acknowledged at offset {one.offset}, and broker {member}, which may lead, lacks it"
        for one in sorted(seen.acknowledged)
        for member in seen.next_leaders
        if _lacks(seen.replicas[member].log, one)
    ]
    return "AcknowledgedOnNextLeader", "; ".join(told)


def _committed(seen: Seen) -> tuple[str, str]:
    """Of a record below the high watermark of some replica: whether all that may lead next have it."""
    told = [
        f"m{record.value} at offset {offset} is committed on broker {broker}, and broker {member}, which may lead, lacks it"
        for broker, replica in sorted(seen.replicas.items())
        for offset, record in enumerate(replica.log[: replica.high_watermark])
        for member in seen.next_leaders
        if seen.replicas[member].log[offset : offset + 1] != (record,)
    ]
    return "CommittedOnNextLeader", "; ".join(told)


def _same_logs(seen: Seen) -> tuple[str, str]:
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
