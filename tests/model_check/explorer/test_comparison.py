"""A run under other rules: where it parts from itself, in what, and by which rule."""

from typing import Any

from kspec.model_check.reports.studies import STUDIES
from tests.model_check.explorer.asking import JsonExplorer


def _at_the_end_of(name: str) -> JsonExplorer:
    study = next(study for study in STUDIES if study.name == name)
    parameters = {name.replace("_", "-"): value for name, value in study.failing.parameters.items()}
    page = JsonExplorer()
    page.view("start", model=study.failing.model, parameters=parameters)
    page.view("open", address=page.ask("find", property=study.invariant)["address"])
    return page


def test_the_loss_before_kip_101_parts_where_the_follower_truncates() -> None:
    page = _at_the_end_of("kip-101-loss")
    told = page.ask("retrace", model="kip-101")
    assert (told["same"], told["possible"], told["parts_at"]) == (False, True, 10)
    assert told["step"]["action"] == "BecomeFollowerTruncateToHighWatermark"
    assert told["differences"] == [{"slot": "log[2]", "party": "broker 2", "here": "empty", "there": "m0(e0)"}]
    truncation = next(pair for pair in told["rules"]["instead"] if pair["field"] == "truncation")
    assert truncation["here"].endswith("truncate_to_high_watermark")
    assert truncation["there"].endswith("truncate_to_epoch_end")
    lost = {"property": "AcknowledgedOnLeader", "here": "violated", "there": "holds"}
    assert lost in told["properties"]
    other = JsonExplorer().view("open", address=told["address"])
    assert other["changed"] is None
    assert other["run"]["model"] == "kip-101"


def test_a_run_of_0_10_under_0_11_parts_where_a_follower_begins_and_says_by_which_rule() -> None:
    page = JsonExplorer()
    page.view("start", model="kafka", release="0.10", parameters={"brokers": 2, "elections": 2})
    page.view("open", address=page.ask("find", property="CommittedOnNextLeader")["address"])
    told = page.ask("retrace", release="0.11")
    assert (told["same"], told["possible"], told["parts_at"], told["stuck_at"]) == (False, False, 7, 8)
    assert told["step"]["action"] == "HandleRequest"
    assert [difference["slot"] for difference in told["differences"]] == ["fetcher[2]"]
    assert told["forbidden_by"]["meaning"] == "The guard that a follower's next request is a fetch from this leader."
    (pair,) = told["rules"]["instead"]
    assert pair["field"] == "start_following"
    assert pair["here"].endswith("start_at_high_watermark")
    assert pair["there"].endswith("start_by_asking")
    by_rule = {rule["rule"]: rule for rule in told["rules"]["only_there"]}
    assert "0.11" in by_rule[pair["there"]]["changes"][0]["releases"]
    assert {"property": "CommittedOnNextLeader", "here": "violated", "there": "holds"} in told["properties"]


def test_the_same_rules_lead_to_the_same_states() -> None:
    page = _at_the_end_of("kip-101-loss")
    told: dict[str, Any] = page.ask("retrace", model="truncate-to-hw")
    assert (told["same"], told["parts_at"], told["differences"]) == (True, None, [])
    assert all(one["here"] == one["there"] for one in told["properties"])


def test_a_step_that_is_not_possible_there_is_told_with_its_guard() -> None:
    page = JsonExplorer()
    page.view("start", model="kip-101", parameters={"replicas": 2, "max-epoch": 1})
    page.view("step", action="ControllerElectLeader", args={"replica": 1})
    page.view("step", action="BecomeLeader", args={"leader": 1, "epoch": 0})
    page.view("step", action="LeaderWrite", args={"leader": 1})
    told = page.ask("retrace", parameters={"max-records": 0})
    assert (told["possible"], told["parts_at"], told["stuck_at"]) == (False, 4, 4)
    assert told["forbidden_by"]["kind"] in ("guard", "effect")


def test_models_with_other_slots_have_no_step_in_common() -> None:
    page = JsonExplorer()
    page.view("start", model="kafka", release="2.8", parameters={"brokers": 2, "min-isr": 1})
    page.view("step", action="CreatePartition", args={"leader": 1})
    told = page.ask("retrace", release="3.0")
    assert (told["same"], told["parts_at"], told["possible"]) == (False, 1, False)
    assert "zookeeper" in told["only_here"]
    assert "controller" in told["only_there"]


def test_a_release_that_cannot_have_the_bounds_is_refused() -> None:
    page = JsonExplorer()
    before = page.view("start", model="kafka", release="2.8", parameters={"brokers": 2, "min-isr": 1, "failovers": 1})
    kind, words = page.error("retrace", release="3.0")
    assert kind == "bad-parameter"
    assert words.startswith("--failovers: not with --release 3.0")
    assert page.view("view") == before
