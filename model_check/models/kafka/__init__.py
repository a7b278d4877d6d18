"""The model `kafka`: brokers, controller and network over the handlers of `spec`. See docs/kafka-model.md."""

from collections.abc import Mapping
from typing import Any

from kspec.model_check.core.model import Model
from kspec.spec.broker.protocol import BrokerProtocol


def build(name: str, parameters: dict[str, Any], own: Mapping[str, BrokerProtocol] | None = None) -> Model:
    """The model within the bounds and with the settings of `parameters`. What only this model needs is loaded here.

    `own` are rules of brokers in place of those of the releases with these names.
    """
    from kspec.model_check.models.kafka.board import Board
    from kspec.model_check.models.kafka.isr_changes import add_isr_changes
    from kspec.model_check.models.kafka.kraft.control import add_control
    from kspec.model_check.models.kafka.kraft.lifecycle import add_lifecycle
    from kspec.model_check.models.kafka.kraft.metadata import add_metadata
    from kspec.model_check.models.kafka.late import add_late_fetches
    from kspec.model_check.models.kafka.properties.liveness import add_liveness
    from kspec.model_check.models.kafka.properties.safety import add_properties
    from kspec.model_check.models.kafka.replication import add_replication
    from kspec.model_check.models.kafka.settings import controller_of, releases_of, rules_of
    from kspec.model_check.models.kafka.zookeeper.brokers import add_zookeeper_brokers
    from kspec.model_check.models.kafka.zookeeper.control import add_zookeeper_control

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
    stops = parameters["clean_shutdowns"] + parameters["unclean_shutdowns"] + parameters["epoch_file_losses"]
    fencings = parameters["fencings"] + parameters["late_registrations"] + parameters["earlier_registrations"]
    others = parameters["elections"] + 3 * parameters["reassignments"] + 3 * parameters["isr_shrinks"]
    copies = 2 * parameters["late_proposals"]
    return int(1 + others + copies + 4 * fencings + 6 * stops)
