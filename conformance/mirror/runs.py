"""A run for a controller: its settings, and what is sent, step by step."""

from typing import Any, NamedTuple

from kspec.conformance.mirror.moves import Move, move_as_json, move_from_json, move_in_words
from kspec.model_check.models.kafka.values import TopicRegistration
from kspec.spec.controller.protocol import Controller, ControllerProtocol, ControllerSettings
from kspec.spec.releases.kraft import KRAFT_NEXT, KRAFT_RELEASES
from kspec.spec.values import BrokerId, Epoch, PartitionEpoch


class MirrorStep(NamedTuple):
    """One step of a run: what is sent. `of` is the step of the model's run that it stands for, 0 for none.

    `after`: the partition after it in the model's run, without epochs, `None` if the run does not say.
    """

    move: Move
    of: int = 0
    after: TopicRegistration | None = None

    def __str__(self) -> str:
        return move_in_words(self.move)


class MirrorRun(NamedTuple):
    """A run: brokers 1 to `brokers`, registered and unfenced, and what is sent then."""

    name: str
    steps: tuple[MirrorStep, ...]
    brokers: int = 4
    min_isr: int = 2
    unclean_election: bool = False
    eligible_leader_replicas: bool = True

    @property
    def broker_ids(self) -> tuple[BrokerId, ...]:
        """The brokers."""
        return tuple(BrokerId(number) for number in range(1, self.brokers + 1))

    def controller(self, rules: ControllerProtocol) -> Controller:
        """The controller of the specification for this run."""
        settings = ControllerSettings(
            self.min_isr, self.unclean_election, eligible_leader_replicas=self.eligible_leader_replicas
        )
        return Controller(rules, settings)


def run_of(name: str, *moves: Move, **settings: Any) -> MirrorRun:
    """A run of these moves."""
    return MirrorRun(name, tuple(MirrorStep(move, number) for number, move in enumerate(moves, start=1)), **settings)


def run_as_json(run: MirrorRun) -> dict[str, Any]:
    """A run as JSON: a file that can be replayed."""
    return {**run._asdict(), "steps": [move_as_json(step.move) for step in run.steps]}


def run_from_json(described: dict[str, Any]) -> MirrorRun:
    """The run that `run_as_json` describes. Raises: `NoMoveError`, `TypeError`."""
    moves = [move_from_json(step) for step in described["steps"]]
    settings = {name: value for name, value in described.items() if name not in ("steps", "name")}
    return run_of(described["name"], *moves, **settings)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def rules_of(kafka: str) -> ControllerProtocol:
    """The rules of a release of Kafka such as `4.4.0`: those of the newest entry in `spec` that is not newer."""
    released = [rules for rules in KRAFT_RELEASES if rules is not KRAFT_NEXT]
    older = [rules for rules in released if _numbers(rules.name) <= _numbers(kafka)]
    assert older, f"Kafka {kafka} has no KRaft controller"
    return older[-1]


def without_epochs(topic: TopicRegistration) -> TopicRegistration:
    """A partition as the model `controller` keeps it."""
    return topic._replace(leader_epoch=Epoch(0), partition_epoch=PartitionEpoch(0))
