"""Losses made on the files of a broker that is dead: by a loss of power, of what it had not synced; or of all records.

The system keeps what a killed process has written. So the log files of a killed broker are cut back, which gives what a loss
of power would have left. What lies before the recovery point was synced and stays.
"""

import shutil
from pathlib import Path

from kspec.impl.records.batch import InvalidBatchError, headers
from kspec.impl.storage import RealDisk
from kspec.impl.storage.small_files import META_PROPERTIES, RECOVERY_POINTS, read_offsets


def lose_tail(data: Path, topic: str, partition: int, kept: float) -> int:
    """Cut the last segment of a partition back to a share of what was not synced; how many bytes that takes.

    `kept`: the share that was on the disk by chance, from 0 to 1.
    """
    synced = read_offsets(RealDisk(), str(data), RECOVERY_POINTS).get((topic, partition), 0)
    segment = sorted((data / f"{topic}-{partition}").glob("*.log"))[-1]
    content = segment.read_bytes()
    safe = 0
    try:
        for header in headers(content):
            if header.base_offset >= synced:
                break
            safe = header.position + header.size
    except InvalidBatchError:
        pass
    end = safe + int((len(content) - safe) * kept)
    with segment.open("r+b") as file:
        file.truncate(end)
    return len(content) - end


def erase_records(data: Path) -> None:
    """Delete all files of a log directory but the one with the identity of its cluster and broker."""
    for found in data.iterdir():
        if found.is_dir():
            shutil.rmtree(found)
        elif found.name != META_PROPERTIES:
            found.unlink()
