"""Weakened rules are judged, and runs are chosen that tell them, in a small subject."""

from kspec.conformance.wire.choice.boundaries import boundary_runs, taken
from kspec.conformance.wire.choice.cover import SelectedRun
from kspec.conformance.wire.choice.differences import table_of
from kspec.conformance.wire.model.groups.members import SESSION_LIMITS
from kspec.spec.releases.broker import NEWEST
from tests.conformance.wire.power.choosing import chosen
from tests.conformance.wire.power.score import PAGE, load, page
from tests.conformance.wire.power.weakening import MISSED, SAME, TOLD, Weakenings

ROOM, RULE = "coordinator.joining", "coordinator.joining:check_join_request"


def test_runs_are_chosen_until_all_that_differs_is_told() -> None:
    table = table_of(SESSION_LIMITS, NEWEST)
    weakenings = Weakenings([table], [])
    bugs = [one for one in weakenings.bugs([ROOM]) if one.function == RULE]
    before = [weakenings.judge(one) for one in bugs]
    assert {one.verdict for one in before} == {MISSED, SAME}
    (at_limit,) = [one for one in before if " < settings.max_session_timeout_ms" in one.bug.after]
    assert (at_limit.verdict, len(at_limit.moves)) == (MISSED, 1)
    runs = [
        SelectedRun(SESSION_LIMITS, taken(SESSION_LIMITS, one.moves, NEWEST))
        for one in chosen(before, weakenings)[SESSION_LIMITS.name]
    ]
    weakenings.runs[SESSION_LIMITS.name] = runs
    after = [weakenings.judge(one).verdict for one in bugs]
    assert after == [TOLD if one.verdict == MISSED else one.verdict for one in before]
    assert len(runs) - len(boundary_runs().get(SESSION_LIMITS.name, ())) < sum(one.verdict == MISSED for one in before)


def test_the_page_is_that_of_the_score() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(load())
