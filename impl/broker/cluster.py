"""The controller in this process: `spec`'s handlers decide, the metadata log keeps, the image shows the outcome."""

from collections.abc import Callable, Iterable
from typing import Any

from impl.broker.calls import AppendMetadata
from impl.broker.replica import Place
from impl.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage, Topic
from impl.metadata.records import LogRecord, PartitionKey, from_spec
from impl.wire.values import Message
from spec.controller.protocol import Controller
from spec.controller.state import AppendRecords, ControllerState, ControllerStep, activate
from spec.metadata import (
    BrokerRegistration,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    broker_of,
)
from spec.step import Reply
from spec.values import BrokerId, Epoch, PartitionId


class Cluster:
    """What is known of the cluster, and the controller that changes it."""

    def __init__(
        self, controller: Controller, controller_epoch: Epoch, records: Iterable[LogRecord], self_id: int, now: int
    ) -> None:
        self.self_id = BrokerId(self_id)
        self.controller = controller
        self.image = ClusterImage()
        self.endpoint = Message(name="PLAINTEXT", host="", port=0, security_protocol=0)
        for record in records:
            self.image.replay(record)
        self.state: ControllerState = activate(controller_epoch, self.image.spec, now)
        self._registrations: dict[PartitionId, PartitionRegistration] = {}
        self._registrations_of: object = None
        self._new_keys: dict[PartitionId, PartitionKey] = {}

    # ---- what is known

    @property
    def registration(self) -> BrokerRegistration | None:
        """This broker's own registration."""
        return broker_of(self.image.spec.brokers, self.self_id)

    def registrations(self) -> dict[PartitionId, PartitionRegistration]:
        """All partitions by their numbers."""
        partitions = self.image.spec.partitions
        if self._registrations_of is not partitions:
            self._registrations = {record.partition_id: record.registration for record in partitions}
            self._registrations_of = partitions
        return self._registrations

    def topic(self, name: str | None, topic_id: bytes, by_id: bool) -> Topic | None:
        """A topic by its name, or by its id."""
        return self.image.topics_by_id.get(topic_id) if by_id else self.image.topics.get(name or "")

    def place_of(self, partition_id: PartitionId) -> Place:
        """A partition by its number."""
        key = self.image.key_of(partition_id)
        return Place(self.image.topics_by_id[key.topic_id].name, key.index)

    def topic_settings(self, name: str) -> dict[str, str]:
        """What a topic sets itself."""
        return self.image.configs.get((TOPIC_RESOURCE, name), {})

    def broker_settings(self, name: str) -> dict[str, str]:
        """What is set for a broker, or with an empty name for all, while the cluster runs."""
        return self.image.configs.get((BROKER_RESOURCE, name), {})

    # ---- what changes it

    def decide(self, handler: Callable[..., ControllerStep], request: Any, now: int) -> tuple[Any, list[LogRecord]]:
        """Call a handler of the controller: its answer, and the records that it wants in the metadata log.

        The new state counts at once for the next decision; the image follows when the records are stored.
        """
        step = handler(self.controller, self.state, request, now)
        self.state = step.state
        answer, records = None, []
        for effect in step.effects:
            if isinstance(effect, AppendRecords):
                records = [self._as_logged(record) for record in effect.records]
            elif isinstance(effect, Reply):
                answer = effect.message
        return answer, records

    def _as_logged(self, record: Any) -> LogRecord:
        key = None
        if isinstance(record, (PartitionRecord, PartitionChangeRecord)):
            key = self._new_keys.get(record.partition_id) or self.image.key_of(record.partition_id)
        return from_spec(record, key, self.endpoint)

    def store(self, records: Iterable[LogRecord]) -> AppendMetadata:
        """The effect of writing records to the metadata log; `stored` is to be called when it is done."""
        return AppendMetadata(tuple(records))

    def stored(self, records: Iterable[LogRecord]) -> None:
        """Records are on the disk: they count from now on."""
        for record in records:
            self.image.replay(record)
        self.state = self.state._replace(image=self.image.spec)

    def not_stored(self) -> None:
        """The metadata log took nothing: what was decided is forgotten."""
        self.state = self.state._replace(image=self.image.spec)

    def name_new_partitions(self, keys: Iterable[PartitionKey]) -> list[PartitionId]:
        """The numbers that new partitions will have when their records are stored, in this order."""
        first = self.image.new_partition_id()
        self._new_keys = {PartitionId(first + number): key for number, key in enumerate(keys)}
        return list(self._new_keys)
