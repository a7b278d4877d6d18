"""The KRaft controller alone, with one partition: which replicas its decisions may elect, whatever the brokers do.

Brokers are fenced and unfenced. The leader proposes any ISR that it may. Reassignments begin and are cancelled. No log is
kept, only which brokers hold one. A broker that is removed from the assignment deletes its replica. It holds a full one
again when the controller has admitted it to the ISR. Epochs are left out: every request is up to date, so no decision
depends on them, and there are finitely many states.

More brokers fit in here than in the model `kafka`, where a reassignment with spare brokers is too large to explore.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Any

from kspec.model_check.core.model import CONTROLLER, REFUSED, Model, Note, then, when
from kspec.model_check.core.parameters import Parameter, ParameterError
from kspec.model_check.models.kafka.cluster import NOW, in_order, is_the_choice, registered
from kspec.model_check.models.kafka.kraft.state import END, appended, cluster_of, controller_state
from kspec.model_check.models.kafka.values import NO_TOPIC, ModelController
from kspec.model_check.models.parts import PARTITION, creation_of
from kspec.spec.claims import claim
from kspec.spec.controller.brokers import handle_broker_heartbeat, on_session_check
from kspec.spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
)
from kspec.spec.controller.protocol import Controller, ControllerSettings
from kspec.spec.controller.state import ControllerStep
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.metadata import NOBODY, BrokerRegistration
from kspec.spec.mutation import weaken
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.releases.names import KRAFT_NAMES, default_release, kraft_of
from kspec.spec.values import NO_LEADER, BrokerEpoch, BrokerId, Epoch, Incarnation, Offset, PartitionEpoch

PARAMETERS = (
    Parameter("release", default_release(), "Kafka's release (next with a mutant)", choices=KRAFT_NAMES),
    Parameter("brokers", 5, "brokers, ids 1 to N", minimum=2),
    Parameter("replicas", 3, "the replication factor, also of every reassignment", minimum=1),
    Parameter("min_isr", 2, "min.insync.replicas", minimum=1),
    Parameter("reassignments", 3, "how many times a reassignment may begin or be cancelled", minimum=0),
    Parameter("fencings", 3, "how many times a broker may be fenced", minimum=0),
    Parameter("without_elr", False, "no eligible leader replicas (4.0 and later)"),
    Parameter(
        "mutant", None, "weaken one rule of the controller", choices=tuple(mutant.name for mutant in CONTROLLER_MUTANTS)
    ),
)


def defaults_with(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults that depend on what is given: the release."""
    return {"release": default_release(given.get("mutant"))}


Decide = Callable[[ModelController], ControllerStep | None]
"""A handler of the controller, from its state; `None` where the request does not come up."""


class _Board:
    """The model under construction."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.model = Model(name, parameters)
        self.parameters = parameters
        self.brokers = [BrokerId(number) for number in range(1, parameters["brokers"] + 1)]
        self.model.interchangeable = tuple(self.brokers)
        protocol = kraft_of(parameters["release"])
        for mutant in CONTROLLER_MUTANTS:
            if mutant.name == parameters["mutant"]:
                protocol = weaken(protocol, mutant)
        elr = not parameters["without_elr"]
        self.control = Controller(protocol, ControllerSettings(parameters["min_isr"], eligible_leader_replicas=elr))
        registrations = frozenset(
            BrokerRegistration(broker, BrokerEpoch(1), Incarnation(1), fenced=False, registered_at=Offset(0))
            for broker in self.brokers
        )
        self.cluster = self.model.slot("controller", ModelController(NO_TOPIC, registrations))
        self.holders = self.model.slot("holders", NOBODY, holds=frozenset[BrokerId])
        self.left = {
            name: self.model.slot(f"{name}_left", parameters[name], bookkeeping=True)
            for name in ("reassignments", "fencings")
            if parameters[name]
        }

    def assignments(self) -> list[tuple[BrokerId, ...]]:
        """Every set of replicas with every preferred one."""
        sets = [frozenset(some) for some in combinations(self.brokers, self.parameters["replicas"])]
        return [in_order(replicas, first) for replicas in sets for first in sorted(replicas)]

    def add(
        self, name: str, args: dict[str, Any], what: str, decide: Decide, *, spends: str = "", fills: bool = False
    ) -> None:
        """Add a decision of the controller, with what it means for the replicas.

        It may spend a budget. After one that `fills`, whoever is in the ISR holds a full replica.
        """

        def decided(cluster: ModelController) -> ModelController | None:
            step = decide(cluster)
            return _without_epochs(cluster_of(step.state)) if step is not None and appended(step) else None

        after = self.model.view(f"{name} {args}", decided, self.cluster)
        effects = [
            then(self.cluster, lambda decision: REFUSED if decision is None else decision, after),
            then(self.holders, partial(_holders_after, fills), self.holders, after),
        ]
        if spends:
            left = self.left[spends]
            effects.append(then(left, lambda number: number - 1 if number else REFUSED, left))
        found = when(lambda decision: decision is not None, after)
        self.model.action(name, args, events=[Note(CONTROLLER, what)], guards=[found], effects=effects)


def _without_epochs(cluster: ModelController) -> ModelController:
    """The controller's state with the epochs of the partition as they were at its creation."""
    topic = cluster.topic._replace(leader_epoch=Epoch(0), partition_epoch=PartitionEpoch(0))
    return cluster._replace(topic=cluster.topic if cluster.topic == NO_TOPIC else topic)


def _holders_after(fills: bool, holders: frozenset[BrokerId], after: ModelController | None) -> object:
    """The brokers that hold a full replica: those that did and are still assigned, and who joins the ISR by fetching."""
    if after is None:
        return REFUSED
    return (holders & after.topic.replicas) | (after.topic.isr if fills else NOBODY)


def build(name: str, parameters: dict[str, Any]) -> Model:
    """The model within the bounds of `parameters`; `ParameterError` if they do not go together."""
    if parameters["replicas"] > parameters["brokers"]:
        raise ParameterError(f"--replicas {parameters['replicas']}: must be {parameters['brokers']} or less, as brokers are")
    board = _Board(name, parameters)
    for replicas in board.assignments():
        _add_creation(board, replicas)
        if parameters["reassignments"]:
            _add_reassignment(board, replicas)
    for broker in board.brokers:
        if parameters["reassignments"]:
            _add_cancellation(board, broker)
        for successor in board.brokers:
            _add_unfencing(board, broker, successor)
            if parameters["fencings"]:
                _add_fencing(board, broker, successor)
            _add_proposal(board, broker, successor)
    _add_properties(board)
    return board.model


def _add_creation(board: _Board, replicas: tuple[BrokerId, ...]) -> None:
    def create(cluster: ModelController) -> ControllerStep | None:
        if cluster.topic != NO_TOPIC:
            return None
        return handle_create_topics(board.control, controller_state(cluster), creation_of(replicas), NOW)

    board.add("CreatePartition", {"replicas": replicas}, "creates the partition", create, fills=True)


def _add_reassignment(board: _Board, replicas: tuple[BrokerId, ...]) -> None:
    def reassign(cluster: ModelController) -> ControllerStep | None:
        if cluster.topic == NO_TOPIC or frozenset(replicas) == cluster.topic.replicas - cluster.topic.removing:
            return None
        request = AlterPartitionReassignmentsRequest(PARTITION, replicas)
        return handle_alter_partition_reassignments(board.control, controller_state(cluster), request, NOW)

    board.add("Reassign", {"replicas": replicas}, "begins a reassignment", reassign, spends="reassignments")


def _add_cancellation(board: _Board, first: BrokerId) -> None:
    def cancel(cluster: ModelController) -> ControllerStep | None:
        if first not in cluster.topic.replicas - cluster.topic.adding:
            return None
        request = AlterPartitionReassignmentsRequest(PARTITION, None)
        return handle_alter_partition_reassignments(board.control, controller_state(cluster, first), request, NOW)

    board.add("CancelReassignment", {"preferred": first}, "cancels the reassignment", cancel, spends="reassignments")


def _add_fencing(board: _Board, broker: BrokerId, successor: BrokerId) -> None:
    def fence(cluster: ModelController) -> ControllerStep | None:
        if cluster.topic == NO_TOPIC or registered(cluster, broker).fenced:
            return None
        step = on_session_check(board.control, controller_state(cluster, successor, silent=broker), NOW)
        return step if is_the_choice(cluster, cluster_of(step.state), successor, broker) else None

    board.add("Fence", {"broker": broker, "successor": successor}, f"fences {broker}", fence, spends="fencings")


def _add_unfencing(board: _Board, broker: BrokerId, successor: BrokerId) -> None:
    def unfence(cluster: ModelController) -> ControllerStep | None:
        if not registered(cluster, broker).fenced:
            return None
        request = BrokerHeartbeatRequest(broker, BrokerEpoch(1), END)
        step = handle_broker_heartbeat(board.control, controller_state(cluster, successor), request, NOW)
        return step if is_the_choice(cluster, cluster_of(step.state), successor, broker) else None

    board.add("Unfence", {"broker": broker, "successor": successor}, f"unfences {broker}", unfence)


def _add_proposal(board: _Board, member: BrokerId, first: BrokerId) -> None:
    """The leader asks to admit a replica, or to drop it."""

    def decide(cluster: ModelController) -> ControllerStep | None:
        topic = cluster.topic
        if topic.leader in (NO_LEADER, member) or member not in topic.replicas:
            return None
        isr = frozenset(IsrMember(broker, BrokerEpoch(1)) for broker in topic.isr ^ {member})
        epochs = topic.leader_epoch, topic.partition_epoch
        request = AlterPartitionRequest(topic.leader, BrokerEpoch(1), PARTITION, *epochs, isr)
        step = handle_alter_partition(board.control, controller_state(cluster, first), request, NOW)
        after = cluster_of(step.state)
        changes = after.topic.isr != topic.isr
        return step if changes and is_the_choice(cluster, after, first, topic.leader) else None

    board.add("AlterIsr", {"member": member, "successor": first}, "takes the leader's proposal", decide, fills=True)


def _add_properties(board: _Board) -> None:
    cluster, holders, model = board.cluster, board.holders, board.model

    def holds(state: ModelController, full: frozenset[BrokerId]) -> bool:
        return state.topic.leader == NO_LEADER or state.topic.leader in full

    model.always(
        "LeaderHoldsLog",
        [when(holds, cluster, holders)],
        claim("LeaderHoldsLog", "controller"),
        "SomebodyLeads",
    )
    model.always(
        "EligibleIsAssigned",
        [when(lambda state: state.topic.elr <= state.topic.replicas, cluster)],
        claim("EligibleIsAssigned", "controller"),
        "SomebodyLeads",
    )
    model.always(
        "LeaderInIsr",
        [when(lambda state: state.topic.leader == NO_LEADER or state.topic.leader in state.topic.isr, cluster)],
        claim("LeaderInIsr", "controller"),
        "SomebodyLeads",
    )
    model.sometimes(
        "SomebodyLeads", [when(lambda state: state.topic.leader != NO_LEADER, cluster)], claim("SomebodyLeads", "controller")
    )
