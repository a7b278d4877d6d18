"""Releases and mutants of the quorum: each mutant answers otherwise where the rule matters."""

from dataclasses import fields
from itertools import pairwise

import pytest

from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.messages.quorum.voters import VoterSetEntry
from kspec.spec.mutation import Mutant, changed_rules, differing_fields, weaken
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import ElectionState
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import fixed_voters
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import become_prospective
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.releases.quorum import QUORUM_RELEASES
from kspec.spec.values import NO_LEADER, NO_REPLICA, UNKNOWN_OFFSET, Epoch, Offset
from tests.spec.quorum.driver import NEWEST, ONE, TWO, VOTERS, directory_of, key_of, server_of, started

E2, E3, AT_2, AT_3 = Epoch(2), Epoch(3), Offset(2), Offset(3)

SETS = (*fixed_voters(VOTERS), VoterSetEntry(Offset(2), VOTERS))

ASKED: dict[str, tuple[tuple[object, ...], object, object]] = {
    "forgets-vote": ((key_of(TWO), True), key_of(TWO), NO_REPLICA),
    "follower-forgets-vote": ((key_of(TWO), True), key_of(TWO), NO_REPLICA),
    "leads-again": ((ONE, NO_REPLICA, key_of(ONE)), VoterRole.RESIGNED, VoterRole.LEADER),
    "commits-at-epoch-start": ((AT_2, AT_2), False, True),
    "never-flushes": ((True,), True, False),
    "no-check-quorum": ((3,), True, False),
    "counts-leader-always": ((False,), False, True),
    "promises-while-following": ((False, True, True, True), False, True),
    "same-epoch-after-resignation": ((E2,), E3, E2),
    "truncates-committed": ((AT_2, AT_3), False, True),
    "snapshots-uncommitted": ((AT_3, AT_2), False, True),
    "votes-by-id": ((NO_LEADER, key_of(TWO), key_of(TWO, 2), True), False, True),
    "votes-again": ((NO_LEADER, key_of(ONE), key_of(TWO), True), False, True),
    "votes-for-itself": ((NO_REPLICA, key_of(ONE)), NO_REPLICA, key_of(ONE)),
    "stands-without-majority": ((VoterRole.PROSPECTIVE,), VoterRole.UNATTACHED, VoterRole.CANDIDATE),
    "counts-parted": ((True,), False, True),
    "keeps-high-watermark": ((AT_2,), UNKNOWN_OFFSET, AT_2),
    "longest-log-wins": ((E2, AT_3, E3, AT_2), False, True),
    "changes-while-changing": ((True, False), False, True),
    "changes-before-own-record": ((False, False), False, True),
    "keeps-cut-voters": ((SETS, Offset(2)), SETS[:1], SETS),
    "upgrades-unreported": ((VOTERS, frozenset({key_of(ONE)})), False, True),
    "late-answers-count": ((False,), False, True),
}
"""The arguments of each rule, its answer, and that of the mutant."""


@pytest.mark.parametrize("mutant", QUORUM_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_has_the_weaker_rule(mutant: Mutant) -> None:
    weakened = weaken(NEWEST, mutant)
    assert list(changed_rules(NEWEST, weakened)) == [mutant.field]
    asked, right, wrong = ASKED[mutant.name]
    assert (getattr(NEWEST, mutant.field)(*asked), getattr(weakened, mutant.field)(*asked)) == (right, wrong)


def test_a_mutant_answers_as_the_rule_does_where_the_rule_allows_it() -> None:
    rules = {mutant.name: mutant.rule for mutant in QUORUM_MUTANTS}
    assert rules["leads-again"](TWO, NO_REPLICA, key_of(ONE)) == VoterRole.FOLLOWER
    assert rules["stands-without-majority"](VoterRole.FOLLOWER) == VoterRole.PROSPECTIVE
    assert rules["votes-by-id"](NO_LEADER, NO_REPLICA, key_of(TWO), True)
    assert rules["changes-while-changing"](True, True)
    assert not rules["changes-before-own-record"](True, False)


def test_every_mutant_is_of_a_field_and_has_its_own_name() -> None:
    assert [mutant.name for mutant in QUORUM_MUTANTS] == list(ASKED)
    assert {mutant.field for mutant in QUORUM_MUTANTS} <= {field.name for field in fields(QuorumProtocol)}


def test_releases_differ_in_what_they_brought() -> None:
    found = [differing_fields(one, other) for one, other in pairwise(QUORUM_RELEASES)]
    assert [release.name for release in QUORUM_RELEASES] == ["2.8", "3.7", "3.9", "4.0", "4.1", "4.2", "next"]
    assert found == [
        ("checks_quorum",),
        ("needs_begin",),
        ("role_after_timeout", "grants_pre_vote", "vote_as_follower"),
        ("takes_records", "takes_reports", "may_upgrade"),
        ("needs_begin", "joins"),
        (
            "role_after_restart",
            "follows_named",
            "resigns_when_removed",
            "stops_for_acknowledgement",
            "stands_until_removed",
            "stops_if_said_to_lead",
            "flushes_first",
        ),
    ]


def mutant_named(name: str) -> QuorumProtocol:
    return weaken(NEWEST, next(mutant for mutant in QUORUM_MUTANTS if mutant.name == name))


def test_a_leader_that_leads_again_writes_a_second_record_of_its_epoch() -> None:
    server = server_of(ONE, mutant_named("leads-again"))
    state = start(server, EMPTY_LOG, ElectionState(E2, ONE), directory_of(ONE), fixed_voters(VOTERS)).state
    assert (state.role, state.election.epoch, state.local.log.end_offset) == (VoterRole.LEADER, 2, 1)


def test_a_vote_for_itself_is_stored_before_an_election() -> None:
    step = become_prospective(server_of(ONE, mutant_named("votes-for-itself")), started(ONE))
    assert step.state.election == ElectionState(Epoch(0), NO_LEADER, key_of(ONE))
    assert len(step.effects) == len(become_prospective(server_of(ONE), started(ONE)).effects) + 1
