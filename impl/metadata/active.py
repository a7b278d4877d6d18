"""The active controller: `spec`'s handlers decide, the metadata log keeps, the image shows the outcome.

A decision changes its shape once on the way to the log: what was decided here is not read again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar, TypeVarTuple, assert_never

from kspec.impl.metadata.files import MetadataBatch, replay_into
from kspec.impl.metadata.image import ClusterImage, key_of
from kspec.impl.metadata.records import LogRecord, from_spec
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.state import Answer, AppendRecords, ControllerState, ControllerStep, activate
from kspec.spec.metadata import MetadataRecord, PartitionChangeRecord, replay_all
from kspec.spec.quorum.rules.replication import FIRST_EPOCH
from kspec.spec.step import Reply
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import Epoch, Instant, MonotonicMs, Offset

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT", bound=Answer)
Given = TypeVarTuple("Given")


class ControllerHandler(Protocol[*Given]):
    """A handler of `spec` that a controller calls."""

    def __call__(self, controller: Controller, state: ControllerState, /, *given: *Given) -> ControllerStep:
        """Handle a request or an event."""


class StepRecorder(Protocol):
    """A recorder of steps: of the handler, who handles, the state that it read, what it was given, what came of it.

    Who handles is none where the handler does not ask that.
    """

    def __call__(
        self, handler: Callable[..., object], party: object, state: object, given: tuple[object, ...], outcome: object, /
    ) -> None:
        """Take note of a step."""


class ActiveController:
    """The controller in this process: its rules and settings, its state, and the image of the metadata log.

    While it is active, the image is that of all that was decided; while it is not, of what is committed.
    """

    def __init__(self, controller: Controller, image: ClusterImage) -> None:
        self.controller = controller
        self.image = image
        self.state = ControllerState(FIRST_EPOCH, image.spec)
        self.note: StepRecorder | None = None
        """Called with each step of a handler, if steps are recorded."""

    def claim(self, controller_epoch: Epoch, now_ms: MonotonicMs) -> None:
        """Be active from now on: the image has all that is committed."""
        self.state = activate(controller_epoch, self.image.spec, now_ms)

    def use_image(self, image: ClusterImage) -> None:
        """Know this from now on, instead of what was known; it is not active."""
        self.image = image
        self.state = ControllerState(self.state.controller_epoch, image.spec)

    def decide(
        self,
        handler: ControllerHandler[RequestT, MonotonicMs],
        request: RequestT,
        now: Instant,
        kind: type[AnswerT],
    ) -> tuple[AnswerT, list[LogRecord]]:
        """Call a handler of the controller: its answer, of this kind, and the records that it wants in the metadata log.

        The new state counts at once for the next decision; the image follows when the records are stored.
        """
        answer, records = self._call(handler, request, now.monotonic)
        assert isinstance(answer, kind), f"{request} is answered with {answer}"
        return answer, records

    def decide_event(self, handler: ControllerHandler[*Given], *given: *Given) -> list[LogRecord]:
        """As `decide`, of an event that is no request: the time is up, or a setting has changed."""
        answer, records = self._call(handler, *given)
        assert answer is None, f"an event is answered with {answer}"
        return records

    def _call(self, handler: ControllerHandler[*Given], *given: *Given) -> tuple[Answer | None, list[LogRecord]]:
        before = self.state
        step = handler(self.controller, before, *given)
        if self.note is not None:
            self.note(handler, self.controller, before, given, step)
        self.state = step.state
        answer: Answer | None = None
        records: list[LogRecord] = []
        for effect in step.effects:
            match effect:
                case AppendRecords():
                    records = self._as_logged(effect.records)
                case Reply():
                    answer = effect.message
                case _:
                    assert_never(effect)
        return answer, records

    def add(self, records: tuple[MetadataRecord, ...]) -> list[LogRecord]:
        """Records that no handler decides, as the metadata log has them: they count at once for the next decision."""
        self.state = self.state._replace(image=replay_all(self.state.image, records))
        return self._as_logged(records)

    def _as_logged(self, records: tuple[MetadataRecord, ...]) -> list[LogRecord]:
        return [from_spec(record, self._key_of(record)) for record in records]

    def _key_of(self, record: MetadataRecord) -> TopicIdPartition | None:
        return key_of(self.state.image, record.partition_id) if isinstance(record, PartitionChangeRecord) else None

    def replay(self, batches: Iterable[MetadataBatch]) -> None:
        """Take batches that are committed, while it is not active."""
        replay_into(self.image, batches)
        self.state = self.state._replace(image=self.image.spec)

    def pass_over(self, end_offset: Offset) -> None:
        """The log has grown by records that say nothing of the metadata, as those of voters: the next one is at this offset.

        All that was decided is stored: the offsets by which brokers are registered are those of the log.
        """
        assert self.state.image.end_offset == self.image.spec.end_offset, "something is decided, and not yet stored"
        self.image.go_to(end_offset)
        self.state = self.state._replace(image=self.image.spec)

    def stored(self, records: Sequence[LogRecord]) -> None:
        """The records that were decided are in the log: the image shows them from now on."""
        ahead = self.state.image.end_offset - self.image.spec.end_offset
        assert ahead == len(records), f"{ahead} records were decided on, and {len(records)} are stored"
        self.image.decided(self.state.image, records)

    def not_stored(self) -> None:
        """The metadata log took nothing: what was decided is forgotten."""
        self.state = self.state._replace(image=self.image.spec)
