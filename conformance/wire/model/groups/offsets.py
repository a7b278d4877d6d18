"""Offsets that a group commits, fetches and forgets: by its members, and by clients that are in no group."""

from typing import Any

from kspec.conformance.wire.exchange import Constraint, Exchange, RequestFields, equals
from kspec.conformance.wire.model.groups.group import (
    COORDINATOR,
    GROUP,
    GROUP_HOLE,
    LOADED,
    NEW_COORDINATOR,
    START,
    UNKNOWN_MEMBER,
    GroupAndClients,
    group_ready,
    on_wire,
    replied_exchange,
)
from kspec.conformance.wire.model.groups.members import DELETE, DESCRIBE, JOIN_NEW, JOIN_OWN, LEAVE_OWN, MEMBERS, SYNC_OWN
from kspec.conformance.wire.model.partition import CURRENT, topic_ready
from kspec.conformance.wire.model.partition import on_wire as epoch_on_wire
from kspec.conformance.wire.model.requests import TOPIC, TOPIC_ID, since
from kspec.conformance.wire.model.restarts import after_restart, plain_restart
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.group import GroupState, exists
from kspec.spec.coordinator.joining import handle_join_group
from kspec.spec.coordinator.offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, OffsetToCommit
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.values import NO_EPOCH, NO_GENERATION, NO_MEMBER_ID, Error, Generation, MemberId, Offset

RESUMES = "a group goes on where it has committed, and only its present members commit"
MOST_OFFSET = 2
MOST_GENERATIONS = 2
LONGEST_METADATA = COORDINATOR.settings.max_metadata_size
WITH_EPOCH, REPORTING_MISSING = 6, 9
"""The first version of OffsetCommit with a leader epoch, and the first with an error for a missing group."""

TOO_MANY_PAIRS = "\U0001d11e" * (LONGEST_METADATA // 2) + "m"
"""Metadata is counted in units of two bytes, of which letters like this one have two."""

ANY_WITH_EPOCH = since(WITH_EPOCH)
WITHOUT_EPOCH, WITHOUT_REPORT = Versions(2, WITH_EPOCH - 1), Versions(WITH_EPOCH, REPORTING_MISSING - 1)

WHERE = "topics[0].partitions[0]"


def _next_offset(state: GroupAndClients) -> Offset | None:
    committed = max((record.offset for record in state.group.offsets), default=0)
    return Offset(committed + 1) if committed < MOST_OFFSET else None


def _commit(
    name: str, words: str, who: str, ahead: int | None, metadata: str = "", versions: Versions = ANY_WITH_EPOCH
) -> Move:
    """`ahead`: how far the generation is from the group's; none for a client that is in no group.

    A version without a leader epoch commits none. A version without an error for a missing group is asked where there is
    no group, as the others behave alike.
    """
    has_epoch = versions.first >= WITH_EPOCH
    reports_missing = versions.last >= REPORTING_MISSING

    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        offset, member = _next_offset(state), _member(state, who)
        if offset is None or member is None or "A" in state.waiting:
            return None
        if not reports_missing and has_epoch and exists(state.group):
            return None
        generation = NO_GENERATION if ahead is None else Generation(state.group.generation + ahead)
        epoch = CURRENT if has_epoch else NO_EPOCH
        commit = OffsetToCommit("topic", 0, offset, epoch, metadata)
        request = OffsetCommitRequest(GROUP, (commit,), generation, member, reports_missing_group=reports_missing)
        partition = {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": epoch_on_wire(epoch),
            "committed_metadata": metadata,
        }
        fields = {
            "group_id": GROUP_HOLE,
            "generation_id_or_member_epoch": generation,
            "member_id": on_wire(member),
            "topics": [{"name": TOPIC, "topic_id": TOPIC_ID, "partitions": [partition]}],
        }
        step = handle_offset_commit(COORDINATOR, state.group, request, START)
        taken = replied_exchange(state, "A", RequestFields("OffsetCommit", fields, versions), step, _committed)
        if taken.exchange.error == Error.GROUP_ID_NOT_FOUND:
            newer = taken.exchange.request._replace(versions=since(REPORTING_MISSING))
            # 3.9.2 answers ILLEGAL_GENERATION in all versions, as its coordinator of that time does
            return MoveResult(taken.state, taken.exchange._replace(request=newer, since=NEW_COORDINATOR))
        return taken

    return Move(f"commit.{name}", words, handle_offset_commit, RESUMES, take)


def _member(state: GroupAndClients, who: str) -> MemberId | None:
    if who == "nobody":
        return NO_MEMBER_ID
    if who == "unknown":
        return UNKNOWN_MEMBER
    ids = state.ids_of("A")
    return ids[-1] if ids else None


def _committed(answer: OffsetCommitResponse) -> tuple[Error, tuple[Constraint, ...]]:
    error = answer.partitions[0].error
    return error, (equals(f"{WHERE}.error_code", error.value),)


def _fetch(name: str, words: str, wanted: tuple[OffsetFetchPartition, ...] | None) -> Move:
    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        if "A" in state.waiting:
            return None
        step = handle_offset_fetch(COORDINATOR, state.group, OffsetFetchRequest(GROUP, wanted), START)
        old: list[dict[str, Any]] | None = None
        new: list[dict[str, Any]] | None = None
        if wanted is not None:
            old = [{"name": TOPIC, "partition_indexes": [one.partition for one in wanted]}]
            new = [one | {"topic_id": TOPIC_ID} for one in old]
        fields = {"group_id": GROUP_HOLE, "topics": old, "groups": [{"group_id": GROUP_HOLE, "topics": new}]}
        taken = replied_exchange(state, "A", RequestFields("OffsetFetch", fields, since(2)), step, _fetched)
        found = any(record.offset >= 0 for record in state.group.offsets)
        without_epoch = any(record.leader_epoch == NO_EPOCH for record in state.group.offsets)
        outcome = "an offset without epoch" if without_epoch else "an offset" if found else "none"
        return MoveResult(taken.state, taken.exchange._replace(outcome=outcome))

    return Move(f"offsets.{name}", words, handle_offset_fetch, RESUMES, take)


def _fetched(answer: OffsetFetchResponse) -> tuple[Error, tuple[Constraint, ...]]:
    found: list[Constraint] = []
    for prefix in ("", "groups[0]."):
        found += [
            equals(f"{prefix}error_code", answer.error.value),
            equals(f"{prefix}topics[#]", int(bool(answer.partitions))),
        ]
        for number, one in enumerate(answer.partitions):
            where = f"{prefix}topics[0].partitions[{number}]"
            found += [
                equals(f"{where}.error_code", one.error.value),
                equals(f"{where}.committed_offset", one.offset),
                equals(f"{where}.committed_leader_epoch", epoch_on_wire(one.leader_epoch)),
                equals(f"{where}.metadata", one.metadata),
            ]
    return answer.error, tuple(found)


def _forget() -> Move:
    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        request = OffsetDeleteRequest(GROUP, (OffsetFetchPartition("topic", 0),))
        step = handle_offset_delete(COORDINATOR, state.group, request, START)
        fields = {"group_id": GROUP_HOLE, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]}
        return replied_exchange(state, "C", RequestFields("OffsetDelete", fields), step, _forgotten)

    return Move("offsets.delete", "delete the group's offset of the partition", handle_offset_delete, RESUMES, take)


def _forgotten(answer: OffsetDeleteResponse) -> tuple[Error, tuple[Constraint, ...]]:
    if answer.error != Error.NONE:
        return answer.error, (equals("error_code", answer.error.value),)
    inside = answer.partitions[0].error
    return inside, (equals("error_code", 0), equals(f"{WHERE}.error_code", inside.value))


def _setup(state: GroupAndClients, holes: frozenset[str]) -> tuple[Exchange, ...]:
    return (*topic_ready((), holes), *group_ready())


def _few(move: Move) -> Move:
    """The move, within the bounds of this subject."""

    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        many = state.group.generation >= MOST_GENERATIONS - 1 or len(state.ids_of("A")) > 1
        return None if many and move.name.startswith("join") else move.take(protocol, state)

    return move._replace(take=take)


PARTITION = (OffsetFetchPartition("topic", 0),)
COMMIT_ALONE = _commit("alone", "a client that is in no group commits", "nobody", None)
OFFSETS_OF_PARTITION = _fetch("of-partition", "ask for the group's offset of the partition", PARTITION)
OFFSETS_OF_ALL = _fetch("all", "ask for all offsets of the group", None)
OFFSETS = Subject(
    "offsets",
    "offsets that a group commits, fetches and forgets",
    GroupAndClients(),
    (
        COMMIT_ALONE,
        _commit("without-epoch", "a client that is in no group commits no epoch", "nobody", None, versions=WITHOUT_EPOCH),
        _commit("own", "a member commits", "own", 0),
        _commit("own.old", "a member commits by an older request", "own", 0, versions=WITHOUT_REPORT),
        _commit("newer", "a member commits in a later generation", "own", 1),
        _commit("older", "a member commits in an earlier generation", "own", -1),
        _commit("unknown", "a member commits that nobody knows", "unknown", 0),
        _commit("metadata", "a client commits with as much metadata as it may", "nobody", None, "m" * LONGEST_METADATA),
        _commit("much-metadata", "a client commits with too much metadata", "nobody", None, "m" * (LONGEST_METADATA + 1)),
        _commit(
            "wide-metadata",
            "a client commits as many letters of two bytes as it may",
            "nobody",
            None,
            "ö" * LONGEST_METADATA,
        ),
        _commit("paired-metadata", "a client commits letters of two units, one too many", "nobody", None, TOO_MANY_PAIRS),
        OFFSETS_OF_PARTITION,
        OFFSETS_OF_ALL,
        _forget(),
        *map(_few, (JOIN_NEW, JOIN_OWN, SYNC_OWN, LEAVE_OWN)),
        DESCRIBE,
        DELETE,
    ),
    _setup,
    {"offset": MOST_OFFSET, "generations": MOST_GENERATIONS - 1},
)


def _is_stored(state: GroupAndClients) -> bool:
    """Whether all of the group is in its log: a member is, once the group has an assignment."""
    group = state.group
    return not group.pending and group.state in (GroupState.EMPTY, GroupState.STABLE)


STORED = "a group is after a restart what it was before"
OFFSETS_AGAIN = after_restart(
    OFFSETS,
    plain_restart(handle_offset_commit, STORED, _is_stored, LOADED),
    before=("commit.alone", "commit.without-epoch", "commit.metadata", "offsets.delete", "delete"),
    after=("offsets.of-partition", "offsets.all", "describe"),
)
MEMBERS_AGAIN = after_restart(
    MEMBERS,
    plain_restart(handle_join_group, STORED, _is_stored, LOADED),
    before=("join.new.A", "join.own.A", "sync.own.A"),
    after=("heartbeat.own.A", "heartbeat.older", "sync.own.A", "describe"),
)
