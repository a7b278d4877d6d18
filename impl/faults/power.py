"""A loss of power, made on the files of a broker that is dead: what it had not synced is cut off.

The system keeps what a killed process has written. So the log files of a killed broker are cut back, which gives what a loss
of power would have left. What lies before the recovery point was synced and stays.
"""

from pathlib import Path

from impl.records.batch import InvalidBatchError, headers
from impl.storage import RealDisk
from impl.storage.small_files import RECOVERY_POINTS, read_offsets


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
