"""What is explored, and which runs are chosen of it."""

from collections import Counter

import pytest

from conformance.wire.cases.suite import all_cases, all_runs
from conformance.wire.choice.cover import rules_asked
from conformance.wire.choice.graph import explored
from conformance.wire.choice.weakened import NOT_ASKED, SAME_ANSWERS, scores
from conformance.wire.model.subject import Subject
from conformance.wire.model.subjects import SUBJECTS
from model_check.core.exploration import Limits
from model_check.engines.reference import explore
from spec.releases.broker import NEWEST
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.values import Error

SIZES = {
    "frames": (2, 31, 30),
    "absent": (2, 53, 46),
    "producer-ids": (3, 7, 4),
    "producing": (77, 774, 31),
    "received": (3, 37, 20),
    "limits": (3, 13, 8),
    "reading": (10, 930, 144),
    "compacted": (4, 24, 7),
    "leader-epochs": (85, 2051, 63),
    "sessions": (98, 693, 15),
    "topics": (33, 1439, 79),
    "members": (1504, 40677, 88),
    "static-members": (20, 159, 23),
    "offsets": (73, 864, 43),
}
"""States, transitions, and kinds of answers to requests."""


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_an_engine_finds_the_same_states(subject: Subject) -> None:
    graph = explored(subject, NEWEST)
    found = explore(subject.model(NEWEST), [], Limits())
    assert (len(graph.reached_by), graph.transitions, len(graph.goals)) == SIZES[subject.name]
    assert (found.distinct_states, found.transitions) == SIZES[subject.name][:2]


def test_every_kind_of_answer_to_every_request_is_in_a_case() -> None:
    for subject in SUBJECTS:
        goals = set(explored(subject, NEWEST).goals)
        met = {step.goal for one in all_runs() if one.subject is subject for step in one.run}
        assert met == goals
        counted = Counter(goal for one in all_runs() if one.subject is subject for goal in one.goals)
        assert set(counted) == goals
        assert set(counted.values()) == {1}


def test_the_last_step_of_a_run_meets_what_it_is_there_for() -> None:
    assert all(one.run[-1].goal in one.goals or one.mutants for one in all_runs())


def test_names_are_different_and_cases_tell_of_their_rule() -> None:
    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases) == 553
    for case in cases:
        assert case.rule.function.startswith("spec."), case.name
        assert case.rule.doc, case.name
        assert case.rule.kafka, case.name
        assert case.promise, case.name


def test_the_rule_is_the_one_that_decides() -> None:
    rules = {case.name: case.rule for case in all_cases()}
    fenced = rules["reading/fetch.end.older/fenced-leader-epoch"]
    assert (fenced.function, fenced.kips) == ("spec.broker.rules.fencing:check_leader_epoch", ("KIP-320",))
    gap = rules["producing/idempotent.gap/out-of-order-sequence-number"]
    assert gap.function == "spec.log.producers:check_sequence"
    past = rules["reading/fetch.past-end/offset-out-of-range"]
    assert past.function == "spec.log.local_log:check_fetch_offset"


def test_the_release_from_which_a_case_holds_is_that_of_its_rule() -> None:
    since = {case.name: case.since for case in all_cases()}
    assert since["reading/fetch.end.older/fenced-leader-epoch"] == "2.1"
    assert since["producing/idempotent.gap/out-of-order-sequence-number"] == "0.11"
    assert since["reading/fetch.past-end.last-current/diverging"] == "2.7"
    assert since["topics/create.three-partitions/done"] is None


ERRORS_OF_HANDLERS = {
    Error.INVALID_REQUIRED_ACKS,
    Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Error.INVALID_PRODUCER_EPOCH,
    Error.CORRUPT_MESSAGE,
    Error.INVALID_RECORD,
    Error.INVALID_TIMESTAMP,
    Error.MESSAGE_TOO_LARGE,
    Error.UNSUPPORTED_COMPRESSION_TYPE,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Error.OFFSET_OUT_OF_RANGE,
    Error.FENCED_LEADER_EPOCH,
    Error.UNKNOWN_LEADER_EPOCH,
    Error.POLICY_VIOLATION,
    Error.FETCH_SESSION_ID_NOT_FOUND,
    Error.INVALID_FETCH_SESSION_EPOCH,
    Error.FETCH_SESSION_TOPIC_ID_ERROR,
    Error.TOPIC_ALREADY_EXISTS,
    Error.INVALID_TOPIC_EXCEPTION,
    Error.INVALID_CONFIG,
    Error.INVALID_PARTITIONS,
    Error.INVALID_REPLICATION_FACTOR,
    Error.INVALID_REPLICA_ASSIGNMENT,
    Error.INVALID_REQUEST,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.UNKNOWN_TOPIC_ID,
    Error.INVALID_GROUP_ID,
    Error.INVALID_SESSION_TIMEOUT,
    Error.MEMBER_ID_REQUIRED,
    Error.UNKNOWN_MEMBER_ID,
    Error.FENCED_INSTANCE_ID,
    Error.INCONSISTENT_GROUP_PROTOCOL,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.GROUP_ID_NOT_FOUND,
    Error.NON_EMPTY_GROUP,
    Error.OFFSET_METADATA_TOO_LARGE,
    Error.UNSUPPORTED_VERSION,
    Error.UNKNOWN_SERVER_ERROR,
    Error.NOT_LEADER_OR_FOLLOWER,
}


def test_the_errors_that_the_cases_reach() -> None:
    reached = {step.exchange.error for one in all_runs() for step in one.run}
    assert reached - {Error.NONE} == ERRORS_OF_HANDLERS


def test_what_one_broker_can_show_of_the_weakened_rules() -> None:
    found = scores(SUBJECTS, all_runs(), NEWEST, BROKER_MUTANTS)
    mutants = {mutant.name for mutant in BROKER_MUTANTS}
    told = {one.name for one in found if one.told}
    assert told & mutants == {
        "no-epoch-entry",
        "no-sequence-check",
        "unfenced-requests",
        "epoch-lookup-as-designed",
        "epoch-lookup-by-end",
        "no-divergence-check",
        "diverging-before-start",
    }
    assert len(told - mutants) == 26
    assert all(one.reason in (NOT_ASKED, SAME_ANSWERS) for one in found if not one.told)


def test_a_rule_that_is_not_asked_is_not() -> None:
    subject = next(one for one in SUBJECTS if one.name == "producing")
    asked = rules_asked(subject, NEWEST)
    assert "check_sequences" in asked
    assert "truncate" not in asked
