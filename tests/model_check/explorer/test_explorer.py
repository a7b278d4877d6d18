"""An explorer's answers are those of the reference engine, for every model; and every error says what is wrong."""

import subprocess
import sys
from random import Random
from types import FrameType
from typing import Any

import pytest

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines import reference
from kspec.model_check.explorer import Explorer
from kspec.model_check.models import MODELS
from kspec.model_check.reports.studies import STUDIES, Study
from kspec.model_check.traces.encode import as_json
from kspec.model_check.traces.render import slot_in_words
from tests.model_check.explorer.asking import JsonExplorer

SMALL: dict[str, dict[str, Any]] = {name: {} for name in MODELS} | {
    "kafka": {"brokers": 2, "min-isr": 1, "isr-shrinks": 1, "fencings": 1},
    "kafka 2.8": {"brokers": 2, "min-isr": 1, "release": "2.8", "isr-shrinks": 1},
    "kafka 0.10": {"brokers": 2, "min-isr": 1, "release": "0.10", "unclean-shutdowns": 1},
    "kafka late": {"brokers": 2, "min-isr": 1, "late-fetches": 1, "retries": 1, "mutant": "no-divergence-check"},
}
STEPS = 12

QUICK = ("kip-101-loss", "kip-101-divergence")
"""Studies whose shortest run is found in a second."""


@pytest.mark.parametrize("case", SMALL)
def test_random_steps_agree_with_the_reference_engine(case: str) -> None:
    """Successors, states, verdicts of all properties, and what is possible at all."""
    page, random = JsonExplorer(), Random(case)
    name = case.split(" ", maxsplit=1)[0]
    view = page.view("start", model=name, parameters=SMALL[case])
    given = {parameter.replace("-", "_"): value for parameter, value in SMALL[case].items()}
    model = MODELS[name].build(given)
    state = model.initial
    for _ in range(STEPS):
        following: dict[tuple[str, str], list[Any]] = {}
        for action in model.actions:
            after = action.bind()(state)
            if after is not None and all(term.bind()(after) for term in model.constraint):
                following.setdefault((action.name, str(as_json(action.args))), []).append(after)
        enabled = [move for move in view["moves"] if move["enabled"]]
        assert {(move["action"], str(move["args"])) for move in enabled} == set(following)
        assert all(("forbidden_by" in move) != move["enabled"] for move in view["moves"])
        _verdicts_agree(view, model, state)
        if not enabled:
            break
        move = random.choice(enabled)
        afters = list(dict.fromkeys(following[move["action"], str(move["args"])]))
        assert move.get("choices", 1) == len(afters)
        choice = random.randint(1, len(afters))
        view = page.view("step", action=move["action"], args=move["args"], choice=choice)
        state = afters[choice - 1]
        _state_agrees(view, model, state)
    again = JsonExplorer().view("open", address=view["address"])
    assert again.pop("changed") is None
    assert again == view


def _verdicts_agree(view: dict[str, Any], model: Any, state: Any) -> None:
    expected = {prop.name: prop.bind()(state) for prop in model.properties}
    for prop in view["properties"]:
        if prop["kind"] == "always":
            assert prop["verdict"] == ("holds" if expected[prop["property"]] else "violated")
            assert bool(prop.get("witness")) != expected[prop["property"]]
        elif expected[prop["property"]]:
            assert prop["verdict"] == "reached"


def _state_agrees(view: dict[str, Any], model: Any, state: Any) -> None:
    tree = view["state"]
    parts = [*tree["brokers"], tree["controller"], tree["clients"]]
    words = {slot["slot"]: slot["words"] for part in parts for slot in part["slots"]}
    shown = [(slot, value) for slot, value in zip(model.slots, state, strict=True) if not slot.bookkeeping]
    assert words == {slot.label: slot_in_words(slot, value) for slot, value in shown}
    for slot, value in shown:
        if slot.name == "log":
            log = next(part["log"] for part in tree["brokers"] if part["broker"] == slot.broker)
            held = getattr(value, "log", value)
            epochs = [(record["leader_epoch"], record["value"]) for record in log["records"]]
            assert epochs == [(record.leader_epoch, record.value) for record in held.records]
            assert (log["start"], log["end"]) == (held.start_offset, held.end_offset)
            high_watermark = state[model.slot_named(f"highWatermark[{slot.key}]").position] if held is value else value[1]
            assert log["high_watermark"] == high_watermark
            assert all(record["below_high_watermark"] == (record["offset"] < high_watermark) for record in log["records"])


def _started(page: JsonExplorer, study: Study) -> dict[str, Any]:
    parameters = {name.replace("_", "-"): value for name, value in study.failing.parameters.items()}
    return page.view("start", model=study.failing.model, parameters=parameters)


@pytest.mark.parametrize("name", QUICK)
def test_the_shortest_run_of_a_study_is_found_and_replays_to_its_violated_property(name: str) -> None:
    study = next(study for study in STUDIES if study.name == name)
    page = JsonExplorer()
    _started(page, study)
    found = page.ask("find", property=study.invariant)
    model = MODELS[study.failing.model].build(study.failing.parameters)
    prop = model.property_named(study.invariant)
    assert prop is not None
    (verdict,) = reference.explore(model, [prop], Limits()).verdicts
    assert verdict.trace is not None
    assert found["found"]
    assert [(step["action"], step["args"]) for step in found["steps"]] == [
        (step.action.name, as_json(step.action.args)) for step in verdict.trace if step.action
    ]
    view = page.view("open", address=found["address"])
    assert view["changed"] is None
    violating = next(prop for prop in view["properties"] if prop["property"] == study.invariant)
    assert violating["verdict"] == "violated"
    assert violating["first_at"] == view["position"] == len(verdict.trace)
    assert violating["premise"]["met"]
    assert violating["witness"][0]["replicas"]
    assert study.invariant in view["steps"][-1]["violates"]
    assert all(study.invariant not in step["violates"] for step in view["steps"][:-1])


def test_a_witness_names_the_acknowledged_record_that_the_leader_lacks() -> None:
    page = JsonExplorer()
    _started(page, next(study for study in STUDIES if study.name == "kip-101-loss"))
    view = page.view("open", address=page.ask("find", property="AcknowledgedOnLeader")["address"])
    failing = next(prop for prop in view["properties"] if prop["property"] == "AcknowledgedOnLeader")
    (witness,) = failing["witness"]
    assert witness["replicas"] == [2]
    assert witness["records"] == [{"offset": 0, "held": {"acknowledged": "m0(e0)", "log[2]": None}}]
    assert view["state"]["clients"]["acknowledged"] == [{"offset": 0, "value": 0, "leader_epoch": 0, "words": "m0(e0)"}]


def _follower_begins(mutant: str | None) -> dict[str, dict[str, Any]]:
    """The rules of the step in which a broker begins to follow, by name."""
    page = JsonExplorer()
    page.view("start", model="kafka", release="4.4", parameters={"brokers": 2, "min-isr": 1}, mutant=mutant)
    page.view("step", action="CreatePartition", args={"leader": 1})
    page.view("step", action="ReplayMetadata", args={"broker": 1, "decisions": 1})
    view = page.view("step", action="ReplayMetadata", args={"broker": 2, "decisions": 1})
    return {rule["rule"].rpartition(".")[2]: rule for rule in view["step"]["rules"]}


def test_a_step_names_its_rules_with_kafkas_method_releases_and_mutants() -> None:
    rules = _follower_begins(None)
    assert "become_follower" in rules
    assert all(rule["kafka"] and rule["meaning"] for rule in rules.values())
    changed = [use for rule in rules.values() for use in rule["changes"]]
    assert any(use["field"] == "start_following" and "4.4" in use["releases"] for use in changed)
    weakened_by = {name for rule in rules.values() for name in rule["weakened_by"]}
    assert "truncate-to-high-watermark" in weakened_by
    assert not any(rule["mutant_of"] for rule in rules.values())


def test_the_rule_of_a_mutant_is_named_as_such() -> None:
    mutants = {name for rule in _follower_begins("truncate-to-high-watermark").values() for name in rule["mutant_of"]}
    assert mutants == {"truncate-to-high-watermark"}


def test_undo_jump_and_another_step_in_the_middle() -> None:
    page = JsonExplorer()
    page.view("start", model="kip-101", parameters={"replicas": 2})
    first = page.view("step", action="ControllerElectLeader", args={"replica": 1})
    second = page.view("step", action="BecomeLeader", args={"leader": 1, "epoch": 0})
    back = page.view("undo")
    assert (back["position"], back["length"], back["state"]) == (2, 3, first["state"])
    assert page.view("jump", to=3) == second
    page.view("jump", to=1)
    kept = page.view("step", action="ControllerElectLeader", args={"replica": 1})
    assert kept["length"] == 3
    page.view("jump", to=1)
    branch = page.view("step", action="ControllerElectLeader", args={"replica": 2})
    assert (branch["position"], branch["length"]) == (2, 2)


def test_a_forbidden_step_is_answered_with_its_guard() -> None:
    page = JsonExplorer()
    view = page.view("start", model="kip-101", parameters={"replicas": 2})
    answer = page.ask("step", action="BecomeLeader", args={"leader": 1, "epoch": 0})
    assert answer["kind"] == "not-enabled"
    assert answer["forbidden_by"]["source"] == "is_leader"
    assert answer["forbidden_by"]["rules"][0]["kafka"] == "`Partition.isLeader`."
    move = next(move for move in view["moves"] if move["words"] == "BecomeLeader  leader 1, epoch 0")
    why = page.ask("why", index=move["index"])
    assert why["forbidden_by"] == answer["forbidden_by"]
    assert move["forbidden_by"].items() <= why["forbidden_by"].items()


def test_the_guard_that_is_told_is_one_that_fails() -> None:
    page = JsonExplorer()
    view = page.view("start", model="kafka", parameters={"brokers": 2})
    produce = next(move for move in view["moves"] if move["action"] == "Produce" and move["args"] == {"leader": 2})
    assert produce["forbidden_by"]["source"] == "role.leader == leader"
    assert produce["forbidden_by"]["made_with"] == {"leader": "2"}
    assert produce["forbidden_by"]["reads"] == [{"slot": "role[2]", "party": "broker 2", "words": "none"}]


def test_a_search_stops_at_its_bound_and_when_it_is_cancelled() -> None:
    page = JsonExplorer()
    page.view("start", model="kafka", parameters={"brokers": 2, "min-isr": 1})
    stopped = page.ask("find", property="CommittedOnNextLeader", states=100)
    assert (stopped["found"], stopped["complete"]) == (False, False)
    assert stopped["stopped_because"] == "the limit of 100 states is reached"
    reports: list[dict[str, Any]] = []
    page = JsonExplorer(Explorer(cancelled=lambda: True, report=reports.append))
    page.view("start", model="kafka", parameters={"isr-shrinks": 2, "fencings": 1})
    cancelled = page.ask("find", property="CommittedOnNextLeader", states=1_000_000)
    assert cancelled["stopped_because"] == "interrupted"
    assert reports


def test_a_search_goes_on_from_the_present_state() -> None:
    page = JsonExplorer()
    page.view("start", model="kip-101", parameters={"replicas": 2})
    page.view("step", action="ControllerElectLeader", args={"replica": 2})
    found = page.ask("find", property="SomebodyLeads", start="here")
    assert (found["found"], found["steps"]) == (True, [])
    way = page.ask("find", property="LeaderHasCommittedWithOthers", start="here")
    view = page.view("open", address=way["address"])
    assert view["position"] == 2 + len(way["steps"])
    assert view["steps"][0]["args"] == {"replica": 2}
    reached = next(prop for prop in view["properties"] if prop["property"] == "LeaderHasCommittedWithOthers")
    assert reached["first_at"] == view["position"]


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        ({"do": "start", "model": "kip-102"}, "unknown-model", "there is no model 'kip-102'; did you mean kip-101"),
        ({"do": "start"}, "unknown-model", "there is no model None"),
        ({"do": "start", "model": "kafka", "release": "9.9"}, "bad-parameter", "--release 9.9: "),
        ({"do": "start", "model": "kip-101", "release": "4.4"}, "bad-parameter", "model kip-101 has no parameter 'release'"),
        (
            {"do": "start", "model": "kafka", "parameters": {"brokers": "3"}},
            "bad-parameter",
            "--brokers '3': must be a whole",
        ),
        ({"do": "start", "model": "kafka", "parameters": {"brokers": True}}, "bad-parameter", "--brokers True: must be"),
        ({"do": "start", "model": "kafka", "parameters": {"brokers": 13}}, "bad-parameter", "--brokers 13: too large"),
        (
            {"do": "start", "model": "kafka", "parameters": {"release": None}},
            "bad-parameter",
            "--release None: must",
        ),
        (
            {"do": "start", "model": "kafka", "parameters": {"unclean": 1}},
            "bad-parameter",
            "--unclean 1: must be true",
        ),
        (
            {"do": "start", "model": "kip-101", "parameters": {"repair": "x"}},
            "bad-parameter",
            "--repair 'x': must be",
        ),
        ({"do": "start", "model": "kafka", "parameters": [1]}, "bad-message", "parameters of start must be an object"),
        ({"do": "start", "model": "kafka", "seed": 1}, "bad-message", "start has no field 'seed'; start takes model"),
        ({"do": "walk"}, "bad-message", "a message cannot do 'walk'"),
        ({}, "bad-message", "a message cannot do None"),
        (
            {"do": "step", "action": "BecomeLaeder", "args": {}},
            "unknown-action",
            "model kip-101 has no action 'BecomeLaeder'",
        ),
        (
            {"do": "step", "action": "BecomeLeader", "args": {"leader": 1}},
            "bad-argument",
            "BecomeLeader(leader=1): the",
        ),
        (
            {"do": "step", "action": "LeaderWrite", "args": {"leader": 7}},
            "bad-argument",
            "LeaderWrite(leader=7): leader is",
        ),
        (
            {"do": "step", "action": "LeaderWrite", "args": {"leader": "1"}},
            "bad-argument",
            "leader '1': must be a whole",
        ),
        ({"do": "step", "index": 999}, "unknown-action", "index 999: must be from 0 to"),
        ({"do": "step", "index": -1}, "unknown-action", "index -1: must be from 0 to"),
        ({"do": "step"}, "bad-message", "a move is named by an index, or an action with its args"),
        ({"do": "step", "index": 0, "choice": 3}, "bad-choice", "ControllerElectLeader(replica=1) can be taken in one way"),
        ({"do": "undo"}, "bad-position", "this is the initial state; there is no step to undo"),
        ({"do": "jump", "to": 2}, "bad-position", "jump to 2: must be a state from 1 to 1"),
        ({"do": "jump", "to": True}, "bad-message", "to of jump must be a whole number, not True"),
        ({"do": "find", "property": "WeakIrs"}, "unknown-property", "model kip-101 has no property 'WeakIrs'; did you mean"),
        ({"do": "find", "property": "WeakIsr", "states": 0}, "bad-message", "states 0: must be 1 or more"),
        ({"do": "find", "property": "WeakIsr", "start": "there"}, "bad-message", "start 'there'; choose from initial, here"),
        ({"do": "retrace"}, "bad-message", "retrace needs another model, release, mutant or parameters"),
        ({"do": "open"}, "bad-message", "open needs an address"),
    ],
    ids=str,
)
def test_a_wrong_message_is_answered_in_one_sentence_and_changes_nothing(
    message: dict[str, Any], kind: str, words: str
) -> None:
    page = JsonExplorer()
    before = page.view("start", model="kip-101", parameters={"replicas": 2})
    answer = page.explorer.answer({**message, "id": 7})
    assert (answer["answer"], answer["id"], answer["kind"]) == ("error", 7, kind)
    assert answer["words"].startswith(words)
    assert "\n" not in answer["words"]
    assert page.view("view") == before


def test_what_is_no_object_and_a_view_without_a_run_are_refused() -> None:
    assert Explorer().answer([1])["words"] == "a message is an object, not list"
    assert Explorer().answer({"do": "view"})["kind"] == "no-run"


def test_every_model_is_listed_and_starts_as_listed() -> None:
    page = JsonExplorer()
    listed = page.ask("models")["models"]
    assert [model["name"] for model in listed] == list(MODELS)
    kafka = next(model for model in listed if model["name"] == "kafka")
    assert kafka["releases"][0] == "0.10"
    assert all(kafka["mutants"].values())
    for model in listed:
        defaults = {parameter["name"]: parameter["default"] for parameter in model["parameters"]}
        assert page.view("start", model=model["name"], parameters=defaults)["position"] == 1


def test_the_explorer_needs_nothing_that_a_browser_lacks() -> None:
    """Neither a library nor threads, processes or sockets: what it imports, in a process of its own."""
    program = (
        "import sys; from kspec.model_check.explorer import Explorer; e = Explorer();"
        "e.answer({'do': 'start', 'model': 'kafka'}); e.answer({'do': 'start', 'model': 'messages'});"
        "print([n for n in ('numba', 'numpy', 'pyarrow', 'click', 'socket', 'multiprocessing', 'subprocess', 'asyncio')"
        " if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


def test_a_step_asks_what_each_decision_comes_to_once() -> None:
    """Whether it is possible, what forbids it, and the state after it: all from one evaluation."""
    page = Explorer()
    view = page.answer({"do": "start", "model": "controller", "parameters": {}})
    index = next(move["index"] for move in view["moves"] if move["enabled"])
    decided = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal decided
        decided += event == "call" and frame.f_code.co_name == "decided"

    sys.setprofile(count)
    try:
        view = page.answer({"do": "step", "index": index})
    finally:
        sys.setprofile(None)
    possible = sum(move["enabled"] for move in view["moves"])
    assert possible > 20
    assert 0 < decided - len(view["moves"]) <= 8, "a few more for the step itself, which is watched for its rules"


def test_the_address_of_all_steps_is_that_of_the_run_at_its_end_alone() -> None:
    page = JsonExplorer()
    view = page.view("start", model="kip-101", parameters={"replicas": 2})
    assert view["address"] == view["whole"]
    view = page.view("step", index=next(move["index"] for move in view["moves"] if move["enabled"]))
    assert view["address"] == view["whole"]
    before = page.view("undo")
    assert (before["whole"], before["address"]) != (view["whole"], view["address"])
    assert before["whole"] == view["whole"]
    assert page.view("open", address=before["address"])["position"] == 1
