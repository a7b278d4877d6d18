"""A partition on this broker: what `spec` knows of it, its files, and who waits for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from impl.broker.timers import Timer
from impl.storage import LogConfig, PartitionFiles
from impl.storage.config import log_config
from spec.broker.clients.batches import BatchLimits
from spec.broker.partition import BrokerSettings, Partition
from spec.log.epoch_log import EpochLog
from spec.values import PartitionId


class Place(NamedTuple):
    """A partition by its topic's name and its number."""

    topic: str
    partition: int


@dataclass(slots=True, eq=False)
class Waiting:
    """A request that waits: a fetch for more to read, or a deletion for followers. Kafka: `DelayedOperation`."""

    replicas: list["Replica"]
    deadline: int
    look_again: Callable[["Replica", int], list[Any]]
    """Called when a partition has changed, with the time: the effects, which answer the fetch if there is enough now."""
    complete: Callable[[int], list[Any]]
    """The effects that answer the fetch with what there is."""
    done: bool = False
    timer: Timer | None = None
    """What waits for the deadline."""
    any_change: bool = False
    """Whether it looks again at each change of the partition's state, not only of its log and high watermark."""


def not_again(replica: "Replica", now: int) -> list[Any]:
    """Nobody looks at a fetch again that is answered or forgotten."""
    return []


class Replica:
    """One partition's state and files. `partition` is replaced by each step of a handler of `spec`."""

    __slots__ = (
        "config",
        "files",
        "limits",
        "offline",
        "partition",
        "place",
        "settings",
        "topic_config",
        "topic_id",
        "unreadable",
        "waiting",
        "watching",
    )

    def __init__(
        self, place: Place, topic_id: bytes, partition: Partition[EpochLog], files: PartitionFiles, config: Mapping[str, str]
    ) -> None:
        self.place = place
        self.topic_id = topic_id
        self.partition = partition
        self.files = files
        self.offline = False
        """Whether its files could not be written: it answers nothing any more."""
        self.unreadable = False
        """Whether compaction has met records that cannot be read: it is compacted no more."""
        self.waiting: dict[Waiting, None] = {}
        """The fetches that wait for more, in the order in which they came."""
        self.watching: dict[Waiting, None] = {}
        """Those who wait for any change of the partition's state."""
        self.configure(config)

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the topic's settings, the broker's defaults included."""
        self.topic_config = dict(config)
        self.config: LogConfig = log_config(config)
        self.files.config = self.config
        before_ms, after_ms = self.config.message_timestamp_before_max_ms, self.config.message_timestamp_after_max_ms
        is_create_time = self.config.message_timestamp_type == "CreateTime"
        self.limits = BatchLimits(self.config.max_message_bytes, before_ms, after_ms, is_create_time)
        self.settings = BrokerSettings(
            min_isr=int(config["min.insync.replicas"]),
            max_lag=int(config["replica.lag.time.max.ms"]),
            back_off=int(config["replica.fetch.backoff.ms"]),
            deletes_records=self.config.deletes,
        )

    @property
    def partition_id(self) -> PartitionId:
        """The number of the partition in the metadata."""
        return self.partition.partition_id
