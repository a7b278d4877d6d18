"""Proposals of another ISR by a leader, and its reaction to the answer (rules E, A)."""

import pytest

from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.isr import consider_joining, consider_shrinking, handle_alter_partition_response
from kspec.spec.broker.partition import Broker, Partition
from kspec.spec.broker.roles import leave
from kspec.spec.broker.rules.followers import NEVER_FETCHED, Follower
from kspec.spec.broker.rules.isr.errors import (
    AfterError,
    give_up_if_invalid,
    never_roll_back,
    roll_back_always,
    roll_back_if_ineligible,
    roll_back_if_not_attempted,
)
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, maximal_isr, nothing_pending, roll_back
from kspec.spec.broker.rules.isr.request import WriteIsr, ask_for_isr_by_broker_epoch, members
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from kspec.spec.releases.broker import (
    BROKER_2_0,
    BROKER_2_7,
    BROKER_3_2,
    BROKER_3_3,
    BROKER_4_0,
    BROKER_NEXT,
    BROKER_RELEASES,
)
from kspec.spec.step import SendToController
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Epoch, Error, MonotonicMs, PartitionEpoch, PartitionId
from tests.spec.broker_driver import (
    EPOCH,
    EVERYBODY,
    LATE,
    NOW,
    OTHER,
    SELF,
    THIRD,
    broker,
    fetch_of,
    fetched,
    follower,
    leader,
    log_of,
    registered,
    run_of,
)

# ---- ISR: E1-E6, A1


def proposal(step: object) -> AlterPartitionRequest:
    (request,) = [effect.message for effect in step.effects if isinstance(effect, SendToController)]  # type: ignore[attr-defined]
    assert isinstance(request, AlterPartitionRequest)
    return request


def outsider(end: int = 2) -> Partition[RecordLog]:
    """ISR {1, 2}; broker 3 is outside. The epoch started at 2, the high watermark is 1."""
    ends = {OTHER: fetched(1, broker_epoch=run_of(OTHER)), THIRD: fetched(end)}
    return leader(log_of(4, 4, 5), 1, isr=(SELF, OTHER), follower_ends=ends, epoch_start=2)


def test_a_follower_asks_to_join_by_a_fetch_from_the_epoch_start_on() -> None:
    assert nothing_pending(handle_fetch(broker(), outsider(0), fetch_of(THIRD, 1), NOW).state.isr)
    step = handle_fetch(broker(), outsider(0), fetch_of(THIRD, 2), NOW)
    assert step.state.isr.isr == {SELF, OTHER}
    assert maximal_isr(step.state.isr) == set(EVERYBODY)
    members_ = {IsrMember(replica, run_of(replica)) for replica in EVERYBODY}
    assert proposal(step) == AlterPartitionRequest(
        SELF, run_of(SELF), PartitionId(0), EPOCH, PartitionEpoch(7), frozenset(members_)
    )


def test_up_to_2_0_the_high_watermark_is_enough() -> None:
    step = handle_fetch(broker(BROKER_2_0), outsider(0), fetch_of(THIRD, 1), NOW)
    (written,) = [effect for effect in step.effects if isinstance(effect, WriteIsr)]
    assert {member.broker for member in written.request.isr} == set(EVERYBODY)


def test_nobody_joins_while_a_proposal_is_pending_nor_a_member_nor_a_stranger() -> None:
    pending = handle_fetch(broker(), outsider(0), fetch_of(THIRD, 2), NOW).state
    assert consider_joining(broker(), pending, THIRD, NOW).effects == ()
    assert consider_joining(broker(), outsider(), OTHER, NOW).effects == ()
    assert consider_joining(broker(), outsider(), BrokerId(4), NOW).effects == ()


@pytest.mark.parametrize("changes", [{"fenced": True}, {"in_controlled_shutdown": True}])
def test_who_is_down_or_leaving_does_not_join(changes: dict[str, bool]) -> None:
    up = (registered(SELF), registered(OTHER), registered(THIRD, **changes))
    assert consider_joining(broker(brokers=up), outsider(), THIRD, NOW).effects == ()
    assert handle_fetch(broker(BROKER_3_2, brokers=up), outsider(0), fetch_of(THIRD, 2), NOW).state.isr.pending_isr


def test_below_min_isr_the_repaired_rule_keeps_a_slow_follower_out() -> None:
    """KAFKA-19996: the high watermark stands still, so the follower has reached it, but it is far behind."""
    partition = outsider(2)
    few = {protocol.name: broker(protocol, min_isr=3) for protocol in (BROKER_4_0, BROKER_NEXT)}
    state = fetched(2, broker_epoch=run_of(THIRD))
    slow = partition._replace(followers=(partition.followers[0], Follower(THIRD, state)))
    joins = {name: len(consider_joining(each, slow, THIRD, LATE).effects) for name, each in few.items()}
    assert joins == {"4.0": 1, "next": 0}


def test_who_falls_behind_is_dropped_when_the_controller_agrees() -> None:
    ends = {OTHER: fetched(3, broker_epoch=run_of(OTHER)), THIRD: fetched(2)}
    partition = leader(log_of(4, 4, 5), 2, follower_ends=ends)
    assert consider_shrinking(broker(), partition, MonotonicMs(10)) == (partition, ())
    step = consider_shrinking(broker(), partition, LATE)
    assert {member.broker for member in proposal(step).isr} == {SELF, OTHER}
    assert maximal_isr(step.state.isr) == step.state.isr.isr == set(EVERYBODY)
    assert consider_shrinking(broker(), step.state, LATE).effects == ()
    assert consider_shrinking(broker(), follower(log_of(5)), LATE).effects == ()


def test_what_a_request_says_of_the_members_by_release() -> None:
    followers = (
        Follower(OTHER, fetched(1, broker_epoch=BrokerEpoch(4))),
        Follower(THIRD, fetched(1, broker_epoch=NEVER_FETCHED)),
    )
    isr = frozenset({*EVERYBODY, BrokerId(9)})
    runs = {member.broker: member.broker_epoch for member in members(isr, SELF, BrokerEpoch(8), followers)}
    assert runs == {SELF: 8, OTHER: 4, THIRD: NO_BROKER_EPOCH, BrokerId(9): NO_BROKER_EPOCH}
    request = AlterPartitionRequest(
        SELF, run_of(SELF), PartitionId(0), EPOCH, PartitionEpoch(7), members(isr, SELF, BrokerEpoch(8), followers)
    )
    for protocol, understands in ((BROKER_2_7, False), (BROKER_3_3, True)):
        sent = protocol.asks_for_isr(request)
        assert isinstance(sent, SendToController)
        assert {member.broker_epoch for member in sent.message.isr} == {NO_BROKER_EPOCH}
        assert sent.message.understands_ineligible_replica == understands
    assert ask_for_isr_by_broker_epoch(request) == SendToController(request)


# ---- the answer: A6, A7


def pending_leader() -> tuple[Partition[RecordLog], AlterPartitionRequest]:
    step = handle_fetch(broker(), outsider(0), fetch_of(THIRD, 2), NOW)
    return step.state, proposal(step)


def granted(leader_epoch: int = EPOCH, partition_epoch: int = 8) -> AlterPartitionResponse:
    epochs = Epoch(leader_epoch), frozenset(EVERYBODY), PartitionEpoch(partition_epoch)
    return AlterPartitionResponse(Error.NONE, PartitionId(0), SELF, *epochs)


def test_a_grant_makes_the_isr_as_the_controller_says_and_the_high_watermark_may_move() -> None:
    partition, request = pending_leader()
    step = handle_alter_partition_response(broker(), partition, request, granted(), NOW)
    assert step.state.isr == LeaderIsr(frozenset(EVERYBODY), PartitionEpoch(8), frozenset(), PartitionEpoch(-1))
    under = leader(log_of(5), isr=(SELF, OTHER), follower_ends={OTHER: fetched(1), THIRD: fetched(0)})
    few = broker(min_isr=3)
    asked = handle_fetch(few, under, fetch_of(THIRD, 1), NOW)
    assert asked.state.local.high_watermark == 0
    taken = handle_alter_partition_response(few, asked.state, proposal(asked), granted(), NOW)
    assert taken.state.local.high_watermark == 1


@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(4, 8), (6, 8), (5, 6)])
def test_a_grant_of_another_epoch_or_an_older_state_is_ignored(leader_epoch: int, partition_epoch: int) -> None:
    partition, request = pending_leader()
    response = granted(leader_epoch, partition_epoch)
    answered = partition._replace(request_in_flight=False)
    assert handle_alter_partition_response(broker(), partition, request, response, NOW) == (answered, ())


def test_the_same_partition_epoch_is_taken() -> None:
    partition, request = pending_leader()
    step = handle_alter_partition_response(broker(), partition, request, granted(partition_epoch=7), NOW)
    assert step.state.isr.isr == set(EVERYBODY)


def test_an_answer_to_another_proposal_is_ignored() -> None:
    partition, request = pending_leader()
    other = request._replace(partition_epoch=PartitionEpoch(6))
    refused = AlterPartitionResponse(Error.INELIGIBLE_REPLICA, PartitionId(0))
    answered = partition._replace(request_in_flight=False)
    assert handle_alter_partition_response(broker(), partition, other, refused, NOW) == (answered, ())
    assert handle_alter_partition_response(broker(), outsider(), request, granted(), NOW) == (outsider(), ())


@pytest.mark.parametrize(
    ("error", "since_2_7", "since_3_1", "since_3_2", "since_3_3"),
    [
        (Error.FENCED_LEADER_EPOCH, "await", "await", "await", "await"),
        (Error.INVALID_UPDATE_VERSION, "await", "await", "await", "await"),
        (Error.UNKNOWN_TOPIC_OR_PARTITION, "await", "await", "await", "await"),
        (Error.OPERATION_NOT_ATTEMPTED, "retry", "roll", "roll", "roll"),
        (Error.INVALID_REQUEST, "retry", "retry", "await", "await"),
        (Error.INELIGIBLE_REPLICA, "retry", "retry", "retry", "roll"),
        (Error.NEW_LEADER_ELECTED, "retry", "retry", "retry", "await"),
        (Error.STALE_BROKER_EPOCH, "retry", "retry", "retry", "retry"),
        (Error.NOT_CONTROLLER, "retry", "retry", "retry", "retry"),
    ],
)
def test_what_an_error_means_by_release(
    error: Error, since_2_7: str, since_3_1: str, since_3_2: str, since_3_3: str
) -> None:
    words = {"await": AfterError.AWAIT_METADATA, "retry": AfterError.RETRY, "roll": AfterError.ROLL_BACK}
    assert never_roll_back(error) == words[since_2_7]
    assert roll_back_if_not_attempted(error) == words[since_3_1]
    assert give_up_if_invalid(error) == words[since_3_2]
    assert roll_back_if_ineligible(error) == words[since_3_3]
    assert roll_back_always(error) == AfterError.ROLL_BACK


def test_the_three_outcomes_of_an_error() -> None:
    partition, request = pending_leader()

    def after_error(error: Error, each: Broker = broker()) -> object:  # noqa: B008
        return handle_alter_partition_response(each, partition, request, AlterPartitionResponse(error, PartitionId(0)), NOW)

    assert after_error(Error.INELIGIBLE_REPLICA) == (outsider_after_fetch(), ())
    assert after_error(Error.FENCED_LEADER_EPOCH) == (partition._replace(request_in_flight=False), ())
    again = request._replace(broker_epoch=BrokerEpoch(77))
    restarted = broker(broker_epoch=BrokerEpoch(77))
    assert after_error(Error.STALE_BROKER_EPOCH, restarted) == (partition, (SendToController(again),))


def outsider_after_fetch() -> Partition[RecordLog]:
    """As `outsider`, once the fetch has counted and the proposal is taken back."""
    partition, _ = pending_leader()
    return partition._replace(isr=outsider().isr, request_in_flight=False)


@pytest.mark.parametrize(("release", "asks"), [("2.8", True), ("3.0", False), ("next", False)])
def test_one_request_in_flight_for_a_partition(release: str, asks: bool) -> None:
    """Metadata drop the proposal while its request is under way; the follower fetches again (since 3.0 nothing is sent)."""
    rules = next(known for known in BROKER_RELEASES if known.name == release)
    partition, request = pending_leader()
    dropped = partition._replace(isr=roll_back(partition.isr))
    own = broker()._replace(protocol=rules)
    step = handle_fetch(own, dropped, fetch_of(THIRD, 2), NOW)
    assert any(isinstance(effect, SendToController) for effect in step.effects) == asks
    assert nothing_pending(step.state.isr) == (not asks)
    late = AlterPartitionResponse(Error.INVALID_UPDATE_VERSION, PartitionId(0))
    free = handle_alter_partition_response(own, dropped, request, late, NOW).state
    again = handle_fetch(own, free, fetch_of(THIRD, 2), NOW)
    assert any(isinstance(effect, SendToController) for effect in again.effects)


def test_a_request_stays_in_flight_when_the_replica_is_removed() -> None:
    partition, _ = pending_leader()
    assert leave(broker(), partition).state.request_in_flight
