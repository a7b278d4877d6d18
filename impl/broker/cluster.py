"""The controller in this process: `spec`'s handlers decide, the metadata log keeps, the image shows the outcome."""

from collections.abc import Callable, Iterable
from typing import Any

from impl.broker.calls import Note
from impl.broker.replica import Place
from impl.broker.topics_view import TopicsView, as_logged
from impl.metadata.image import ClusterImage, Topic
from impl.metadata.records import LogRecord, from_spec
from impl.wire.values import Message
from spec.controller.protocol import Controller
from spec.controller.state import AppendRecords, ControllerState, ControllerStep, activate
from spec.controller.topics.cluster import Decision
from spec.controller.topics.settings import TopicSettings
from spec.metadata import (
    BrokerRegistration,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    broker_of,
)
from spec.step import Reply
from spec.values import BrokerId, Epoch, PartitionId


class ClusterView:
    """What this broker knows of the cluster."""

    def __init__(self, image: ClusterImage, self_id: int) -> None:
        self.self_id = BrokerId(self_id)
        self.image = image
        self.endpoint = Message(name="PLAINTEXT", host="", port=0, security_protocol=0)
        self.rack: str | None = None
        self.note: Note | None = None
        self.view = TopicsView(self.image)
        self._registrations: dict[PartitionId, PartitionRegistration] = {}
        self._registrations_of: object = None
        self._worked_out: dict[Any, list[Message]] = {}
        self._worked_out_of: tuple[object, object] = (None, None)

    def use_image(self, image: ClusterImage) -> None:
        """Know this from now on, instead of what was known."""
        self.image = image
        self.view = TopicsView(image)

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

    def worked_out(self) -> dict[Any, list[Message]]:
        """Parts of answers by what they are about, kept by those who answer: none, once brokers or partitions are others."""
        image, (brokers, partitions) = self.image.spec, self._worked_out_of
        if brokers is not image.brokers or partitions is not image.partitions:
            self._worked_out, self._worked_out_of = {}, (image.brokers, image.partitions)
        return self._worked_out

    def topic(self, name: str | None, topic_id: bytes, by_id: bool) -> Topic | None:
        """A topic by its name, or by its id."""
        return self.image.topics_by_id.get(topic_id) if by_id else self.image.topics.get(name or "")

    def place_of(self, partition_id: PartitionId) -> Place:
        """A partition by its number."""
        key = self.image.key_of(partition_id)
        return Place(self.image.topics_by_id[key.topic_id].name, key.partition)


class Cluster(ClusterView):
    """What is known of the cluster, and the controller that changes it."""

    def __init__(self, controller: Controller, controller_epoch: Epoch, image: ClusterImage, self_id: int, now: int) -> None:
        super().__init__(image, self_id)
        self.controller = controller
        # The lock on the folder shows that no other process of this broker is alive: its session is long over.
        long_ago = now - controller.settings.session_timeout_ms - 1
        self.state: ControllerState = activate(controller_epoch, self.image.spec, long_ago)

    # ---- what changes it

    def decide(self, handler: Callable[..., ControllerStep], request: Any, now: int) -> tuple[Any, list[LogRecord]]:
        """Call a handler of the controller: its answer, and the records that it wants in the metadata log.

        The new state counts at once for the next decision; the image follows when the records are stored.
        """
        return self.decide_event(handler, request, now)

    def decide_event(self, handler: Callable[..., ControllerStep], *given: Any) -> tuple[Any, list[LogRecord]]:
        """As `decide`, of an event that is no request: the time is up, or a setting has changed."""
        before = self.state
        step = handler(self.controller, before, *given)
        if self.note is not None:
            self.note(handler, self.controller, before, given, step)
        self.state = step.state
        answer, records = None, []
        for effect in step.effects:
            if isinstance(effect, AppendRecords):
                records = [self._as_logged(record) for record in effect.records]
            elif isinstance(effect, Reply):
                answer = effect.message
        return answer, records

    def decide_topics(
        self, handler: Callable[..., Decision[Any]], settings: TopicSettings, request: Any, now: int
    ) -> tuple[Any, list[LogRecord]]:
        """Call a handler of the controller for topics: its answer, and the records that it wants in the metadata log."""
        decision = handler(settings, self.view, request, now)
        if self.note is not None:
            self.note(handler, settings, self.view.as_values(), (request, now), decision)
        return decision.answer, [as_logged(record) for record in decision.records]

    def _as_logged(self, record: Any) -> LogRecord:
        changed = isinstance(record, (PartitionRecord, PartitionChangeRecord))
        key = self.image.key_of(record.partition_id) if changed else None
        return from_spec(record, key, self.endpoint, self.rack)

    def stored(self, records: Iterable[LogRecord]) -> None:
        """Records are on the disk: they count from now on."""
        self.image.replay_all(records)
        self.state = self.state._replace(image=self.image.spec)

    def not_stored(self) -> None:
        """The metadata log took nothing: what was decided is forgotten."""
        self.state = self.state._replace(image=self.image.spec)
