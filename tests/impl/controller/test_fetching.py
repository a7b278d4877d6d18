"""The metadata log, fetched: epochs, long polls, divergence, snapshots; and who has fetched."""

from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import INTRODUCTION, LogRecord, decode_record
from kspec.impl.metadata.snapshots import from_bytes
from kspec.impl.records.batch import headers
from kspec.impl.records.record import records_of
from kspec.impl.wire.values import Message
from kspec.spec.metadata import MetadataImage
from kspec.spec.quorum.rules.voters import OBSERVER_MS
from kspec.spec.values import UNKNOWN_OFFSET, Error, Offset
from tests.impl.controller.in_process import FOLDER, InProcess
from tests.impl.controller.requests import CLUSTER_ID, answer_of, fetch_message
from tests.limits.turns import Turns
from tests.times import at_ms

NO_DECISION = LogRecord("LeaderChangeMessage", Message())
"""A control record: it has an offset, and changes nothing in the image."""


def records_in(data: bytes) -> list[LogRecord]:
    """The records in batches as they were fetched."""
    found: list[LogRecord] = []
    for header in headers(memoryview(data)):
        batch = memoryview(data)[header.position : header.position + header.size]
        if header.control:
            found += [NO_DECISION] * header.record_count
        else:
            found += [decode_record(memoryview(record.value or b"")) for record in records_of(batch)]
    return found


def test_a_new_cluster_begins_with_its_features() -> None:
    controller = InProcess()
    answer = controller.fetch_metadata(epoch=1)
    names = [(one.name, getattr(one.message, "name", "")) for one in records_in(answer.records)]
    assert names == [
        ("LeaderChangeMessage", ""),
        ("FeatureLevelRecord", "metadata.version"),
        ("FeatureLevelRecord", "eligible.leader.replicas.version"),
        ("ConfigRecord", "min.insync.replicas"),
        ("FeatureLevelRecord", "transaction.version"),
    ]
    assert (answer.high_watermark, answer.log_start_offset) == (5, 0)
    assert [header.leader_epoch for header in headers(memoryview(answer.records))] == [1, 1]


def test_an_observer_learns_the_epoch_and_the_leader() -> None:
    controller = InProcess()
    first = controller.fetch_metadata(epoch=0)
    assert (first.error_code, first.current_leader.leader_id, first.current_leader.leader_epoch) == (
        Error.FENCED_LEADER_EPOCH.value,
        100,
        1,
    )
    assert controller.fetch_metadata(epoch=2).error_code == Error.UNKNOWN_LEADER_EPOCH.value
    again = InProcess(disk=controller.disk)
    assert again.fetch_metadata(epoch=1).current_leader.leader_epoch == 2


def test_a_fetch_waits_for_news_or_until_its_time_is_over() -> None:
    controller = InProcess()
    asked = fetch_message(1, 5, 1, 1, 500, high_watermark=5)
    number = controller.send("Fetch", 18, asked)
    assert controller.answers == {}
    controller.pass_time(499)
    assert controller.answers == {}
    controller.pass_time(1)
    empty = answer_of("Fetch", 18, controller.answers.pop(number)).responses[0].partitions[0]
    assert (bytes(empty.records), empty.high_watermark) == (b"", 5)
    number = controller.send("Fetch", 18, asked)
    controller.register()
    woken = answer_of("Fetch", 18, controller.answers.pop(number)).responses[0].partitions[0]
    assert [one.name for one in records_in(woken.records)] == ["RegisterBrokerRecord"]
    assert woken.high_watermark == 6


def test_who_does_not_know_the_high_watermark_is_told_at_once() -> None:
    controller = InProcess()
    number = controller.send("Fetch", 18, fetch_message(1, 5, 1, 1, 500, high_watermark=4))
    assert number in controller.answers


def test_a_log_that_parted_is_to_be_cut() -> None:
    controller = InProcess()
    beyond = controller.fetch_metadata(9, epoch=1, last_epoch=1)
    assert (beyond.diverging_epoch.epoch, beyond.diverging_epoch.end_offset) == (1, 5)
    assert beyond.error_code == 0


def test_requests_that_are_none() -> None:
    controller = InProcess()
    assert controller.fetch_metadata(-1, epoch=1).error_code == Error.INVALID_REQUEST.value
    other = fetch_message(1, 0, 1, 0, 0)
    other.__dict__["cluster_id"] = "another"
    assert controller.call("Fetch", 18, **other.__dict__).error_code == Error.INCONSISTENT_CLUSTER_ID.value
    nothing = controller.call("Fetch", 18, cluster_id=CLUSTER_ID, topics=[])
    assert nothing.error_code == Error.INVALID_REQUEST.value
    by_name = fetch_message(1, 0, 1, 0, 0)
    topic = Message(topic="__cluster_metadata", partitions=by_name.topics[0].partitions)
    named = controller.call("Fetch", 12, replica_id=1, topics=[topic]).responses[0]
    assert (named.topic, named.partitions[0].error_code, named.partitions[0].high_watermark) == ("__cluster_metadata", 0, 5)


def test_what_was_fetched_says_the_same() -> None:
    controller = InProcess()
    controller.join()
    controller.others(2)
    controller.create_on("t", [1, 2], [2, 1])
    controller.heartbeat(want_fence=True)
    image = ClusterImage()
    for record in records_in(controller.fetch_metadata(epoch=1).records):
        image.replay(record)
    assert image.spec == controller.core.image.spec
    assert image.directories == controller.core.image.directories


# ---- snapshots


def with_snapshot() -> InProcess:
    controller = InProcess()
    controller.join()
    controller.create_on("t", [1])
    controller.log.take_snapshot(controller.core.image, at_ms(controller.now))
    controller.core.voter.snapshot_taken()
    return controller


def as_snapshots_have_it(image: ClusterImage) -> MetadataImage:
    """The image without the offsets of registrations: a snapshot has none of them. Kafka: `handleLoadSnapshot`."""
    return image.spec._replace(brokers=tuple(one._replace(registered_at=UNKNOWN_OFFSET) for one in image.spec.brokers))


def snapshot_of(
    controller: InProcess, end: int, epoch: int, position: int, most: int = 1 << 20, current: int = 1
) -> Message:
    wanted = Message(end_offset=end, epoch=epoch)
    partition = Message(partition=0, current_leader_epoch=current, snapshot_id=wanted, position=position)
    topics = [Message(name="__cluster_metadata", partitions=[partition])]
    answer = controller.call("FetchSnapshot", 1, cluster_id=CLUSTER_ID, replica_id=1, max_bytes=most, topics=topics)
    found: Message = answer.topics[0].partitions[0]
    return found


def test_who_is_behind_the_start_of_the_log_takes_the_snapshot() -> None:
    controller = with_snapshot()
    end = controller.core.image.spec.end_offset
    controller.create_on("u", [1])
    answer = controller.fetch_metadata(epoch=1)
    assert (answer.snapshot_id.end_offset, answer.snapshot_id.epoch, bytes(answer.records)) == (end, 1, b"")
    content, size = b"", 1
    turns = Turns()
    while len(content) < size:
        turns.go()
        piece = snapshot_of(controller, end, 1, len(content), 100)
        assert (piece.error_code, piece.position) == (0, len(content))
        content, size = content + bytes(piece.unaligned_records), piece.size
    image = ClusterImage()
    image.restore(from_bytes(content, "fetched"), Offset(end))
    for record in records_in(controller.fetch_metadata(end, epoch=1, last_epoch=1).records):
        image.replay(record)
    assert as_snapshots_have_it(image) == as_snapshots_have_it(controller.core.image)
    assert image.features == controller.core.image.features
    told, said = image.registered[1], controller.core.image.registered[1]
    assert [getattr(told, name) for name in INTRODUCTION] == [getattr(said, name) for name in INTRODUCTION]
    assert image.directories == controller.core.image.directories
    assert [header.base_offset for header in headers(memoryview(controller.log.batches_from(Offset(end), 1)))] == [end]


def test_snapshots_that_cannot_be_read() -> None:
    controller = with_snapshot()
    end = controller.core.image.spec.end_offset
    assert snapshot_of(controller, end + 1, 1, 0).error_code == Error.SNAPSHOT_NOT_FOUND.value
    assert snapshot_of(controller, end, 1, 1 << 30).error_code == Error.POSITION_OUT_OF_RANGE.value
    stale = snapshot_of(controller, end, 1, 0, current=0)
    assert (stale.error_code, stale.current_leader.leader_epoch) == (Error.FENCED_LEADER_EPOCH.value, 1)
    other = Message(partition=1, current_leader_epoch=1, snapshot_id=Message(end_offset=end, epoch=1), position=0)
    topics = [Message(name="__cluster_metadata", partitions=[other])]
    answer = controller.call("FetchSnapshot", 1, topics=topics).topics[0].partitions[0]
    assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION.value


def test_a_start_reads_the_snapshot_and_the_records_after_it() -> None:
    controller = with_snapshot()
    controller.create_on("u", [1])
    controller.others(2)
    again = InProcess(disk=controller.disk)
    after, before = as_snapshots_have_it(again.core.image), as_snapshots_have_it(controller.core.image)
    assert (after.brokers, after.partitions) == (before.brokers, before.partitions)
    assert again.core.voter.epoch == 2
    assert again.fetch_metadata(controller.core.image.spec.end_offset, epoch=2, last_epoch=1).error_code == 0
    assert any(name.endswith(".checkpoint") for name in controller.disk.listdir(f"{FOLDER}/__cluster_metadata-0"))


# ---- who is there


def test_the_quorum_and_its_observers_are_told() -> None:
    controller = InProcess()
    controller.fetch_metadata(5, epoch=1, last_epoch=1)
    wanted = [Message(topic_name=name, partitions=[Message(partition_index=0)]) for name in ("__cluster_metadata", "t")]
    answer = controller.call("DescribeQuorum", 2, topics=wanted)
    quorum, unknown = (topic.partitions[0] for topic in answer.topics)
    assert (quorum.leader_id, quorum.leader_epoch, quorum.high_watermark) == (100, 1, 5)
    assert [one.replica_id for one in quorum.current_voters] == [100]
    assert [(one.replica_id, one.log_end_offset) for one in quorum.observers] == [(1, 5)]
    assert quorum.observers[0].last_caught_up_timestamp == controller.now
    assert unknown.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION.value
    assert [(one.node_id, one.listeners[0].port) for one in answer.nodes] == [(100, 9)]


def observers_of(controller: InProcess) -> list[Message]:
    wanted = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
    found: list[Message] = controller.call("DescribeQuorum", 2, topics=wanted).topics[0].partitions[0].observers
    return found


def test_an_observer_is_named_for_five_minutes_after_its_last_fetch() -> None:
    controller = InProcess()
    controller.fetch_metadata(5, epoch=1, last_epoch=1)
    controller.pass_time(OBSERVER_MS - 1)
    assert [one.replica_id for one in observers_of(controller)] == [1]
    controller.pass_time(1)
    assert observers_of(controller) == []


def test_an_observer_has_caught_up_with_a_log_that_grows() -> None:
    controller = InProcess()
    first = controller.now
    controller.fetch_metadata(5, epoch=1, last_epoch=1)
    controller.pass_time(10)
    controller.fetch_metadata(3, epoch=1, last_epoch=1)
    assert observers_of(controller)[0].last_caught_up_timestamp == first
    end = controller.core.log.end_offset
    controller.others(2)
    controller.pass_time(10)
    controller.fetch_metadata(end, epoch=1, last_epoch=1)
    assert controller.core.log.end_offset > end
    assert observers_of(controller)[0].last_caught_up_timestamp == first + 10, "at its fetch before, the log ended there"


def test_the_cluster_is_its_controllers() -> None:
    controller = InProcess()
    answer = controller.call("DescribeCluster", 2, endpoint_type=2)
    assert (answer.cluster_id, answer.controller_id) == (CLUSTER_ID, 100)
    assert [one.broker_id for one in answer.brokers] == [100]
    wrong = [controller.call("DescribeCluster", 1, endpoint_type=kind).error_code for kind in (1, 3)]
    assert wrong == [Error.MISMATCHED_ENDPOINT_TYPE.value, Error.UNSUPPORTED_ENDPOINT_TYPE.value]


def test_versions_and_features() -> None:
    controller = InProcess()
    told = {"client_software_name": "t", "client_software_version": "1"}
    answer = controller.call("ApiVersions", 4, **told)
    levels = [(one.name, one.max_version_level) for one in answer.finalized_features]
    assert levels == [("eligible.leader.replicas.version", 1), ("metadata.version", 33), ("transaction.version", 2)]
    assert [one.name for one in answer.supported_features] == [
        "metadata.version",
        "eligible.leader.replicas.version",
        "transaction.version",
        "kraft.version",
    ]
    assert answer.finalized_features_epoch == 4
    assert [one.name for one in controller.call("ApiVersions", 3, **told).supported_features] == ["metadata.version"]
