"""A broker's log directory: Kafka's own files, written in an order that a loss of power may cut anywhere.

`LogDirectory` is the folder of a broker, `PartitionFiles` that of a partition in it. Nothing here decides about the
protocol: `spec/` does, and hands over `Persist` effects. All calls return when the work is done; the caller says what time
it is.
"""

from kspec.impl.storage.config import LogConfig
from kspec.impl.storage.directory import LogDirectory
from kspec.impl.storage.disk import Disk, StorageError
from kspec.impl.storage.partition import PartitionFiles
from kspec.impl.storage.real_disk import RealDisk
from kspec.impl.storage.segment import FileSlice, InvalidSegmentError

__all__ = [
    "Disk",
    "FileSlice",
    "InvalidSegmentError",
    "LogConfig",
    "LogDirectory",
    "PartitionFiles",
    "RealDisk",
    "StorageError",
]
