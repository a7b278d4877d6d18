"""A producer, a partition whose leader may change, and processes that read it: which settings deliver how often."""

from typing import Any

from kspec.model_check.core.model import Model


def build(name: str, parameters: dict[str, Any]) -> Model:
    """The model within the bounds of `parameters`. What only this model needs is loaded here."""
    from kspec.model_check.models.delivery import words  # noqa: F401 (makes traces know the words of its values)
    from kspec.model_check.models.delivery.board import Board
    from kspec.model_check.models.delivery.partition import add_partition
    from kspec.model_check.models.delivery.processes import add_processes
    from kspec.model_check.models.delivery.producer import add_producer
    from kspec.model_check.models.delivery.properties import add_properties

    board = Board(name, parameters)
    add_producer(board)
    add_partition(board)
    if board.slots.group is not None:
        add_processes(board, board.slots.group)
    add_properties(board)
    return board.model
