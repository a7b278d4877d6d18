"""Oracles that listen to simulated clusters: each answer and each effect is compared with what they ask for.

They hold for release `next`. They state each rule a second time, from its text; so they are tests, and stand here, while
the properties that hold for every release are looked at wherever a cluster is simulated (`trials/simulated/checks`).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from kspec.spec.broker.effects import BatchesAppended, Persist
from kspec.spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
    on_no_answer,
)
from kspec.spec.broker.leader.deletion import apply_retention, handle_delete_records
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.lifecycle import (
    begin_controlled_shutdown,
    handle_broker_heartbeat_response,
    handle_broker_registration_response,
    next_communication,
    stop,
)
from kspec.spec.broker.partition import Broker, expire_waiting
from kspec.spec.broker.roles import apply_change
from kspec.spec.controller.brokers import (
    handle_broker_heartbeat,
    handle_broker_registration,
    handle_unregister_broker,
    on_session_check,
)
from kspec.spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
    handle_elect_leaders,
    on_balance_check,
    on_unclean_election_check,
)
from kspec.spec.controller.rules.brokers import NEVER_MS, BrokerSession
from kspec.spec.step import Reply
from kspec.spec.values import NO_EPOCH
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.history import BrokenPromiseError
from kspec.trials.simulated.kinds.site import Fault
from kspec.trials.simulated.setup import RunSetup
from tests.trials.oracle import controller, follower, leader, lifecycle
from tests.trials.oracle.party import ObservedNode

REPLICA: dict[Any, tuple[str, Callable[..., leader.Expected]]] = {
    handle_produce: ("ProduceAsAsked", leader.produce),
    expire_waiting: ("WaitingTimesOut", leader.time_out),
    handle_fetch: ("FetchAsAsked", leader.fetch),
    handle_offset_for_leader_epoch: ("EpochEndAsAsked", leader.find_epoch),
    handle_list_offsets: ("ListOffsetsAsAsked", leader.list_offsets),
    consider_shrinking: ("ShrinkWhenBehind", leader.shrink),
    handle_alter_partition_response: ("IsrAsGranted", leader.granted),
    handle_delete_records: ("DeleteAsAsked", leader.delete),
    apply_retention: ("RetainCommitted", leader.retain),
    fetch_or_truncate: ("NextRequest", follower.ask),
    on_no_answer: ("BackOff", follower.no_answer),
    handle_fetch_response: ("FetchedIsTaken", follower.fetched),
    handle_offset_for_leader_epoch_response: ("EpochEndIsTaken", follower.epoch_found),
    handle_list_offsets_response: ("OffsetIsTaken", follower.offset_listed),
    apply_change: ("ChangeIsTaken", follower.change),
}
"""The handlers of a replica, each with the name of its oracle, and the oracle."""

LIFE: dict[Any, tuple[str, Callable[..., leader.Expected]]] = {
    next_communication: ("RegisterThenHeartbeat", lifecycle.communicate),
    handle_broker_registration_response: ("OwnRegistrationOnly", lifecycle.registered),
    handle_broker_heartbeat_response: ("LifeByHeartbeat", lifecycle.heard),
    begin_controlled_shutdown: ("LeaveFirst", lifecycle.begin_shutdown),
    stop: ("StopInOrder", lifecycle.end),
}
"""The same for a broker between its start and its stop."""

CONTROLLER: dict[Any, tuple[str, Callable[..., None]]] = {
    handle_broker_registration: ("RegistrationDecided", controller.registration),
    handle_broker_heartbeat: ("HeartbeatDecided", controller.heartbeat),
    on_session_check: ("SessionsDecided", controller.session_check),
    handle_alter_partition: ("IsrDecided", controller.alter_partition),
    handle_elect_leaders: ("ElectionDecided", controller.elect),
    on_balance_check: ("BalanceDecided", controller.balance),
    on_unclean_election_check: ("UncleanElectionDecided", controller.unclean_check),
    handle_alter_partition_reassignments: ("ReassignmentDecided", controller.reassign),
    handle_unregister_broker: ("UnregistrationDecided", controller.unregister),
}
"""The same for the controller."""

NOT_COMPARED = ("transactions", "partition_id")
"""Fields of a partition that other properties look at."""

TIMELESS = (apply_retention, next_communication, begin_controlled_shutdown, stop)
"""Handlers whose last argument is no time."""

SESSIONS, PRODUCERS = "SessionsStartAnew", "ProducersFollowLog"

ORACLES = (*[name for name, _ in (*REPLICA.values(), *LIFE.values(), *CONTROLLER.values())], SESSIONS, PRODUCERS)
"""The names of all oracles."""


class Oracles:
    """All oracles, and how often each was asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def look_at(self, handler: Any, party: Any, state: Any, given: tuple[Any, ...], step: Any) -> None:
        """Compare a step with what is expected. Raises: `BrokenPromiseError`."""
        if handler in CONTROLLER:
            self._look_at_decision(handler, party, state, given, step)
        elif handler in REPLICA or handler in LIFE:
            self._look_at_step(handler, party, state, given, step)

    def _look_at_step(self, handler: Any, party: Any, state: Any, given: tuple[Any, ...], step: Any) -> None:
        name, oracle = (REPLICA if handler in REPLICA else LIFE)[handler]
        self.asked[name] += 1
        request, now = _split(handler, given)
        changes, effects = oracle(ObservedNode(state, party if isinstance(party, Broker) else None, now), *request)
        after = step.state
        if step.effects != effects:
            raise BrokenPromiseError(name, f"{given}: asked for are {effects}, done was {step.effects}; before: {state}")
        if after is state and not changes:
            return
        for field in state._fields:
            wanted = changes.get(field, getattr(state, field))
            if field not in NOT_COMPARED and getattr(after, field) != wanted:
                what = f"{given}: {field} has to be {wanted}, and is {getattr(after, field)}; before: {state}"
                raise BrokenPromiseError(name, what)
        if handler in REPLICA:
            self._look_at_producers(after, step.effects)

    def _look_at_producers(self, after: Any, effects: Iterable[Any]) -> None:
        """Look whether the batch just stored is the last that the replica knows of its idempotent producer."""
        for effect in effects:
            if not (isinstance(effect, Persist) and isinstance(effect.change, BatchesAppended)):
                continue
            offset, last = int(effect.change.base_offset), {}
            for batch in effect.change.batches:
                if batch.producer_id >= 0:
                    last[batch.producer_id] = (batch.producer_epoch, batch.first_sequence, batch.record_count, offset)
                offset += batch.record_count
            known = {entry.producer_id: entry for entry in after.producers}
            for producer, wanted in last.items():
                self.asked[PRODUCERS] += 1
                entry = known.get(producer)
                newest = entry.batches[-1] if entry is not None and entry.batches else None
                if entry is None or newest is None:
                    raise BrokenPromiseError(PRODUCERS, f"nothing is known of producer {producer}, stored is {wanted}")
                found = (entry.producer_epoch, newest.first_sequence, newest.record_count, newest.base_offset)
                if found != wanted:
                    raise BrokenPromiseError(PRODUCERS, f"of producer {producer} {found} is known, stored is {wanted}")

    def _look_at_decision(self, handler: Any, party: Any, state: Any, given: tuple[Any, ...], step: Any) -> None:
        name, oracle = CONTROLLER[handler]
        self.asked[name] += 1
        *request, now = given
        after = controller.Outcome(party, state, now)
        oracle(after, *request)
        answers = [effect.message for effect in step.effects if isinstance(effect, Reply)]
        if answers != ([] if after.answer is None else [after.answer]):
            raise BrokenPromiseError(name, f"{request}: asked for is {after.answer}, done was {step.effects}")
        image = step.state.image
        partitions = {record.partition_id: record.registration for record in image.partitions}
        if partitions != after.partitions:
            raise BrokenPromiseError(name, f"{request}: the partitions have to be {after.partitions}, and are {partitions}")
        if image.brokers != tuple([after.brokers[one] for one in sorted(after.brokers)]):
            raise BrokenPromiseError(name, f"{request}: the brokers have to be {after.brokers}, and are {image.brokers}")
        if image.end_offset != after.end + after.records:
            raise BrokenPromiseError(name, f"{request}: {after.records} records asked for, done was {step.effects}")
        sessions = {
            broker: one if isinstance(one, BrokerSession) else BrokerSession(broker, *one)
            for broker, one in after.sessions.items()
        }
        found = {one.broker: one for one in step.state.sessions}
        if found != sessions:
            raise BrokenPromiseError(name, f"{request}: the sessions have to be {sessions}, and are {found}")

    def look_at_new_controller(self, state: Any, epoch_before: int, now: int) -> None:
        """A controller that has just begun knows all brokers, and has heard from nobody. Raises: `BrokenPromiseError`."""
        self.asked[SESSIONS] += 1
        began = max((one.last_contact_ms for one in state.sessions), default=now)
        wanted = [(one.broker, NEVER_MS if one.fenced else began, -1, -1) for one in state.image.brokers]
        if [tuple(one) for one in state.sessions] != wanted or began > now or state.controller_epoch <= epoch_before:
            raise BrokenPromiseError(SESSIONS, f"after epoch {epoch_before}: {state}")


def _split(handler: Any, given: tuple[Any, ...]) -> tuple[tuple[Any, ...], int]:
    """The arguments of a handler without the time, and the time (ms)."""
    if handler in TIMELESS:
        return given, 0
    if handler is handle_list_offsets:  # the record that was found of a timestamp comes after the time
        request, now, *found = given
        return (request, *found), now
    return given[:-1], given[-1]


class OracledCluster(SimulatedCluster):
    """A simulated cluster with oracles."""

    def __init__(self, setup: RunSetup, planned: Iterable[Fault] = ()) -> None:
        self.oracles = Oracles()
        self._wrong: BrokenPromiseError | None = None
        self._controller_run, self._controller_epoch = -1, int(NO_EPOCH)
        super().__init__(setup, planned)

    def note(self, handler: Any, party: Any, state: Any, given: Any, outcome: Any) -> None:
        """Ask the oracle of the step; a process that ends with an error would hide what it says."""
        super().note(handler, party, state, given, outcome)
        if self._wrong is None:
            try:
                self.oracles.look_at(handler, party, state, given, outcome)
            except BrokenPromiseError as wrong:
                self._wrong = wrong

    def next_event(self) -> None:
        """Let the next event happen, and raise what an oracle has said of it."""
        super().next_event()
        node = self.controllers[0]
        if node.up and node.incarnation != self._controller_run:
            self._controller_run = node.incarnation
            before, self._controller_epoch = self._controller_epoch, node.core.state.controller_epoch
            self.oracles.look_at_new_controller(node.core.state, before, node.now().monotonic)
        if self._wrong is not None:
            raise self._wrong
