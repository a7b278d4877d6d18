"""Properties of single steps: the order of a replica's effects, who waits there, and what the controller decides."""

from collections.abc import Mapping
from typing import assert_never

from kspec.spec.broker.effects import AnswerProducer, CloseConnection, Effect, Persist, RebuildProducers
from kspec.spec.broker.leader.deletion import answer_deletion
from kspec.spec.broker.partition import Broker, Handled, Partition
from kspec.spec.broker.rules.isr.request import WriteIsr
from kspec.spec.controller.brokers import handle_broker_heartbeat
from kspec.spec.controller.rules.brokers import is_shutting_down
from kspec.spec.controller.state import AppendRecords, ControllerState, ControllerStep, session_of
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.delete_records import DeleteRecordsResponse
from kspec.spec.metadata import broker_of, is_active, is_unfenced, replay_all
from kspec.spec.step import Reply, Send, SendToController, Step
from kspec.spec.topics import TopicPartition
from kspec.spec.values import NO_LEADER, Error
from kspec.trials.simulated.checks.metadata import place_of
from kspec.trials.simulated.controllers.several import SeveralControllers
from kspec.trials.simulated.history import BrokenPromiseError
from kspec.trials.simulated.nodes import BrokerNode, ControllerNode


def look_at_replica(party: Broker | None, step: Handled[EpochLog]) -> None:
    """Look at a step of a replica. `party`: its broker, if the handler knows that. Raises: `BrokenPromiseError`."""
    _look_at_order(step.effects)
    after = step.state
    for waiting in after.waiting:
        if waiting.appended.required_offset <= after.local.high_watermark:
            what = f"{waiting} waits below {after.local.high_watermark}"
            raise BrokenPromiseError("WaitingIsAnswered", what)
    if party is None:
        return
    leads = after.leader == party.self_id
    if leads and after.fetcher.leader != NO_LEADER:
        raise BrokenPromiseError("OfflineIsIdle", f"broker {party.self_id} leads and fetches: {after.fetcher}")
    if not leads and (after.followers or after.waiting):
        raise BrokenPromiseError("OfflineIsIdle", f"broker {party.self_id} leads no more: {after}")


def _look_at_order(effects: tuple[Effect, ...]) -> None:
    told = answered = False
    for effect in effects:
        match effect:
            case Persist():
                if told:
                    raise BrokenPromiseError("PersistBeforeSend", f"{effects}")
            case Reply():
                if answered:
                    raise BrokenPromiseError("PersistBeforeSend", f"two answers: {effects}")
                told = answered = True
            case AnswerProducer():
                told = told or effect.response.error == Error.NONE
            case Send() | SendToController():
                told = True
            case CloseConnection() | RebuildProducers() | WriteIsr():
                pass
            case _:
                assert_never(effect)


def look_at_decision(state: ControllerState, step: ControllerStep) -> None:
    """Look at a decision of the controller: its state is what its records make of it. Raises: `BrokenPromiseError`."""
    image, answered = state.image, False
    for effect in step.effects:
        match effect:
            case AppendRecords():
                if answered:
                    raise BrokenPromiseError("AnswerAfterAppend", f"{step.effects}")
                image = replay_all(image, effect.records)
            case Reply():
                answered = True
            case _:
                assert_never(effect)
    if step.state.image != image:
        raise BrokenPromiseError("MetadataLogIsState", f"the records are {step.effects}, the image is {step.state.image}")


def look_at_heartbeat(before: ControllerState, request: BrokerHeartbeatRequest, step: ControllerStep) -> None:
    """Look at the answer to a heartbeat of a registered broker. Raises: `BrokenPromiseError`."""
    answers = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    if not answers or not isinstance(answers[0], BrokerHeartbeatResponse) or answers[0].error != Error.NONE:
        return
    answer, broker = answers[0], request.broker
    was_unfenced, is_now = (is_unfenced(one.image.brokers, broker) for one in (before, step.state))
    if request.want_shutdown and not was_unfenced and not answer.should_shut_down:
        raise BrokenPromiseError("FencedIsNotStopping", f"broker {broker} is fenced, and waits: {answer}")
    if is_now and not was_unfenced:
        registration = broker_of(before.image.brokers, broker)
        caught_up = registration is not None and request.metadata_offset >= registration.registered_at
        if request.want_fence or not caught_up:
            raise BrokenPromiseError("UnfencedByRequest", f"{request}, {registration}")
    if answer.should_shut_down and was_unfenced:
        _look_at_stop(before, request)


def _look_at_stop(before: ControllerState, request: BrokerHeartbeatRequest) -> None:
    """Look at the leave that an unfenced broker gets."""
    broker, image = request.broker, before.image
    if not request.want_fence and any(one.registration.leader == broker for one in image.partitions):
        raise BrokenPromiseError("StoppingLeadsNothing", f"broker {broker} may stop: {image.partitions}")
    own = session_of(before, broker)
    for session in before.sessions:
        active = is_active(image.brokers, session.broker) and not is_shutting_down(session)
        if is_shutting_down(own) and active and session.metadata_offset < own.controlled_shutdown_offset:
            what = f"broker {broker} may stop at {own.controlled_shutdown_offset}: {session}"
            raise BrokenPromiseError("OthersKnowOfStop", what)


class StepChecks:
    """All properties of single steps."""

    def __init__(
        self, controller: ControllerNode | SeveralControllers, brokers: Mapping[int, BrokerNode], keeps: bool
    ) -> None:
        self._controller, self._brokers, self._keeps = controller, brokers, keeps

    def look_at(self, handler: object, party: object, state: object, given: tuple[object, ...], outcome: object) -> None:
        """Look at a step. Raises: `BrokenPromiseError`."""
        if isinstance(state, Partition):
            broker = party if isinstance(party, Broker) else None
            if handler is answer_deletion:
                if broker is not None and self._keeps:
                    assert isinstance(outcome, DeleteRecordsResponse)
                    self._look_at_deletion(broker, state, outcome)
            elif isinstance(outcome, Step):
                look_at_replica(broker, outcome)
        elif isinstance(state, ControllerState):
            assert isinstance(outcome, Step)
            look_at_decision(state, outcome)
            if handler is handle_broker_heartbeat:
                request = given[0]
                assert isinstance(request, BrokerHeartbeatRequest)
                look_at_heartbeat(state, request, outcome)

    def _look_at_deletion(self, leader: Broker, partition: Partition[EpochLog], answer: DeleteRecordsResponse) -> None:
        """Whether no live replica has records that a client is told to be deleted, if the leader is in office."""
        place = self._brokers[leader.self_id].core.cluster.place_of(partition.partition_id)
        if answer.error != Error.NONE or not self._is_in_office(place, partition):
            return
        assigned = {follower.broker for follower in partition.followers}
        for other in self._brokers.values():
            known = broker_of(leader.brokers, other.member.membership.lifecycle.broker) if other.up else None
            live = known is not None and not known.fenced and known.broker_epoch == _epoch_of(other)
            if not live or known is None or known.broker not in assigned:
                continue
            replica = other.core.replicas.get(place)  # each node numbers partitions by its own image
            if replica is None or replica.offline:
                continue
            log = replica.partition.local.log
            if log.start_offset < min(answer.offset, log.end_offset):
                what = f"broker {other.node_id} has records from {log.start_offset} on, a client is told {answer}"
                raise BrokenPromiseError("LowWatermark", what)

    def _is_in_office(self, place: TopicPartition, partition: Partition[EpochLog]) -> bool:
        """Whether a leader is that of the controller, in its epoch."""
        if not self._controller.up:
            return False
        for record in self._controller.core.image.spec.partitions:
            if place_of(self._controller.core.image, record.partition_id) == place:
                decided = record.registration
                return (decided.leader, decided.leader_epoch) == (partition.leader, partition.leader_epoch)
        return False


def _epoch_of(node: BrokerNode) -> int:
    return node.member.membership.lifecycle.broker_epoch
