"""Moves, and what the specification's controller does about them."""

import pytest

from kspec.conformance.mirror.moves import (
    MOVES,
    CreatePartition,
    Heartbeat,
    Move,
    NoMoveError,
    ProposalFault,
    Propose,
    ProposeAgain,
    Reassign,
    Register,
    move_as_json,
    move_from_json,
    move_in_words,
)
from kspec.conformance.mirror.named import NAMED
from kspec.conformance.mirror.requests import set_up
from kspec.conformance.mirror.runs import MirrorRun, rules_of, run_as_json, run_from_json
from kspec.conformance.mirror.taking import ControllerKnowledge, ImpossibleMoveError, request_of, taken
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.values import NO_BROKER_EPOCH, BrokerId, Error

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
CONTROLLER = MirrorRun("", ()).controller(rules_of("4.4.0"))


def after(*moves: Move) -> ControllerKnowledge:
    known = set_up(MirrorRun("", ()), CONTROLLER)
    for move in moves:
        known = taken(CONTROLLER, known, request_of(known, move)).known
    return known


CREATED = after(CreatePartition((ONE, TWO, THREE)))


def answered(known: ControllerKnowledge, move: Move) -> Error:
    return taken(CONTROLLER, known, request_of(known, move)).answer.error


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (ProposalFault.NONE, Error.NONE),
        (ProposalFault.STALE_BROKER_EPOCH, Error.STALE_BROKER_EPOCH),
        (ProposalFault.EARLIER_LEADER_EPOCH, Error.FENCED_LEADER_EPOCH),
        (ProposalFault.LATER_LEADER_EPOCH, Error.NOT_CONTROLLER),
        (ProposalFault.EARLIER_PARTITION_EPOCH, Error.INVALID_UPDATE_VERSION),
        (ProposalFault.LATER_PARTITION_EPOCH, Error.NOT_CONTROLLER),
        (ProposalFault.NOT_THE_LEADER, Error.INVALID_REQUEST),
        (ProposalFault.WITHOUT_THE_LEADER, Error.INVALID_REQUEST),
        (ProposalFault.STALE_MEMBER, Error.INELIGIBLE_REPLICA),
        (ProposalFault.MEMBER_WITHOUT_EPOCH, Error.NONE),
        (ProposalFault.RECOVERING, Error.INVALID_REQUEST),
        (ProposalFault.UNKNOWN_PARTITION, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_each_fault_of_a_proposal_has_its_error(fault: ProposalFault, error: Error) -> None:
    assert answered(CREATED, Propose((THREE,), fault)) == error


def test_every_fault_has_a_case() -> None:
    mark = test_each_fault_of_a_proposal_has_its_error.pytestmark[0]  # type: ignore[attr-defined]  # pytest puts it there
    assert {fault for fault, _ in mark.args[1]} == set(ProposalFault)


def test_a_proposal_knows_the_present_epochs() -> None:
    known = after(CreatePartition((ONE, TWO, THREE)), Propose((THREE,)), Heartbeat(ONE, want_fence=True))
    request = request_of(known, Propose((THREE,)))
    assert isinstance(request, AlterPartitionRequest)
    assert (request.broker, request.leader_epoch, request.partition_epoch) == (TWO, 1, 2)
    assert {member.broker for member in request.isr} == {TWO, THREE}
    assert all(member.broker_epoch != NO_BROKER_EPOCH for member in request.isr)


def test_another_copy_is_the_same_request() -> None:
    sent = request_of(CREATED, Propose((THREE,)))
    known = taken(CONTROLLER, CREATED, sent).known
    assert request_of(known, ProposeAgain()) == sent
    assert answered(known, ProposeAgain()) == Error.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("move", [Propose((THREE,)), ProposeAgain()])
def test_moves_that_nobody_can_make(move: Move) -> None:
    with pytest.raises(ImpossibleMoveError, match="no "):
        request_of(after(), move)


@pytest.mark.parametrize("name", NAMED)
def test_runs_survive_json(name: str) -> None:
    run = NAMED[name]()
    described = run_as_json(run)
    assert run_from_json(described) == run
    assert [move_from_json(move_as_json(step.move)) for step in run.steps] == [step.move for step in run.steps]


def test_named_runs_have_every_kind_of_move() -> None:
    assert {type(step.move) for made in NAMED.values() for step in made().steps} == set(MOVES)


@pytest.mark.parametrize(
    ("described", "why"),
    [
        ({"move": "Jump"}, "there is no move 'Jump'"),
        ({"move": "Propose", "changed": [3], "fault": "TYPO"}, "there is no fault 'TYPO'"),
        ({"move": "Elect", "broker": 1}, "Elect: "),
    ],
)
def test_what_is_no_move_is_said(described: dict[str, object], why: str) -> None:
    with pytest.raises(NoMoveError, match=why):
        move_from_json(described)


def test_words_leave_out_what_is_usual() -> None:
    assert move_in_words(Heartbeat(THREE)) == "Heartbeat(3)"
    assert move_in_words(Heartbeat(THREE, want_fence=True)) == "Heartbeat(3; want fence)"
    assert move_in_words(Reassign((ONE, TWO))) == "Reassign(1, 2)"
    assert move_in_words(Propose((TWO,), ProposalFault.RECOVERING)) == "Propose(2; as recovering)"
    assert move_in_words(Register(ONE, clean=True)) == "Register(1; clean)"


@pytest.mark.parametrize(
    ("kafka", "rules"),
    [("3.9.2", "3.9"), ("4.0.0", "4.0"), ("4.1.0", "4.1"), ("4.1.1", "4.1.1"), ("4.2.2", "4.1.1"), ("4.4.0", "4.3")],
)
def test_the_rules_of_a_release(kafka: str, rules: str) -> None:
    assert rules_of(kafka).name == rules
