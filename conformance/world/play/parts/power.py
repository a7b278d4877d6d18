"""What a loss of power leaves of the broker's files, and what a clean stop has left there.

A process that is killed has lost nothing that it has written: the files are cut by hand, to the records that the model says
have survived, and the checkpoint of the high watermark is set.
"""

import json
from typing import NamedTuple

from conformance.world.play.cast import Cast
from conformance.world.play.watching import on_disk
from impl.records.batch import headers
from spec.values import NO_BROKER_EPOCH, Record

HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""Kafka: `CleanShutdownFileHandler`."""

LOST_WITH_THE_REST = ("*.index", "*.timeindex", "*.snapshot")
"""Files that Kafka makes anew from what is left of the log."""


class Left(NamedTuple):
    """What a broker has left: its log, the checkpoint of its high watermark; if it stopped cleanly, its broker epoch."""

    log: tuple[Record, ...]
    high_watermark: int
    broker_epoch: int


async def lose_power(cast: Cast, kept: int, high_watermark: int) -> None:
    """End the process without warning; of its log the first records are kept, and this checkpoint."""
    await cast.world.power_off()
    folder = cast.world.data / f"{cast.topic}-0"
    for segment in folder.glob("*.log"):
        content = segment.read_bytes()
        whole = [header for header in headers(content) if header.last_offset < kept]
        segment.write_bytes(content[: sum(header.size for header in whole)])
    for pattern in LOST_WITH_THE_REST:
        for file in folder.glob(pattern):
            file.unlink()
    _checkpoint(cast, high_watermark)


def _checkpoint(cast: Cast, high_watermark: int) -> None:
    """Kafka: `OffsetCheckpointFile`: a version, a number of lines, and a line for each partition."""
    kept = [line for line in _checkpoints(cast) if not line.startswith(f"{cast.topic} ")]
    if (cast.world.data / f"{cast.topic}-0").exists():
        kept.append(f"{cast.topic} 0 {high_watermark}")
    (cast.world.data / HIGH_WATERMARKS).write_text("\n".join(["0", str(len(kept)), *kept, ""]), encoding="utf-8")


def _checkpoints(cast: Cast) -> list[str]:
    file = cast.world.data / HIGH_WATERMARKS
    return file.read_text(encoding="utf-8").splitlines()[2:] if file.exists() else []


def left_behind(cast: Cast) -> Left:
    """The files of a broker that is down."""
    own = [line.split() for line in _checkpoints(cast) if line.startswith(f"{cast.topic} 0 ")]
    file = cast.world.data / CLEAN_SHUTDOWN
    noted = json.loads(file.read_text(encoding="utf-8"))["brokerEpoch"] if file.exists() else NO_BROKER_EPOCH
    return Left(on_disk(cast), int(own[0][2]) if own else 0, noted)
