"""The shortest run in which two sides differ, milestones of records, and what changed between two states of a run."""

from typing import Any

from kspec.model_check.explorer import Explorer
from tests.model_check.explorer.asking import JsonExplorer
from tests.model_check.explorer.test_files import LOSS, opened

SMALL = {"replicas": 2, "log-size": 1, "max-records": 1, "max-epoch": 1, "restarts": 1, "acks": "all"}


def started(**more: Any) -> JsonExplorer:
    page = JsonExplorer()
    page.view("start", model="truncate-to-hw", parameters={**SMALL, **more})
    return page


def test_the_shortest_run_in_which_two_releases_differ_ends_with_the_rule_that_is_other() -> None:
    page = started()
    found = page.ask("differ", address="kip-101")
    assert (found["found"], found["looked_for"]) == (True, "a difference between the two states")
    page.view("open", address=found["address"])
    told = page.ask("retrace", address="kip-101")
    assert told["parts_at"] == len(found["steps"]) + 1 == told["there"]["position"]
    assert [one["field"] for one in told["rules"]["instead"]] == ["truncation"]


def test_a_shorter_run_has_no_difference() -> None:
    page = started()
    steps = page.ask("differ", model="kip-101")["steps"]
    for step in steps[:-1]:
        page.view("step", **step)
    assert page.ask("retrace", model="kip-101")["same"]


def test_the_shortest_run_with_another_verdict_violates_on_one_side() -> None:
    page = started()
    found = page.ask("differ", address="kip-101", until="verdict")
    page.view("open", address=found["address"])
    verdicts = [(one["here"], one["there"]) for one in page.ask("retrace", model="kip-101")["properties"]]
    assert any(here != there for here, there in verdicts)


def test_the_same_rules_never_differ() -> None:
    found = started(**{"max-epoch": 0}).ask("differ", address="truncate-to-hw")
    assert (found["found"], found["complete"], found["stopped_because"]) == (False, True, None)


def test_a_search_for_a_difference_stops_at_its_limit_and_when_it_is_cancelled() -> None:
    assert (
        started().ask("differ", address="truncate-to-hw", states=50)["stopped_because"]
        == "the limit of 50 states is reached"
    )
    heard: list[dict[str, Any]] = []
    page = JsonExplorer(Explorer(cancelled=lambda: len(heard) > 1, report=heard.append))
    page.view("start", model="truncate-to-hw", parameters=SMALL)
    assert page.ask("differ", address="truncate-to-hw")["stopped_because"] == "interrupted"


def test_what_cannot_be_compared_is_refused() -> None:
    page = started()
    assert page.error("differ", address="kip-101", until="noon")[1] == "until 'noon'; choose from state, verdict"
    assert page.error("differ", address="async-isr")[1].startswith("the two have different slots")
    assert page.error("retrace", address="kip-101", model="kip-101")[0] == "bad-message"
    assert page.error("retrace", address=LOSS)[1] == "the address of other rules has no steps: the run has them"


def test_the_other_side_has_a_view_of_its_own() -> None:
    there = opened().ask("retrace", address="kip-101")["there"]
    assert (there["position"], there["length"]) == (11, 11)
    assert there["run"]["model"] == "kip-101"
    assert [one["words"] for one in there["state"]["brokers"][1]["log"]["records"]] == ["m0(e0)"]


def test_milestones_of_records_stand_at_their_steps() -> None:
    steps = opened().view("view")["steps"]
    found = [(step["number"], mark["kind"], mark["party"]) for step in steps for mark in step["marks"]]
    assert found == [(7, "committed", "broker 1"), (7, "acknowledged", "producer"), (10, "lost", "broker 2")]


def test_each_property_has_its_verdict_along_the_run() -> None:
    verdicts = {one["property"]: one["along"] for one in opened().view("view")["properties"]}
    assert verdicts["AcknowledgedOnLeader"] == "11111111110"
    assert verdicts["SomebodyLeads"] == "01111111111"


def test_two_states_of_a_run_are_compared() -> None:
    page = opened()
    changes = page.ask("diff", **{"from": 10})["changes"]
    assert [(one["slot"], one["party"]) for one in changes] == [("role[2]", "broker 2")]
    assert page.error("diff", **{"from": 12})[1] == "diff from 12: must be a state from 1 to 11"


def test_the_whole_run_has_an_address_wherever_one_is() -> None:
    page = opened()
    whole = page.view("view")["whole"]
    view = page.view("jump", to=3)
    assert view["whole"] == whole != view["address"]
