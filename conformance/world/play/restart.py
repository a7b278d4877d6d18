"""The broker under test loses its power, with a part of its log, and starts again.

A process that is killed has lost nothing that it has written: the files are cut by hand, to the records that the model says
have survived, and the checkpoint of the high watermark is set. On its way back the broker is registered, and reads metadata,
when the run says so.
"""

from conformance.kafka.network import Arrived
from conformance.world.play.cast import Cast
from impl.records.batch import headers

HIGH_WATERMARKS = "replication-offset-checkpoint"
LOST_WITH_THE_REST = ("*.index", "*.timeindex", "*.snapshot")
"""Files that Kafka makes anew from what is left of the log."""


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
    file = cast.world.data / HIGH_WATERMARKS
    lines = file.read_text(encoding="utf-8").splitlines()[2:] if file.exists() else []
    kept = [line for line in lines if not line.startswith(f"{cast.topic} ")]
    if (cast.world.data / f"{cast.topic}-0").exists():
        kept.append(f"{cast.topic} 0 {high_watermark}")
    file.write_text("\n".join(["0", str(len(kept)), *kept, ""]), encoding="utf-8")


async def start_again(cast: Cast) -> Arrived:
    """Start the process; it sees no metadata yet. Returns its request to be registered."""
    world = cast.world
    world.holds_registrations = True
    world.log.frozen = True
    world.log.new_reader()
    world.applied_offset = -1
    world.process.start()
    await world.until(lambda: not world.registrations.empty(), "ask to be registered", world.start_seconds)
    return world.registrations.get_nowait()


def let_read(cast: Cast) -> None:
    """From now on the broker sees the metadata again."""
    cast.world.log.frozen = False
    cast.world.log.wake()


async def come_back(cast: Cast) -> None:
    """Bring a broker that is on its way back to where a new run can begin: registered, unfenced, serving."""
    world = cast.world
    world.holds_registrations = False
    while not world.registrations.empty():
        arrived = world.registrations.get_nowait()
        arrived.answer(world.register_real(arrived))
    let_read(cast)
    world.log.show()
    await world.until(lambda: world.process.started, "complete its start", world.start_seconds)
