"""Requests of a consumer group's members that arrive late, or whose answers are lost, in each release."""

import pytest
from click.testing import CliRunner

from kspec.cli.main import cli
from kspec.conformance.wire.model.groups.consumers import CONSUMERS, COORDINATORS, GroupByRelease, absent_group
from kspec.conformance.wire.model.groups.late_requests import CANDIDATES, run_in
from kspec.model_check.search.ways import Ways
from kspec.spec.coordinator.modern.state import ConsumerGroupMember
from kspec.spec.releases.broker import NEWEST as RULES
from kspec.spec.values import MemberId
from tests.conformance.kafka.releases import NEWEST, jars_or_skip

HOLDS = {
    "late-join": ("4.2", "4.3", "4.4"),
    "late-acknowledgement": ("4.1", "4.2", "4.3", "4.4", "next"),
    "late-leave": ("4.1", "4.2", "4.3", "4.4", "next"),
    "late-static-leave": ("next",),
    "lost-answers": ("4.1", "4.2", "4.3", "4.4"),
    "commit-of-another": ("4.1", "4.2", "4.3", "4.4", "next"),
}
"""The releases in which each comes to what it claims."""


def test_what_late_requests_do_depends_on_the_release() -> None:
    releases = ("4.1", "4.2", "4.3", "4.4", "next")
    found = {one.name: tuple(name for name in releases if one.holds(run_in(one, RULES, name))) for one in CANDIDATES}
    assert found == HOLDS


def members_of(state: GroupByRelease) -> dict[MemberId, ConsumerGroupMember]:
    consumer = state.groups[-1].consumer
    return {} if consumer is None else {one.member_id: one for one in consumer.members}


def joins_that_give_up(rules: int) -> int:
    """The states, of all that two members can reach, in which a join of a member that is there frees what it gives up."""
    ways: Ways[GroupByRelease, str] = Ways(GroupByRelease(absent_group(rules)))
    found = 0
    for state in ways.places():
        for move in CONSUMERS.moves:
            taken = move.take(RULES, state)
            if taken is None:
                continue
            assert isinstance(taken.state, GroupByRelease)
            ways.reach(state, move.name, taken.state)
            after = members_of(taken.state)
            for member_id, member in members_of(state).items():
                joined = move.name.startswith("beat.join.") and move.name[-1].lower() == member_id[-1]
                found += joined and bool(member.pending) and not after[member_id].pending
    return found


@pytest.mark.slow
def test_by_the_repaired_rules_no_join_ever_gives_up_a_partition_and_by_those_of_4_4_some_do() -> None:
    assert joins_that_give_up(len(COORDINATORS)) == 0
    assert joins_that_give_up(len(COORDINATORS) - 1) > 0


@pytest.mark.slow
@pytest.mark.parametrize("target", ["kspec", "kafka"])
def test_a_real_broker_answers_as_the_rules_say(target: str) -> None:
    if target == "kafka":
        jars_or_skip(NEWEST)
    ended = CliRunner().invoke(cli, ["world", "groups", "--target", target, "--kafka", NEWEST])
    assert ended.exit_code == 0, ended.output
    assert ended.output.count("CONFIRMED") == sum("4.4" in releases for releases in HOLDS.values())
    assert ended.output.count("refuted") == 1


def test_a_run_that_there_is_not_is_bad_usage() -> None:
    assert CliRunner().invoke(cli, ["world", "groups", "late"]).exit_code == 2
    assert CliRunner().invoke(cli, ["world", "groups", "--kafka", "3.9.2"]).exit_code == 2
