"""The explored graph, and the runs that are chosen from it."""

from collections import Counter
from dataclasses import replace

import pytest

from kspec.conformance.wire.cases.versions import runs_of_versions
from kspec.conformance.wire.choice.graph import explored, summary_of
from kspec.conformance.wire.choice.weakened import NOT_ASKED, SAME_ANSWERS, RuleScore
from kspec.conformance.wire.model.subject import Subject
from kspec.conformance.wire.model.subjects import SUBJECTS
from kspec.impl.wire.schema import Versions
from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.reference import explore
from kspec.spec.releases.broker import NEWEST
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.values import Error
from tests.conformance.conftest import MadeSuite
from tests.conformance.wire.weakenings import ASKED_BEFORE, TOLD_CHECKS, TOLD_MUTANTS
from tests.limits.marks import marked

pytestmark = pytest.mark.slow

SIZES = {
    "frames": (2, 31, 30),
    "absent": (2, 53, 46),
    "producer-ids": (3, 7, 4),
    "producer-ids-again": (6, 7, 2),
    "producing": (210, 2197, 33),
    "sequences": (388, 3582, 32),
    "sequences-again": (388, 1867, 19),
    "sequences-cut": (100, 795, 24),
    "received": (3, 39, 21),
    "limits": (3, 13, 8),
    "records": (2, 34, 34),
    "stamped-records": (2, 10, 10),
    "reading": (10, 980, 151),
    "reading-again": (40, 384, 28),
    "times": (53, 425, 24),
    "compacted": (4, 24, 7),
    "leader-epochs": (85, 2051, 63),
    "append-time": (7, 30, 11),
    "sizes": (12, 161, 69),
    "waiting": (31, 83, 32),
    "sessions": (322, 2398, 19),
    "forgetting": (76, 179, 13),
    "topics": (92, 5029, 129),
    "topics-again": (30, 118, 7),
    "members": (1504, 41800, 91),
    "static-members": (22, 178, 23),
    "session-limits": (7, 12, 4),
    "chosen-protocols": (122, 643, 29),
    "silent-members": (205, 505, 20),
    "waiting-members": (74, 179, 4),
    "offsets": (93, 1193, 47),
    "offsets-again": (15, 59, 7),
    "members-again": (23, 47, 4),
    "offsets-of-deleted": (11, 45, 18),
    "consumers": (445, 8816, 52),
    "static-consumers": (15, 135, 30),
    "consumers-offsets": (681, 9089, 29),
    "conversion": (415, 4255, 38),
    "metadata": (3, 25, 12),
    "pages": (3, 28, 12),
    "made-anew": (233, 1799, 37),
    "settings": (189, 4563, 44),
    "settings-again": (12, 43, 3),
    "nothing": (1, 22, 22),
    "several-partitions": (77, 2057, 70),
    "several-groups": (38, 1140, 68),
    "transactional-ids": (213, 12722, 119),
    "transactional-ids-again": (182, 2663, 47),
    "two-transactional-ids": (92, 2069, 51),
    "transactions": (699, 7813, 42),
    "added-transactions": (4604, 50945, 48),
    "interleaved-transactions": (3258, 26397, 54),
    "transactions-again": (101, 582, 25),
    "added-transactions-again": (2469, 12970, 28),
    "markers": (779, 6861, 61),
    "transactional-offsets": (506, 4754, 35),
}
"""States, transitions, and kinds of answers to requests."""


LARGE = [one for one in SUBJECTS if SIZES[one.name][1] > 4_000]


@pytest.mark.parametrize("subject", marked(SUBJECTS, nightly=LARGE), ids=lambda one: one.name)
def test_an_engine_finds_the_same_states(subject: Subject) -> None:
    graph = explored(replace(subject, most_moves=None), NEWEST)
    found = explore(subject.model(NEWEST), [], Limits())
    assert (len(graph.ways), graph.transitions, len(graph.goals)) == SIZES[subject.name]
    assert (found.distinct_states, found.transitions) == SIZES[subject.name][:2]


def test_every_kind_of_answer_to_every_request_is_in_a_case(made_suite: MadeSuite) -> None:
    for subject in SUBJECTS:
        goals = summary_of(subject, NEWEST).goals
        met = {step.goal for one in made_suite.runs if one.subject is subject for step in one.run}
        assert {goal for goal in met if subject.is_goal(goal.partition(":")[0])} == goals
        counted = Counter(goal for one in made_suite.runs if one.subject is subject for goal in one.goals if goal in goals)
        assert set(counted) == goals
        assert set(counted.values()) == {1}


def test_the_last_step_of_a_run_meets_what_it_is_there_for(made_suite: MadeSuite) -> None:
    assert all(one.run[-1].goal in one.goals or one.mutants or one.boundary for one in made_suite.runs)


def test_names_are_different_and_cases_tell_of_their_rule(made_suite: MadeSuite) -> None:
    cases = made_suite.cases
    assert len({case.name for case in cases}) == len(cases) == 2015
    for case in cases:
        assert case.rule.function.startswith("spec."), case.name
        assert case.rule.doc, case.name
        assert case.rule.kafka, case.name
        assert case.promise, case.name


def test_the_rule_is_the_one_that_decides(made_suite: MadeSuite) -> None:
    rules = {case.name: case.rule for case in made_suite.cases}
    fenced = rules["reading/fetch.end.older/fenced-leader-epoch"]
    assert (fenced.function, fenced.kips) == ("spec.broker.rules.fencing:check_leader_epoch", ("KIP-320",))
    gap = rules["producing/idempotent.gap/out-of-order-sequence-number"]
    assert gap.function == "spec.log.producers:check_sequence"
    past = rules["reading/fetch.past-end/offset-out-of-range"]
    assert past.function == "spec.log.local_log:check_fetch_offset"


def test_the_release_from_which_a_case_holds_is_that_of_its_rule(made_suite: MadeSuite) -> None:
    since = {case.name: case.since for case in made_suite.cases}
    assert since["reading/fetch.end.older/fenced-leader-epoch"] == "2.1"
    assert since["producing/idempotent.gap/out-of-order-sequence-number"] == "0.11"
    assert since["reading/fetch.past-end.last-current/diverging"] == "2.7"
    assert since["topics/create.slash/invalid-topic-exception"] is None


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
    Error.FENCED_MEMBER_EPOCH,
    Error.STALE_MEMBER_EPOCH,
    Error.UNRELEASED_INSTANCE_ID,
    Error.UNSUPPORTED_ASSIGNOR,
    Error.MISMATCHED_ENDPOINT_TYPE,
    Error.UNSUPPORTED_ENDPOINT_TYPE,
    Error.CONCURRENT_TRANSACTIONS,
    Error.INVALID_PRODUCER_ID_MAPPING,
    Error.INVALID_REGULAR_EXPRESSION,
    Error.INVALID_TRANSACTION_TIMEOUT,
    Error.INVALID_TXN_STATE,
    Error.PRODUCER_FENCED,
    Error.TRANSACTION_ABORTABLE,
    Error.TRANSACTIONAL_ID_NOT_FOUND,
    Error.TRANSACTION_COORDINATOR_FENCED,
    Error.UNSTABLE_OFFSET_COMMIT,
}


def test_the_errors_that_the_cases_reach(made_suite: MadeSuite) -> None:
    reached = {step.exchange.error for one in made_suite.runs for step in one.run}
    assert reached - {Error.NONE} == ERRORS_OF_HANDLERS


@pytest.mark.xdist_group("made_suite")
def test_what_one_broker_can_show_of_the_weakened_rules(rule_scores: list[RuleScore]) -> None:
    found = rule_scores
    mutants = {mutant.name for mutant in BROKER_MUTANTS}
    told = {one.name for one in found if one.told}
    assert told & mutants == set(TOLD_MUTANTS)
    assert told - mutants == {*TOLD_CHECKS, *ASKED_BEFORE}
    assert all(one.reason in (NOT_ASKED, SAME_ANSWERS) for one in found if not one.told)


def test_a_rule_that_is_not_asked_is_not() -> None:
    subject = next(one for one in SUBJECTS if one.name == "producing")
    asked = explored(subject, NEWEST).rules_asked
    assert "check_sequences" in asked
    assert "truncate" not in asked


def test_each_older_version_of_a_request_is_the_last_one_of_a_case(made_suite: MadeSuite) -> None:
    cases = {case.goals: case for case in made_suite.cases}
    places = runs_of_versions(made_suite.runs)
    assert {place.version for place in places if place.api == "Fetch"} == set(range(4, 18))
    for place in places:
        case = cases[(f"version {place.version} of {place.api}",)]
        last = [step for step in case.steps if not step.optional][-1]
        assert (last.request.api, last.request.versions) == (place.api, Versions(place.version, place.version))
