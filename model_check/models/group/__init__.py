"""A group of consumers and its coordinator, in both protocols, by the handlers of both sides."""

from typing import Any

from kspec.model_check.core.model import Model


def build(name: str, parameters: dict[str, Any]) -> Model:
    """The model within the bounds of `parameters`; `ParameterError` if they do not go together.

    What only this model needs is loaded here.
    """
    from kspec.model_check.models.group import words  # noqa: F401 (makes traces know the words of its values)
    from kspec.model_check.models.group.board import Board
    from kspec.model_check.models.group.consumers import add_consumers
    from kspec.model_check.models.group.coordinator import add_coordinator
    from kspec.model_check.models.group.heartbeating import add_heartbeating_consumers
    from kspec.model_check.models.group.properties import add_properties

    board = Board(name, parameters)
    if board.is_modern:
        add_heartbeating_consumers(board)
    else:
        add_consumers(board)
    add_coordinator(board)
    add_properties(board)
    return board.model
