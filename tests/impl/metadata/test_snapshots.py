"""Snapshots of the metadata log: the same image comes back, whenever the power is lost."""

from pathlib import Path

import pytest

from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.log import MetadataLog, batch_of
from kspec.impl.metadata.records import LogRecord
from kspec.impl.metadata.snapshots import from_bytes, snapshot_name, snapshot_of, to_bytes
from kspec.impl.records.batch import headers
from kspec.impl.storage import StorageError
from kspec.impl.wire.values import Message
from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.values import Epoch, Offset, TimestampMs
from kspec.trials.simulated.disk import PowerLossError, SimulatedDisk, Survives
from tests.times import at_ms

BROKER, EPOCH = 1, Epoch(1)
CHECKED_FROM = 17
"""The place of a batch's checksum; what it is about follows."""


def topic(number: int) -> list[LogRecord]:
    topic_id = bytes([number]) * 16
    partition = Message(
        partition_id=0,
        topic_id=topic_id,
        replicas=[BROKER],
        isr=[BROKER],
        removing_replicas=[],
        adding_replicas=[],
        leader=BROKER,
        leader_recovery_state=0,
        leader_epoch=number,
        partition_epoch=number,
        directories=[bytes(16)],
        eligible_leader_replicas=None,
        last_known_elr=None,
    )
    config = Message(resource_type=2, resource_name=f"topic-{number}", name="retention.ms", value=str(number))
    named = LogRecord("TopicRecord", Message(name=f"topic-{number}", topic_id=topic_id))
    return [named, LogRecord("PartitionRecord", partition), LogRecord("ConfigRecord", config)]


def gone(number: int) -> list[LogRecord]:
    return [LogRecord("RemoveTopicRecord", Message(topic_id=bytes([number]) * 16))]


def registered() -> list[LogRecord]:
    endpoint = Message(name="PLAINTEXT", host="127.0.0.1", port=9092, security_protocol=0)
    broker = Message(
        broker_id=BROKER,
        incarnation_id=bytes(16),
        broker_epoch=0,
        end_points=[endpoint],
        features=[],
        rack="r",
        fenced=False,
        in_controlled_shutdown=False,
    )
    feature = LogRecord("FeatureLevelRecord", Message(name="metadata.version", feature_level=25))
    following = LogRecord("ProducerIdsRecord", Message(broker_id=1, broker_epoch=0, next_producer_id=3000))
    return [LogRecord("RegisterBrokerRecord", broker), feature, following]


CHANGES = [registered(), topic(1), topic(2), gone(1), topic(3)]


def said(image: ClusterImage) -> list[str]:
    """The lines of an image, whatever the numbers of its partitions are."""
    return [str(record) for record in image.records()]


def after(changes: list[list[LogRecord]], log: MetadataLog) -> ClusterImage:
    image = log.image()
    for records in changes:
        append(log, image, records)
    return image


def write(log: MetadataLog, records: list[LogRecord]) -> None:
    log.append(log.end_offset, EPOCH, batch_of(records, at_ms(0)), at_ms(0))
    log.flush(at_ms(0))


def append(log: MetadataLog, image: ClusterImage, records: list[LogRecord]) -> None:
    """Write records, and take them as they are read again."""
    written = log.end_offset
    write(log, records)
    image.replay_all(record for batch in log.batches() if batch.base_offset >= written for record in batch.records)


def test_an_image_comes_back_from_its_records() -> None:
    image = after(CHANGES, MetadataLog(SimulatedDisk(), Path("/logs"), at_ms(0)))
    content = to_bytes(image.records(), Epoch(3), TimestampMs(1_000))
    again = ClusterImage()
    again.restore(from_bytes(content, "x"), image.spec.end_offset)
    assert said(again) == said(image)
    assert again.spec.end_offset == image.spec.end_offset
    assert (again.spec.following_producer_id, again.features) == (3000, {"metadata.version": 25})
    assert again.endpoints[BROKER].port == 9092
    assert list(again.topics) == ["topic-2", "topic-3"]
    assert again.spec == image.spec._replace(
        brokers=again.spec.brokers,
        partitions=again.spec.partitions,
        topics=again.spec.topics,
        following_partition=again.spec.following_partition,
    ), "but for the numbers of partitions, and the offset of a registration"
    assert [(one.resource.name, one.values) for one in again.spec.configs] == [
        ("topic-2", (("retention.ms", "2"),)),
        ("topic-3", (("retention.ms", "3"),)),
    ]


def test_a_damaged_snapshot_is_one_line() -> None:
    content = to_bytes(
        after(CHANGES, MetadataLog(SimulatedDisk(), Path("/logs"), at_ms(0))).records(), Epoch(3), TimestampMs(1_000)
    )
    for length in range(0, len(content), 7):
        with pytest.raises(StorageError, match="x is damaged: "):
            from_bytes(content[:length], "x")
    batch = next(header for header in headers(content) if not header.control)
    for place in range(batch.position + CHECKED_FROM, batch.position + batch.size, 11):
        with pytest.raises(StorageError, match="x is damaged: "):
            from_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :], "x")


def test_names_are_kafkas() -> None:
    name = snapshot_name(SnapshotId(Offset(1234), Epoch(5)))
    assert name == "00000000000000001234-0000000005.checkpoint"
    assert snapshot_of(name) == (1234, 5)
    assert snapshot_of("bootstrap.checkpoint") is None


def test_a_snapshot_takes_the_place_of_the_records_before_it() -> None:
    disk = SimulatedDisk()
    log = MetadataLog(disk, Path("/logs"), at_ms(0))
    image = after(CHANGES, log)
    size = log.size
    log.take_snapshot(image, at_ms(1))
    assert log.size == 0 < size
    append(log, image, topic(4))
    again = MetadataLog(disk, Path("/logs"), at_ms(0))
    assert again.last_epoch == log.last_epoch == EPOCH
    assert said(again.image()) == said(image)
    again.take_snapshot(again.image(), at_ms(2))
    assert [name for name in disk.listdir("/logs/__cluster_metadata-0") if name.endswith(".checkpoint")] == [
        snapshot_name(SnapshotId(image.spec.end_offset, EPOCH))
    ]
    last = MetadataLog(disk, Path("/logs"), at_ms(0))
    assert (said(last.image()), last.end_offset) == (said(image), again.end_offset)
    assert (last.last_epoch, last.log.latest_epoch) == (EPOCH, EPOCH), "a log without records has the snapshot's"


def run(disk: SimulatedDisk) -> list[list[str]]:
    """Appends and snapshots, until the power is lost: what the log said after each append that had returned."""
    states: list[list[str]] = [[]]
    try:
        log = MetadataLog(disk, Path("/logs"), at_ms(0))
        image = log.image()
        states[0] = said(image)
        for number, records in enumerate([*CHANGES, topic(4), gone(3), topic(5)]):
            append(log, image, records)
            states.append(said(image))
            if number % 2:
                log.take_snapshot(image, at_ms(number))
    except PowerLossError:
        pass
    return states


@pytest.mark.slow
def test_power_is_lost_at_every_step() -> None:
    whole = SimulatedDisk()
    states = run(whole)
    assert len(states) == 9
    for stop_at in range(whole.steps):
        disk = SimulatedDisk()
        disk.stop_at = stop_at
        done = len(run(disk)) - 1
        for survives in Survives:
            left = disk.after_power_loss(survives)
            log = MetadataLog(left, Path("/logs"), at_ms(0))
            found = said(log.image())
            assert found in states[done : done + 2], f"step {stop_at}, {survives}"
            image = after([topic(9)], log)
            log.take_snapshot(image, at_ms(9))
            assert said(MetadataLog(left, Path("/logs"), at_ms(0)).image()) == said(image)


def test_a_log_whose_snapshot_is_gone_is_refused_in_one_line() -> None:
    """It would else begin with what came after the snapshot, as if there had been nothing before."""
    disk = SimulatedDisk()
    log = MetadataLog(disk, Path("/logs"), at_ms(0))
    write(log, topic(1))
    log.take_snapshot(log.image(), at_ms(0))
    path = log.path_of(log.snapshot)
    log.close()
    disk.unlink(path)
    with pytest.raises(StorageError, match=r"/logs/__cluster_metadata-0 begins at offset \d+, and has no snapshot"):
        MetadataLog(disk, Path("/logs"), at_ms(0))
