"""Differences, and the rule that each is about."""

from typing import Any

import pytest

from kspec.conformance.mirror.comparing import first_difference, in_words
from kspec.conformance.mirror.runs import rules_of
from kspec.conformance.mirror.taking import MirroredAnswer
from kspec.conformance.mirror.translation import OtherRecord
from kspec.model_check.models.parts import creation_of
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Error, Offset, PartitionEpoch, PartitionId

RULES = rules_of("4.4.0")
PARTITION = PartitionId(0)
ONE, TWO = BrokerId(1), BrokerId(2)
PROPOSAL = AlterPartitionRequest(ONE, BrokerEpoch(1), PARTITION, Epoch(0), PartitionEpoch(0), frozenset())
BEAT = BrokerHeartbeatRequest(ONE, BrokerEpoch(1), Offset(5))
GRANTED = AlterPartitionResponse(Error.NONE, PARTITION, ONE, Epoch(0), frozenset({ONE}), PartitionEpoch(1))
REFUSED = AlterPartitionResponse(Error.INELIGIBLE_REPLICA, PARTITION)
DONE = ErrorResponse(Error.NONE)
ALIVE = BrokerHeartbeatResponse(Error.NONE)


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(PARTITION, **fields)


def test_what_agrees_has_no_difference() -> None:
    side = (GRANTED, (change(isr=frozenset({ONE})),))
    assert first_difference(RULES, PROPOSAL, side, side) is None


def test_of_a_refusal_only_the_error_counts() -> None:
    theirs = REFUSED._replace(leader=ONE, leader_epoch=Epoch(3))
    assert first_difference(RULES, PROPOSAL, (REFUSED, ()), (theirs, ())) is None


@pytest.mark.parametrize(
    ("request_", "expected", "observed", "rule"),
    [
        (PROPOSAL, (GRANTED, ()), (REFUSED, ()), "eligible_for_isr: same_broker_epoch_is_eligible"),
        (PROPOSAL, (REFUSED, (change(),)), (REFUSED, ()), "ends_refused: refusal_changes_nothing"),
        (PROPOSAL, (GRANTED, (change(leader=ONE),)), (GRANTED, (change(leader=TWO),)), "elect: elect"),
        (PROPOSAL, (GRANTED, (change(leader=ONE),)), (GRANTED, (change(),)), "opens_epoch: removes_replica"),
        (
            PROPOSAL,
            (GRANTED, (change(elr=frozenset({TWO})),)),
            (GRANTED, (change(),)),
            "eligible_leaders: with_eligible_leaders",
        ),
        (
            PROPOSAL,
            (GRANTED, (change(replicas=(ONE,), leader=ONE),)),
            (GRANTED, (change(),)),
            "complete_reassignment: complete_when_added_are_in_sync_unless_fewer_stay",
        ),
        (
            BEAT,
            (ALIVE, (BrokerRegistrationChangeRecord(ONE, BrokerEpoch(1), fenced=False),)),
            (ALIVE, ()),
            "caught_up: caught_up_with_registration",
        ),
        (BEAT, (ALIVE, ()), (ALIVE._replace(is_fenced=False), ()), "caught_up: caught_up_with_registration"),
        (
            creation_of((ONE,)),
            (DONE, ()),
            (DONE, (OtherRecord("AccessControlEntryRecord", "…"),)),
            "handle_create_topics",
        ),
    ],
)
def test_each_difference_names_its_rule(
    request_: Any, expected: tuple[MirroredAnswer, Any], observed: tuple[MirroredAnswer, Any], rule: str
) -> None:
    found = first_difference(RULES, request_, expected, observed)
    assert found is not None
    assert found.rule == rule
    assert found.expected != found.observed


def test_words_leave_out_what_says_nothing() -> None:
    assert in_words(change(isr=frozenset({TWO, ONE}), elr=frozenset())) == "PartitionChangeRecord(isr={1, 2}, elr={})"
