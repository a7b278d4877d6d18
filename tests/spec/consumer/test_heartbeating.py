"""A consumer of a consumer group (KIP-848): what its heartbeats tell, how it reconciles, what each answer makes of it."""

import pytest

from kspec.spec.consumer.membership import (
    AddPartitions,
    AskCoordinator,
    Fail,
    ForgetCoordinator,
    LosePartitions,
    RevokePartitions,
)
from kspec.spec.consumer.modern.handlers import (
    commit_in_epoch,
    fetch_in_epoch,
    handle_consumer_heartbeat_response,
    is_reconciled,
    on_heartbeat_due,
    on_leave_of_consumer,
    on_no_heartbeat_answer,
    on_reconciliation,
    on_revoked,
    on_subscribe,
    places_of,
)
from kspec.spec.consumer.modern.membership import ConsumerEffect, ConsumerMembership, ConsumerMemberState
from kspec.spec.consumer.modern.protocol import HEARTBEATS, HEARTBEATS_NEXT, HeartbeatingConsumer, HeartbeatProtocol
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNCHANGED_MS,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.values import Error, GroupEpoch, GroupId, MemberId, Offset, TopicId

GROUP, ME, TOPIC_ID = GroupId("g"), MemberId("me"), TopicId(bytes(15) + b"\1")
CONSUMER = HeartbeatingConsumer(HEARTBEATS, GROUP, "topic", TOPIC_ID)
OWNED = frozenset({0, 1})
S = ConsumerMemberState
STABLE = ConsumerMembership(S.STABLE, ME, GroupEpoch(5), OWNED, OWNED, OWNED, is_told=True, is_acknowledged=True)
OUT = ConsumerMembership(member_id=ME)
JOINS = on_subscribe(OUT).state


def asked(member: ConsumerMembership, consumer: HeartbeatingConsumer = CONSUMER) -> ConsumerGroupHeartbeatRequest:
    (effect,) = on_heartbeat_due(consumer, member).effects
    match effect:
        case AskCoordinator(ConsumerGroupHeartbeatRequest() as request):
            return request
    raise AssertionError(effect)


def answered(member: ConsumerMembership, epoch: int, *assigned: int, news: bool = True) -> ConsumerMembership:
    assignment = places_of(CONSUMER, frozenset(assigned)) if news else None
    response = ConsumerGroupHeartbeatResponse(Error.NONE, ME, GroupEpoch(epoch), 1, assignment)
    state, effects = handle_consumer_heartbeat_response(CONSUMER, member, response)
    assert effects == ()
    return state


def test_who_joins_tells_all_and_owns_nothing() -> None:
    assert ConsumerMembership(S.JOINING, ME) == JOINS
    assert on_subscribe(STABLE).state == STABLE
    request = asked(JOINS)
    assert request.member_epoch == 0
    assert (request.owned, request.topics) == (frozenset(), frozenset({"topic"}))
    assert request.rebalance_timeout_ms == CONSUMER.rebalance_timeout_ms
    assert on_heartbeat_due(CONSUMER, OUT) == (OUT, ())


def test_who_has_no_id_is_told_one_and_keeps_it() -> None:
    nameless = on_subscribe(ConsumerMembership()).state
    assert (asked(nameless).requires_member_id, asked(JOINS).requires_member_id) == (False, True)
    assert answered(nameless, 1).member_id == ME


def test_it_reconciles_step_by_step_and_acknowledges_what_it_has() -> None:
    told = on_heartbeat_due(CONSUMER, JOINS).state
    assigned = answered(told, 1, 0, 1)
    assert (assigned.state, assigned.epoch, assigned.owned) == (S.RECONCILING, 1, frozenset())
    begun, effects = on_reconciliation(assigned)
    assert effects == ()
    assert on_reconciliation(begun) == (begun, ())
    owning, effects = on_revoked(begun)
    assert effects == (AddPartitions(OWNED),)
    assert (owning.state, owning.owned) == (S.ACKNOWLEDGING, OWNED)
    assert on_revoked(owning) == (owning, ())
    request = asked(owning)
    assert (request.owned, request.topics, request.rebalance_timeout_ms) == (places_of(CONSUMER, OWNED), None, UNCHANGED_MS)
    stable = on_heartbeat_due(CONSUMER, owning).state
    assert (stable.state, asked(stable).owned) == (S.STABLE, None)
    assert answered(stable, 1, news=False) == stable
    assert answered(stable, 1, 0, 1) == stable


def test_it_gives_up_before_it_takes_up() -> None:
    assigned = answered(STABLE, 6, 1, 2)
    begun, effects = on_reconciliation(assigned)
    assert effects == (RevokePartitions(frozenset({0})),)
    assert (begun.owned, begun.in_progress, asked(begun).owned) == (frozenset({1}), frozenset({1, 2}), None)
    owning, effects = on_revoked(begun)
    assert (owning.owned, effects) == (frozenset({1, 2}), (AddPartitions(frozenset({2})),))
    assert on_reconciliation(owning) == (owning, ())


def test_an_assignment_that_comes_meanwhile_is_taken_up_afterwards() -> None:
    begun = on_reconciliation(answered(STABLE, 6, 1, 2)).state
    later = answered(begun, 7, 1)
    owning = on_revoked(later).state
    assert owning.owned == {1, 2}
    again = on_heartbeat_due(CONSUMER, owning).state
    assert again.state == S.RECONCILING
    assert on_reconciliation(again).state.owned == {1}


def test_one_that_changes_back_leaves_nothing_to_do() -> None:
    away = answered(STABLE, 6, 1)
    back = answered(away, 7, 0, 1)
    assert back == STABLE._replace(epoch=GroupEpoch(7))
    assert is_reconciled(back)
    assert on_reconciliation(back._replace(state=S.RECONCILING)).effects == ()
    acknowledging = STABLE._replace(state=S.ACKNOWLEDGING)
    assert answered(acknowledging, 5, 0, 1) == acknowledging


def test_a_lost_answer_is_followed_by_a_full_heartbeat() -> None:
    state, effects = on_no_heartbeat_answer(CONSUMER, STABLE)
    assert effects == (ForgetCoordinator(),)
    request = asked(state)
    assert (request.owned, request.topics) == (places_of(CONSUMER, OWNED), frozenset({"topic"}))
    forgetful = HeartbeatingConsumer(HeartbeatProtocol(tells_all_again=lambda refused: refused), GROUP, "topic")
    assert on_no_heartbeat_answer(forgetful, STABLE).state == STABLE


def test_a_full_heartbeat_while_it_reconciles_names_what_it_may_soon_own_once_repaired() -> None:
    begun = on_reconciliation(answered(STABLE, 6, 1, 2)).state
    lost = on_no_heartbeat_answer(CONSUMER, begun).state
    assert asked(lost).owned == places_of(CONSUMER, frozenset({0, 1}))
    repaired = HeartbeatingConsumer(HEARTBEATS_NEXT, GROUP, "topic", TOPIC_ID)
    assert asked(lost, repaired).owned == places_of(CONSUMER, frozenset({0, 1, 2}))


@pytest.mark.parametrize(
    ("error", "state", "effects"),
    [
        (Error.FENCED_MEMBER_EPOCH, JOINS, (LosePartitions(OWNED),)),
        (Error.UNKNOWN_MEMBER_ID, JOINS, (LosePartitions(OWNED),)),
        (Error.NOT_COORDINATOR, STABLE._replace(is_told=False, is_acknowledged=False), (ForgetCoordinator(),)),
        (Error.COORDINATOR_LOAD_IN_PROGRESS, STABLE._replace(is_told=False, is_acknowledged=False), ()),
        (
            Error.UNRELEASED_INSTANCE_ID,
            ConsumerMembership(S.FATAL, ME),
            (LosePartitions(OWNED), Fail(Error.UNRELEASED_INSTANCE_ID)),
        ),
    ],
)
def test_errors_of_a_heartbeat(error: Error, state: ConsumerMembership, effects: tuple[ConsumerEffect, ...]) -> None:
    response = ConsumerGroupHeartbeatResponse(error)
    assert handle_consumer_heartbeat_response(CONSUMER, STABLE, response) == (state, effects)
    assert handle_consumer_heartbeat_response(CONSUMER, OUT, response) == (OUT, ())


def test_who_owns_nothing_loses_nothing() -> None:
    fenced = ConsumerGroupHeartbeatResponse(Error.FENCED_MEMBER_EPOCH)
    assert handle_consumer_heartbeat_response(CONSUMER, JOINS, fenced) == (JOINS, ())
    refused = ConsumerGroupHeartbeatResponse(Error.GROUP_MAX_SIZE_REACHED)
    assert handle_consumer_heartbeat_response(CONSUMER, JOINS, refused).effects == (Fail(Error.GROUP_MAX_SIZE_REACHED),)


def test_leaving() -> None:
    state, effects = on_leave_of_consumer(CONSUMER, STABLE)
    leaves = ConsumerGroupHeartbeatRequest(GROUP, ME, LEAVE_EPOCH, requires_member_id=True)
    assert (state, effects) == (OUT, (RevokePartitions(OWNED), AskCoordinator(leaves)))
    assert on_leave_of_consumer(CONSUMER, OUT) == (OUT, ())
    static = HeartbeatingConsumer(HEARTBEATS, GROUP, "topic", TOPIC_ID, "i")
    away = ConsumerGroupHeartbeatRequest(GROUP, ME, STATIC_LEAVE_EPOCH, "i", requires_member_id=True)
    assert on_leave_of_consumer(static, JOINS).effects == (AskCoordinator(away),)


def test_offsets_are_committed_and_read_in_the_epoch() -> None:
    commit = commit_in_epoch(CONSUMER, STABLE, 1, Offset(7))
    assert commit is not None
    assert (commit.generation, commit.member_id, commit.offsets[0].offset) == (5, ME, 7)
    fetch = fetch_in_epoch(CONSUMER, STABLE, (0, 1), require_stable=True)
    assert fetch is not None
    assert (fetch.member_epoch, fetch.member_id, len(fetch.partitions or ())) == (5, ME, 2)
    for out in (OUT, JOINS):
        assert commit_in_epoch(CONSUMER, out, 1, Offset(7)) is None
        assert fetch_in_epoch(CONSUMER, out, (1,), require_stable=True) is None
