"""The stand-in for the controller of the broker under test. The replay decides; this one writes and responds.

By itself it takes only the steps that bring a broker from its start to its work: it registers the broker, and unfences it.
"""

import asyncio
from enum import Enum
from typing import Any, NamedTuple

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.network import ArrivedRequest, NodeStandIn, api_versions
from kspec.conformance.kafka.process import HOST
from kspec.conformance.world.environment.metadata_log import CONTROLLER_EPOCH, CONTROLLER_NODE, WorldMetadataLog
from kspec.conformance.world.environment.registry import REAL_NODE, STAND_IN_NODES, Registry
from kspec.impl.wire.values import Message
from kspec.spec.values import Error


class RegistrationFate(Enum):
    """The answer to a registration of a new incarnation of the broker under test."""

    TAKEN = "it is registered"
    HELD = "the replay answers it"
    REFUSED = "the session of the previous incarnation is valid"


class LastHeartbeat(NamedTuple):
    """The last heartbeat of the registered incarnation: the metadata offset that it has applied, and its requests."""

    applied: int = -1
    caught_up: bool = False
    wants_part: bool = False
    wants_to_stop: bool = False


class ControllerStandIn:
    """The controller's end. `proposals`: AlterPartition requests that have no response yet.

    `asked`: the last registration of the present incarnation. `held`: the same, if the replay is to answer it.
    `unfences`: whether the broker under test is unfenced by itself, once it has caught up and asks for it. `may_stop`:
    whether its request for a controlled shutdown is granted.
    """

    def __init__(self, codec: Codec, registry: Registry) -> None:
        self.log = WorldMetadataLog(codec)
        self.registry = registry
        self.listener = NodeStandIn(codec, CONTROLLER_NODE, self._answer)
        self.proposals: asyncio.Queue[ArrivedRequest] = asyncio.Queue()
        self.asked: ArrivedRequest | None = None
        self.held: ArrivedRequest | None = None
        self.registering = RegistrationFate.TAKEN
        self.heard = LastHeartbeat()
        self.unfences = True
        self.may_stop = False
        self._codec = codec

    def awaits_incarnation(self, registering: RegistrationFate) -> None:
        """Reset the state that belongs to an incarnation: the broker under test is about to start."""
        self.registering, self.unfences = registering, registering == RegistrationFate.TAKEN
        self.heard = LastHeartbeat()
        self.asked = self.held = None
        self.may_stop = False
        self.log.new_reader()

    async def _answer(self, arrived: ArrivedRequest) -> Message | None:
        match arrived.api:
            case "ApiVersions":
                return api_versions(self._codec)
            case "Fetch":
                return await self._metadata_fetch(arrived)
            case "BrokerRegistration":
                return self._registration(arrived)
            case "BrokerHeartbeat":
                return self._heartbeat(arrived.message)
            case "AlterPartition":
                self.proposals.put_nowait(arrived)
                return None
            case "AllocateProducerIds":
                return Message(error_code=0, producer_id_start=0, producer_id_len=1000)
            case "AssignReplicasToDirs":
                return _assigned(arrived.message)
            case other:
                raise AssertionError(f"the broker sends its controller {other}, for which there is no stand-in")

    # ---- the metadata log

    async def _metadata_fetch(self, arrived: ArrivedRequest) -> Message:
        topic = arrived.message.topics[0]
        asked = topic.partitions[0]
        if asked.current_leader_epoch < CONTROLLER_EPOCH:
            return self._metadata_answer(arrived, Error.FENCED_LEADER_EPOCH, max(self.log.told, 0), b"")
        high_watermark, records = await self.log.fetch(asked.fetch_offset, arrived.message.max_wait_ms)
        return self._metadata_answer(arrived, Error.NONE, high_watermark, records)

    def _metadata_answer(self, arrived: ArrivedRequest, error: Error, high_watermark: int, records: bytes) -> Message:
        partition = Message(
            partition_index=0,
            error_code=error.value,
            high_watermark=high_watermark,
            log_start_offset=0,
            current_leader=Message(leader_id=CONTROLLER_NODE, leader_epoch=CONTROLLER_EPOCH),
            records=records,
        )
        topic = Message(topic_id=arrived.message.topics[0].topic_id, partitions=[partition])
        endpoint = Message(node_id=CONTROLLER_NODE, host=HOST, port=self.listener.port)
        return Message(error_code=0, responses=[topic], node_endpoints=[endpoint])

    # ---- registrations

    def _registration(self, arrived: ArrivedRequest) -> Message | None:
        """The response to a registration: if it arrives again, the first one's; a new incarnation's as the replay says."""
        self.asked = arrived
        if bytes(arrived.message.incarnation_id) == self.registry.incarnation:
            return self.registered()
        if self.registering == RegistrationFate.TAKEN:
            return self.register(arrived)
        if self.registering == RegistrationFate.REFUSED:
            return Message(error_code=Error.DUPLICATE_BROKER_REGISTRATION.value)
        self.held = arrived
        return None

    def registered(self) -> Message:
        """The answer to a registration: the broker epoch."""
        return Message(error_code=0, broker_epoch=self.registry.epochs[REAL_NODE])

    def register(self, arrived: ArrivedRequest) -> Message:
        """Register the broker under test, fenced; the first time, its neighbours before it, unfenced."""
        registry, log = self.registry, self.log
        registry.takes_features(arrived.message)
        if not registry.epochs:
            log.append([registry.metadata_version()])
            log.append([registry.new_incarnation(node, log.end + place) for place, node in enumerate(STAND_IN_NODES)])
        log.append([registry.real_incarnation(arrived, log.end, fenced=True)])
        log.show()
        return self.registered()

    # ---- heartbeats

    def _heartbeat(self, asked: Message) -> Message:
        registry = self.registry
        if asked.broker_epoch != registry.epochs.get(REAL_NODE):
            return Message(error_code=Error.STALE_BROKER_EPOCH.value)
        caught_up = asked.current_metadata_offset >= registry.epochs[REAL_NODE]
        self.heard = LastHeartbeat(asked.current_metadata_offset, caught_up, not asked.want_fence, asked.want_shut_down)
        if self.unfences and caught_up and self.heard.wants_part and REAL_NODE in registry.fenced:
            self.log.append([registry.change(REAL_NODE, fenced=False)])
            self.log.show()
        return Message(
            error_code=0,
            is_caught_up=caught_up,
            is_fenced=REAL_NODE in registry.fenced,
            should_shut_down=asked.want_shut_down and self.may_stop,
        )


def _assigned(asked: Message) -> Message:
    def topic(one: Any) -> Message:
        done = [Message(partition_index=part.partition_index, error_code=0) for part in one.partitions]
        return Message(topic_id=one.topic_id, partitions=done)

    directories = [Message(id=one.id, topics=[topic(part) for part in one.topics]) for one in asked.directories]
    return Message(error_code=0, directories=directories)
