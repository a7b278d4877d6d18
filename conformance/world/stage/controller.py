"""The controller to which the broker under test talks. It decides nothing: whoever plays says what is written and granted.

By itself it does only what brings a broker from its start to its work: it registers the broker, and unfences it.
"""

import asyncio
from enum import Enum
from typing import Any, NamedTuple

from conformance.kafka.codec import Codec
from conformance.kafka.network import Arrived, Listener, api_versions
from conformance.kafka.process import HOST
from conformance.world.stage.metadata_log import CONTROLLER_EPOCH, CONTROLLER_NODE, MetadataLog
from conformance.world.stage.registry import PLAYED_NODES, REAL_NODE, Registry
from impl.wire.values import Message
from spec.values import Error


class Registering(Enum):
    """What becomes of a registration of a new incarnation of the broker under test."""

    TAKEN = "it is registered"
    HELD = "whoever plays answers it"
    REFUSED = "the session of the incarnation before is valid"


class Heard(NamedTuple):
    """The last heartbeat of the registered incarnation: the metadata offset that it has applied, and what it wants."""

    applied: int = -1
    caught_up: bool = False
    wants_part: bool = False
    wants_to_stop: bool = False


class PlayedController:
    """The controller's end. `proposals` are AlterPartition requests that have no answer yet.

    `asked`: the last registration of the present incarnation. `held`: the same, if whoever plays is to answer it.
    `unfences`: the broker under test is unfenced once it has caught up and wants to take part, without anybody saying so.
    `may_stop`: it has leave to stop, once it asks.
    """

    def __init__(self, codec: Codec, registry: Registry) -> None:
        self.log = MetadataLog(codec)
        self.registry = registry
        self.listener = Listener(codec, CONTROLLER_NODE, self._answer)
        self.proposals: asyncio.Queue[Arrived] = asyncio.Queue()
        self.asked: Arrived | None = None
        self.held: Arrived | None = None
        self.registering = Registering.TAKEN
        self.heard = Heard()
        self.unfences = True
        self.may_stop = False
        self._codec = codec

    def awaits_incarnation(self, registering: Registering) -> None:
        """The broker under test is about to start: it has read nothing, and nothing was heard of it."""
        self.registering, self.unfences = registering, registering == Registering.TAKEN
        self.heard = Heard()
        self.asked = self.held = None
        self.may_stop = False
        self.log.new_reader()

    async def _answer(self, arrived: Arrived) -> Message | None:
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
                raise AssertionError(f"the broker sends its controller {other}, which nobody plays")

    # ---- the metadata log

    async def _metadata_fetch(self, arrived: Arrived) -> Message:
        topic = arrived.message.topics[0]
        asked = topic.partitions[0]
        if asked.current_leader_epoch < CONTROLLER_EPOCH:
            return self._metadata_answer(arrived, Error.FENCED_LEADER_EPOCH, max(self.log.told, 0), b"")
        high_watermark, records = await self.log.fetch(asked.fetch_offset, arrived.message.max_wait_ms)
        return self._metadata_answer(arrived, Error.NONE, high_watermark, records)

    def _metadata_answer(self, arrived: Arrived, error: Error, high_watermark: int, records: bytes) -> Message:
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

    def _registration(self, arrived: Arrived) -> Message | None:
        """A registration that arrives again is answered as the first one; a new incarnation's as whoever plays says."""
        self.asked = arrived
        if bytes(arrived.message.incarnation_id) == self.registry.incarnation:
            return self.registered()
        if self.registering == Registering.TAKEN:
            return self.register(arrived)
        if self.registering == Registering.REFUSED:
            return Message(error_code=Error.DUPLICATE_BROKER_REGISTRATION.value)
        self.held = arrived
        return None

    def registered(self) -> Message:
        """The answer to a registration: the broker epoch."""
        return Message(error_code=0, broker_epoch=self.registry.epochs[REAL_NODE])

    def register(self, arrived: Arrived) -> Message:
        """Register the broker under test, fenced; the first time, its played neighbours before it, unfenced."""
        registry, log = self.registry, self.log
        registry.takes_features(arrived.message)
        if not registry.epochs:
            log.append([registry.metadata_version()])
            log.append([registry.new_incarnation(node, log.end + place) for place, node in enumerate(PLAYED_NODES)])
        log.append([registry.real_incarnation(arrived, log.end, fenced=True)])
        log.show()
        return self.registered()

    # ---- heartbeats

    def _heartbeat(self, asked: Message) -> Message:
        registry = self.registry
        if asked.broker_epoch != registry.epochs.get(REAL_NODE):
            return Message(error_code=Error.STALE_BROKER_EPOCH.value)
        caught_up = asked.current_metadata_offset >= registry.epochs[REAL_NODE]
        self.heard = Heard(asked.current_metadata_offset, caught_up, not asked.want_fence, asked.want_shut_down)
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
