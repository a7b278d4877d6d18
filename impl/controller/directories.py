"""Log directories: which one each replica has, as the records of the metadata log say (KIP-858)."""

from functools import partial

from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord, with_directories
from kspec.spec.controller.rules.directories import default_directory, directories_of
from kspec.spec.metadata import partition_of
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import BrokerId, TopicId

NAMES_REPLICAS = {"PartitionRecord", "PartitionChangeRecord"}
"""Records that may name replicas."""


def directories_completed(image: ClusterImage, records: list[LogRecord]) -> list[LogRecord]:
    """The records with the directories of all replicas that they name."""
    return [_completed(image, record) if record.name in NAMES_REPLICAS else record for record in records]


def _completed(image: ClusterImage, record: LogRecord) -> LogRecord:
    replicas = getattr(record.message, "replicas", None)
    if replicas is None:
        return record
    key = TopicIdPartition(TopicId(bytes(record.message.topic_id)), record.message.partition_id)
    partition_id = image.partition_id(key)
    registration = None if partition_id is None else partition_of(image.spec, partition_id)
    before = () if registration is None else registration.replicas
    known = () if partition_id is None else image.directories.get(partition_id, ())
    wanted = tuple(map(BrokerId, replicas))
    return with_directories(record, directories_of(wanted, before, known, partial(default_of, image)))


def default_of(image: ClusterImage, broker: BrokerId) -> bytes:
    """The directory of a new replica on a broker."""
    registered = image.registered.get(broker)
    return default_directory(None if registered is None else tuple(map(bytes, registered.log_dirs)))
