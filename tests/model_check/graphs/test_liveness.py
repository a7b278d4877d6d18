"""Liveness: what holds under which fairness, and runs that really break what does not hold."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import itf_py
import pytest

from kspec.model_check.core.model import Fairness, LivenessProperty, Model, PropertyCase, then, when
from kspec.model_check.core.temporal import assumed, groups_of, strong, weak
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.graph import StateGraph
from kspec.model_check.graphs.liveness import LivenessResult, check_liveness
from kspec.model_check.models import MODELS
from tests.model_check.commands import Command
from tests.model_check.engines.comparison import model_of
from tests.model_check.graphs.lassos import assert_fair_violation
from tests.model_check.toy import counters

Lengths = dict[str, tuple[int, int]]
"""Of each violated property: states of the run, and of its loop (0 if it stands still)."""

TWO, THREE = (("replicas", 2),), (("replicas", 3), ("max_epoch", 1))
FETCH, SHRINK, EXPAND = "FencedFollowerFetch", "FencedLeaderShrinkIsr", "FencedLeaderExpandIsr"
HIGH_WATERMARK, FOLLOW = "FencedLeaderIncHighWatermark", "FencedBecomeFollowerAndTruncate"


@cache
def graph_of(parameters: tuple[tuple[str, Any], ...], name: str = "kip-320") -> StateGraph:
    return state_graph(model_of(name, dict(parameters)), 1)


def violations(
    graph: StateGraph,
    change: Callable[[list[Fairness]], list[Fairness]] = lambda fairness: fairness,
    name: str | None = None,
) -> Lengths:
    """Violations under the usual assumptions after a change; each run is checked to be one, and fair."""
    model = graph.model
    properties = [prop for prop in model.liveness if name in (None, prop.name)]
    result = check_liveness(graph, properties, lambda prop: change(assumed(model.fairness, prop.assuming)))
    return lengths(result)


def lengths(result: LivenessResult) -> Lengths:
    found: Lengths = {}
    for verdict in result.verdicts:
        assert verdict.holds == (verdict.lasso is None)
        if verdict.lasso:
            lasso = verdict.lasso
            assert_fair_violation(result.graph.model, verdict.prop, verdict.fairness, lasso)
            found[verdict.prop.name] = len(lasso.steps), len(lasso.steps) - lasso.loop_start if lasso.closing else 0
    return found


@pytest.mark.parametrize("parameters", [TWO, THREE], ids=["two replicas", "three replicas"])
def test_what_kip_320_promises_holds(parameters: tuple[tuple[str, Any], ...]) -> None:
    graph = graph_of(parameters)
    result = check_liveness(graph, graph.model.liveness)
    assert [verdict.holds for verdict in result.verdicts] == [True] * 6
    assert all(verdict.met == verdict.cases for verdict in result.verdicts)
    assert not result.violated


@pytest.mark.slow
def test_what_kip_320_promises_holds_at_its_default_size() -> None:
    graph = graph_of(())
    assert violations(graph) == {}
    change = laggards_leave(each=True, high_watermark=strong(HIGH_WATERMARK))
    assert violations(graph, change, "RecordIsDecided") == {"RecordIsDecided": (10, 4)}


WITHOUT: dict[str, Lengths] = {
    "ControllerElectLeader": {"LeaderTakesOffice": (1, 0)},
    "BecomeLeader": {"AnnouncedEpochIsApplied": (2, 0), "DeposedLeaderStepsDown": (7, 0), "LeaderTakesOffice": (3, 0)},
    FOLLOW: {"AnnouncedEpochIsApplied": (5, 0), "DeposedLeaderStepsDown": (7, 0), "RecordIsDecided": (5, 0)},
    "LeaderWrite": {},
    HIGH_WATERMARK: {"RecordIsDecided": (8, 0), "FollowerJoinsIsr": (10, 0)},
    EXPAND: {"FollowerJoinsIsr": (9, 0)},
    FETCH: {"RecordIsDecided": (6, 0), "FollowerCatchesUp": (6, 0), "FollowerJoinsIsr": (9, 0)},
}


@pytest.mark.parametrize("action", WITHOUT)
def test_without_one_assumption(action: str) -> None:
    found = violations(graph_of(TWO), lambda fairness: [one for one in fairness if one.action != action])
    assert found == WITHOUT[action]


@pytest.mark.parametrize("parameters", [TWO, THREE], ids=["two replicas", "three replicas"])
def test_weak_fairness_is_enough_if_followers_fetch(parameters: tuple[tuple[str, Any], ...]) -> None:
    assert violations(graph_of(parameters), lambda fairness: [weak(one.action) for one in fairness]) == {}


def laggards_leave(each: bool, high_watermark: Fairness) -> Callable[[list[Fairness]], list[Fairness]]:
    """Followers need not fetch, but leaders drop those that lag."""

    def change(fairness: list[Fairness]) -> list[Fairness]:
        return assumed([one for one in fairness if one.action != FETCH], [weak(SHRINK, each), high_watermark])

    return change


@pytest.mark.parametrize(
    ("parameters", "each", "high_watermark", "expected"),
    [
        (TWO, True, strong(HIGH_WATERMARK), {}),
        # The ISR shrinks and grows again: committing is possible again and again, but not for good.
        (TWO, True, weak(HIGH_WATERMARK), {"RecordIsDecided": (7, 2)}),
        # Fair as a whole is not enough: one follower leaves and returns for ever, and the other is never dropped.
        (THREE, False, strong(HIGH_WATERMARK), {"RecordIsDecided": (8, 2)}),
        # Even if it is fair to each, two followers can take turns to leave and return, and the leader is never alone.
        (THREE, True, strong(HIGH_WATERMARK), {"RecordIsDecided": (10, 4)}),
    ],
)
def test_followers_that_do_not_fetch(
    parameters: tuple[tuple[str, Any], ...], each: bool, high_watermark: Fairness, expected: Lengths
) -> None:
    assert violations(graph_of(parameters), laggards_leave(each, high_watermark), "RecordIsDecided") == expected


def test_the_published_truncation_of_kip_101_can_get_stuck() -> None:
    stuck = violations(graph_of((*TWO, ("max_epoch", 1)), "kip-101"))
    assert stuck == {"AnnouncedEpochIsApplied": (10, 0)}
    assert violations(graph_of((*TWO, ("max_epoch", 1), ("repair", ("clamp-truncation",))), "kip-101")) == {}


def test_truncating_to_the_high_watermark_leaves_records_undecided() -> None:
    assert violations(graph_of(TWO, "truncate-to-hw")) == {"RecordIsDecided": (11, 0)}


@pytest.mark.parametrize("name", ["kip-279", "kip-320-first-try"])
def test_other_versions_keep_the_promises(name: str) -> None:
    assert violations(graph_of(TWO, name)) == {}


def test_what_async_isr_promises() -> None:
    graph = graph_of((*TWO, ("max_partition_epoch", 2)), "async-isr")
    assert violations(graph) == {}
    found = violations(graph, lambda fairness: [one for one in fairness if one.action != "LeaderHandleUpdate"])
    assert found == {"ProposalIsAnswered": (3, 0)}
    assert violations(graph, lambda _: []) == {"ProposalIsAnswered": (2, 0), "WriteIsCommitted": (2, 0)}


def test_disturbances_do_not_break_promises() -> None:
    assert violations(graph_of((*TWO, ("max_epoch", 1), ("restarts", 1), ("unclean", True)))) == {}


# ---- the smallest models


def counting(goal: int, kind: Any = "eventually", premise: int = 0) -> Model:
    model = counters(3)
    first, second = model.slots
    case = PropertyCase(
        "", ((when(lambda count: count >= premise, first),),), ((when(lambda count: count >= goal, second),),)
    )
    model.liveness.append(LivenessProperty("Counted", kind, (case,), "the second counter arrives"))
    return model


def judged(model: Model, *fairness: Fairness) -> Lengths:
    return lengths(check_liveness(state_graph(model, 1), model.liveness, lambda prop: list(fairness)))


def test_eventually_needs_every_step_to_be_fair() -> None:
    assert judged(counting(3), weak("CountFirst"), weak("CountSecond")) == {}
    assert judged(counting(3), weak("CountSecond")) == {"Counted": (1, 0)}
    assert judged(counting(3), weak("CountFirst")) == {"Counted": (4, 0)}
    assert judged(counting(4), weak("CountFirst"), weak("CountSecond")) == {"Counted": (7, 0)}
    assert judged(counting(0)) == {}


def test_leads_to_begins_where_its_premise_holds() -> None:
    assert judged(counting(2, "leads-to", premise=2), weak("CountSecond")) == {}
    assert judged(counting(2, "leads-to", premise=1), weak("CountSecond")) == {"Counted": (3, 0)}
    assert judged(counting(2, "leads-to", premise=4)) == {}


def test_a_term_need_not_be_defined_where_an_earlier_one_fails() -> None:
    model = counters(limit=2)
    model.fairness += [Fairness("CountFirst", strong=False), Fairness("CountSecond", strong=False)]
    first, second = model.slots
    positive = when(lambda count: count > 0, first)
    all_counted = when(lambda a, b: 2 // a == 1 and b == a, first, second)
    goal = ((positive, all_counted), (when(lambda count: count < 0, first),))
    model.liveness.append(LivenessProperty("Counted", "eventually", (PropertyCase("", ((),), goal),), "…"))
    (verdict,) = check_liveness(state_graph(model, 1), model.liveness).verdicts
    assert verdict.holds
    model.liveness[0] = replace(model.liveness[0], cases=(PropertyCase("", ((),), ((all_counted, positive),)),))
    with pytest.raises(ZeroDivisionError):
        check_liveness(state_graph(model, 1), model.liveness)


def test_a_property_about_nothing_is_told_from_one_that_holds() -> None:
    model = counting(2, "leads-to", premise=4)
    (verdict,) = check_liveness(state_graph(model, 1), model.liveness).verdicts
    assert (verdict.holds, verdict.met, verdict.cases) == (True, 0, 1)


def blinking() -> Model:
    """Two lamps, switched on and off for ever; an alarm that can ring only while both are on, and once."""
    model = Model("lamps", {})
    lamps = {key: model.slot("lamp", False, key) for key in (1, 2)}
    rung = model.slot("rung", False)
    both = model.view("both", lambda one, other: one and other, *lamps.values())
    for key, lamp in lamps.items():
        model.action("Switch", {"lamp": key}, [], [then(lamp, lambda lit: not lit, lamp)])
    model.action("Ring", {}, [when(bool, both), when(lambda rung: not rung, rung)], [then(rung, lambda _: True, rung)])
    model.action("Look", {}, [], [then(rung, lambda rung: rung, rung)])
    case = PropertyCase("", ((when(lambda both: both, both),),), ((when(bool, rung),),))
    model.liveness.append(LivenessProperty("Rings", "leads-to", (case,), "the alarm rings"))
    return model


def test_strong_fairness_and_fairness_of_each_argument() -> None:
    assert judged(blinking()) == {"Rings": (3, 0)}
    assert judged(blinking(), strong("Ring")) == {"Rings": (4, 0)}  # one lamp off, for good
    assert judged(blinking(), weak("Ring"), weak("Switch")) == {"Rings": (4, 2)}  # one lamp goes on and off
    assert judged(blinking(), strong("Ring"), weak("Switch")) == {"Rings": (5, 2)}  # and the other one is off
    assert judged(blinking(), strong("Ring"), weak("Switch", each=True)) == {"Rings": (7, 4)}  # they take turns
    # To look changes nothing, so it is never a step that fairness asks for.
    assert judged(blinking(), strong("Ring"), strong("Look")) == {"Rings": (4, 0)}


def test_fairness_of_each_argument_is_one_of_each() -> None:
    actions = blinking().actions
    assert groups_of(weak("Switch"), actions) == [("WF(Switch)", [0, 1])]
    assert groups_of(strong("Switch", each=True), actions) == [("SF(Switch(lamp=1))", [0]), ("SF(Switch(lamp=2))", [1])]
    assert assumed([weak("A"), strong("B")], [strong("A", each=True)]) == [strong("A", each=True), strong("B")]


def passing() -> Model:
    """Two tokens, each passed to and fro between two places for ever by way of either of two doors."""
    model = Model("tokens", {})
    for token in (1, 2):
        slot = model.slot("place", 0, token)
        for door in (0, 1):
            here = when(lambda place, door=door: place == door, slot)
            args = {"token": token, "door": door}
            model.action("Pass", args, [here], [then(slot, lambda place: 1 - place, slot)])
    arrived = (when(lambda place: place == 1, model.slots[1]),)
    model.liveness.append(
        LivenessProperty("Arrives", "eventually", (PropertyCase("", (), (arrived,)),), "the second token is passed")
    )
    return model


def test_fairness_of_some_arguments_serves_each_of_their_values_whatever_the_others_are() -> None:
    assert groups_of(weak("Pass", of=("token",)), passing().actions) == [
        ("WF(Pass(token=1))", [0, 1]),
        ("WF(Pass(token=2))", [2, 3]),
    ]
    assert judged(passing(), weak("Pass")) == {"Arrives": (2, 2)}  # the first token goes to and fro
    assert judged(passing(), weak("Pass", of=("door",))) == {"Arrives": (2, 2)}
    assert judged(passing(), weak("Pass", of=("token",))) == {}


# ---- the command

SMALL = ("liveness", "kip-320", "--replicas", "2")
DEAD_FOLLOWERS = (*SMALL, "--property", "RecordIsDecided", "--without", FETCH, "--weak", f"{SHRINK}:each")


def test_the_command_says_what_is_assumed_and_what_holds(command: Command) -> None:
    done = command(*SMALL)
    assert (done.status, done.stderr) == (0, "")
    assert "assumed: SF(FencedLeaderIncHighWatermark), SF(FencedLeaderExpandIsr), SF(LeaderWrite)," in " ".join(
        done.stdout.split()
    )
    assert "also assumed: WF(FencedFollowerFetch)" in done.stdout
    assert "VIOLATED" not in done.stdout


def test_the_command_draws_the_loop(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert command(*DEAD_FOLLOWERS).status == 0
    done = command(*DEAD_FOLLOWERS, "--weak", HIGH_WATERMARK, "--itf", str(tmp_path / "lasso.itf.json"))
    assert done.status == 1
    assert "A fair run that violates RecordIsDecided: 5 steps, then the same 2 again and again" in " ".join(
        done.stdout.split()
    )
    lines = done.stdout.splitlines()
    loop = lines.index("   the loop:")
    assert lines[loop + 1].startswith("7  FencedLeaderShrinkIsr  leader 1, follower 2")
    assert lines[loop + 4].startswith("6  FencedLeaderExpandIsr  leader 1, follower 2")
    assert lines[loop + 7] == "   and so on, from 6"
    assert "WF(FencedLeaderIncHighWatermark)                 not possible in state 6" in done.stdout
    trace = itf_py.trace_from_json(json.loads((tmp_path / "lasso.itf.json").read_text()))
    assert trace.loop == 5
    assert len(trace.states) == 7


def test_a_run_that_stands_still_is_told_as_one(command: Command) -> None:
    done = command(*SMALL, "--property", "RecordIsDecided", "--without", "all")
    assert done.status == 1
    assert "A fair run that violates RecordIsDecided: 3 steps, where it stays for ever" in done.stdout
    assert "   the loop: nothing happens any more" in done.stdout
    assert "   nothing is assumed to be fair, so a run may stop anywhere" in done.stdout
    assert "assumed: no fairness at all" in done.stdout


def test_json_has_the_lasso(command: Command) -> None:
    found = json.loads(command(*DEAD_FOLLOWERS, "--weak", HIGH_WATERMARK, "--json").stdout)
    (prop,) = found["properties"]
    assert (found["states"], prop["kind"], prop["holds"]) == (5973, "leads-to", False)
    assert {"action": SHRINK, "strong": False, "each": True, "of": []} in prop["fairness"]
    lasso = prop["lasso"]
    assert (lasso["case"], lasso["since"], lasso["loop"], len(lasso["trace"])) == ("record m0", 4, 5, 7)
    assert lasso["closing"] == {"action": EXPAND, "args": {"leader": 1, "follower": 2}}
    assert {"fairness": "SF(FencedLeaderExpandIsr)", "reason": "taken in the loop"} in lasso["why_fair"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--weak", "Fetch"), "has no action 'Fetch'; did you mean FencedFollowerFetch"),
        (("--weak", f"{FETCH}:all"), "write ACTION or ACTION:each"),
        (("--weak", f"{FETCH}:follower,door"), "ACTION:each, or ACTION:ARGUMENT with any of follower, leader"),
        (("--weak", FETCH, "--without", FETCH), "is named twice"),
        (("--property", "Progress"), "has no liveness property 'Progress'; choose from AnnouncedEpochIsApplied, "),
    ],
)
def test_mistakes_are_told_in_a_line(command: Command, arguments: tuple[str, ...], part: str) -> None:
    done = command("liveness", "kip-320", *arguments)
    assert done.mistake == (2, 1)
    assert part in done.stderr


def test_a_model_without_promises_says_so(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = MODELS["kip-320"]._replace(builder=lambda parameters: counters())
    monkeypatch.setitem(MODELS, "kip-320", entry)
    done = command("liveness", "kip-320")
    assert done.mistake == (2, 1)
    assert "model counters states no liveness properties" in done.stderr


def test_no_verdict_without_the_whole_graph(command: Command) -> None:
    done = command("liveness", "kip-320", "--max-states", "100")
    assert (done.mistake, done.stdout) == ((3, 1), "")
