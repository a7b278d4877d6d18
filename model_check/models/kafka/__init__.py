"""The model `kafka`: brokers, controller and network over the handlers of `spec`. See docs/kafka-model.md."""

from collections.abc import Mapping
from typing import Any

from model_check.core.model import Model
from spec.broker.protocol import BrokerProtocol


def build(name: str, parameters: dict[str, Any], own: Mapping[str, BrokerProtocol] | None = None) -> Model:
    """The model within the bounds and with the settings of `parameters`. What only this model needs is loaded here.

    `own` are rules of brokers in place of those of the releases with these names.
    """
    from model_check.models.kafka.board import Board
    from model_check.models.kafka.isr_changes import add_isr_changes
    from model_check.models.kafka.kraft.control import add_control
    from model_check.models.kafka.kraft.lifecycle import add_lifecycle
    from model_check.models.kafka.kraft.metadata import add_metadata
    from model_check.models.kafka.late import add_late_fetches
    from model_check.models.kafka.properties.liveness import add_liveness
    from model_check.models.kafka.properties.safety import add_properties
    from model_check.models.kafka.replication import add_replication
    from model_check.models.kafka.settings import controller_of, releases_of, rules_of
    from model_check.models.kafka.zookeeper.brokers import add_zookeeper_brokers
    from model_check.models.kafka.zookeeper.control import add_zookeeper_control

    releases = releases_of(parameters)
    board = Board(name, rules_of(releases, parameters, own), controller_of(releases, parameters), parameters)
    if board.has_zookeeper:
        add_zookeeper_control(board)
        add_replication(board)
        add_late_fetches(board)
        add_isr_changes(board)
        add_zookeeper_brokers(board)
    else:
        most = decisions(parameters)
        add_control(board)
        add_metadata(board, most)
        add_replication(board)
        add_late_fetches(board)
        add_isr_changes(board)
        add_lifecycle(board, most)
    add_properties(board)
    add_liveness(board)
    return board.model


def decisions(parameters: dict[str, Any]) -> int:
    """An upper bound of the controller's decisions, and so of the decisions that a broker has still to read.

    Each disturbance leads to some: an ISR that shrinks grows again; a fenced broker is unfenced and joins again, and may be
    refused before.
    """
    stops = parameters["clean_shutdowns"] + parameters["unclean_shutdowns"]
    fencings = parameters["fencings"] + parameters["late_registrations"]
    others = parameters["elections"] + 3 * parameters["reassignments"] + 3 * parameters["isr_shrinks"]
    copies = 2 * parameters["late_proposals"]
    return int(1 + others + copies + 4 * fencings + 6 * stops)
