"""The broker's files after a loss of power, and after a clean stop.

A killed process has lost nothing that it has written: the files are cut to the records that survive in the model, and the
checkpoint of the high watermark is set.
"""

import json
from typing import NamedTuple

from kspec.conformance.world.replay.observed_replica import on_disk
from kspec.conformance.world.replay.parties import Parties
from kspec.impl.records.batch import headers
from kspec.spec.values import NO_BROKER_EPOCH, Record

HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""Kafka: `CleanShutdownFileHandler`."""

LOST_WITH_THE_REST = ("*.index", "*.timeindex", "*.snapshot")
"""Files that Kafka rebuilds from the log."""


class BrokerRemains(NamedTuple):
    """The files that a broker has left: its log, the checkpoint of its high watermark; if it stopped cleanly, its broker
    epoch.
    """

    log: tuple[Record, ...]
    high_watermark: int
    broker_epoch: int


async def lose_power(parties: Parties, kept: int, high_watermark: int) -> None:
    """Kill the process; the first records of its log are kept, and this checkpoint."""
    await parties.world.power_off()
    folder = parties.world.data / f"{parties.topic}-0"
    for segment in folder.glob("*.log"):
        content = segment.read_bytes()
        whole = [header for header in headers(content) if header.last_offset < kept]
        segment.write_bytes(content[: sum(header.size for header in whole)])
    for pattern in LOST_WITH_THE_REST:
        for file in folder.glob(pattern):
            file.unlink()
    _checkpoint(parties, high_watermark)


def _checkpoint(parties: Parties, high_watermark: int) -> None:
    """Write the checkpoint: a version, a number of lines, and a line for each partition. Kafka: `OffsetCheckpointFile`."""
    kept = [line for line in _checkpoints(parties) if not line.startswith(f"{parties.topic} ")]
    if (parties.world.data / f"{parties.topic}-0").exists():
        kept.append(f"{parties.topic} 0 {high_watermark}")
    (parties.world.data / HIGH_WATERMARKS).write_text("\n".join(["0", str(len(kept)), *kept, ""]), encoding="utf-8")


def _checkpoints(parties: Parties) -> list[str]:
    file = parties.world.data / HIGH_WATERMARKS
    return file.read_text(encoding="utf-8").splitlines()[2:] if file.exists() else []


def left_behind(parties: Parties) -> BrokerRemains:
    """The files of a broker that is down."""
    own = [line.split() for line in _checkpoints(parties) if line.startswith(f"{parties.topic} 0 ")]
    file = parties.world.data / CLEAN_SHUTDOWN
    noted = json.loads(file.read_text(encoding="utf-8"))["brokerEpoch"] if file.exists() else NO_BROKER_EPOCH
    return BrokerRemains(on_disk(parties), int(own[0][2]) if own else 0, noted)
