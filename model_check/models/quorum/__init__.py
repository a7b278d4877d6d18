"""The quorum of controllers: KRaft's voters, by the handlers that a controller would run."""

from typing import Any

from kspec.model_check.core.model import Model


def build(name: str, parameters: dict[str, Any]) -> Model:
    """The model within the bounds of `parameters`; `ParameterError` if they do not go together.

    What only this model needs is loaded here.
    """
    from kspec.model_check.models.quorum import words  # noqa: F401 (makes traces know the words of its values)
    from kspec.model_check.models.quorum.board import Board
    from kspec.model_check.models.quorum.disturbances import add_disturbances
    from kspec.model_check.models.quorum.exchanges import add_exchanges
    from kspec.model_check.models.quorum.liveness import add_liveness
    from kspec.model_check.models.quorum.properties import add_properties
    from kspec.model_check.models.quorum.upgrades import add_upgrades

    board = Board(name, parameters)
    add_exchanges(board)
    add_disturbances(board)
    add_upgrades(board)
    add_properties(board)
    add_liveness(board)
    return board.model
