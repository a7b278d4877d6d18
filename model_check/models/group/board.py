"""The slots of the model, and the coordinator's time in it.

Time is a choice here: every deadline that is set lies at one moment, and an action picks whose has come. So there are
finitely many states. Offsets of the log are counted from its committed end.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.model_check.core.model import COORDINATOR, Client, Model, Slot
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.models.group.settings import COORDINATORS
from kspec.model_check.models.group.values import (
    NO_POSITION,
    ConsumerState,
    FormerCoordinator,
    GroupExchange,
    HeartbeatingState,
    Lane,
    LastCommitted,
    LateRequest,
    connection_of,
    member_id,
)
from kspec.model_check.traces.encode import in_words
from kspec.spec.consumer.modern.membership import ConsumerMembership
from kspec.spec.consumer.modern.protocol import HEARTBEAT_PROTOCOLS, HEARTBEATS, HeartbeatingConsumer
from kspec.spec.consumer.protocol import ConsumerProtocol, GroupConsumer
from kspec.spec.consumer.rules import CONSUMER_PROTOCOLS
from kspec.spec.coordinator.group import Group, Member
from kspec.spec.coordinator.modern.state import ConsumerGroup
from kspec.spec.coordinator.protocol import Coordinator, CoordinatorProtocol, CoordinatorSettings
from kspec.spec.coordinator.runtime import CoordinatedGroup, LogPosition, unknown_group
from kspec.spec.mutation import Mutant, RulesT, weaken
from kspec.spec.releases.group_mutants import CONSUMER_MUTANTS, COORDINATOR_MUTANTS, HEARTBEAT_MUTANTS
from kspec.spec.topics import NO_TOPICS, TopicImage, with_topic
from kspec.spec.values import GroupId, Instant, MonotonicMs, Offset, PartitionId, TimestampMs, TopicId

GROUP = GroupId("group")
TOPIC = "topic"
TOPIC_ID = TopicId(bytes(15) + b"\1")

NOW = Instant(MonotonicMs(0), TimestampMs(0))
"""The time of every action."""

LATER = MonotonicMs(1)
"""Every deadline that has not come."""

DUE = MonotonicMs(0)
"""A deadline that has come."""


class Slots(NamedTuple):
    """`exchange[connection]` is what is under way on a connection. `acknowledged[partition]` is the largest offset whose
    commit a consumer knows of; `stray`: a commit counts that must not; `left`: budgets.

    `former` is a coordinator that does not know of the present one; `old_read`: it has given an offset below one that was
    acknowledged before it was asked. `last_committed`: what a next coordinator may not know to be committed; `is_unheard`:
    the present one does not, of its first write.
    """

    group: Slot
    consumer: dict[int, Slot]
    exchange: dict[int, Slot]
    late: dict[int, Slot]
    lives: dict[int, Slot]
    acknowledged: dict[int, Slot]
    stray: Slot
    left: dict[str, Slot]
    former: Slot | None = None
    last_committed: Slot | None = None
    is_unheard: Slot | None = None
    old_read: Slot | None = None


BUDGETS = ("expiries", "disconnects", "late_requests", "moves", "zombies", "lags", "leaves")


class Board:
    """The model under construction."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.model = Model(name, parameters)
        self.parameters = parameters
        self.consumers = [Client(number) for number in range(1, parameters["consumers"] + 1)]
        self.is_static = parameters["static_members"]
        if (parameters["zombies"] or parameters["lags"]) and not parameters["moves"]:
            raise ParameterError("--zombies and --lags go with --moves")
        if not self.is_static:  # instance ids tell consumers apart
            self.model.interchangeable = tuple(self.consumers)
        self.lives = max(parameters["lives"], 1 + parameters["leaves"] * self.is_static)
        self.partitions = range(parameters["topic_partitions"])
        heartbeats = {protocol.name: protocol for protocol in HEARTBEAT_PROTOCOLS}
        self.is_modern = parameters["protocol"] in heartbeats
        settings = CoordinatorSettings(initial_rebalance_delay_ms=1)
        topic = TopicImage(TOPIC, TOPIC_ID, tuple(PartitionId(partition) for partition in self.partitions))
        self.coordinator = Coordinator(_coordinator_protocol(parameters), settings, with_topic(NO_TOPICS, topic))
        self.consumer = GroupConsumer(_consumer_protocol(parameters), GROUP, TOPIC, rebalance_timeout_ms=1)
        protocol = heartbeats.get(parameters["protocol"], HEARTBEATS)
        weakened = _weakened(protocol, HEARTBEAT_MUTANTS, parameters["mutant"])
        self.heartbeating = HeartbeatingConsumer(weakened, GROUP, TOPIC, TOPIC_ID, rebalance_timeout_ms=1)
        self.slots = self._slots()
        self.moves = [self.slots.left["moves"]] if "moves" in self.slots.left else []
        self.former = [] if self.slots.former is None else [self.slots.former]

    def heartbeating_as(self, consumer: int) -> HeartbeatingConsumer:
        """The consumer of a consumer group, with its instance id if it is a static member."""
        return replace(self.heartbeating, instance_id=f"instance {consumer}") if self.is_static else self.heartbeating

    def consumer_as(self, consumer: int) -> GroupConsumer:
        """The consumer of the classic protocol, with its instance id if it is a static member."""
        return replace(self.consumer, instance_id=f"instance {consumer}") if self.is_static else self.consumer

    def moved(self, left: Sequence[int]) -> int:
        """The number of the coordinator's moves so far, by the values of `moves`."""
        return self.parameters["moves"] - left[0] if left else 0

    def moves_and_former(self, values: Sequence[Any]) -> tuple[int, FormerCoordinator | None]:
        """The number of moves so far, and the former coordinator, by the values of `moves` and `former`."""
        return self.moved(values[: len(self.moves)]), values[-1] if self.former else None

    def epochs_of(self, group: Group) -> int:
        """The number of generations of a group that have begun, or of epochs in which something has changed."""
        if group.consumer is None:
            return group.generation
        return group.consumer.epoch - self.coordinator.protocol.first_epoch

    def _slots(self) -> Slots:
        model, consumers, parameters = self.model, self.consumers, self.parameters
        exchanges: dict[int, Slot] = {}
        late: dict[int, Slot] = {}
        for one in consumers:
            for lane, name in zip(Lane, ("exchange", "offsetExchange")[: 1 + self.is_modern], strict=False):
                exchanges[connection_of(one, lane)] = model.slot(
                    name, None, one, one, holds=GroupExchange | None, words=_in_words_if_any
                )
            if parameters["late_requests"]:
                late[one] = model.slot("late", None, one, one, holds=LateRequest | None, words=_in_words_if_any)
        former = last = unheard = old_read = None
        if parameters["zombies"]:
            former = model.slot("former", None, party=COORDINATOR, holds=FormerCoordinator | None, words=_in_words_if_any)
            old_read = model.slot("oldRead", False, bookkeeping=True)
        if parameters["lags"]:
            last = model.slot("lastCommitted", None, bookkeeping=True, holds=LastCommitted | None, words=_in_words_if_any)
            unheard = model.slot("isUnheard", False, bookkeeping=True)
        return Slots(
            group=model.slot("group", unknown_group(GROUP), party=COORDINATOR),
            consumer={one: self._consumer_slot(one) for one in consumers},
            exchange=exchanges,
            late=late,
            lives={one: model.slot("lives", 0, one, one, bookkeeping=True) for one in consumers},
            acknowledged={
                partition: model.slot("knownOffset", 0, partition, party=COORDINATOR, bookkeeping=True)
                for partition in self.partitions
            },
            stray=model.slot("strayCommit", False, bookkeeping=True),
            left={
                name: model.slot(f"{name}_left", parameters[name], bookkeeping=True) for name in BUDGETS if parameters[name]
            },
            former=former,
            last_committed=last,
            is_unheard=unheard,
            old_read=old_read,
        )

    def _consumer_slot(self, one: Client) -> Slot:
        nowhere = tuple(NO_POSITION for _ in self.partitions)
        if self.is_modern:
            state = HeartbeatingState(
                ConsumerMembership(member_id=self.heartbeating.protocol.joins_as(member_id(one, 1))), nowhere
            )
            return self.model.slot("consumer", state, one, one, holds=HeartbeatingState)
        return self.model.slot("consumer", ConsumerState(positions=nowhere), one, one, holds=ConsumerState)


def _coordinator_protocol(parameters: dict[str, Any]) -> CoordinatorProtocol:
    (protocol,) = (release for release in COORDINATORS if release.name == parameters["release"])
    return _weakened(protocol, COORDINATOR_MUTANTS, parameters["mutant"])


def _consumer_protocol(parameters: dict[str, Any]) -> ConsumerProtocol:
    named = {protocol.name: protocol for protocol in CONSUMER_PROTOCOLS}
    return _weakened(named.get(parameters["protocol"], CONSUMER_PROTOCOLS[0]), CONSUMER_MUTANTS, parameters["mutant"])


def _weakened(protocol: RulesT, mutants: Sequence[Mutant], name: str | None) -> RulesT:
    """The protocol with the mutant of this name, if it is one of its own."""
    for mutant in mutants:
        if mutant.name == name:
            return weaken(protocol, mutant)
    return protocol


def _in_words_if_any(value: object) -> str:
    return "none" if value is None else in_words(value)


# ---- the coordinator's state


def position_of(state: CoordinatedGroup) -> LogPosition:
    """The position of the log: nothing but the writes of the group are uncommitted."""
    return LogPosition(state.writes[-1].end if state.writes else Offset(0), Offset(0))


def settled(state: CoordinatedGroup) -> CoordinatedGroup:
    """The state with every deadline at the one moment where deadlines are, and without times that no rule compares."""
    return state._replace(
        latest=_settled_group(state.latest),
        committed=_settled_group(state.committed),
        waiting=tuple(one._replace(deadline_ms=LATER) for one in state.waiting),
    )


def _settled_group(group: Group) -> Group:
    return group._replace(
        members=tuple(_settled_member(member) for member in group.members),
        pending=tuple(one._replace(session_deadline_ms=LATER) for one in group.pending),
        join_deadline_ms=None if group.join_deadline_ms is None else LATER,
        sync_deadline_ms=None if group.sync_deadline_ms is None else LATER,
        state_since_ms=None,
        subscribed=None,
        consumer=None if group.consumer is None else _settled_consumers(group.consumer),
    )


def _settled_consumers(group: ConsumerGroup) -> ConsumerGroup:
    members = tuple(
        one._replace(
            session_deadline_ms=None if one.session_deadline_ms is None else LATER,
            rebalance_deadline_ms=None if one.rebalance_deadline_ms is None else LATER,
        )
        for one in group.members
    )
    return group._replace(members=members)


def _settled_member(member: Member) -> Member:
    return member if member.session_deadline_ms is None else member._replace(session_deadline_ms=LATER)


def from_committed_end(state: CoordinatedGroup, committed: Offset) -> CoordinatedGroup:
    """The state with the offsets of its log counted from another committed end."""
    return state._replace(
        writes=tuple(write._replace(end=Offset(write.end - committed)) for write in state.writes),
        waiting=tuple(one._replace(until=Offset(max(one.until - committed, 0))) for one in state.waiting),
    )


def offsets_of(group: Group, partitions: Sequence[int]) -> tuple[int, ...]:
    """The committed offset of each partition, 0 if there is none."""
    known = {record.partition: int(record.offset) for record in group.offsets}
    return tuple(known.get(partition, 0) for partition in partitions)
