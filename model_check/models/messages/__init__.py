"""One partition of Kafka with any number of messages in flight: the handlers of `spec`, in a form that can be proved.

Brokers and the KRaft controller run the same handlers as in the model `kafka`. Here no request and its answer are one step.
Every fetch, answer, proposal of an ISR and decision has a number, and stays in flight for ever: it may be handled at any
later time, or never. The controller fences and unfences brokers. Brokers stop without warning, and start again as another
incarnation, which registers; messages of the one before are still in flight. There are no reassignments and no unclean
elections.

Where one replica in sync is enough (min ISR 1), a broker that stops loses nothing of its log. From 2 on there are eligible
leader replicas (KIP-966), and a broker that stops loses any part of its log. Below min ISR only a follower that was caught
up recently may join; whether the fetching follower was caught up is a choice. Otherwise every lag counts as too long.

The model keeps history variables, which no broker sees and proofs need: the log and the commits of each epoch's leader, the
leader that committed furthest, the last fetch of each follower in each epoch, and the highest epoch that each broker took
part in.
"""

from typing import TYPE_CHECKING, Any

from kspec.model_check.core.model import Model

if TYPE_CHECKING:
    from kspec.model_check.models.messages.board import Numbers


def build(name: str, parameters: dict[str, Any], numbers: "Numbers | None" = None) -> Model:
    """The model within the bounds of `parameters`; `ParameterError` if they do not go together.

    `numbers` of epochs and messages follow from these, unless given.
    """
    from kspec.model_check.models.messages.board import Board
    from kspec.model_check.models.messages.control import add_control
    from kspec.model_check.models.messages.properties import add_properties
    from kspec.model_check.models.messages.replication import add_replication
    from kspec.model_check.models.messages.settings import check

    check(parameters)
    board = Board(name, parameters, numbers)
    add_control(board)
    add_replication(board)
    if numbers is None:
        add_properties(board)
    return board.model
