"""The partitions of this broker follow the metadata: they are opened, created, led and deleted as it says."""

import base64
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kspec.impl.broker.calls import Effect, GradualWork, Steps, Store, StoreTogether, Then, stores_among
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.storage import LogConfig, LogDirectory, PartitionFiles, StorageError
from kspec.impl.storage.config import log_config
from kspec.spec.broker.recovery import may_be_elected, opened
from kspec.spec.broker.roles import apply_change
from kspec.spec.controller.topics.names import CLUSTER_METADATA
from kspec.spec.metadata import LocalRole, PartitionRegistration, local_change
from kspec.spec.topics import TopicIdPartition, TopicPartition
from kspec.spec.values import Instant, Offset, PartitionId, TopicId

LOG = logging.getLogger("kspec.broker")

MOST_THREADS = 32

AT_ONCE = 16
"""Partitions that are created, given another role or deleted before others are served: files take milliseconds."""

TOPICS_AT_ONCE = 20
"""Topics whose end is told of before others are served: each group is asked for its offsets of each."""

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

    def __init__(self, core: BrokerCore, directory: LogDirectory, most_threads: int = MOST_THREADS) -> None:
        self._core = core
        self._most_threads = most_threads
        self.directory = directory
        directory.believes_epochs = core.protocol.believes_epochs
        self._applied: dict[PartitionId, PartitionRegistration] = {}
        self._keys: dict[PartitionId, TopicIdPartition] = {}
        self._names: dict[bytes, str] = {}
        """The topics that there are, by their ids."""
        self._touched: list[Replica] = []
        self._pool: ThreadPoolExecutor | None = None
        """The threads that wait for the disk: to start them takes longer than many a file, so they are kept."""
        self._works = 0
        """Times that the metadata are being taken in steps, or are going to be."""
        self.logs_loaded = False
        """Whether the partitions that this broker has by its metadata have been opened for the first time."""

    def apply(self, now: Instant) -> list[Effect]:
        """Take what the metadata log says now: `spec` tells what is to be done about each partition.

        Deletions come first, and are complete before anything else: a new topic may have the name of one that is gone. Where
        many partitions are others, it goes in steps; what the metadata say next waits for that.
        """
        gone, changed = self._differences()
        if self.logs_loaded and (self._works or len(gone) + len(changed) > AT_ONCE):
            self._works += 1
            return [GradualWork(self._in_steps(now))]
        if gone:
            topics: dict[bytes, None] = {}
            effects = self._forget(gone, topics, now)
            return [*effects, Then(lambda: self._tell_of_deletion(list(topics), now)), Then(lambda: self.apply(now))]
        return self._take(changed, now)

    def _differences(self) -> tuple[list[PartitionId], list[PartitionId]]:
        """The partitions that are gone since the metadata were taken, and those that are new or others."""
        after = self._core.cluster.registrations()
        gone = [known for known in self._applied if known not in after]
        return gone, [one for one, registration in after.items() if self._applied.get(one) is not registration]

    def _in_steps(self, now: Instant) -> Steps:
        """Take the metadata in steps. They may become others meanwhile, and are compared again then."""
        topics: dict[bytes, None] = {}
        of: object = None
        gone: list[PartitionId] = []
        changed: list[PartitionId] = []
        while True:
            if of is not self._core.cluster.registrations():
                of = self._core.cluster.registrations()
                gone, changed = (those[::-1] for those in self._differences())
            if gone:
                some, gone = gone[: -AT_ONCE - 1 : -1], gone[:-AT_ONCE]
                yield self._forget(some, topics, now)
            elif topics:
                told = list(topics)[:TOPICS_AT_ONCE]
                for topic_id in told:
                    del topics[topic_id]
                yield self._tell_of_deletion(told, now)
            elif self._touched:
                touched, self._touched = self._touched, []
                yield self._tell(touched, now)
            elif changed:
                some, changed = changed[: -AT_ONCE - 1 : -1], changed[:-AT_ONCE]
                yield self._take(some, now)
            else:
                self._works -= 1
                return []

    def _take(self, changed: list[PartitionId], now: Instant) -> list[Effect]:
        """Take what the metadata say of some partitions."""
        cluster = self._core.cluster
        after = cluster.registrations()
        for partition_id in changed:
            key = self._keys[partition_id] = cluster.image.key_of(partition_id)
            self._names[key.topic_id] = cluster.place_of(partition_id).topic
        self._open_all([one for one in changed if cluster.self_id in after[one].replicas], now)
        if not self.logs_loaded:
            self._set_strays_aside()
            self.logs_loaded = True
        together = StoreTogether([])
        in_order: list[Effect] = []
        others: list[Effect] = []
        for partition_id in changed:
            wanted = self._change(partition_id, self._applied.get(partition_id), after[partition_id], now)
            self._applied[partition_id] = after[partition_id]
            stores, rest = stores_among(wanted)
            if len(stores) == 1:
                together.stores += stores
            else:
                in_order += stores
            others += rest  # one may ask this broker itself, which then appends behind what is decided here
        effects = [*([together] if together.stores else []), *in_order, *others]
        touched, self._touched = self._touched, []
        return [*effects, Then(lambda: self._tell(touched, now))] if touched else effects

    def _forget(self, gone: list[PartitionId], topics: dict[bytes, None], now: Instant) -> list[Effect]:
        """Forget partitions that are gone, and note their topics. Their files go at the same time, before anything else."""
        stores: list[Store] = []
        others: list[Effect] = []
        for partition_id in gone:
            of_one, rest = stores_among(self._change(partition_id, self._applied.pop(partition_id), None, now))
            stores += of_one
            others += rest
            topics[self._keys.pop(partition_id).topic_id] = None
        return [StoreTogether(stores), *others] if stores else others

    def _tell_of_deletion(self, topics: list[bytes], now: Instant) -> list[Effect]:
        """Topics are gone, and so are their partitions on this broker, if it had any."""
        return [
            effect
            for topic_id, name in [(one, self._names.pop(one)) for one in topics]
            for told in self._core.topic_deleted
            for effect in told(name, TopicId(topic_id), now)
        ]

    def _tell(self, replicas: list[Replica], now: Instant) -> list[Effect]:
        """Their roles may have changed, and what is to be stored for it is stored."""
        return [effect for replica in replicas for told in self._core.role_changed for effect in told(replica, now)]

    def _change(
        self,
        partition_id: PartitionId,
        before: PartitionRegistration | None,
        after: PartitionRegistration | None,
        now: Instant,
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
        effects = core.run(apply_change, replica, change, now.monotonic, now=now).effects
        if change.role == LocalRole.DELETED:
            del core.replicas[replica.place], core.replicas_by_id[key]
            replica.tell_observers()
            core.changes.note(replica)
        self._touched.append(replica)
        return effects

    def _open_all(self, partitions: list[PartitionId], now: Instant) -> None:
        """Open or create the files of partitions, many at a time: most of the time is waiting for the disk."""
        wanted = [one for one in partitions if self._keys[one] not in self._core.replicas_by_id]
        topics = {self._core.cluster.place_of(one).topic for one in wanted}
        settings = {topic: self._core.settings_of(topic) for topic in topics}
        for replica in self.in_threads(lambda one: self._open(one, settings, now), wanted):
            key = TopicIdPartition(TopicId(replica.topic_id), replica.place.partition)
            self._core.replicas[replica.place] = self._core.replicas_by_id[key] = replica
            self._core.changes.note(replica)

    def in_threads(self, action: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Do the same for many partitions at a time, and return when all is done: most of it is waiting for the disk."""
        if min(self._most_threads, len(items)) <= 1:
            return [action(one) for one in items]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._most_threads, "files")
        return list(self._pool.map(action, items))

    def _open(self, partition_id: PartitionId, settings_of: Mapping[str, Mapping[str, str]], now: Instant) -> Replica:
        key = self._keys[partition_id]
        place = self._core.cluster.place_of(partition_id)
        settings = settings_of[place.topic]
        try:
            files = self._files_of(partition_id, place, log_config(settings), now)
        except (OSError, StorageError) as error:
            LOG.error("%s-%d is offline: %s", *place, in_words(error))
            files = self.directory.unopened(*place, log_config(settings), now)
        partition = opened(partition_id, files.recovered, files.transactions())
        replica = Replica(place, key.topic_id, partition, files, settings)
        replica.offline = not files.segments
        return replica

    def _files_of(self, partition_id: PartitionId, place: TopicPartition, config: LogConfig, now: Instant) -> PartitionFiles:
        """Open or create the files of a partition. Raises: `StorageError`, `OSError`."""
        registration = self._core.cluster.registrations()[partition_id]
        topic_id = id_text(self._keys[partition_id].topic_id)
        if self.directory.has_partition(*place, topic_id):
            return self.directory.open_partition(*place, config, now, topic_id)
        folder = self.directory.folder_of(*place)
        may_lead = may_be_elected(registration, self._core.cluster.self_id)
        if not self.logs_loaded and not self.directory.may_begin_anew(*place, may_lead):
            raise StorageError(
                f"{folder} is not there, or is another topic's, since the broker stopped, and this replica may be elected: "
                "put it back"
            )
        aside = self.directory.set_aside(*place)
        if aside is not None:
            LOG.warning("%s-%d belonged to another topic of this name; it is %s now", *place, aside)
        return self.directory.create_partition(*place, topic_id, config, now)

    def _set_strays_aside(self) -> None:
        """Rename the folders of partitions that this broker does not have: their topic is gone, or they were moved away.

        Nobody has looked at their files. If such a partition is given back, it is copied from its leader into a new folder.

        **Kafka:** `LogManager.loadLog`, `isStrayReplica`.
        """
        for found in list(self.directory.found):
            if found not in self._core.replicas and not is_own(found):
                try:
                    aside = self.directory.set_aside(*found)
                except OSError as error:
                    LOG.error("%s-%d lies in the folder, and cannot be set aside: %s", *found, in_words(error))
                    continue
                LOG.warning("%s-%d lies in the folder, and this broker does not have it; it is %s now", *found, aside)

        self.directory.drop_unknown_lines(self._core.replicas.keys())

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        """The high watermark of each partition whose files are open, for the checkpoint."""
        return self.high_watermarks_of(self._core.replicas.values())

    def high_watermarks_of(self, those: Iterable[Replica]) -> dict[TopicPartition, Offset]:
        """The high watermarks of some partitions, without those that are gone, or whose files are not open."""
        there = self._core.replicas
        return {
            one.place: one.partition.local.high_watermark
            for one in those
            if one.files.segments and there.get(one.place) is one
        }


def in_words(error: OSError | StorageError) -> str:
    """The defect of a file, in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def is_own(found: TopicPartition) -> bool:
    """Whether a folder is the metadata log's."""
    return found.topic == CLUSTER_METADATA
