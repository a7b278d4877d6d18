"""Requests of administrators to one broker, which has the controller in its own process."""

import json
import time
from pathlib import Path

from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.releases.features import FEATURES_OF_RELEASES, OLDEST
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until

SECRET = "hunter2"


def test_a_broker_that_is_unregistered_while_it_lives_registers_again(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        client.create("kept")
        assert client.produce("kept", new_batch([(1, b"k", b"v")])).error_code == 0
        assert client.call("UnregisterBroker", 0, broker_id=1).error_code == 0
        assert client.produce("kept", new_batch([(1, b"k", b"v")])).error_code == 0
        assert client.call("UnregisterBroker", 0, broker_id=7).error_code == Error.BROKER_ID_NOT_REGISTERED.value
        broker.restart()
        with BrokerClient(broker.port) as again:
            assert again.produce("kept", new_batch([(1, b"k", b"v")])).base_offset == 2


def test_a_broker_that_is_unregistered_while_it_registers_again_does_so_once_more(tmp_path: Path) -> None:
    """With more partitions to change, its second start takes longer, and the next request finds it at different steps."""
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        client.create("kept", 50)
        for wait_ms in (0, 3, 10, 30):
            assert client.call("UnregisterBroker", 0, broker_id=1).error_code == 0
            time.sleep(wait_ms / 1000)
            client.call("UnregisterBroker", 0, broker_id=1)
            wait_until(lambda: client.produce("kept", new_batch([(1, b"k", b"v")])).error_code == 0)


def test_features_of_one_broker(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        told = client.call("ApiVersions", 3, client_software_name="a", client_software_version="1")
        levels = {one.name: one.max_version_level for one in told.finalized_features}
        newest = max(one.metadata_version for one in FEATURES_OF_RELEASES if one.name != "next")
        assert levels == {"metadata.version": newest, "eligible.leader.replicas.version": 1, "transaction.version": 2}
        ranges = {one.name: (one.min_version, one.max_version) for one in told.supported_features}
        assert ranges["metadata.version"] == (OLDEST, newest)
        lower = Message(feature="metadata.version", max_version_level=20, upgrade_type=2)
        refused = client.call("UpdateFeatures", 1, feature_updates=[lower])
        assert refused.error_code == Error.INVALID_UPDATE_VERSION.value


def test_no_secret_is_in_a_trace_or_a_log(tmp_path: Path) -> None:
    """A setting that Kafka does not know may be a secret, and so are passwords: refused, and nowhere to be read."""
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        client.create("kept")
        for kind, name in ((2, "kept"), (4, "1"), (4, "")):
            for setting in ("ssl.keystore.password", "listener.name.a.ssl.key.password", "my.password"):
                change = Message(name=setting, config_operation=0, value=SECRET)
                resource = Message(resource_type=kind, resource_name=name, configs=[change])
                answer = client.call("IncrementalAlterConfigs", 1, resources=[resource]).responses[0]
                assert answer.error_code != 0
                assert SECRET not in (answer.error_message or "")
        config = Message(name="my.password", value=SECRET)
        topic = Message(name="new", num_partitions=1, replication_factor=1, assignments=[], configs=[config])
        assert client.call("CreateTopics", 7, topics=[topic], timeout_ms=1000).topics[0].error_code != 0
        assert broker.stop() == 0
        for trace in broker.traces:
            assert SECRET not in trace.read_text(encoding="utf-8")
            assert json.loads(trace.read_text(encoding="utf-8").splitlines()[0])
        assert SECRET not in broker.log.read_text(encoding="utf-8")


def test_a_log_directory_is_where_replicas_lie(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker, BrokerClient(broker.port) as client:
        client.create("kept")
        (there,) = client.call("DescribeLogDirs", 4, topics=None).results
        asked = [(there.log_dir, "kept"), (there.log_dir, "none-such"), ("/elsewhere", "kept")]
        errors = []
        for path, topic in asked:
            move = Message(path=path, topics=[Message(name=topic, partitions=[0])])
            (result,) = client.call("AlterReplicaLogDirs", 2, dirs=[move]).results
            errors.append(result.partitions[0].error_code)
        assert errors == [0, Error.REPLICA_NOT_AVAILABLE.value, Error.LOG_DIR_NOT_FOUND.value]
