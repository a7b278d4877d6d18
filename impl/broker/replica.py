"""A partition on this broker: what `spec` knows of it, its files, and who waits for it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from impl.storage import LogConfig, PartitionFiles
from impl.storage.config import log_config
from spec.broker.partition import BrokerSettings, Partition
from spec.log.epoch_log import EpochLog
from spec.values import PartitionId

if TYPE_CHECKING:
    from impl.broker.fetch import WaitingFetch


class Place(NamedTuple):
    """A partition by its topic's name and its number."""

    topic: str
    partition: int


class Replica:
    """One partition's state and files. `partition` is replaced by each step of a handler of `spec`."""

    __slots__ = ("config", "files", "offline", "partition", "place", "settings", "topic_config", "topic_id", "waiting")

    def __init__(
        self, place: Place, topic_id: bytes, partition: Partition[EpochLog], files: PartitionFiles, config: Mapping[str, str]
    ) -> None:
        self.place = place
        self.topic_id = topic_id
        self.partition = partition
        self.files = files
        self.offline = False
        """Whether its files could not be written: it answers nothing any more."""
        self.waiting: set[WaitingFetch] = set()
        self.configure(config)

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the topic's settings, the broker's defaults included."""
        self.topic_config = dict(config)
        self.config: LogConfig = log_config(config)
        self.files.config = self.config
        self.settings = BrokerSettings(min_isr=int(config["min.insync.replicas"]), deletes_records=self.config.deletes)

    @property
    def partition_id(self) -> PartitionId:
        """The number of the partition in the metadata."""
        return self.partition.partition_id


Handler = Callable[..., Any]
