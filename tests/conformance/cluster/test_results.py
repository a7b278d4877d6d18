"""Verdicts and reports of level 1."""

import json
from pathlib import Path
from xml.etree import ElementTree

from conformance.cluster.acts import Act, Do, Schedule
from conformance.cluster.cases import LOST_BY_LEADER, Case, Played, all_cases
from conformance.cluster.report import as_html, as_json, as_junit, line_of
from conformance.cluster.results import PROPERTIES, Outcome, verdict_of
from conformance.wire.run.results import Status
from impl.history.anomalies import MEANINGS, Anomaly, anomalies_in
from impl.history.events import ACKNOWLEDGED, Assigned, Ended, Event, Polled, Sent
from impl.history.events import Outcome as Answer

PARTITION = "t-0"
LOST: list[Event] = [
    Sent("p", PARTITION, "a"),
    Answer(PARTITION, "a", ACKNOWLEDGED, 0),
    Assigned("c", PARTITION, 0),
    Ended("c", PARTITION, 0),
]
PHANTOM = Polled("d", PARTITION, ((0, "<nobody>"),))


def case_named(name: str) -> Case:
    (found,) = [one for one in all_cases() if one.name.endswith(name) and not one.by_hand]
    return found


def anomalies(*events: Event) -> tuple[Anomaly, ...]:
    return tuple(anomalies_in(events))


def failed() -> Outcome:
    case, found = case_named("min-isr-of-one"), anomalies(*LOST)
    status, reason = verdict_of(case, found)
    played = Played(case, ("Produce(leader=1)",), Schedule((1, 2, 3), 2, (Act(Do.WRITE),)))
    return Outcome(case, status, reason, 12.0, played, {"sent": 1}, found, ("0.0 s  written",), Path("folder"))


OUTCOMES = [
    failed(),
    Outcome(case_named(LOST_BY_LEADER), Status.PASS, "found", 3.0),
    Outcome(case_named("count-what-is-sent"), Status.NOT_APPLICABLE, "the driver cannot kill"),
]


def replay(outcome: Outcome) -> str:
    return f"again {outcome.name}"


def test_every_anomaly_breaks_a_property() -> None:
    assert PROPERTIES.keys() == MEANINGS.keys()


def test_a_lost_record_is_a_failure_named_by_property_and_anomaly() -> None:
    assert verdict_of(case_named("min-isr-of-one"), anomalies(*LOST)) == (
        Status.FAIL,
        "AcknowledgedOnNextLeader: lost-write 1",
    )
    assert verdict_of(case_named("min-isr-of-one"), ()) == (Status.PASS, "")


def test_with_acks_1_it_is_found_and_named_and_no_failure() -> None:
    case = case_named(LOST_BY_LEADER)
    told = "found, as acks=1 may lose it: AcknowledgedOnNextLeader: lost-write 1"
    assert verdict_of(case, anomalies(*LOST)) == (Status.PASS, told)
    status, reason = verdict_of(case, anomalies(*LOST, PHANTOM))
    assert status == Status.FAIL
    assert "ConsistentRead: phantom 1" in reason


def test_junit_has_each_case_with_its_status() -> None:
    (suite,) = ElementTree.fromstring(as_junit(OUTCOMES, replay))
    assert suite.attrib == {"name": "kspec.level-1", "tests": "3", "failures": "1", "skipped": "1"}
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "AcknowledgedOnNextLeader: lost-write 1"
    assert failure.text is not None
    for part in ("Produce(leader=1)", "written", '"value": "a"', "again rules/min_isr/min-isr-of-one", "history.jsonl"):
        assert part in failure.text, part
    (skipped,) = suite.iter("skipped")
    assert skipped.get("message") == "not applicable: the driver cannot kill"


def test_json_has_the_run_what_was_done_and_the_evidence() -> None:
    document = json.loads(as_json(OUTCOMES, "a cluster", "1f", replay))
    assert (document["format"], document["level"], document["target"]) == (1, 1, "a cluster")
    assert document["counts"]["fail"] == document["counts"]["pass"] == document["counts"]["not applicable"] == 1
    first = document["cases"][0]
    assert first["run"] == ["Produce(leader=1)"]
    assert first["done"] == ["0.0 s  written"]
    assert [one["name"] for one in first["anomalies"]] == ["lost-write"]
    assert first["rule"].startswith("spec.")
    assert "run" not in document["cases"][2]


def test_html_has_failures_in_full_and_text_as_text() -> None:
    wrong = failed()._replace(anomalies=anomalies(PHANTOM))
    page = as_html([wrong, *OUTCOMES[1:]], "a <cluster>", "1f", replay)
    assert "a &lt;cluster&gt;" in page
    assert "&lt;nobody&gt;" in page
    assert page.count("<h2") == 2
    assert "Level 1, run 1f: 1 pass, 1 fail, 1 not applicable." in page


def test_a_result_in_one_line() -> None:
    line = "fail rules/min_isr/min-isr-of-one: AcknowledgedOnNextLeader: lost-write 1; 1 sent; 12 s"
    assert line_of(OUTCOMES[0]) == line
