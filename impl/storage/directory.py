"""A broker's log directory: the lock, the files of the whole directory, and the folders of partitions."""

from collections.abc import Mapping
from typing import NamedTuple

from impl.storage.config import LogConfig
from impl.storage.disk import Disk
from impl.storage.partition import PartitionFiles
from spec.values import BrokerEpoch, Offset


class TopicPartition(NamedTuple):
    """A partition by its topic's name and its number."""

    topic: str
    partition: int


class LogDirectory:
    """A log directory that this process has locked."""

    path: str
    cluster_id: str
    node_id: int
    directory_id: str
    """22 characters of URL-safe base64, made when the directory was formatted."""
    clean: bool
    """Whether the broker before stopped cleanly."""
    previous_broker_epoch: BrokerEpoch
    """What `.kafka_cleanshutdown` noted; -1 without."""
    found: Mapping[TopicPartition, str]
    """The topic id of each partition folder that lay there, opened or not."""

    @classmethod
    def open(cls, path: str, disk: Disk, cluster_id: str, node_id: int) -> "LogDirectory":
        """Lock a directory, and format it if it is new or empty.

        Raises: `StorageError` if it is locked, damaged, or of another cluster or node.
        """
        raise NotImplementedError

    def create_partition(self, topic: str, partition: int, topic_id: str, config: LogConfig, now_ms: int) -> PartitionFiles:
        """A new partition."""
        raise NotImplementedError

    def open_partition(self, topic: str, partition: int, config: LogConfig, now_ms: int) -> PartitionFiles:
        """A partition that was found."""
        raise NotImplementedError

    def delete_partition(self, files: PartitionFiles, now_ms: int) -> None:
        """Delete a partition; its lines leave the checkpoints with the next write."""
        raise NotImplementedError

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Write `replication-offset-checkpoint`: every 5 s in Kafka."""
        raise NotImplementedError

    def checkpoint_logs(self) -> None:
        """Write `recovery-point-offset-checkpoint` and `log-start-offset-checkpoint`: every 60 s in Kafka."""
        raise NotImplementedError

    def clean_up(self, now_ms: int) -> None:
        """Remove what was deleted file.delete.delay.ms ago; flush by flush.ms."""
        raise NotImplementedError

    def close(self, high_watermarks: Mapping[TopicPartition, Offset], broker_epoch: BrokerEpoch | None) -> None:
        """Close all partitions and unlock. With a broker epoch the stop is clean, and noted with it; else no file says so."""
        raise NotImplementedError
