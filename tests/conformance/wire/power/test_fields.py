"""The fields of answers that the cases look at: by their paths, and on the page."""

import pytest

from kspec.conformance.wire.cases.kept import whole_suite
from tests.conformance.wire.power.fields import PAGE, REASONS, AnswerField, as_markdown, looked_at, reason_of, report_of


def test_a_path_looks_at_its_end_and_at_what_it_chooses_by() -> None:
    assert looked_at("topics[name=@topic].partitions[#partition_index=1]") == {
        "topics.name",
        "topics.partitions.partition_index",
        "topics.partitions[#]",
    }
    assert looked_at("error_code") == {"error_code"}
    assert looked_at("topics[0].isr_nodes[0]") == {"topics.isr_nodes"}


def test_fields_are_looked_at_in_the_versions_of_the_request_and_of_the_field() -> None:
    expect = [{"path": "error_code", "versions": [0, 4]}, {"path": "throttle_time_ms", "versions": [1, 4]}]
    step = {"client": "A", "api": "Heartbeat", "versions": [0, 2], "ending": "answered", "expect": expect}
    late = {"client": "B", "api": "SyncGroup", "versions": [4, 5], "ending": "later", "expect": []}
    awaited = {"client": "B", "api": "SyncGroup", "expect": [{"path": "protocol_type", "versions": [5, 5]}]}
    report = report_of([{"steps": [late, step | {"awaited": [awaited]}]}])
    assert report.seen[AnswerField("Heartbeat", "throttle_time_ms")] == {1, 2}
    assert report.seen[AnswerField("SyncGroup", "protocol_type")] == {5}
    assert AnswerField("SyncGroup", "assignment") in report.missing()
    assert report.partly() == {}


@pytest.mark.slow
def test_the_page_has_each_field_that_no_case_looks_at_and_the_reason() -> None:
    report = report_of(whole_suite().documents)
    assert [str(one) for one in report.missing() if not reason_of(one)] == []
    assert {reason_of(one) for one in report.missing()} == set(REASONS.values())
    assert PAGE.read_text(encoding="utf-8") == as_markdown(report)
