"""One partition of Kafka with any number of messages in flight: the handlers of `spec`, in a form that can be proved.

Brokers and the KRaft controller run the same handlers as in the model `kafka`. Here nothing is abbreviated to one step:
every fetch, every answer, every proposal of an ISR and every decision has a number, and is in flight from when it is sent
for ever: it may be handled at any later time, or never. The controller fences and unfences brokers. Brokers stop without
warning, and start again as another run, which registers; what the run before has sent is still in flight. There are no
reassignments and no unclean elections.

Where one replica in sync is enough (min ISR 1), a broker that stops loses nothing of its log. From 2 on there are eligible
leader replicas (KIP-966), and whoever stops loses any part of its log. Below min ISR only a follower that was caught up
lately may join; whether the one that fetches was so is a choice. Else every lag counts as too long.

What no broker can see, but proofs speak of, is kept by the model: what the leader of each epoch had in its log, what it
committed, who committed furthest, what each follower asked last in each epoch, and the last epoch that a broker entered.
"""

from typing import Any

from model_check.core.model import Model
from model_check.models.messages.board import Board, Numbers
from model_check.models.messages.control import add_control
from model_check.models.messages.properties import add_properties
from model_check.models.messages.replication import add_replication

__all__ = ["Numbers", "build"]


def build(name: str, parameters: dict[str, Any], numbers: Numbers | None = None) -> Model:
    """The model within the bounds of `parameters`. `numbers` of epochs and messages follow from these, unless given."""
    board = Board(name, parameters, numbers)
    add_control(board)
    add_replication(board)
    if numbers is None:
        add_properties(board)
    return board.model
