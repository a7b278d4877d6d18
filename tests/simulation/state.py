"""The state of a simulation: the parties, the messages, the metadata log, and what has been promised so far."""

from collections.abc import Callable
from typing import Any

from spec.broker.partition import BrokerSettings
from spec.controller.protocol import Controller, ControllerSettings
from spec.controller.state import ControllerState
from spec.metadata import EMPTY_IMAGE, MetadataImage, PartitionRegistration, broker_of
from spec.values import Epoch
from tests.simulation.parties import Message, Node
from tests.simulation.setup import Setup


class Violation(Exception):  # noqa: N818
    """A property does not hold."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class State:
    """Everything that moves change and properties look at."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.party = Controller(
            setup.controller,
            ControllerSettings(
                min_isr=setup.min_isr,
                unclean_election=setup.unclean_elections,
                eligible_leader_replicas=setup.eligible_leader_replicas,
            ),
        )
        self.controller = ControllerState(Epoch(1), EMPTY_IMAGE)
        self.deposed: ControllerState | None = None
        self.time = 0
        self.images: list[MetadataImage] = [EMPTY_IMAGE]
        self.topic: PartitionRegistration | None = None
        settings = BrokerSettings(setup.min_isr, setup.max_lag)
        self.nodes = [Node(number + 1, setup.broker, settings) for number in range(setup.brokers)]
        self.flight: list[Message] = []
        self.messages = 0
        self.committed: tuple[Any, ...] = ()
        self.acknowledged: dict[int, int] = {}
        self.batches: list[Any] = []
        self.requests: dict[int, Any] = {}
        self.commit_ends: dict[int, int] = {}
        self.keeps = not setup.unclean_elections
        self.calls = 0
        self.reached: dict[str, int] = dict.fromkeys(REACHED, 0)
        self.say: Callable[[str], None] | None = None

    @property
    def image(self) -> MetadataImage:
        return self.images[-1]

    def node(self, broker: int) -> Node:
        return self.nodes[broker - 1]

    def is_present(self, node: Node) -> bool:
        """Whether a broker runs as the controller has registered it."""
        registration = broker_of(self.images[-1].brokers, node.id)
        return node.up and registration is not None and registration.broker_epoch == node.epoch and node.registered

    def is_in_office(self, node: Node) -> bool:
        """Whether a broker leads, and the controller says so, too."""
        topic, partition = self.topic, node.partition
        return (
            topic is not None
            and node.up
            and partition.leader == node.id == topic.leader
            and partition.leader_epoch == topic.leader_epoch
        )


REACHED = ("acknowledged", "committed", "elections", "truncations", "unclean stops", "late answers", "duplicates")
"""What a simulation must reach, or its properties say little."""
