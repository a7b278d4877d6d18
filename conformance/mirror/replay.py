"""A run replayed on a real controller, with its records and answers held against the specification's, step by step."""

from collections.abc import Iterator
from typing import NamedTuple

from kspec.conformance.mirror.comparing import Difference, first_difference, in_words, records_in_words
from kspec.conformance.mirror.controller import ControllerUnderTest
from kspec.conformance.mirror.moves import Heartbeat, Move, Register, Unregister
from kspec.conformance.mirror.runs import MirrorRun, MirrorStep, without_epochs
from kspec.conformance.mirror.taking import PARTITION, ControllerKnowledge, RequestResult, request_of, taken
from kspec.model_check.models.kafka.kraft.state import topic_of
from kspec.spec.controller.protocol import Controller, ControllerProtocol
from kspec.spec.controller.state import activate
from kspec.spec.metadata import broker_of, partition_of
from kspec.spec.values import BrokerId, Epoch, Incarnation, MonotonicMs


class MirrorDeparture(NamedTuple):
    """A departure of Kafka from a run: the step (0: before the first), what was sent, and the difference."""

    step: int
    move: str
    difference: Difference


class ReplayedStep(NamedTuple):
    """A step as it went: what was sent, answered and written."""

    step: int
    move: str
    answer: str
    records: tuple[str, ...]


class ReplayResult(NamedTuple):
    """The result of a run on a real controller: the expected rules, the steps that agreed, the departure if there is one."""

    run: MirrorRun
    kafka: str
    rules: str
    told: tuple[ReplayedStep, ...]
    departure: MirrorDeparture | None

    @property
    def follows(self) -> bool:
        """Whether Kafka follows the run to its end."""
        return self.departure is None


class Mirror:
    """A real controller, and beside it the specification's, by the rules of each run."""

    def __init__(self, real: ControllerUnderTest) -> None:
        self.real = real
        self.runs = 0
        self._incarnations: dict[BrokerId, Incarnation] = {}

    async def replay(self, run: MirrorRun, rules: ControllerProtocol) -> ReplayResult:
        """Replay a run with a topic of its own. Raises: `ControllerDiedError`, `ImpossibleMoveError`."""
        assert run.eligible_leader_replicas == self.real.eligible_leader_replicas, "a feature of the whole controller"
        self.runs += 1
        settings = {
            "min.insync.replicas": str(run.min_isr),
            "unclean.leader.election.enable": str(run.unclean_election).lower(),
        }
        self.real.use_topic(f"run-{self.runs}", settings)
        told: list[ReplayedStep] = []
        try:
            departure = await self._take_all(run.controller(rules), run, told)
        finally:
            if self.real.process.running:
                await self.real.remove_topic()
        return ReplayResult(run, self.real.codec.release, rules.name, tuple(told), departure)

    async def _take_all(self, controller: Controller, run: MirrorRun, told: list[ReplayedStep]) -> MirrorDeparture | None:
        known = self._known()
        for move in self._set_up(run):
            known, departure = await self._take(controller, known, MirrorStep(move), 0, [])
            if departure is not None:
                return departure
        for number, step in enumerate(run.steps, start=1):
            known, departure = await self._take(controller, known, step, number, told)
            if departure is not None:
                return departure
        left = await self.real.written()
        if left:
            late = Difference("records", "no record", records_in_words(left), "every record is written before the answer")
            return MirrorDeparture(len(run.steps), "the end of the run", late)
        return None

    def _known(self) -> ControllerKnowledge:
        """The knowledge before a run: the image as it was read."""
        state = activate(Epoch(1), self.real.image, MonotonicMs(0))
        registered = state.image.brokers
        self._incarnations.update({entry.broker: entry.incarnation for entry in registered})
        broker_epochs = tuple((entry.broker, entry.broker_epoch) for entry in registered)
        return ControllerKnowledge(state, tuple(sorted(self._incarnations.items())), broker_epochs)

    def _set_up(self, run: MirrorRun) -> Iterator[Move]:
        """The brokers of the run are registered and unfenced, and no others are registered.

        One that the run before has left as it should be only sends a heartbeat.
        """
        ready = set()
        for entry in self.real.image.brokers:
            if entry.fenced or entry.in_controlled_shutdown or entry.broker not in run.broker_ids:
                yield Unregister(entry.broker)
            else:
                ready.add(entry.broker)
        for broker in run.broker_ids:
            if broker not in ready:
                yield Register(broker)
            yield Heartbeat(broker)

    async def _take(
        self, controller: Controller, known: ControllerKnowledge, step: MirrorStep, number: int, told: list[ReplayedStep]
    ) -> tuple[ControllerKnowledge, MirrorDeparture | None]:
        """One step, on both sides. The metadata log's end is Kafka's, for it has records that `spec` leaves out."""
        image = known.state.image._replace(end_offset=self.real.image.end_offset)
        known = known._replace(state=known.state._replace(image=image))
        request = request_of(known, step.move)
        expected = taken(controller, known, request)
        answer = await self.real.answer(request)
        records = await self.real.written()
        different = first_difference(controller.protocol, request, (expected.answer, expected.records), (answer, records))
        if different is None:
            different = self._state_difference(expected, step)
        if different is not None:
            return expected.known, MirrorDeparture(number, str(step), different)
        told.append(ReplayedStep(number, str(step), in_words(answer), tuple(map(in_words, records))))
        return expected.known, None

    def _state_difference(self, expected: RequestResult, step: MirrorStep) -> Difference | None:
        """The image that Kafka's records make, held against the specification's state and that of the model's run."""
        ours, theirs = expected.known.state.image, self.real.image
        one, other = partition_of(ours, PARTITION), partition_of(theirs, PARTITION)
        if one != other:
            return Difference("partition", in_words(one), in_words(other), "merge")
        for entry in ours.brokers:
            found = broker_of(theirs.brokers, entry.broker)
            if found is None or (entry.fenced, entry.broker_epoch) != (found.fenced, found.broker_epoch):
                return Difference("broker", in_words(entry), in_words(found), "replay")
        if step.after is not None and other is not None and without_epochs(topic_of(other)) != step.after:
            return Difference("state of the model", in_words(step.after), in_words(topic_of(other)), "the model's run")
        return None
