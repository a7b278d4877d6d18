"""The mutants of the group coordinator and of consumers: each has its field, and differs from the rule there."""

from dataclasses import fields

import pytest

from kspec.spec.assignors.subscribers import Subscriber
from kspec.spec.consumer.modern.protocol import HEARTBEATS
from kspec.spec.consumer.protocol import ConsumerProtocol
from kspec.spec.consumer.rules import CONSUMER_PROTOCOLS, COOPERATIVE, EAGER
from kspec.spec.coordinator.group import absent
from kspec.spec.coordinator.modern.state import AssignedPartition, ConsumerGroupMember
from kspec.spec.coordinator.protocol import CoordinatorProtocol
from kspec.spec.coordinator.records import OffsetCommitRecord
from kspec.spec.mutation import Mutant, changed_rules, weaken
from kspec.spec.releases.coordinator import COORDINATOR_RELEASES
from kspec.spec.releases.group_mutants import CONSUMER_MUTANTS, COORDINATOR_MUTANTS, HEARTBEAT_MUTANTS
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import GroupEpoch, GroupId, MemberId, Offset, TopicId

NEWEST = COORDINATOR_RELEASES[-1]
GROUP = absent(GroupId("g"))
COMMITTED = GROUP._replace(offsets=(OffsetCommitRecord(GroupId("g"), "topic", 0, Offset(3)),))

ONE, NOTHING = frozenset({("t", 0)}), frozenset[tuple[str, int]]()

HAS = AssignedPartition(TopicIdPartition(TopicId(bytes(15) + b"\1"), 0), GroupEpoch(2))
HELD = frozenset({HAS})
GIVES_UP = ConsumerGroupMember(MemberId("m"), epoch=GroupEpoch(2), pending=(HAS,))
OWNS = GIVES_UP._replace(assigned=(HAS,), pending=())

COORDINATOR_ASKED: dict[str, tuple[tuple[object, ...], object, object]] = {
    "step-on-committed": ((GROUP, COMMITTED), GROUP, COMMITTED),
    "lost-update": ((GROUP, COMMITTED), GROUP, COMMITTED),
    "uncommitted-read": ((GROUP, COMMITTED), COMMITTED, GROUP),
    "read-what-is-known": ((False, True), False, True),
    "answer-before-commit": ((5, 4), False, True),
    "any-generation": ((1, 2), False, True),
    "same-generation": ((2,), 3, 2),
    "nobody-left-behind": ((False, False), True, False),
    "waiting-member-out": ((True, False), True, False),
    "commit-before-assignment": ((True,), False, True),
    "given-back-forgotten": ((HELD, GIVES_UP, OWNS), HELD, frozenset()),
    "free-though-owned": ((ONE, ONE, NOTHING), NOTHING, ONE),
    "silence-releases": ((None, ONE), True, False),
    "any-epoch": ((3, 5, 4, ONE, ONE), False, True),
    "previous-epoch-owns-more": ((4, 5, 4, ONE, NOTHING), False, True),
    "own-epoch-only": ((4, 5, 4, ONE, ONE), True, False),
    "known-member-fenced": ((0, 5, 4, ONE, ONE), True, False),
    "commits-of-any-epoch": ((3, 4), False, True),
    "old-epoch-refused": ((4, 4), True, False),
    "own-pending-not-free": ((ONE, ONE, ONE), ONE, NOTHING),
}
"""Questions to a rule, with its own answer and that of the mutant."""

OTHER = MemberId("other")
OWNER_AND_OTHER = (
    Subscriber(MemberId("owner"), frozenset({"t"}), frozenset({("t", 0)})),
    Subscriber(OTHER, frozenset({"t"})),
)

CONSUMER_ASKED: dict[str, tuple[tuple[object, ...], object, object]] = {
    "keeps-while-joining": ((frozenset({1}),), frozenset(), frozenset({1})),
    "keeps-when-out": ((frozenset({1}),), frozenset(), frozenset({1})),
    "keeps-what-others-get": ((frozenset({1}), frozenset({2})), frozenset({1}), frozenset()),
    "hands-out-what-is-owned": (
        (OWNER_AND_OTHER, {OTHER: frozenset({("t", 0)})}),
        {OTHER: frozenset()},
        {OTHER: frozenset({("t", 0)})},
    ),
    "late-error-counts": ((False,), False, True),
    "keeps-unknown-id": ((False,), False, True),
    "forgets-known-id": ((True,), True, False),
}


@pytest.mark.parametrize("mutant", COORDINATOR_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_the_coordinator_has_the_weaker_rule(mutant: Mutant) -> None:
    weakened = weaken(NEWEST, mutant)
    assert mutant.field in changed_rules(NEWEST, weakened)
    asked, right, wrong = COORDINATOR_ASKED[mutant.name]
    assert (getattr(NEWEST, mutant.field)(*asked), getattr(weakened, mutant.field)(*asked)) == (right, wrong)


@pytest.mark.parametrize("mutant", CONSUMER_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_consumers_has_the_weaker_rule(mutant: Mutant) -> None:
    whole = EAGER if mutant.name == "keeps-while-joining" else COOPERATIVE
    weakened = weaken(whole, mutant)
    assert list(changed_rules(whole, weakened)) == [mutant.field]
    asked, right, wrong = CONSUMER_ASKED[mutant.name]
    assert (getattr(whole, mutant.field)(*asked), getattr(weakened, mutant.field)(*asked)) == (right, wrong)


HEARTBEATS_ASKED: dict[str, tuple[tuple[object, ...], object, object]] = {
    "says-what-is-assigned": ((frozenset({1, 2}), frozenset({2})), frozenset({1, 2}), frozenset({2})),
    "keeps-when-fenced": ((frozenset({1}),), frozenset(), frozenset({1})),
    "told-its-id": ((OTHER,), OTHER, ""),
    "lost-answer-forgotten": ((False,), True, False),
}


@pytest.mark.parametrize("mutant", HEARTBEAT_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_consumers_of_consumer_groups_has_the_weaker_rule(mutant: Mutant) -> None:
    weakened = weaken(HEARTBEATS, mutant)
    assert list(changed_rules(HEARTBEATS, weakened)) == [mutant.field]
    asked, right, wrong = HEARTBEATS_ASKED[mutant.name]
    assert (getattr(HEARTBEATS, mutant.field)(*asked), getattr(weakened, mutant.field)(*asked)) == (right, wrong)


def test_an_owner_is_forgotten_only_where_something_is_given_back() -> None:
    (forgets,) = [mutant for mutant in COORDINATOR_MUTANTS if mutant.name == "given-back-forgotten"]
    assert forgets.rule(HELD, GIVES_UP, GIVES_UP) == HELD


def test_every_mutant_is_of_a_field_and_has_its_own_name() -> None:
    assert [mutant.name for mutant in COORDINATOR_MUTANTS] == list(COORDINATOR_ASKED)
    assert [mutant.name for mutant in CONSUMER_MUTANTS] == list(CONSUMER_ASKED)
    assert {mutant.field for mutant in COORDINATOR_MUTANTS} <= {field.name for field in fields(CoordinatorProtocol)}
    assert {mutant.field for mutant in CONSUMER_MUTANTS} <= {field.name for field in fields(ConsumerProtocol)}
    assert [protocol.name for protocol in CONSUMER_PROTOCOLS] == ["eager", "cooperative"]
