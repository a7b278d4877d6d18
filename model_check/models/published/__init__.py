"""The published replication models: one partition, a fetch is one atomic step.

They are Gustafson's TLA+ modules (hachikuji/kafka-specification), stated over `spec`: each action names the slots that
it reads, and composes the request, the handler and the response that Kafka would exchange. A *quirk* is a behaviour of a
published module that a broker could not have, or that Kafka does not have. Quirks are kept by default, so that the counts
are TLC's; `--repair` repairs them.
"""

from collections.abc import Sequence
from typing import Any

from kspec.model_check.core.model import Model
from kspec.model_check.core.parameters import ParameterError
from kspec.spec.published.versions import Protocol
from kspec.spec.values import BrokerId, Epoch


def build(
    name: str,
    protocol: Protocol,
    parameters: dict[str, Any],
    epochs: Sequence[Epoch] | None = None,
    replicas: Sequence[BrokerId] | None = None,
) -> Model:
    """The model `name` over `protocol`, within the bounds and with the settings of `parameters`.

    `epochs` are those from 0 to the highest, and `replicas` are 1 to N, unless given: a proof gives some that stand for
    all. Only bounded models have liveness properties.
    """
    from kspec.model_check.models.published.board import Board
    from kspec.model_check.models.published.controller import add_controller
    from kspec.model_check.models.published.disturbances import add_disturbances
    from kspec.model_check.models.published.follower import add_follower
    from kspec.model_check.models.published.leader import add_leader
    from kspec.model_check.models.published.liveness import add_liveness
    from kspec.model_check.models.published.properties import add_properties
    from kspec.model_check.models.published.roles import add_roles
    from kspec.model_check.models.published.settings import repaired
    from kspec.spec.mutation import weaken
    from kspec.spec.published.mutants import MUTANTS

    if parameters["min_isr"] > 1 and parameters["acks"] != "all":
        raise ParameterError(f"--min-isr {parameters['min_isr']}: only --acks all looks at it")
    if parameters["min_isr"] > parameters["replicas"]:
        most = parameters["replicas"]
        raise ParameterError(f"--min-isr {parameters['min_isr']}: must be {most} or less, the number of replicas")
    mutant = next((mutant for mutant in MUTANTS if mutant.name == parameters["mutant"]), None)
    rules = protocol if mutant is None else weaken(protocol, mutant)
    board = Board(name, repaired(rules, parameters["repair"]), parameters, epochs, replicas)
    add_controller(board)
    add_roles(board)
    add_leader(board)
    add_follower(board)
    add_disturbances(board)
    add_properties(board)
    if epochs is None:
        add_liveness(board)
    return board.model
