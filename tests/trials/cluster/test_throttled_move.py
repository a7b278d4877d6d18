"""A reassignment with a throttle (KIP-73), on real processes: it takes as long as the rate says, and then it is done."""

import asyncio
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from kspec.impl.wire.values import Message
from kspec.trials.cluster.asking import ask_once
from tests.trials.cluster.running import RunningCluster, until
from tests.trials.cluster.test_view import seen

RECORDS, RATE = 6_000, 1_000_000
"""Records of 1,000 bytes, and how many bytes a second may be copied."""

LEAST_S = RECORDS * 1_000 / RATE - 2.5
"""The least time of the move: a second and a fetch are copied before the rate is found to be exceeded."""


def configure(admin: AdminClient, kind: ResourceType, name: str, **settings: str) -> None:
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


@pytest.mark.nightly  # by day on simulated clusters
def test_a_throttled_replica_is_copied_no_faster_than_the_rate(tmp_path: Path) -> None:
    with RunningCluster(
        tmp_path / "cluster", "--override", "replication.quota.window.num=2", brokers=3, combined=False
    ) as cluster:
        ports = {broker: ("127.0.0.1", cluster.port + broker - 1) for broker in (1, 2, 3)}
        addresses = ",".join(f"{host}:{port}" for host, port in ports.values())
        admin = AdminClient({"bootstrap.servers": addresses})
        for future in admin.create_topics([NewTopic("t", num_partitions=1, replica_assignment=[[1, 2]])]).values():
            future.result(30)
        producer = Producer({"bootstrap.servers": addresses, "acks": "all"})
        for _ in range(RECORDS):
            producer.produce("t", b"x" * 1_000)
        assert producer.flush(30) == 0
        for broker in ports:
            rates = {f"{side}.replication.throttled.rate": str(RATE) for side in ("leader", "follower")}
            configure(admin, ResourceType.BROKER, str(broker), **rates)
        replicas = {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}
        configure(admin, ResourceType.TOPIC, "t", **replicas)
        began = time.monotonic()
        wanted = Message(name="t", partitions=[Message(partition_index=0, replicas=[2, 3])])
        answer = asyncio.run(ask_once(ports[1], "AlterPartitionReassignments", 0, timeout_ms=10_000, topics=[wanted]))
        assert answer.responses[0].partitions[0].error_code == 0
        until(lambda: set(seen(ports, "t")[0].isr) == {2, 3})
        assert time.monotonic() - began >= LEAST_S
