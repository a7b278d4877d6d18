"""Members of a consumer group (KIP-848): joining, reconciling, leaving, and offsets by the member's epoch.

The rules of coordinators differ from release to release. A run goes through all of them at once: what is expected is the
newest, and `since` the first from which on all give the same answer.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, Exchange, Hole, NotEmpty, RequestFields, equals
from kspec.conformance.wire.model.groups.group import GROUP, GROUP_HOLE, START, group_ready
from kspec.conformance.wire.model.requests import TOPIC, TOPIC_ID, create_topic, look_up_topic, since, wait_for_leader
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.group import Group, absent
from kspec.spec.coordinator.modern.describing import handle_consumer_group_describe
from kspec.spec.coordinator.modern.heartbeat import handle_consumer_group_heartbeat
from kspec.spec.coordinator.modern.state import ConsumerGroupMember, consumer_of, places
from kspec.spec.coordinator.offsets import handle_offset_commit, handle_offset_fetch
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumer,
)
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNCHANGED_MS,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest
from kspec.spec.releases.coordinator import (
    COORDINATOR_3_4,
    COORDINATOR_4_2,
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    LATE_REQUESTS_REPAIRED,
)
from kspec.spec.step import Reply
from kspec.spec.topics import NO_TOPICS, TopicIdPartition, TopicImage, with_topic
from kspec.spec.values import Error, Generation, GroupEpoch, MemberId, Offset, PartitionId, TimestampMs, TopicId

COORDINATORS = (
    ("4.0", COORDINATOR_3_4),
    ("4.2", COORDINATOR_4_2),
    ("4.3", COORDINATOR_4_3),
    ("4.4", COORDINATOR_4_4),
    ("next", LATE_REQUESTS_REPAIRED),
)
"""Coordinators with other rules for consumer groups, by the first release that has them. 4.0 has the first."""

RELEASED = len(COORDINATORS) - 1
"""The coordinators of released Kafka among them: cases expect what the last of these answers."""

PARTITIONS = 2
PLACES = frozenset(TopicIdPartition(TopicId(bytes(15) + b"\1"), index) for index in range(PARTITIONS))
TOPICS = with_topic(NO_TOPICS, TopicImage("topic", TopicId(bytes(15) + b"\1"), (PartitionId(1), PartitionId(2))))
RANGE = "range"
"""The assignor: that of ranges, because its assignment follows from the members' ids."""

REBALANCE_MS = 60_000
INTERVAL_MS = 1_500
"""More than `group.consumer.assignment.interval.ms`: so long a target may be in force before the next one is computed."""

HEARD_MS = 1_000
"""The coordinator hears of a new topic some time after the broker leads its partitions; no answer says when.

Kafka: `GroupCoordinatorService.onNewImage`, which only makes an event for each of its shards.
"""

MOST_EPOCHS = 3
OFFSET = Offset(5)
MEMBERS = {client: MemberId(f"member-{client.lower()}") for client in ("A", "B")}
NOBODY = MemberId("nobody")
INSTANCE = "static-1"
FIRST_EPOCH = "epoch"
"""The hole for the epoch of the first member that joins: groups begin in epoch 1 from 4.3 on, in 0 before."""

OWNERS = "a partition is given to one member only once another has given it up"
EPOCHS = "a member of an earlier epoch is told so"
BY_MEMBER = 9
"""The first version of OffsetCommit and OffsetFetch in which a member says its epoch."""


def absent_group(rules: int) -> tuple[Group, ...]:
    """No group yet, in the first of the coordinators: the last of them is the one whose answers are expected."""
    return (absent(GROUP),) * rules


class GroupByRelease(NamedTuple):
    """The group as a coordinator of each release would have it, and the epoch in each of the first member that joined."""

    groups: tuple[Group, ...] = absent_group(RELEASED)
    first: tuple[int, ...] = ()


class GroupView(NamedTuple):
    """The group in one release."""

    group: Group
    first: int | None

    def member(self, member_id: MemberId) -> ConsumerGroupMember | None:
        """The member with this id."""
        return None if self.group.consumer is None else consumer_of(self.group.consumer, member_id)

    def epoch(self, epoch: int) -> Any:
        """An epoch on the wire: relative to that of the first member."""
        return epoch if epoch <= 0 or self.first is None else Hole(FIRST_EPOCH, epoch - self.first)


class AskedOfGroup(NamedTuple):
    """A request as the handler gets it, and the same on the wire."""

    request: Any
    fields: RequestFields


Answered = tuple[Error, tuple[Constraint, ...], str]
"""An error, what the answer must be like, and the kind of answer in a few words."""


def _move(
    name: str,
    words: str,
    handler: Callable[..., Any],
    promise: str,
    ask: Callable[[GroupView], AskedOfGroup | None],
    told: Callable[[Any, GroupView], Answered],
) -> Move:
    def exchange_in(state: GroupByRelease, number: int) -> tuple[Exchange | None, Group, int | None]:
        view = GroupView(state.groups[number], state.first[number] if state.first else None)
        asked = ask(view)
        if asked is None:
            return None, view.group, view.first
        coordinator = Coordinator(COORDINATORS[number][1], topics=TOPICS)
        step = handler(coordinator, view.group, asked.request, START)
        (answer,) = [effect.message for effect in step.effects if isinstance(effect, Reply)]
        joined = getattr(answer, "member_epoch", 0)
        is_first = view.first is None and joined > 0
        error, constraints, outcome = told(answer, view._replace(first=joined) if is_first else view)
        pause = pause_ms(view.group, step.state)
        exchange = Exchange(asked.fields, outcome, error, constraints=constraints, pause_ms=pause)
        if is_first:
            others = tuple(one for one in constraints if one.path != "member_epoch")
            kept = ((FIRST_EPOCH, "member_epoch"),)
            exchange = exchange._replace(constraints=(*others, NotEmpty("member_epoch")), kept=kept)
        return exchange, long_assigned(step.state), joined if is_first else view.first

    def take(protocol: BrokerProtocol, state: GroupByRelease) -> MoveResult | None:
        found = [exchange_in(state, number) for number in range(len(state.groups))]
        exchange = alike_since([one for one, _, _ in found])
        if exchange is None:
            return None
        known = all(first is not None for _, _, first in found)
        first = tuple(one for _, _, one in found if one is not None) if known else ()
        after = GroupByRelease(tuple(group for _, group, _ in found), first)
        return MoveResult(after, exchange)

    return Move(name, words, handler, promise, take)


def alike_since(found: Sequence[Exchange | None]) -> Exchange | None:
    """The exchange with the newest of the first coordinators, from the release on that has the same answer."""
    newest = found[-1]
    if newest is None:
        return None
    since_release = None
    for exchange, (release, _) in zip(reversed(found), reversed(COORDINATORS[: len(found)]), strict=True):
        if exchange is None or exchange._replace(pause_ms=newest.pause_ms) != newest:
            break
        since_release = release
    pause = max(exchange.pause_ms for exchange in found if exchange is not None)
    return newest._replace(since=since_release, pause_ms=pause)


def pause_ms(before: Group, after: Group) -> int:
    """The time that passes before a request that computes a target."""
    epochs = [one.consumer.assignment_epoch if one.consumer is not None else 0 for one in (before, after)]
    if epochs[0] == epochs[1]:
        return 0
    return INTERVAL_MS if epochs[0] else HEARD_MS


def long_assigned(group: Group) -> Group:
    """The group when its target has been in force for a while, by `Exchange.pause_ms`."""
    consumer = group.consumer
    return group if consumer is None else group._replace(consumer=consumer._replace(assigned_at_ms=TimestampMs(0)))


# ---- heartbeats


def heartbeat_move(
    name: str,
    words: str,
    member_id: MemberId,
    epoch: Callable[[GroupView], int | None],
    owned: Callable[[GroupView], frozenset[TopicIdPartition] | None] = lambda view: None,
    **asked: Any,
) -> Move:
    """`epoch`: that which the member says; none where it cannot say this."""
    tells_all, assignor = asked.get("tells_all", False), asked.get("assignor", RANGE if asked.get("tells_all") else None)
    group_id, instance = asked.get("group", GROUP), asked.get("instance")
    timeout = asked.get("timeout", REBALANCE_MS if tells_all else UNCHANGED_MS)

    def ask(view: GroupView) -> AskedOfGroup | None:
        said = epoch(view)
        if said is None:
            return None
        has = owned(view)
        topics = frozenset(("topic",)) if tells_all else None
        request = ConsumerGroupHeartbeatRequest(
            group_id, member_id, GroupEpoch(said), instance, None, timeout, topics, None, assignor, has
        )
        numbers = None if has is None else sorted(one.partition for one in has)
        fields = {
            "group_id": GROUP_HOLE if group_id == GROUP else group_id,
            "member_id": str(member_id),
            "member_epoch": view.epoch(said),
            "instance_id": instance,
            "rebalance_timeout_ms": timeout,
            "subscribed_topic_names": [TOPIC] if tells_all else None,
            "server_assignor": assignor,
            "topic_partitions": None
            if numbers is None
            else [{"topic_id": TOPIC_ID, "partitions": numbers}]
            if numbers
            else [],
        }
        return AskedOfGroup(request, RequestFields("ConsumerGroupHeartbeat", fields))

    return _move(f"beat.{name}", words, handle_consumer_group_heartbeat, OWNERS, ask, _answered)


def _answered(answer: ConsumerGroupHeartbeatResponse, view: GroupView) -> Answered:
    error = equals("error_code", answer.error.value)
    if answer.error != Error.NONE:
        return answer.error, (error,), answer.error.name
    given = answer.assignment
    constraints = (
        error,
        equals("member_id", str(answer.member_id)),
        equals("member_epoch", view.epoch(answer.member_epoch)),
        *assignment_told("assignment", given),
        *((NotEmpty("heartbeat_interval_ms"),) if answer.heartbeat_interval_ms else ()),
    )
    outcome = "as before" if given is None else f"{len(given)} of {PARTITIONS} partitions"
    return Error.NONE, constraints, outcome


def assignment_told(
    path: str, given: frozenset[TopicIdPartition] | None, is_described: bool = False
) -> tuple[Constraint, ...]:
    """The field of an answer that has an assignment. A description names its topics, too."""
    if given is None:
        return (equals(path, None),)
    inside = f"{path}.topic_partitions[0].partitions"
    numbers = sorted(one.partition for one in given)
    return (
        equals(f"{path}.topic_partitions[#]", int(bool(given))),
        *((equals(f"{path}.topic_partitions[0].topic_id", TOPIC_ID), equals(f"{inside}[#]", len(numbers))) if given else ()),
        *((equals(f"{path}.topic_partitions[0].topic_name", TOPIC),) if given and is_described else ()),
        *(equals(f"{inside}[{place}]", number) for place, number in enumerate(numbers)),
    )


def _joins(member_id: MemberId) -> Callable[[GroupView], int | None]:
    """Epoch 0, as long as the group is within the bounds."""

    def epoch(view: GroupView) -> int | None:
        return None if _too_far(view) and view.member(member_id) is None else JOIN_EPOCH

    return epoch


def _too_far(view: GroupView) -> bool:
    consumer = view.group.consumer
    return consumer is not None and view.first is not None and consumer.epoch - view.first >= MOST_EPOCHS


def epoch_of(member_id: MemberId, ahead: int = 0) -> Callable[[GroupView], int | None]:
    """The member's epoch, or a later one."""

    def epoch(view: GroupView) -> int | None:
        member = view.member(member_id)
        return None if member is None or member.epoch <= 0 else member.epoch + ahead

    return epoch


def _previous(member_id: MemberId) -> Callable[[GroupView], int | None]:
    """The member's epoch before."""

    def epoch(view: GroupView) -> int | None:
        member = view.member(member_id)
        is_older = member is not None and 0 < member.previous_epoch < member.epoch
        return member.previous_epoch if member is not None and is_older else None

    return epoch


def leaves(member_id: MemberId, epoch: GroupEpoch = LEAVE_EPOCH) -> Callable[[GroupView], int | None]:
    """The epoch of a member that leaves, if it is in the group, as long as that is within the bounds."""

    def found(view: GroupView) -> int | None:
        return None if view.member(member_id) is None or _too_far(view) else epoch

    return found


def _always(epoch: int) -> Callable[[GroupView], int | None]:
    return lambda view: epoch


def _late(view: GroupView) -> int:
    """An epoch that no member has yet."""
    return (view.first or 1) + MOST_EPOCHS


def what_it_may(member_id: MemberId) -> Callable[[GroupView], frozenset[TopicIdPartition] | None]:
    """The partitions that a member owns which has given up what it had to."""

    def owned(view: GroupView) -> frozenset[TopicIdPartition] | None:
        member = view.member(member_id)
        return frozenset() if member is None else places(member.assigned)

    return owned


def nothing_owned(view: GroupView) -> frozenset[TopicIdPartition]:
    """A member owns no partition."""
    return frozenset()


def _all(view: GroupView) -> frozenset[TopicIdPartition]:
    return PLACES


def _beats() -> Iterator[Move]:
    for client, member_id in MEMBERS.items():
        who, may = f"member {client}", what_it_may(member_id)
        yield heartbeat_move(f"join.{client}", f"{who} joins", member_id, _joins(member_id), nothing_owned, tells_all=True)
        yield heartbeat_move(f"own.{client}", f"{who} is alive", member_id, epoch_of(member_id))
        yield heartbeat_move(f"gives-up.{client}", f"{who} owns what it may", member_id, epoch_of(member_id), may)
        yield heartbeat_move(f"leave.{client}", f"{who} leaves", member_id, leaves(member_id))
    first = MEMBERS["A"]
    yield heartbeat_move("all.A", "member A tells all again", first, epoch_of(first), what_it_may(first), tells_all=True)
    yield heartbeat_move("keeps.A", "member A owns everything yet", first, epoch_of(first), _all)
    yield heartbeat_move("previous.A", "member A did not get its new epoch", first, _previous(first), what_it_may(first))
    yield heartbeat_move("previous.keeps.A", "member A of the epoch before owns everything", first, _previous(first), _all)
    yield heartbeat_move("previous.bare.A", "member A of the epoch before says no more", first, _previous(first))
    yield heartbeat_move("newer.A", "member A is alive in a later epoch", first, epoch_of(first, 1))


def _wrong() -> Iterator[Move]:
    yield heartbeat_move("unknown", "a member is alive that nobody knows", NOBODY, _late)
    yield heartbeat_move("leave.unknown", "a member leaves that nobody knows", NOBODY, _always(LEAVE_EPOCH))
    yield heartbeat_move("too-low", "a member has epoch -3", NOBODY, _always(-3))
    yield heartbeat_move(
        "no-group-id", "a member joins a group without a name", NOBODY, _always(0), nothing_owned, tells_all=True, group=""
    )
    yield heartbeat_move("bare-join", "a member joins without a subscription", NOBODY, _always(0), nothing_owned)
    yield heartbeat_move("join.owning", "a member joins that owns partitions", NOBODY, _always(0), _all, tells_all=True)
    no_timeout: dict[str, Any] = {"tells_all": True, "timeout": UNCHANGED_MS}
    yield heartbeat_move(
        "join.no-timeout", "a member joins without a time-out", NOBODY, _always(0), nothing_owned, **no_timeout
    )
    assignor: dict[str, Any] = {"tells_all": True, "assignor": "nothing"}
    yield heartbeat_move(
        "other-assignor", "a member joins with an assignor that nobody knows", NOBODY, _always(0), nothing_owned, **assignor
    )
    yield heartbeat_move("dynamic-away", "a dynamic member leaves for a while", NOBODY, _always(STATIC_LEAVE_EPOCH))


# ---- static members


def _statics() -> Iterator[Move]:
    for client, member_id in MEMBERS.items():
        who = f"process {client} of a static member"
        of: dict[str, Any] = {"instance": INSTANCE}
        joins, own = _joins(member_id), epoch_of(member_id)
        yield heartbeat_move(f"join.{client}", f"{who} joins", member_id, joins, nothing_owned, tells_all=True, **of)
        yield heartbeat_move(f"own.{client}", f"{who} is alive", member_id, own, **of)
        yield heartbeat_move(
            f"away.{client}", f"{who} leaves for a while", member_id, leaves(member_id, STATIC_LEAVE_EPOCH), **of
        )
        yield heartbeat_move(f"leave.{client}", f"{who} leaves", member_id, leaves(member_id), **of)
        yield heartbeat_move(f"late.{client}", f"{who} is alive, in whatever epoch", member_id, _late, **of)
        yield heartbeat_move(
            f"late-leave.{client}", f"{who} leaves, if it is there or not", member_id, _always(LEAVE_EPOCH), **of
        )


# ---- looking at the group


def _describe() -> Move:
    def ask(view: GroupView) -> AskedOfGroup:
        fields = {"group_ids": [GROUP_HOLE], "include_authorized_operations": False}
        return AskedOfGroup(ConsumerGroupDescribeRequest(GROUP), RequestFields("ConsumerGroupDescribe", fields))

    return _move("describe", "describe the group", handle_consumer_group_describe, EPOCHS, ask, _described)


def _described(answer: ConsumerGroupDescribeResponse, view: GroupView) -> Answered:
    error = equals("groups[0].error_code", answer.error.value)
    if answer.error != Error.NONE:
        return answer.error, (error,), answer.error.name
    constraints = (
        error,
        equals("groups[0].group_state", answer.group_state),
        equals("groups[0].group_epoch", view.epoch(answer.group_epoch)),
        equals("groups[0].assignment_epoch", view.epoch(answer.assignment_epoch)),
        equals("groups[0].assignor_name", answer.assignor),
        equals("groups[0].members[#]", len(answer.members)),
        *(_member_described(answer.members[0], view) if len(answer.members) == 1 else ()),
    )
    return Error.NONE, constraints, f"{answer.group_state}, {len(answer.members)} members"


def _member_described(member: DescribedConsumer, view: GroupView) -> tuple[Constraint, ...]:
    """Fields of a member that is alone; of several the order is not known."""
    where = "groups[0].members[0]"
    return (
        equals(f"{where}.member_id", str(member.member_id)),
        equals(f"{where}.instance_id", member.instance_id),
        equals(f"{where}.member_epoch", view.epoch(member.member_epoch)),
        *assignment_told(f"{where}.assignment", frozenset(member.assignment), is_described=True),
        *assignment_told(f"{where}.target_assignment", frozenset(member.target), is_described=True),
        equals(f"{where}.subscribed_topic_names[#]", 1),
        equals(f"{where}.subscribed_topic_names[0]", TOPIC),
        equals(f"{where}.member_type", 1),
    )


# ---- offsets


def commit_move(
    name: str, words: str, member_id: MemberId, epoch: Callable[[GroupView], int | None], partition: int = 0
) -> Move:
    """A member commits an offset of a partition, in an epoch that it says."""

    def ask(view: GroupView) -> AskedOfGroup | None:
        said = epoch(view)
        if said is None:
            return None
        commit = OffsetToCommit("topic", partition, OFFSET)
        request = OffsetCommitRequest(GROUP, (commit,), Generation(said), member_id, reports_missing_group=True)
        inside = {"partition_index": partition, "committed_offset": OFFSET, "committed_leader_epoch": -1}
        topic = {"name": TOPIC, "topic_id": TOPIC_ID, "partitions": [inside | {"committed_metadata": ""}]}
        fields = {
            "group_id": GROUP_HOLE,
            "generation_id_or_member_epoch": view.epoch(said),
            "member_id": str(member_id),
            "topics": [topic],
        }
        return AskedOfGroup(request, RequestFields("OffsetCommit", fields, since(BY_MEMBER)))

    def told(answer: Any, view: GroupView) -> Answered:
        error: Error = answer.partitions[0].error
        outcome = "stored" if error == Error.NONE else error.name
        return error, (equals("topics[0].partitions[0].error_code", error.value),), outcome

    return _move(f"commit.{name}", words, handle_offset_commit, EPOCHS, ask, told)


def _fetch(name: str, words: str, member_id: MemberId | None, epoch: Callable[[GroupView], int | None]) -> Move:
    def ask(view: GroupView) -> AskedOfGroup | None:
        said = epoch(view)
        if said is None:
            return None
        wanted = (OffsetFetchPartition("topic", 0),)
        request = OffsetFetchRequest(GROUP, wanted, False, member_id, said)
        topics = [{"name": TOPIC, "topic_id": TOPIC_ID, "partition_indexes": [0]}]
        named = None if member_id is None else str(member_id)
        group = {"group_id": GROUP_HOLE, "member_id": named, "member_epoch": view.epoch(said), "topics": topics}
        return AskedOfGroup(request, RequestFields("OffsetFetch", {"groups": [group]}, since(BY_MEMBER)))

    def told(answer: Any, view: GroupView) -> Answered:
        error = equals("groups[0].error_code", answer.error.value)
        if answer.error != Error.NONE:
            return answer.error, (error,), answer.error.name
        offset = answer.partitions[0].offset
        found = equals("groups[0].topics[0].partitions[0].committed_offset", offset)
        return Error.NONE, (error, found), "none" if offset < 0 else "an offset"

    return _move(f"offsets.{name}", words, handle_offset_fetch, EPOCHS, ask, told)


def _offsets() -> Iterator[Move]:
    first = MEMBERS["A"]
    yield commit_move("own", "member A commits", first, epoch_of(first))
    yield commit_move("newer", "member A commits in a later epoch", first, epoch_of(first, 1))
    yield commit_move("previous", "member A commits what it has, in the epoch before", first, _previous(first))
    yield commit_move(
        "previous.lost", "member A commits what it has given up, in the epoch before", first, _previous(first), 1
    )
    yield commit_move("unknown", "a member commits that nobody knows", NOBODY, _late)
    yield _fetch("own", "member A asks for an offset", first, epoch_of(first))
    yield _fetch("newer", "member A asks for an offset in a later epoch", first, epoch_of(first, 1))
    yield _fetch("previous", "member A asks for an offset in the epoch before", first, _previous(first))
    yield _fetch("unknown", "a member asks for an offset that nobody knows", NOBODY, _late)
    yield _fetch("anybody", "a client asks for an offset that is no member", None, _always(-1))


def consumers_setup(state: GroupByRelease, holes: frozenset[str]) -> tuple[Exchange, ...]:
    """A topic of two partitions, and a coordinator."""
    return (create_topic(TOPIC, partitions=PARTITIONS), look_up_topic(), wait_for_leader(), *group_ready())


BEATS = {move.name: move for move in _beats()}
DESCRIBE = _describe()
BOUNDS = {"members": len(MEMBERS), "epochs": MOST_EPOCHS}
CONSUMERS = Subject(
    "consumers",
    "members of a consumer group (KIP-848) that join, are given partitions, give them up and leave",
    GroupByRelease(),
    (*BEATS.values(), *_wrong(), DESCRIBE),
    consumers_setup,
    BOUNDS,
    most_moves=9,
)
STATIC_CONSUMERS = Subject(
    "static-consumers",
    "static members of a consumer group, and their former selves",
    GroupByRelease(),
    (*_statics(), DESCRIBE),
    consumers_setup,
    BOUNDS,
)
CONSUMERS_OFFSETS = Subject(
    "consumers-offsets",
    "offsets that members of a consumer group commit and fetch",
    GroupByRelease(),
    (*(BEATS[f"beat.{name}"] for name in ("join.A", "join.B", "own.A", "gives-up.A", "leave.B")), *_offsets()),
    consumers_setup,
    BOUNDS,
    most_moves=9,
)
