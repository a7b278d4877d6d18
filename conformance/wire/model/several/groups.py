"""Requests about several groups, several partitions of a group, several members: each is answered for itself."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, Exchange, Fields, Hole, NotEmpty, RequestFields, equals
from kspec.conformance.wire.model.groups.group import COORDINATOR, GROUP, GROUP_HOLE, START, group_ready
from kspec.conformance.wire.model.requests import (
    NO_COORDINATOR,
    TOPIC,
    TOPIC_ID,
    create_topic,
    look_up_topic,
    since,
    wait_for_leader,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.clients.named_partitions import check_named_partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.administration import (
    check_coordinator_key,
    find_coordinator,
    handle_delete_groups,
    handle_describe_groups,
    handle_list_groups,
)
from kspec.spec.coordinator.group import Group, absent, exists
from kspec.spec.coordinator.offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest
from kspec.spec.messages.groups.find_coordinator import FindCoordinatorRequest
from kspec.spec.messages.groups.list_groups import ListGroupsRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest
from kspec.spec.step import Reply
from kspec.spec.values import (
    NO_EPOCH,
    NO_GENERATION,
    NO_MEMBER_ID,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    Error,
    GroupId,
    Offset,
)

APART = "each group, and each partition of a group, is served for itself, and the answer names it"
OTHER_GROUP = Hole("topic_dotted")
"""The name of another group: any name that no other case has."""

GROUPS = (GROUP_HOLE, OTHER_GROUP)
NAMES = (GROUP, GroupId("other"))
PARTITIONS, FAR = 2, 7
LARGEST_OFFSET, LARGEST_EPOCH = 2**63 - 1, 2**31 - 1
MANY_GROUPS, ONE_KEY = since(8), Versions(0, 3)
"""The versions of OffsetFetch for several groups, and those of FindCoordinator for one."""

SELF = BrokerId(1)


class TwoGroups(NamedTuple):
    """Two groups without members."""

    groups: tuple[Group, Group] = (absent(NAMES[0]), absent(NAMES[1]))

    def having(self, number: int, group: Group) -> "TwoGroups":
        """The same with another group in its place."""
        one, other = self.groups
        return TwoGroups((group, other) if number == 0 else (one, group))


def _reply(step: Any) -> Any:
    (found,) = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    return found


def _exchange(request: RequestFields, errors: list[Error], constraints: list[Constraint]) -> Exchange:
    outcome = ", ".join("done" if one == Error.NONE else one.name for one in errors) or "none"
    first = next((one for one in errors if one != Error.NONE), Error.NONE)
    return Exchange(request, outcome, first, constraints=tuple(constraints), retried=NO_COORDINATOR)


# ---- offsets of several partitions


class OffsetInRequest(NamedTuple):
    """An offset that is committed: the partition, the offset, the leader epoch, the metadata."""

    partition: int
    offset: int
    epoch: int = NO_EPOCH
    metadata: str = ""


def _commit(name: str, words: str, number: int, *wanted: OffsetInRequest) -> Move:
    """A client that is in no group commits."""

    def take(protocol: BrokerProtocol, state: TwoGroups) -> MoveResult | None:
        known = [one for one in wanted if one.partition < PARTITIONS]
        commits = tuple(
            OffsetToCommit("topic", one.partition, Offset(one.offset), Epoch(one.epoch), one.metadata) for one in known
        )
        request = OffsetCommitRequest(NAMES[number], commits, NO_GENERATION, NO_MEMBER_ID)
        step = handle_offset_commit(COORDINATOR, state.groups[number], request, START)
        errors = {one.partition: one.error for one in _reply(step).partitions}
        partitions: list[Fields] = []
        constraints: list[Constraint] = [equals("topics[#]", 1), equals("topics[0].partitions[#]", len(wanted))]
        for one in wanted:
            missing = check_named_partition(PARTITIONS, one.partition, by_id=False)
            errors.setdefault(one.partition, missing)
            where = f"topics[0].partitions[partition_index={one.partition}]"
            constraints.append(equals(f"{where}.error_code", errors[one.partition].value))
            partitions.append(
                {
                    "partition_index": one.partition,
                    "committed_offset": one.offset,
                    "committed_leader_epoch": one.epoch,
                    "committed_metadata": one.metadata,
                }
            )
        fields = {
            "group_id": GROUPS[number],
            "generation_id_or_member_epoch": NO_GENERATION,
            "member_id": "",
            "topics": [{"name": TOPIC, "topic_id": TOPIC_ID, "partitions": partitions}],
        }
        sent = RequestFields("OffsetCommit", fields, since(6))
        exchange = _exchange(sent, [errors[one.partition] for one in wanted], constraints)
        return MoveResult(state.having(number, step.state), exchange)

    return Move(f"commit.{name}", words, handle_offset_commit, APART, take)


def _fetched_of(group: Group, partitions: tuple[int, ...] | None, where: str) -> list[Constraint]:
    """Constraints on a group's offsets in an answer."""
    wanted = None if partitions is None else tuple(OffsetFetchPartition("topic", one) for one in partitions)
    answer = _reply(handle_offset_fetch(COORDINATOR, group, OffsetFetchRequest(group.group_id, wanted), START))
    found: list[Constraint] = [
        equals(f"{where}error_code", answer.error.value),
        equals(f"{where}topics[#]", int(bool(answer.partitions))),
    ]
    if answer.partitions:
        found.append(equals(f"{where}topics[0].partitions[#]", len(answer.partitions)))
    for one in answer.partitions:
        entry = f"{where}topics[0].partitions[partition_index={one.partition}]"
        found += [
            equals(f"{entry}.error_code", one.error.value),
            equals(f"{entry}.committed_offset", one.offset),
            equals(f"{entry}.committed_leader_epoch", one.leader_epoch),
            equals(f"{entry}.metadata", one.metadata),
        ]
    return found


def _topics(partitions: tuple[int, ...] | None) -> Any:
    if partitions is None:
        return None
    return [{"name": TOPIC, "topic_id": TOPIC_ID, "partition_indexes": list(partitions)}] if partitions else []


def _fetch(name: str, words: str, *wanted: tuple[int, tuple[int, ...] | None]) -> Move:
    """Ask for offsets of groups, each by its number; of all partitions, of some, or of none."""

    def take(protocol: BrokerProtocol, state: TwoGroups) -> MoveResult | None:
        constraints: list[Constraint] = [equals("groups[#]", len(wanted))]
        for number, partitions in wanted:
            where = f"groups[group_id=@{GROUPS[number].name}]."
            constraints += _fetched_of(state.groups[number], partitions, where)
        asked = [{"group_id": GROUPS[number], "topics": _topics(partitions)} for number, partitions in wanted]
        fields: dict[str, Any] = {"groups": asked}
        versions = MANY_GROUPS
        if len(wanted) == 1:
            ((number, partitions),) = wanted
            constraints += _fetched_of(state.groups[number], partitions, "")
            topics = _topics(partitions)
            old = None if topics is None else [{key: one[key] for key in ("name", "partition_indexes")} for one in topics]
            fields, versions = {"group_id": GROUPS[number], "topics": old, **fields}, since(2)
        outcome = " and ".join(_found(state.groups[number]) for number, _ in wanted)
        exchange = _exchange(RequestFields("OffsetFetch", fields, versions), [Error.NONE], constraints)
        return MoveResult(state, exchange._replace(outcome=outcome))

    return Move(f"offsets.{name}", words, handle_offset_fetch, APART, take)


def _found(group: Group) -> str:
    return f"{len(group.offsets)} offsets" if group.offsets else "none"


def _forget(name: str, words: str, *wanted: int) -> Move:
    def take(protocol: BrokerProtocol, state: TwoGroups) -> MoveResult | None:
        known = tuple(OffsetFetchPartition("topic", one) for one in wanted if one < PARTITIONS)
        step = handle_offset_delete(COORDINATOR, state.groups[0], OffsetDeleteRequest(GROUP, known), START)
        answer = _reply(step)
        constraints: list[Constraint] = [equals("error_code", answer.error.value)]
        errors = [answer.error]
        if answer.error == Error.NONE:
            errors = []
            inside = {one.partition: one.error for one in answer.partitions}
            for one in wanted:
                errors.append(inside.get(one, check_named_partition(PARTITIONS, one, by_id=False)))
                where = f"topics[0].partitions[partition_index={one}]"
                constraints.append(equals(f"{where}.error_code", errors[-1].value))
        named = {"name": TOPIC, "partitions": [{"partition_index": one} for one in wanted]}
        request = RequestFields("OffsetDelete", {"group_id": GROUP_HOLE, "topics": [named]})
        return MoveResult(state.having(0, step.state), _exchange(request, errors, constraints))

    return Move(f"offsets.delete.{name}", words, handle_offset_delete, APART, take)


# ---- several groups


def _describe(name: str, words: str, *numbers: int) -> Move:
    def take(protocol: BrokerProtocol, state: TwoGroups) -> MoveResult | None:
        constraints: list[Constraint] = [equals("groups[#]", len(numbers))]
        errors = []
        for number in numbers:
            answer = _reply(
                handle_describe_groups(COORDINATOR, state.groups[number], DescribeGroupsRequest(NAMES[number], True), START)
            )
            where = f"groups[group_id=@{GROUPS[number].name}]"
            constraints += [
                equals(f"{where}.error_code", answer.error.value),
                equals(f"{where}.group_state", answer.group_state),
                equals(f"{where}.members[#]", 0),
            ]
            errors.append(answer.error)
        request = RequestFields("DescribeGroups", {"groups": [GROUPS[number] for number in numbers]}, since(6))
        return MoveResult(state, _exchange(request, errors, constraints))

    return Move(f"describe.{name}", words, handle_describe_groups, APART, take)


def _delete() -> Move:
    def take(protocol: BrokerProtocol, state: TwoGroups) -> MoveResult | None:
        constraints: list[Constraint] = [equals("results[#]", len(GROUPS))]
        errors = []
        for number, hole in enumerate(GROUPS):
            step = handle_delete_groups(COORDINATOR, state.groups[number], DeleteGroupsRequest(NAMES[number]), START)
            error = _reply(step).error
            constraints.append(equals(f"results[group_id=@{hole.name}].error_code", error.value))
            errors.append(error)
            state = state.having(number, step.state)
        return MoveResult(
            state, _exchange(RequestFields("DeleteGroups", {"groups_names": list(GROUPS)}), errors, constraints)
        )

    return Move("delete.both", "delete both groups", handle_delete_groups, APART, take)


def _list(name: str, words: str, states: tuple[str, ...], types: tuple[str, ...], first: int) -> Move:
    """Whether both groups are in the list of all, which has groups of other cases, too."""

    def take(protocol: BrokerProtocol, state: TwoGroups) -> MoveResult | None:
        constraints: list[Constraint] = [equals("error_code", 0)]
        counts = []
        for number, hole in enumerate(GROUPS):
            step = handle_list_groups(COORDINATOR, state.groups[number], ListGroupsRequest(states, types), START)
            listed = _reply(step).groups
            counts.append(len(listed))
            constraints.append(equals(f"groups[#group_id=@{hole.name}]", len(listed)))
            for one in listed:
                where = f"groups[group_id=@{hole.name}]"
                constraints += [
                    equals(f"{where}.protocol_type", one.protocol_type),
                    equals(f"{where}.group_state", one.group_state),
                    equals(f"{where}.group_type", one.group_type),
                ]
        request = RequestFields("ListGroups", {"states_filter": list(states), "types_filter": list(types)}, since(first))
        outcome = f"{sum(counts)} of {sum(map(exists, state.groups))}"
        return MoveResult(state, _exchange(request, [Error.NONE], constraints)._replace(outcome=outcome))

    return Move(f"list.{name}", words, handle_list_groups, APART, take)


def _find(name: str, words: str, key_type: int, numbers: tuple[int, ...]) -> Move:
    def take(protocol: BrokerProtocol, state: TwoGroups) -> MoveResult | None:
        error = check_coordinator_key(key_type)
        constraints: list[Constraint] = [equals("coordinators[#]", len(numbers))]
        for number in dict.fromkeys(numbers):
            where = f"coordinators[key=@{GROUPS[number].name}]"
            answer = find_coordinator((SELF,), FindCoordinatorRequest(NAMES[number]))
            own = error if error != Error.NONE else answer.error
            constraints.append(equals(f"{where}.error_code", own.value))
            if own == Error.NONE:
                constraints += [
                    equals(f"{where}.node_id", Hole("broker_id")),
                    NotEmpty(f"{where}.host"),
                    NotEmpty(f"{where}.port"),
                ]
        fields = {"key_type": key_type, "coordinator_keys": [GROUPS[number] for number in numbers]}
        return MoveResult(state, _exchange(RequestFields("FindCoordinator", fields, since(4)), [error], constraints))

    handler: Callable[..., Any] = find_coordinator if key_type == 0 else check_coordinator_key
    return Move(f"find.{name}", words, handler, APART, take)


def _find_one(name: str, words: str, key_type: int) -> Move:
    """The coordinator of one group, in versions that ask for one."""

    def take(protocol: BrokerProtocol, state: TwoGroups) -> MoveResult | None:
        error = check_coordinator_key(key_type)
        constraints: list[Constraint] = [equals("error_code", error.value)]
        if error == Error.NONE:
            constraints += [equals("node_id", Hole("broker_id")), NotEmpty("host"), NotEmpty("port")]
        request = RequestFields("FindCoordinator", {"key": GROUP_HOLE, "key_type": key_type}, ONE_KEY)
        return MoveResult(state, _exchange(request, [error], constraints))

    return Move(f"find.{name}", words, find_coordinator if key_type == 0 else check_coordinator_key, APART, take)


def _setup(state: TwoGroups, holes: frozenset[str]) -> tuple[Exchange, ...]:
    nodes = RequestFields("Metadata", {"topics": [], "allow_auto_topic_creation": False}, since(1))
    known = (Exchange(nodes, "known", kept=(("broker_id", "brokers[0].node_id"),)),) if "broker_id" in holes else ()
    topic = (create_topic(TOPIC, partitions=PARTITIONS), look_up_topic(), wait_for_leader(), wait_for_leader(1))
    return (*known, *(topic if "topic" in holes else ()), *group_ready())


TOO_LONG = "m" * (COORDINATOR.settings.max_metadata_size + 1)
FIRST, SECOND = OffsetInRequest(0, 5, 3, "first"), OffsetInRequest(1, 7)
ALL_OFFSETS = _fetch("of-both-groups", "ask for all offsets of both groups", (0, None), (1, None))
SEVERAL_GROUPS = Subject(
    "several-groups",
    "requests about two groups, and about two partitions of a group",
    TwoGroups(),
    (
        _commit("both", "commit offsets of two partitions", 0, FIRST, SECOND),
        _commit("back", "commit a lower offset of one partition", 0, OffsetInRequest(0, 2)),
        _commit("other-group", "commit an offset for the other group", 1, OffsetInRequest(0, 9, metadata="other")),
        _commit(
            "missing-first", "commit for a partition that there is not, and for one", 0, OffsetInRequest(FAR, 1), SECOND
        ),
        _commit("missing-last", "commit for a partition, and for one that there is not", 0, FIRST, OffsetInRequest(FAR, 1)),
        _commit(
            "one-too-long",
            "commit for two partitions, too much metadata for the first",
            0,
            OffsetInRequest(0, 6, metadata=TOO_LONG),
            SECOND,
        ),
        _commit(
            "largest",
            "commit the largest offset and leader epoch that there are, and an offset of 2^31",
            0,
            OffsetInRequest(0, LARGEST_OFFSET, LARGEST_EPOCH),
            OffsetInRequest(1, 2**31),
        ),
        _commit("none", "commit offset -1, and no offset", 0, OffsetInRequest(0, UNKNOWN_OFFSET), OffsetInRequest(1, 0)),
        ALL_OFFSETS,
        _fetch("of-both-partitions", "ask for the group's offsets of both partitions", (0, (1, 0))),
        _fetch("of-no-partition", "ask for the group's offsets of no topic", (0, ())),
        _fetch("of-missing", "ask for the offset of a partition, and of one that there is not", (0, (FAR, 1))),
        _fetch("of-two", "ask for one offset of each group", (1, (0,)), (0, (0,))),
        _forget("both", "delete the offsets of both partitions", 0, 1),
        _forget("one", "delete the offset of the second partition", 1),
        _forget("missing-first", "delete the offsets of a partition that there is not, and of one", FAR, 0),
        _describe("both", "describe both groups", 0, 1),
        _describe("twice", "describe a group twice, and the other one", 0, 1, 0),
        _describe("none", "describe no groups"),
        _list("all", "list all groups", (), (), 0),
        _list("empty", "list groups that are empty", ("Empty",), (), 4),
        _list("stable-or-dead", "list groups that are stable, or dead", ("Stable", "Dead"), (), 4),
        _list("classic", "list classic groups", (), ("Classic",), 5),
        _list("consumer", "list consumer groups", (), ("consumer",), 5),
        _delete(),
        _find("both", "look for the coordinator of both groups", 0, (0, 1)),
        _find("twice", "look for the coordinator of a group twice", 0, (0, 0)),
        _find("none", "look for the coordinator of no group", 0, ()),
        _find_one("old", "look for the coordinator of a group, in a version for one", 0),
        _find("of-nothing", "look for the coordinator of what there is not", 9, (0, 1)),
    ),
    _setup,
    {"groups": 2, "partitions": PARTITIONS},
    looks=(ALL_OFFSETS,),
)
