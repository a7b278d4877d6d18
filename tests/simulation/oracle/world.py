"""A simulated cluster in which every answer and every effect is compared with what the oracles ask for."""

from collections.abc import Callable
from typing import Any

from spec.controller.brokers import (
    handle_broker_heartbeat,
    handle_broker_registration,
    handle_unregister_broker,
    on_session_check,
)
from spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
    handle_create_topics,
    handle_elect_leaders,
    on_balance_check,
    on_unclean_election_check,
)
from spec.controller.rules.brokers import NEVER_MS, Session
from spec.step import Reply
from spec.values import Epoch
from tests.simulation.oracle import controller, follower, leader, lifecycle
from tests.simulation.parties import Node
from tests.simulation.state import Violation
from tests.simulation.world import World

REPLICA: dict[str, tuple[str, Callable[..., leader.Expected]]] = {
    "produce": ("ProduceAsAsked", leader.produce),
    "time out": ("WaitingTimesOut", leader.time_out),
    "fetch": ("FetchAsAsked", leader.fetch),
    "find epoch": ("EpochEndAsAsked", leader.find_epoch),
    "list offsets": ("ListOffsetsAsAsked", leader.list_offsets),
    "shrink": ("ShrinkWhenBehind", leader.shrink),
    "granted": ("IsrAsGranted", leader.granted),
    "delete": ("DeleteAsAsked", leader.delete),
    "retain": ("RetainCommitted", leader.retain),
    "ask": ("NextRequest", follower.ask),
    "no answer": ("BackOff", follower.no_answer),
    "fetched": ("FetchedIsTaken", follower.fetched),
    "epoch found": ("EpochEndIsTaken", follower.epoch_found),
    "offset listed": ("OffsetIsTaken", follower.offset_listed),
    "change": ("ChangeIsTaken", follower.change),
}
"""What is handled, the name of its oracle, and the oracle: for a replica."""

LIFE: dict[str, tuple[str, Callable[..., leader.Expected]]] = {
    "communicate": ("RegisterThenHeartbeat", lifecycle.communicate),
    "registered": ("OwnRegistrationOnly", lifecycle.registered),
    "heard": ("LifeByHeartbeat", lifecycle.heard),
    "begin shutdown": ("LeaveFirst", lifecycle.begin_shutdown),
    "stop": ("StopInOrder", lifecycle.end),
}
"""The same for a broker's life."""

CONTROLLER: dict[Any, tuple[str, Callable[..., None]]] = {
    handle_broker_registration: ("RegistrationDecided", controller.registration),
    handle_broker_heartbeat: ("HeartbeatDecided", controller.heartbeat),
    on_session_check: ("SessionsDecided", controller.session_check),
    handle_alter_partition: ("IsrDecided", controller.alter_partition),
    handle_elect_leaders: ("ElectionDecided", controller.elect),
    on_balance_check: ("BalanceDecided", controller.balance),
    on_unclean_election_check: ("UncleanElectionDecided", controller.unclean_check),
    handle_create_topics: ("CreationDecided", controller.create),
    handle_alter_partition_reassignments: ("ReassignmentDecided", controller.reassign),
    handle_unregister_broker: ("UnregistrationDecided", controller.unregister),
}
"""The same for the controller."""

NOT_COMPARED = ("producers", "partition_id")
"""Fields of a partition that other properties look at."""

ORACLES = (
    *[name for name, _ in (*REPLICA.values(), *LIFE.values(), *CONTROLLER.values())],
    "RecoveredAsStored",
    "SessionsStartAnew",
)
"""The names of all oracles."""


class CheckedWorld(World):
    """The world with oracles."""

    pending: tuple[str, Any, leader.Expected] | None = None

    def look_at(self, name: str, node: Node, *request: Any) -> None:
        in_life = name in LIFE
        called, oracle = (LIFE if in_life else REPLICA)[name]
        self.pending = called, (node.life if in_life else node.partition), oracle(node, *request)

    def seen(self, step: Any) -> Any:
        assert self.pending is not None
        name, before, (changes, effects) = self.pending
        if step.effects != effects:
            raise Violation(name, f"asked for are {effects}, done was {step.effects}")
        after = step.state
        if after is before and not changes:
            return step
        for field in before._fields:
            wanted = changes.get(field, getattr(before, field))
            if field not in NOT_COMPARED and getattr(after, field) != wanted:
                raise Violation(name, f"{field} has to be {wanted}, and is {getattr(after, field)}; before: {before}")
        return step

    def look_at_decision(self, handler: Any, state: Any, request: Any, step: Any) -> None:
        name, oracle = CONTROLLER[handler]
        after = controller.Outcome(self.party, state, self.time)
        oracle(after, *request)
        answers = [effect.message for effect in step.effects if isinstance(effect, Reply)]
        if answers != ([] if after.answer is None else [after.answer]):
            raise Violation(name, f"{request}: asked for is {after.answer}, done was {step.effects}")
        image = step.state.image
        partition = image.partitions[0].registration if image.partitions else None
        if partition != after.partition:
            raise Violation(name, f"{request}: the partition has to be {after.partition}, and is {partition}")
        if image.brokers != tuple([after.brokers[one] for one in sorted(after.brokers)]):
            raise Violation(name, f"{request}: the brokers have to be {after.brokers}, and are {image.brokers}")
        if image.end_offset != after.end + after.records:
            raise Violation(name, f"{request}: {after.records} records asked for, done was {step.effects}")
        for session in step.state.sessions:
            wanted = after.sessions.get(session.broker)
            if not isinstance(wanted, Session):
                wanted = None if wanted is None else Session(session.broker, *wanted)
            if session != wanted:
                raise Violation(name, f"{request}: the session has to be {wanted}, and is {session}")
        if len(step.state.sessions) != len(after.sessions):
            raise Violation(name, f"{request}: {after.sessions}, {step.state.sessions}")

    def look_at_recovery(self, node: Node, survived: Any, recovered: Any) -> None:
        local, flushed = follower.recovered(survived)
        if recovered.local != local or recovered.recovery_point != flushed:
            raise Violation("RecoveredAsStored", f"broker {node.id}: {survived}; {local}, {flushed}; {recovered}")

    def look_at_failover(self) -> None:
        now = self.controller
        wanted = [(one.broker, NEVER_MS if one.fenced else self.time, -1, -1) for one in self.image.brokers]
        sessions = [tuple(one) for one in now.sessions]
        if sessions != wanted or now.image != self.image or now.controller_epoch != self._epoch_after():
            raise Violation("SessionsStartAnew", f"{now}")

    def _epoch_after(self) -> Epoch:
        assert self.deposed is not None
        return Epoch(self.deposed.controller_epoch + 1)
