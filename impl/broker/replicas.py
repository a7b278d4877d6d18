"""The partitions of this broker follow the metadata: they are opened, created, led and deleted as it says."""

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from impl.broker.calls import Effect, Store, StoreTogether, Then
from impl.broker.core import Core
from impl.broker.replica import Place, Replica
from impl.metadata.records import PartitionKey
from impl.storage import LogDirectory, TopicPartition
from impl.storage.config import log_config
from spec.broker.recovery import opened
from spec.broker.roles import apply_change
from spec.controller.topics.names import CLUSTER_METADATA
from spec.metadata import LocalRole, PartitionRegistration, local_change
from spec.values import Offset, PartitionId

LOG = logging.getLogger("kspec.broker")

MOST_THREADS = 32

T = TypeVar("T")
R = TypeVar("R")


def id_text(topic_id: bytes) -> str:
    """A topic's id as Kafka writes it: 22 characters of URL-safe base64. Kafka: `Uuid.toString`."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def id_bytes(text: str) -> bytes:
    """The id of a topic from its 22 characters."""
    return base64.urlsafe_b64decode(f"{text}==")


class Replicas:
    """The partitions on this broker, and the directory of their files."""

    def __init__(self, core: Core, directory: LogDirectory, most_threads: int = MOST_THREADS) -> None:
        self._core = core
        self._most_threads = most_threads
        self.directory = directory
        self._applied: dict[PartitionId, PartitionRegistration] = {}
        self._keys: dict[PartitionId, PartitionKey] = {}
        self._touched: list[Replica] = []
        self.logs_loaded = False
        """Whether the partitions that this broker has by its metadata have been opened for the first time."""

    def apply(self, now: int) -> list[Effect]:
        """Take what the metadata log says now: `spec` tells what is to be done about each partition.

        Deletions come first, and are complete before anything else: a new topic may have the name of one that is gone.
        """
        cluster = self._core.cluster
        after = cluster.registrations()
        gone = [known for known in self._applied if known not in after]
        if gone:
            effects = [effect for one in gone for effect in self._forget(one, now)]
            return [*effects, Then(lambda: self.apply(now))]
        changed = [one for one, registration in after.items() if self._applied.get(one) is not registration]
        for partition_id in changed:
            self._keys[partition_id] = cluster.image.key_of(partition_id)
        self._open_all([one for one in changed if cluster.self_id in after[one].replicas], now)
        if not self.logs_loaded:
            self._set_strays_aside()
            self.logs_loaded = True
        effects = []
        together = StoreTogether([])
        for partition_id in changed:
            wanted = self._change(partition_id, self._applied.get(partition_id), after[partition_id], now)
            self._applied[partition_id] = after[partition_id]
            if len(wanted) == 1 and isinstance(wanted[0], Store):
                together.stores.append(wanted[0])
            else:
                effects += wanted
        effects += [together] if together.stores else []
        touched, self._touched = self._touched, []
        return [*effects, Then(lambda: self._tell(touched, now))] if touched else effects

    def _forget(self, partition_id: PartitionId, now: int) -> list[Effect]:
        effects = self._change(partition_id, self._applied.pop(partition_id), None, now)
        del self._keys[partition_id]
        return effects

    def _tell(self, replicas: list[Replica], now: int) -> list[Effect]:
        """Their roles may have changed, and what is to be stored for it is stored."""
        return [effect for replica in replicas for told in self._core.role_changed for effect in told(replica, now)]

    def _change(
        self,
        partition_id: PartitionId,
        before: PartitionRegistration | None,
        after: PartitionRegistration | None,
        now: int,
    ) -> list[Effect]:
        core, key = self._core, self._keys[partition_id]
        change = local_change(before, after, core.cluster.self_id)
        if change.role == LocalRole.UNCHANGED:
            return []
        replica = core.replicas_by_id.get(key)
        if replica is None:
            if change.role == LocalRole.DELETED:
                return []
            raise AssertionError(f"partition {partition_id} is not open, and is to be {change.role}")
        if replica.offline and change.role != LocalRole.DELETED:  # it neither leads nor follows until the next start
            return []
        effects = core.run(apply_change, replica, change, now, now=now).effects
        if change.role == LocalRole.DELETED:
            del core.replicas[replica.place], core.replicas_by_id[key]
        self._touched.append(replica)
        return effects

    def _open_all(self, partitions: list[PartitionId], now: int) -> None:
        """Open or create the files of partitions, many at a time: most of the time is waiting for the disk."""
        wanted = [one for one in partitions if self._keys[one] not in self._core.replicas_by_id]
        topics = {self._core.cluster.place_of(one).topic for one in wanted}
        settings = {topic: self._core.settings_of(topic) for topic in topics}
        for replica in self.in_threads(lambda one: self._open(one, settings, now), wanted):
            key = PartitionKey(replica.topic_id, replica.place.partition)
            self._core.replicas[replica.place] = self._core.replicas_by_id[key] = replica

    def in_threads(self, action: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Do the same for many partitions at a time, and return when all is done: most of it is waiting for the disk."""
        threads = min(self._most_threads, len(items))
        if threads <= 1:
            return [action(one) for one in items]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(action, items))

    def _open(self, partition_id: PartitionId, settings_of: Mapping[str, Mapping[str, str]], now: int) -> Replica:
        key = self._keys[partition_id]
        place = self._core.cluster.place_of(partition_id)
        settings = settings_of[place.topic]
        config = log_config(settings)
        topic_id = id_text(key.topic_id)
        if self.directory.has_partition(*place, topic_id):
            files = self.directory.open_partition(*place, config, now, topic_id)
        else:
            aside = self.directory.set_aside(*place)
            if aside is not None:
                LOG.warning("%s-%d belonged to another topic of this name; it is %s now", *place, aside)
            files = self.directory.create_partition(*place, topic_id, config, now)
        partition = opened(partition_id, files.recovered)._replace(producers=files.producers())
        return Replica(place, key.topic_id, partition, files, settings)

    def _set_strays_aside(self) -> None:
        """Rename the folders of partitions that this broker does not have: their topic is gone, or they were moved away.

        Nobody has looked at their files. If such a partition is given back, it is copied from its leader into a new folder.

        **Kafka:** `LogManager.loadLog`, `isStrayReplica`.
        """
        for found in list(self.directory.found):
            if Place(*found) not in self._core.replicas and not is_own(found):
                aside = self.directory.set_aside(*found)
                LOG.warning("%s-%d lies in the folder, and this broker does not have it; it is %s now", *found, aside)

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        """The high watermark of each partition, for the checkpoint."""
        return {
            TopicPartition(*place): replica.partition.local.high_watermark for place, replica in self._core.replicas.items()
        }


def is_own(found: TopicPartition) -> bool:
    """Whether a folder is the metadata log's."""
    return found.topic == CLUSTER_METADATA
