"""Requests of a broker to its controller, field by field."""

import struct
from abc import ABC, abstractmethod
from typing import Any, Self

from kspec.impl.wire.apis import CONTROLLER_APIS
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import write_message

CLUSTER_ID = "a3NwZWMtY29uZm9ybWFuY2"
METADATA_TOPIC = bytes(15) + b"\1"
KEYS = {api.name: api for api in CONTROLLER_APIS.values()}
FEATURES = (
    ("metadata.version", 7, 33),
    ("eligible.leader.replicas.version", 0, 1),
    ("transaction.version", 0, 2),
    ("kraft.version", 0, 1),
)


class Moves(ABC):
    """Requests of a broker, however they reach the controller."""

    broker = 1
    broker_epoch = -1
    directory = bytes([1]) * 16

    @abstractmethod
    def call(self, name: str, version: int, **fields: Any) -> Message:
        """Send a request, and wait for its answer."""

    def register(self, broker: int = 1, incarnation: int = 1, previous: int = -1, **fields: Any) -> Message:
        """Register; the broker epoch is kept if it succeeds."""
        self.broker = broker
        self.directory = bytes([broker % 256]) * 16
        given: dict[str, Any] = {
            "broker_id": broker,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": incarnation.to_bytes(16, "big"),
            "listeners": [Message(name="PLAINTEXT", host="127.0.0.1", port=9000 + broker, security_protocol=0)],
            "features": [Message(name=n, min_supported_version=a, max_supported_version=b) for n, a, b in FEATURES],
            "rack": None,
            "log_dirs": [self.directory],
            "previous_broker_epoch": previous,
        }
        answer = self.call("BrokerRegistration", 4, **(given | fields))
        if answer.error_code == 0:
            self.broker_epoch = answer.broker_epoch
        return answer

    def heartbeat(self, offset: int | None = None, want_fence: bool = False, want_shut_down: bool = False) -> Message:
        """A heartbeat; without an offset, the broker has replayed all that there is."""
        return self.call(
            "BrokerHeartbeat",
            2,
            broker_id=self.broker,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=(1 << 40) if offset is None else offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
        )

    def join(self, broker: int = 1, incarnation: int = 1) -> Self:
        """Register, and be unfenced."""
        assert self.register(broker, incarnation).error_code == 0
        assert not self.heartbeat().is_fenced
        return self

    def create_topic(self, topic: str, partitions: int = 1, factor: int = 1, **configs: str) -> Message:
        given = [Message(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        wanted = Message(name=topic, num_partitions=partitions, replication_factor=factor, assignments=[], configs=given)
        answer: Message = self.call("CreateTopics", 7, topics=[wanted], timeout_ms=5000).topics[0]
        return answer

    def create_on(self, topic: str, *replicas: list[int]) -> Message:
        """Create a topic with these replicas of its partitions."""
        given = [Message(partition_index=n, broker_ids=one) for n, one in enumerate(replicas)]
        wanted = Message(name=topic, num_partitions=-1, replication_factor=-1, assignments=given, configs=[])
        answer: Message = self.call("CreateTopics", 7, topics=[wanted], timeout_ms=5000).topics[0]
        assert answer.error_code == 0, answer
        return answer

    def fetch_metadata(
        self, offset: int = 0, epoch: int = 0, last_epoch: int = 0, wait_ms: int = 0, **fields: Any
    ) -> Message:
        """Fetch the metadata log; the partition's answer."""
        asked = fetch_message(self.broker, offset, epoch, last_epoch, wait_ms, **fields)
        answer: Message = self.call("Fetch", 18, **asked.__dict__).responses[0].partitions[0]
        return answer


def fetch_message(broker: int, offset: int, epoch: int, last_epoch: int, wait_ms: int, **fields: Any) -> Message:
    """A fetch of the metadata log."""
    partition = Message(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=1 << 20,
        **fields,
    )
    return Message(
        cluster_id=CLUSTER_ID,
        replica_state=Message(replica_id=broker, replica_epoch=-1),
        max_wait_ms=wait_ms,
        topics=[Message(topic_id=METADATA_TOPIC, partitions=[partition])],
    )


def request_of(name: str, version: int, correlation: int, message: Message, client_id: str = "member") -> bytes:
    """A request with its header."""
    api = KEYS[name]
    head = struct.pack(">hhih", api.key, version, correlation, len(client_id)) + client_id.encode()
    return head + (b"\0" if version in api.flexible else b"") + write_message(f"{name}Request", version, message)


def answer_of(name: str, version: int, frame: bytes) -> Message:
    """An answer without its header."""
    start = 5 if version in KEYS[name].flexible and name != "ApiVersions" else 4
    message, end = read_message(f"{name}Response", version, memoryview(frame), start)
    assert end == len(frame), f"{len(frame) - end} bytes behind the answer"
    return message
