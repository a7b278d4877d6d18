"""A disk that takes no more: clients are told, and the broker ends if it cannot go on without."""

import resource
from pathlib import Path

from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess

METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"


def limit_files(broker: BrokerProcess, size: int) -> None:
    """No file of the broker may become larger than this (bytes): writing behind it is an error."""
    assert broker.process is not None
    _, hard = resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (size, hard))


def test_a_metadata_log_that_cannot_be_written_ends_the_broker_and_its_client_is_told(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs", traced=False) as broker:
        with BrokerClient(broker.port) as client:
            client.create("many", 100)
            size = (tmp_path / "logs" / METADATA_LOG).stat().st_size
            assert size > broker.log.stat().st_size, "the limit is to be met by the metadata log first"
            limit_files(broker, size)
            wanted = Message(name="refused", num_partitions=1, replication_factor=1, assignments=[], configs=[])
            (answer,) = client.call("CreateTopics", 7, topics=[wanted], timeout_ms=5000).topics
            assert (answer.name, Error(answer.error_code)) == ("refused", Error.UNKNOWN_SERVER_ERROR)
        assert broker.ended() == 3
        said = broker.text_of_log()
        assert "kspec: the metadata log cannot be written: " in said
        assert "Traceback" not in said
        assert not (tmp_path / "logs" / ".kafka_cleanshutdown").exists()
        broker.start()
        with BrokerClient(broker.port) as client:
            topics = client.call("Metadata", 9, topics=None).topics
            assert [(topic.name, len(topic.partitions)) for topic in topics] == [("many", 100)]


def test_a_partition_that_cannot_be_written_is_refused_and_its_neighbour_goes_on(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        client.create("full")
        client.create("other")
        large = new_batch([(1, b"k", bytes(100_000))])
        assert client.produce("full", large).error_code == 0
        limit_files(broker, len(large) + 50_000)
        answer = client.produce("full", large)
        assert (Error(answer.error_code), answer.base_offset) == (Error.KAFKA_STORAGE_ERROR, -1)
        assert Error(client.produce("full", large).error_code) == Error.KAFKA_STORAGE_ERROR
        assert Error(client.fetch("full", 0).error_code) == Error.KAFKA_STORAGE_ERROR
        assert client.produce("other", new_batch([(1, b"k", b"v")])).base_offset == 0
        assert client.call("ApiVersions", 0).error_code == 0
        limit_files(broker, resource.RLIM_INFINITY)


def test_of_requests_that_come_together_those_are_refused_whose_partition_cannot_be_written(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        client.create("full")
        client.create("other")
        large, small = new_batch([(1, b"k", bytes(100_000))]), new_batch([(1, b"k", b"v")])
        assert client.produce("full", large).error_code == 0
        limit_files(broker, len(large) + 50_000)
        with client.together():
            for topic, batch in (("full", small), ("other", small), ("full", large), ("other", small), ("full", small)):
                data = Message(name=topic, partition_data=[Message(index=0, records=batch)])
                client.send("Produce", 9, Message(acks=-1, timeout_ms=1000, topic_data=[data]))
        errors = []
        for _ in range(5):
            (topic,) = client.receive("Produce", 9).responses
            errors.append((topic.name, Error(topic.partition_responses[0].error_code)))
        assert errors[1] == errors[3] == ("other", Error.NONE)
        assert errors[2] == errors[4] == ("full", Error.KAFKA_STORAGE_ERROR)
        limit_files(broker, resource.RLIM_INFINITY)
