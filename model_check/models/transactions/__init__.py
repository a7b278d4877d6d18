"""Producers of transactions, their coordinator, the leaders of partitions, and what a consumer reads that is committed."""

from typing import Any

from kspec.model_check.core.model import Model


def build(name: str, parameters: dict[str, Any]) -> Model:
    """The model within the bounds of `parameters`. What only this model needs is loaded here."""
    from kspec.model_check.models.transactions import words  # noqa: F401 (makes traces know the words of its values)
    from kspec.model_check.models.transactions.board import Board
    from kspec.model_check.models.transactions.coordinator import add_coordinator
    from kspec.model_check.models.transactions.leaders import add_leaders
    from kspec.model_check.models.transactions.processing import add_processing
    from kspec.model_check.models.transactions.producers import add_producers
    from kspec.model_check.models.transactions.properties import add_properties

    board = Board(name, parameters)
    add_producers(board)
    add_processing(board)
    add_leaders(board)
    add_coordinator(board)
    add_properties(board)
    return board.model
