"""Theorem: in a consumer group (KIP-848) no partition has two owners at the coordinator, however many members there are.

A step changes what one member has. So the state is that of one member and of all others together: each partition is the
member's, assigned or to be given up, or somebody else's, or free. The functions of `spec` make the step, on epochs of which
nothing is known, and on sets that are any; what they do not ask for stays open.
"""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, NamedTuple

import z3

from kspec.proofs.induction.by_steps import StepTheorem, obligations_of_step
from kspec.proofs.induction.claims import Obligation
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.paths import decide
from kspec.proofs.symbolic.values import AnyNumber, truth
from kspec.spec.coordinator.group import Group, GroupState, as_consumer_group
from kspec.spec.coordinator.modern.group_steps import after_records, current_record, member_record, tombstones_of_member
from kspec.spec.coordinator.modern.heartbeat import away, move_to
from kspec.spec.coordinator.modern.reconciliation import Goal, reconcile
from kspec.spec.coordinator.modern.records import (
    ConsumerGroupEpochRecord,
    ConsumerRecordKind,
    ConsumerTombstone,
    RegularExpressionRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kspec.spec.coordinator.modern.state import (
    AssignedPartition,
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
)
from kspec.spec.coordinator.protocol import Coordinator, CoordinatorProtocol
from kspec.spec.coordinator.records import GroupRecord
from kspec.spec.mutation import weaken
from kspec.spec.releases.coordinator import COORDINATOR_RELEASES
from kspec.spec.releases.group_mutants import COORDINATOR_MUTANTS
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import GroupId, Instant, MemberId, MonotonicMs, TimestampMs, TopicId

NAME = "consumer-group"
SUMMARY = (
    "No partition is assigned to, or still to be given up by, two members of a consumer group (KIP-848), and the coordinator"
    " knows who has which, in which epoch."
)

GROUP, ME, NOW = GroupId("group"), MemberId("member"), Instant(MonotonicMs(0), TimestampMs(0))

PARTITIONS = tuple(TopicIdPartition(TopicId(bytes([number]) * 16), 0) for number in (1, 2))
"""Two partitions, of two topics. A third would add nothing: the rules treat each by itself, and ask of the others only
whether there is one that is still to be given up, or to come."""


def any_epoch(name: str) -> Any:
    """An epoch of this name."""
    return AnyNumber(z3.Int(name))


class AnyPlaces(AbstractSet[TopicIdPartition]):
    """Any set of the partitions: whether it has one of them is decided when that is asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def _from_iterable(cls, found: Any) -> Any:
        return frozenset(found)

    def __contains__(self, place: object) -> bool:
        return place in PARTITIONS and decide(z3.Bool(f"{self.name} {PARTITIONS.index(place)}"))

    def __iter__(self) -> Iterator[TopicIdPartition]:
        return (place for place in PARTITIONS if place in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class MemberAndOthers(NamedTuple):
    """A group as one member sees it: the member, what the others have, and the group."""

    member: ConsumerGroupMember
    others: frozenset[AssignedPartition]
    group: Group


def any_group(state: MemberState) -> MemberAndOthers:
    """Any group in which the invariant holds, with a member in this state."""
    assigned, pending, others = [], [], []
    for number, place in enumerate(PARTITIONS):
        if decide(z3.Bool(f"assigned {number}")):
            assigned.append(AssignedPartition(place, any_epoch(f"since {number}")))
        elif decide(z3.Bool(f"pending {number}")):
            pending.append(AssignedPartition(place, any_epoch(f"since {number}")))
        elif decide(z3.Bool(f"owned by another {number}")):
            others.append(AssignedPartition(place, any_epoch(f"epoch of owner {number}")))
    member = ConsumerGroupMember(
        ME, any_epoch("epoch"), any_epoch("previous"), state, assigned=tuple(assigned), pending=tuple(pending)
    )
    own = frozenset(AssignedPartition(one.place, member.epoch) for one in (*assigned, *pending))
    epoch = any_epoch("assignment epoch")  # that of the group is compared with it for the name of the group's state alone
    consumer = ConsumerGroup(
        epoch,
        assignment_epoch=epoch,
        members=(member,),
        owners=own | frozenset(others),
    )
    return MemberAndOthers(member, frozenset(others), as_consumer_group(Group(GROUP, GroupState.STABLE), consumer))


Step = Callable[[CoordinatorProtocol, MemberAndOthers], Group]


def heartbeat(protocol: CoordinatorProtocol, before: MemberAndOthers) -> Group:
    """The member sends a heartbeat, or joins: it owns anything, its target is anything, and it subscribes to anything."""
    consumer = before.group.consumer
    assert consumer is not None
    owned: Any = None if decide(z3.Bool("says nothing of what it owns")) else AnyPlaces("owned")
    target: Any = AnyPlaces("target")
    subscribed: Any = frozenset(place.topic_id for place in AnyPlaces("subscribed"))
    owned_by_any = frozenset(one.place for one in consumer.owners)
    goal = Goal(consumer.assignment_epoch, target, subscribed, owned_by_any)
    outcome = reconcile(protocol, before.member, goal, owned, decide(z3.Bool("subscription has changed")))
    return move_to(Coordinator(protocol), before.group, outcome.member, before.member, NOW).state


def fenced(protocol: CoordinatorProtocol, before: MemberAndOthers) -> Group:
    """The member leaves, or its session ends, or another takes its place."""
    return after_records(before.group, *tombstones_of_member(GROUP, ME)).state


def away_for_a_while(protocol: CoordinatorProtocol, before: MemberAndOthers) -> Group:
    """A static member leaves, and may come back."""
    return after_records(before.group, current_record(GROUP, away(before.member))).state


def replaced(protocol: CoordinatorProtocol, before: MemberAndOthers) -> Group:
    """A static member comes back under another id: its former self is out, and it has what that had."""
    again = before.member._replace(member_id=MemberId("again"), epoch=any_epoch("joins"), previous_epoch=any_epoch("joins"))
    out = tombstones_of_member(GROUP, ME)
    return after_records(before.group, *out, member_record(GROUP, again), current_record(GROUP, again)).state


def other_record(record: GroupRecord, protocol: CoordinatorProtocol, before: MemberAndOthers) -> Group:
    """A record is stored that is about no member's progress."""
    return after_records(before.group, record).state


EPOCH: Any = AnyNumber(z3.Int("new epoch"))

OTHER_RECORDS: tuple[GroupRecord, ...] = (
    ConsumerGroupEpochRecord(GROUP, EPOCH),
    member_record(GROUP, ConsumerGroupMember(ME, topics=frozenset({"topic"}))),
    TargetEpochRecord(GROUP, EPOCH, TimestampMs(0)),
    TargetRecord(GROUP, ME, frozenset(PARTITIONS)),
    RegularExpressionRecord(GROUP, "a", frozenset({"topic"}), 0, TimestampMs(0)),
    ConsumerTombstone(GROUP, ConsumerRecordKind.TARGET, ME),
    ConsumerTombstone(GROUP, ConsumerRecordKind.TARGET_EPOCH),
    ConsumerTombstone(GROUP, ConsumerRecordKind.PARTITION_METADATA),
    ConsumerTombstone(GROUP, ConsumerRecordKind.REGULAR_EXPRESSION, "a"),
)

STEPS: Mapping[str, Step] = {
    "Heartbeat": heartbeat,
    "Fenced": fenced,
    "AwayForAWhile": away_for_a_while,
    "Replaced": replaced,
    **{f"OtherRecord {number}": partial(other_record, record) for number, record in enumerate(OTHER_RECORDS, start=1)},
}
"""Everything that a coordinator does to a consumer group, as far as members' partitions go."""


def claims(before: MemberAndOthers, after: Group) -> dict[str, Any]:
    """Whether each conjunct of the invariant holds after a step."""
    consumer = after.consumer
    assert consumer is not None
    (member,) = consumer.members or (ConsumerGroupMember(ME),)
    has = [one.place for one in (*member.assigned, *member.pending)]
    theirs = {one.place for one in before.others}
    own = [one for one in consumer.owners if one.place in has]
    return {
        "OneOwner": len(set(has)) == len(has) and theirs.isdisjoint(has),
        "OwnersAreKnown": sorted(one.place for one in consumer.owners) == sorted({*has, *theirs}),
        "EpochOfOwner": z3.And(
            *(truth(one.epoch == member.epoch) for one in own),
            z3.BoolVal(all(any(one is kept for kept in consumer.owners) for one in before.others)),
        ),
    }


CONJUNCTS = ("OneOwner", "OwnersAreKnown", "EpochOfOwner")


def obligations(name: str, state: MemberState, settings: ProofSettings) -> list[Obligation]:
    """The results for one step, from any group with a member in this state."""
    protocol = COORDINATOR_RELEASES[-1]
    if settings.mutant is not None:
        protocol = weaken(protocol, CONSUMER_GROUP_THEOREM.mutants[settings.mutant])

    def taken() -> dict[str, Any]:
        before = any_group(state)
        return claims(before, STEPS[name](protocol, before))

    return obligations_of_step(settings, _label(name, state), CONJUNCTS, taken)


def _label(name: str, state: MemberState) -> str:
    return f"{name}({state.name.lower()})" if name == "Heartbeat" else name


TASKS = {
    _label(name, state): partial(obligations, name, state)
    for name in STEPS
    for state in (MemberState if name == "Heartbeat" else (MemberState.STABLE,))
}
"""Each step from each state of the member that it may depend on."""

CONSUMER_GROUP_THEOREM = StepTheorem(
    NAME,
    SUMMARY,
    {
        mutant.name: mutant
        for mutant in COORDINATOR_MUTANTS
        if mutant.name in ("free-though-owned", "silence-releases", "own-pending-not-free")
    },
    TASKS,
    "members",
)
