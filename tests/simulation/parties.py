"""The parties of a simulation: a broker with one replica of the partition, the controllers, and messages under way."""

from typing import Any

from spec.broker.partition import Broker, BrokerSettings, Partition
from spec.broker.protocol import BrokerProtocol
from spec.broker.recovery import after_clean_stop, opened, recover
from spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from spec.log.local_log import LocalLog
from spec.log.record_log import EMPTY_LOG, RecordLog
from spec.messages.alter_partition import AlterPartitionRequest
from spec.metadata import EMPTY_IMAGE, MetadataImage
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Incarnation, Offset, PartitionId
from tests.simulation.storage.disk import Disk

PARTITION = PartitionId(0)

LIFECYCLE, ISR = -1, -2
"""A broker's two connections to the controller: registration and heartbeats; AlterPartition. The others are brokers' ids."""


class Message:
    """A request or its answer, on one connection of one incarnation of a broker."""

    __slots__ = ("answer", "asked", "channel", "number", "request", "run", "server_run", "source")

    def __init__(self, source: int, run: int, channel: int, number: int, request: Any) -> None:
        self.source, self.run, self.channel, self.number, self.request = source, run, channel, number, request
        self.answer: Any = None
        self.asked: Any = None
        self.server_run = 0

    def __str__(self) -> str:
        to = "controller" if self.channel < 0 else str(self.channel)
        if self.answer is None:
            return f"{self.source} -> {to}: {self.request}"
        return f"{self.source} <- {to}: {self.answer}"


class Node:
    """One broker: what is in its memory, what is on its disk, and which of its requests wait for an answer."""

    __slots__ = (
        "acts_early",
        "agreed_with",
        "answering",
        "broker_cache",
        "channels",
        "disk",
        "end_at_start",
        "id",
        "image",
        "is_new",
        "life",
        "lossy",
        "next_image",
        "now",
        "partition",
        "previous_epoch",
        "proposals",
        "protocol",
        "published",
        "run",
        "sequences",
        "settings",
        "up",
    )

    def __init__(self, number: int, protocol: BrokerProtocol, settings: BrokerSettings) -> None:
        self.id = BrokerId(number)
        self.protocol, self.settings = protocol, settings
        unregistered = BrokerLifecycle(self.id, Incarnation(0))
        self.acts_early = protocol.acts_on_metadata(unregistered, Offset(0), Offset(0))
        self.disk = Disk()
        self.partition: Partition[RecordLog] = opened(PARTITION, recover(after_clean_stop(LocalLog(EMPTY_LOG))))
        self.life = BrokerLifecycle(self.id, Incarnation(0))
        self.previous_epoch = NO_BROKER_EPOCH
        self.up = self.published = self.lossy = self.is_new = False
        self.run = self.now = self.next_image = self.end_at_start = 0
        self.image: MetadataImage = EMPTY_IMAGE
        self.channels: dict[int, int] = {}
        self.proposals: list[AlterPartitionRequest] = []
        self.sequences: dict[int, Any] = {}
        self.answering: Any = None
        self.broker_cache: Broker | None = None
        self.agreed_with: Any = None

    @property
    def epoch(self) -> BrokerEpoch:
        return self.life.broker_epoch

    @property
    def registered(self) -> bool:
        return self.life.broker_epoch != NO_BROKER_EPOCH

    @property
    def told_to_recover(self) -> BrokerLifecycle:
        """The incarnation as its rules see it: once it is registered, the controller says that it has caught up."""
        waits = self.registered and self.life.state == BrokerState.STARTING
        return self.life._replace(state=BrokerState.RECOVERY) if waits else self.life

    @property
    def acts(self) -> bool:
        """Whether the broker leads and follows: before it is registered only if its release allows that."""
        return self.up and (self.registered or self.acts_early)

    @property
    def answers(self) -> bool:
        """Whether the broker answers others. Here it does so as soon as it is registered, which is earlier than in Kafka."""
        return self.up and (self.registered or (self.acts_early and self.protocol.opens_ports(self.life)))

    @property
    def shutting_down(self) -> bool:
        return self.life.state in (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN)

    def as_broker(self) -> Broker:
        """What the partition's handlers know of their broker."""
        cached = self.broker_cache
        if (
            cached is None
            or cached.brokers is not self.image.brokers
            or cached.broker_epoch != self.life.broker_epoch
            or cached.shutting_down != self.shutting_down
        ):
            self.broker_cache = cached = Broker(
                self.id, self.protocol, self.epoch, self.image.brokers, self.settings, self.shutting_down
            )
        return cached

    def stop(self) -> None:
        """The process is gone: nothing of its memory stays."""
        self.up = self.published = False
        self.image, self.next_image = EMPTY_IMAGE, 0
        self.channels, self.proposals = {}, []
