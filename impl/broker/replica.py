"""A partition on this broker: what `spec` knows of it, its files, who waits for it, and who is told when it changes."""

from collections.abc import Mapping
from typing import Protocol

from kspec.impl.broker.calls import DelayedOperation, FollowUp
from kspec.impl.storage import LogConfig, PartitionFiles
from kspec.impl.storage.config import log_config
from kspec.spec.broker.clients.batches import BatchLimits
from kspec.spec.broker.partition import Broker, BrokerSettings, Partition
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.fetch import FetchRequest
from kspec.spec.topics import TopicPartition
from kspec.spec.values import MonotonicMs, PartitionId


class PartitionObserver(Protocol):
    """An observer of a partition's changes: a fetch session that has it, or the fetcher that copies it."""

    @property
    def waiting(self) -> Mapping[DelayedOperation, None]:
        """The fetches that look again when there is more to read."""

    def changed(self) -> None:
        """The partition is another one now, in more than what its leader knows of followers."""


class PostponedFetch(Protocol):
    """A follower's fetch that says nothing new but its time."""

    def take_note(self) -> tuple[Broker, FetchRequest, MonotonicMs] | None:
        """The fetch as its leader handles it, with its time; none if that has been done."""


class Replica:
    """One partition's state and files. `partition` is replaced by each step of a handler of `spec`."""

    __slots__ = (
        "config",
        "files",
        "limits",
        "observers",
        "offline",
        "on_high_watermark",
        "partition",
        "place",
        "postponed",
        "settings",
        "topic_config",
        "topic_id",
        "unreadable",
        "waiting",
        "watching",
    )

    def __init__(
        self,
        place: TopicPartition,
        topic_id: bytes,
        partition: Partition[EpochLog],
        files: PartitionFiles,
        config: Mapping[str, str],
    ) -> None:
        self.place = place
        self.topic_id = topic_id
        self.partition = partition
        self.files = files
        self.offline = False
        """Whether its files could not be written: it answers nothing any more."""
        self.unreadable = False
        """Whether compaction has met records that cannot be read: it is compacted no more."""
        self.on_high_watermark: FollowUp | None = None
        """Called when more is committed, or no longer the same, with the time. Kafka: `PartitionListener`."""
        self.waiting: dict[DelayedOperation, None] = {}
        """The fetches that wait for more, in the order in which they came."""
        self.watching: dict[DelayedOperation, None] = {}
        """Those who wait for any change of the partition's state."""
        self.observers: dict[PartitionObserver, None] = {}
        """Those who have to know when it changes."""
        self.postponed: dict[PostponedFetch, None] = {}
        """Fetches of sessions that say nothing new but their time: they are handled when the partition is looked at."""
        self.configure(config)

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the topic's settings, the broker's defaults included."""
        self.topic_config = dict(config)
        self.config: LogConfig = log_config(config)
        self.files.config = self.config
        before_ms, after_ms = self.config.message_timestamp_before_max_ms, self.config.message_timestamp_after_max_ms
        is_create_time = self.config.message_timestamp_type == "CreateTime"
        self.limits = BatchLimits(
            self.config.max_message_bytes,
            before_ms,
            after_ms,
            is_create_time,
            self.config.compacts,
            self.config.stored_codec,
            self.config.segment_bytes,
            self.config.max_decompressed_message_bytes,
        )
        self.settings = BrokerSettings(
            min_isr=int(config["min.insync.replicas"]),
            max_lag=int(config["replica.lag.time.max.ms"]),
            back_off=int(config["replica.fetch.backoff.ms"]),
            deletes_records=self.config.deletes,
            compacts_records=self.config.compacts,
            verifies_transactions=config["transaction.partition.verification.enable"] != "false",
        )
        self.tell_observers()

    def tell_observers(self) -> None:
        """Tell observers that what they may conclude from the partition has changed."""
        for one in self.observers:
            one.changed()

    def fail(self) -> None:
        """Its files could not be written: it is offline until the next start."""
        self.offline = True
        self.files.fail()
        self.tell_observers()

    @property
    def partition_id(self) -> PartitionId:
        """The number of the partition in the metadata."""
        return self.partition.partition_id


class Changes:
    """Changes of all partitions, for several readers. A change costs the same however many partitions there are."""

    def __init__(self) -> None:
        self._new: dict[Replica, None] = {}
        self._readers: list[PartitionReader] = []

    def note(self, replica: Replica) -> None:
        """A partition has changed, is new, or has other settings."""
        self._new[replica] = None

    def reader(self) -> "PartitionReader":
        """Somebody who wants to know from now on."""
        made = PartitionReader(self)
        self._readers.append(made)
        return made

    def hand_out(self) -> None:
        """Tell every reader what has changed."""
        if self._new:
            new, self._new = list(self._new), {}
            for reader in self._readers:
                for replica in new:
                    reader.keep(replica)


class PartitionReader:
    """One who looks at partitions from time to time: at those that have changed, and at those that it has kept."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._pending: dict[Replica, None] = {}

    def take(self) -> list[Replica]:
        """The partitions to be looked at now. Each is given once, until it changes again or is kept."""
        self._changes.hand_out()
        found, self._pending = self._pending, {}
        return list(found)

    def keep(self, replica: Replica) -> None:
        """Give a partition at the next time, changed or not."""
        self._pending[replica] = None
