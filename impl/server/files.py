"""The log directory of a node: opened at its start, and what may go wrong with it until its end."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kspec.impl.broker.replicas import in_words
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.config.controller import ControllerConfig
from kspec.impl.config.folders import not_usable
from kspec.impl.storage import Disk, LogDirectory, StorageError
from kspec.impl.storage.small_files import is_formatted, new_uuid, read_meta


class BrokerFailureError(Exception):
    """The broker cannot go on: one line that says why."""


@contextmanager
def closing(why: str = "") -> Iterator[None]:
    """The files of a node that stops, because of an error if there is a reason (`why`).

    Raises: `BrokerFailureError`, if they cannot be written.
    """
    try:
        yield
    except (OSError, StorageError) as error:
        raise BrokerFailureError(
            why or f"the stop is not clean, since files cannot be written: {in_words(error)}"
        ) from error


def open_directory(config: BrokerConfig | ControllerConfig, disk: Disk, may_format: bool) -> LogDirectory:
    """The log directory, locked; a new one is formatted, if it may be. Raises: `StorageError`, `ConfigError`."""
    path = config.log_dir
    cluster_id = config.word("cluster.id")
    try:
        if cluster_id is None:
            known = is_formatted(disk, str(path))
            cluster_id = read_meta(disk, str(path))["cluster.id"] if known else new_uuid()
        return LogDirectory.open(str(path), disk, cluster_id, config.node_id, may_format)
    except OSError as error:
        raise not_usable(path, config.log_dir_name, error) from error


def disk_space(path: Path) -> Callable[[], tuple[int, int]]:
    """The size in bytes of the disk of a folder, and its free bytes."""

    def usage() -> tuple[int, int]:
        found = shutil.disk_usage(path)
        return found.total, found.free

    return usage
