"""Verdicts and reports of level 1."""

import json
from pathlib import Path
from xml.etree import ElementTree

from kspec.conformance.cluster.cases import LOST_BY_LEADER, ClusterCase, ScheduledCase, all_cases
from kspec.conformance.cluster.report import as_html, as_json, as_junit, line_of
from kspec.conformance.cluster.results import PROPERTIES, CaseOutcome, verdict_of
from kspec.conformance.wire.run.results import Status
from kspec.trials.faults.plans.steps import ClusterStep, Schedule, StepKind
from kspec.trials.history.anomalies import MEANINGS, Anomaly, anomalies_in
from kspec.trials.history.events import ACKNOWLEDGED, ConsumerAssignment, Event, PartitionEnd, Poll, SendStart
from kspec.trials.history.events import SendOutcome as Answer

PARTITION = "t-0"
LOST: list[Event] = [
    SendStart("p", PARTITION, "a"),
    Answer(PARTITION, "a", ACKNOWLEDGED, 0),
    ConsumerAssignment("c", PARTITION, 0),
    PartitionEnd("c", PARTITION, 0),
]
PHANTOM = Poll("d", PARTITION, ((0, "<nobody>"),))


def case_named(name: str) -> ClusterCase:
    (found,) = [one for one in all_cases() if one.name.endswith(name) and not one.by_hand]
    return found


def anomalies(*events: Event) -> tuple[Anomaly, ...]:
    return tuple(anomalies_in(events))


def failed() -> CaseOutcome:
    case, found = case_named("min-isr-of-one"), anomalies(*LOST)
    status, reason = verdict_of(case, found)
    scheduled = ScheduledCase(case, ("Produce(leader=1)",), Schedule((1, 2, 3), 2, (ClusterStep(StepKind.WRITE),)))
    return CaseOutcome(case, status, reason, 12.0, scheduled, {"sent": 1}, found, ("0.0 s  written",), Path("folder"))


OUTCOMES = [
    failed(),
    CaseOutcome(case_named(LOST_BY_LEADER), Status.PASS, "found", 3.0),
    CaseOutcome(case_named("count-what-is-sent"), Status.NOT_APPLICABLE, "the driver cannot kill"),
]


def replay(outcome: CaseOutcome) -> str:
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
    assert "Level 1, run 1f: 3 cases." in page
    assert "<li>1 pass</li><li>1 fail</li><li>1 not applicable</li>" in page


def test_a_result_in_one_line() -> None:
    line = "fail rules/min_isr/min-isr-of-one: AcknowledgedOnNextLeader: lost-write 1; 1 sent; 12 s"
    assert line_of(OUTCOMES[0]) == line
