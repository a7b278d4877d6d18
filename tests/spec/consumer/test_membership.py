"""A consumer as a member: what it asks, what it gives up and when, and what each answer makes of it."""

from dataclasses import replace

import pytest

from kspec.spec.consumer.handlers import (
    commit_of,
    handle_heartbeat_response,
    handle_join_group_response,
    handle_offset_commit_response,
    handle_sync_group_response,
    heartbeat_of,
    on_leave,
    on_no_answer,
    on_poll,
)
from kspec.spec.consumer.membership import (
    AddPartitions,
    AskCoordinator,
    Fail,
    ForgetCoordinator,
    GroupMembership,
    LosePartitions,
    MemberEffect,
    MemberGeneration,
    MembershipState,
    MemberStep,
    RevokePartitions,
)
from kspec.spec.consumer.protocol import GroupConsumer
from kspec.spec.consumer.rules import COOPERATIVE, EAGER
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinedMember, JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, PartitionError
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from kspec.spec.values import NO_GENERATION, Error, Generation, GroupId, MemberId, Offset, RequestNumber

GROUP, ME, OTHER, NUMBER = GroupId("g"), MemberId("me"), MemberId("other"), RequestNumber(7)
CONSUMER = GroupConsumer(EAGER, GROUP, "topic")
COOPERATES = GroupConsumer(COOPERATIVE, GROUP, "topic")
PROTOCOLS = (GroupProtocol("range", b"topics"),)
FIRST = MemberGeneration(Generation(1), ME, "range")
NOBODY = MemberGeneration()
OWNED = frozenset({0, 1})
STABLE = GroupMembership(MembershipState.STABLE, FIRST, OWNED, rejoin_needed=False)
JOINING = GroupMembership(MembershipState.PREPARING_REBALANCE, is_prepared=True, is_joining=True)
SYNCING = JOINING._replace(state=MembershipState.COMPLETING_REBALANCE, generation=FIRST)


def join_answered(member: GroupMembership, response: JoinGroupResponse) -> MemberStep:
    def assign(members: tuple[JoinedMember, ...]) -> tuple[MemberAssignment, ...]:
        return tuple(MemberAssignment(one.member_id, one.metadata) for one in members)

    return handle_join_group_response(CONSUMER, member, member.generation, response, assign, NUMBER)


def sync_answered(member: GroupMembership, response: SyncGroupResponse, consumer: GroupConsumer = CONSUMER) -> MemberStep:
    return handle_sync_group_response(consumer, member, member.generation, response, frozenset)


def the_request(effects: tuple[MemberEffect, ...]) -> object:
    (request,) = [effect.request for effect in effects if isinstance(effect, AskCoordinator)]
    return request


# ---- joining


def test_a_consumer_joins_when_it_first_polls_and_asks_once() -> None:
    state, effects = on_poll(CONSUMER, GroupMembership(), PROTOCOLS, NUMBER)
    assert state == JOINING
    request = the_request(effects)
    assert isinstance(request, JoinGroupRequest)
    assert (request.request, request.member_id, request.protocols) == (NUMBER, "", PROTOCOLS)
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (45_000, 300_000)
    assert on_poll(CONSUMER, state, PROTOCOLS, NUMBER) == (state, ())
    assert on_poll(CONSUMER, STABLE, PROTOCOLS, NUMBER) == (STABLE, ())


@pytest.mark.parametrize(
    ("consumer", "generation", "kept", "first"),
    [
        (CONSUMER, FIRST, frozenset(), RevokePartitions(OWNED)),
        (CONSUMER, NOBODY, frozenset(), LosePartitions(OWNED)),
        (COOPERATES, FIRST, OWNED, None),
        (COOPERATES, NOBODY, frozenset(), LosePartitions(OWNED)),
        (COOPERATES, MemberGeneration(NO_GENERATION, ME), frozenset(), LosePartitions(OWNED)),
    ],
)
def test_what_a_member_gives_up_before_it_joins_again(
    consumer: GroupConsumer, generation: MemberGeneration, kept: frozenset[int], first: MemberEffect | None
) -> None:
    before = STABLE._replace(generation=generation, rejoin_needed=True)
    state, effects = on_poll(consumer, before, PROTOCOLS, NUMBER)
    assert state.owned == kept
    assert effects[:-1] == (() if first is None else (first,))
    again = state._replace(is_joining=False)
    assert on_poll(consumer, again, PROTOCOLS, NUMBER).effects == effects[-1:], "it gives up once"


def test_the_leader_brings_all_assignments_and_a_follower_none() -> None:
    members = (JoinedMember(ME, None, b"a"), JoinedMember(OTHER, None, b"b"))
    response = JoinGroupResponse(Error.NONE, ME, Generation(1), "consumer", "range", ME, members)
    state, effects = join_answered(JOINING, response)
    assert state == SYNCING
    given = (MemberAssignment(ME, b"a"), MemberAssignment(OTHER, b"b"))
    assert the_request(effects) == SyncGroupRequest(NUMBER, GROUP, Generation(1), ME, None, "consumer", "range", given)
    follows = JoinGroupResponse(Error.NONE, ME, Generation(1), "consumer", "range", OTHER)
    request = the_request(join_answered(JOINING, follows).effects)
    assert request == SyncGroupRequest(NUMBER, GROUP, Generation(1), ME, None, "consumer", "range")
    skips = JoinGroupResponse(Error.NONE, ME, Generation(1), "consumer", "range", ME, members, skip_assignment=True)
    assert the_request(join_answered(JOINING, skips).effects) == request


def test_a_generation_that_begins_too_late_is_joined_anew() -> None:
    left = GroupMembership()._replace(is_joining=True)
    response = JoinGroupResponse(Error.NONE, ME, Generation(1), "consumer", "range", OTHER)
    assert join_answered(left, response) == (GroupMembership(), ())


def test_a_new_member_joins_again_with_the_id_that_it_is_told() -> None:
    state, effects = join_answered(JOINING, JoinGroupResponse(Error.MEMBER_ID_REQUIRED, ME))
    assert (state.generation, state.is_joining, effects) == (MemberGeneration(NO_GENERATION, ME), False, ())
    request = the_request(on_poll(CONSUMER, state, PROTOCOLS, NUMBER).effects)
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == ME


def test_an_id_that_is_not_known_is_forgotten_unless_there_is_another_by_now() -> None:
    rejoining = JOINING._replace(generation=FIRST, owned=OWNED)
    response = JoinGroupResponse(Error.UNKNOWN_MEMBER_ID)
    forgotten = join_answered(rejoining, response).state
    assert (forgotten.generation, forgotten.state, forgotten.is_prepared) == (NOBODY, MembershipState.UNJOINED, False)
    late = handle_join_group_response(CONSUMER, rejoining, NOBODY, response, lambda members: (), NUMBER)
    assert late == (rejoining._replace(is_joining=False), ())


@pytest.mark.parametrize(
    ("error", "effects"),
    [
        (Error.COORDINATOR_LOAD_IN_PROGRESS, ()),
        (Error.REBALANCE_IN_PROGRESS, ()),
        (Error.NOT_COORDINATOR, (ForgetCoordinator(),)),
        (Error.COORDINATOR_NOT_AVAILABLE, (ForgetCoordinator(),)),
        (Error.GROUP_MAX_SIZE_REACHED, (Fail(Error.GROUP_MAX_SIZE_REACHED),)),
        (Error.FENCED_INSTANCE_ID, (Fail(Error.FENCED_INSTANCE_ID),)),
    ],
)
def test_errors_of_joining_and_of_syncing(error: Error, effects: tuple[MemberEffect, ...]) -> None:
    assert join_answered(JOINING, JoinGroupResponse(error)) == (JOINING._replace(is_joining=False), effects)
    assert sync_answered(SYNCING, SyncGroupResponse(error)) == (
        SYNCING._replace(is_joining=False, rejoin_needed=True),
        effects,
    )


def test_an_assignment_makes_a_member_stable() -> None:
    state, effects = sync_answered(SYNCING, SyncGroupResponse(Error.NONE, assignment=bytes([0, 1])))
    assert (state, effects) == (STABLE, (AddPartitions(OWNED),))
    assert sync_answered(SYNCING, SyncGroupResponse(Error.NONE)) == (STABLE._replace(owned=frozenset()), ())


def test_a_cooperative_member_gives_up_what_is_not_assigned_and_joins_again() -> None:
    before = SYNCING._replace(owned=OWNED)
    state, effects = sync_answered(before, SyncGroupResponse(Error.NONE, assignment=bytes([1, 2])), COOPERATES)
    assert state == STABLE._replace(owned=frozenset({1, 2}), rejoin_needed=True)
    assert effects == (RevokePartitions(frozenset({0})), AddPartitions(frozenset({2})))


def test_an_assignment_for_a_generation_that_is_over_does_not_count() -> None:
    out = SYNCING._replace(generation=NOBODY, state=MembershipState.UNJOINED)
    assert sync_answered(out, SyncGroupResponse(Error.NONE, assignment=b"\0")) == (out._replace(is_joining=False), ())


@pytest.mark.parametrize(("error", "kept"), [(Error.ILLEGAL_GENERATION, ME), (Error.UNKNOWN_MEMBER_ID, "")])
def test_a_member_that_is_out_keeps_its_id_as_long_as_that_is_known(error: Error, kept: str) -> None:
    state = sync_answered(SYNCING, SyncGroupResponse(error)).state
    assert (state.generation, state.state) == (MemberGeneration(NO_GENERATION, MemberId(kept)), MembershipState.UNJOINED)
    later = SYNCING._replace(generation=FIRST._replace(generation=Generation(2)))
    stays = handle_sync_group_response(CONSUMER, later, FIRST, SyncGroupResponse(error), frozenset)
    assert stays == (later._replace(is_joining=False), ())


def test_a_broken_connection_ends_the_joining_and_nothing_else() -> None:
    assert on_no_answer(JOINING) == (JOINING._replace(is_joining=False), (ForgetCoordinator(),))
    assert on_no_answer(STABLE) == (STABLE, (ForgetCoordinator(),))


# ---- in a generation


def test_heartbeats_are_sent_in_a_generation() -> None:
    expected = HeartbeatRequest(GROUP, Generation(1), ME)
    assert (heartbeat_of(CONSUMER, STABLE), heartbeat_of(CONSUMER, SYNCING)) == (expected, expected)
    assert heartbeat_of(CONSUMER, JOINING) is None
    assert heartbeat_of(CONSUMER, GroupMembership()) is None


@pytest.mark.parametrize(
    ("error", "state", "effects"),
    [
        (Error.NONE, STABLE, ()),
        (Error.REBALANCE_IN_PROGRESS, STABLE._replace(rejoin_needed=True), ()),
        (Error.NOT_COORDINATOR, STABLE, (ForgetCoordinator(),)),
        (
            Error.ILLEGAL_GENERATION,
            GroupMembership(generation=MemberGeneration(NO_GENERATION, ME), owned=OWNED),
            (),
        ),
        (Error.UNKNOWN_MEMBER_ID, GroupMembership(owned=OWNED), ()),
        (Error.FENCED_INSTANCE_ID, GroupMembership(owned=OWNED), (Fail(Error.FENCED_INSTANCE_ID),)),
        (Error.UNKNOWN_SERVER_ERROR, STABLE, ()),
    ],
)
def test_answers_to_a_heartbeat(error: Error, state: GroupMembership, effects: tuple[MemberEffect, ...]) -> None:
    assert handle_heartbeat_response(CONSUMER, STABLE, FIRST, HeartbeatResponse(error)) == (state, effects)


def test_a_late_heartbeat_changes_nothing() -> None:
    for error in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID):
        assert handle_heartbeat_response(CONSUMER, STABLE, NOBODY, HeartbeatResponse(error)) == (STABLE, ())
    assert handle_heartbeat_response(CONSUMER, SYNCING, FIRST, HeartbeatResponse(Error.REBALANCE_IN_PROGRESS)) == (
        SYNCING,
        (),
    )


def commit_answered(member: GroupMembership, error: Error, sent_in: MemberGeneration = FIRST) -> MemberStep:
    response = OffsetCommitResponse((PartitionError("topic", 0, Error.NONE), PartitionError("topic", 1, error)))
    return handle_offset_commit_response(CONSUMER, member, sent_in, response)


def test_a_stable_member_commits_in_its_generation() -> None:
    request = commit_of(CONSUMER, STABLE, 1, Offset(5))
    assert isinstance(request, OffsetCommitRequest)
    assert (request.generation, request.member_id, request.offsets[0].offset) == (1, ME, 5)
    assert commit_of(CONSUMER, SYNCING, 1, Offset(5)) is None


@pytest.mark.parametrize(
    ("error", "state", "effects"),
    [
        (Error.NONE, STABLE, ()),
        (Error.NOT_COORDINATOR, STABLE, (ForgetCoordinator(),)),
        (Error.REQUEST_TIMED_OUT, STABLE, (ForgetCoordinator(),)),
        (Error.REBALANCE_IN_PROGRESS, STABLE._replace(rejoin_needed=True), ()),
        (Error.UNKNOWN_MEMBER_ID, GroupMembership(owned=OWNED), ()),
        (Error.FENCED_INSTANCE_ID, STABLE, (Fail(Error.FENCED_INSTANCE_ID),)),
        (Error.OFFSET_METADATA_TOO_LARGE, STABLE, ()),
    ],
)
def test_answers_to_a_commit(error: Error, state: GroupMembership, effects: tuple[MemberEffect, ...]) -> None:
    assert commit_answered(STABLE, error) == (state, effects)


def test_a_refused_commit_of_an_earlier_generation_counts_unless_the_member_joins() -> None:
    joins = JOINING._replace(generation=FIRST)
    assert commit_answered(joins, Error.ILLEGAL_GENERATION, NOBODY) == (joins, ())
    assert commit_answered(STABLE, Error.ILLEGAL_GENERATION, NOBODY).state.state == MembershipState.UNJOINED
    assert commit_answered(STABLE, Error.FENCED_INSTANCE_ID, NOBODY) == (STABLE, ())


# ---- leaving


def test_a_member_that_leaves_tells_the_coordinator_if_that_knows_it() -> None:
    leaves = AskCoordinator(LeaveGroupRequest(GROUP, (MemberIdentity(ME),)))
    assert on_leave(CONSUMER, STABLE) == (GroupMembership(), (RevokePartitions(OWNED), leaves))
    assert on_leave(COOPERATES, SYNCING._replace(owned=OWNED)) == (GroupMembership(), (LosePartitions(OWNED), leaves))
    assert on_leave(CONSUMER, GroupMembership()) == (GroupMembership(), ())
    out = GroupMembership(generation=MemberGeneration(NO_GENERATION, ME), owned=OWNED)
    assert on_leave(CONSUMER, out) == (GroupMembership(), (LosePartitions(OWNED),))


def test_a_static_member_names_its_instance_and_leaves_without_a_word() -> None:
    static = replace(CONSUMER, instance_id="one")
    joins = the_request(on_poll(static, GroupMembership(), PROTOCOLS, NUMBER).effects)
    response = JoinGroupResponse(Error.NONE, ME, Generation(1), "consumer", "range", OTHER)
    syncs = the_request(handle_join_group_response(static, JOINING, NOBODY, response, lambda members: (), NUMBER).effects)
    requests = (joins, syncs, heartbeat_of(static, STABLE), commit_of(static, STABLE, 1, Offset(5)))
    assert [getattr(request, "instance_id", None) for request in requests] == ["one"] * 4
    assert on_leave(static, STABLE) == (GroupMembership(), (RevokePartitions(OWNED),))
