"""Runs that no model has: the first failing case of conformance results as a run; what no recording is."""

from typing import Any

import pytest

from kspec.cli.explorer.recording import is_recording, shortened
from tests.model_check.explorer.asking import JsonExplorer

EXCHANGES = [
    {"client": "A", "api": "Metadata", "version": 13, "words": "", "request": {}, "answer": {"x": 1}, "expected": "known"},
    {
        "client": "A",
        "api": "Fetch",
        "version": 18,
        "words": "fetch from <b>here</b>",
        "request": {"y": "<script>"},
        "answer": {"error_code": 0},
        "expected": "UNKNOWN_LEADER_EPOCH",
        "differences": ["error_code: 0, not 75"],
    },
]


def results(*statuses: str) -> dict[str, Any]:
    """Results as `kspec conformance run --json` writes them, with a case of each status."""
    told = [{"differences": [], "request_hex": "", "answer_hex": "", **one} for one in EXCHANGES]
    more = {"title": "Fetch.", "reason": "wrong", "rule": "spec.broker.rules.fencing:check_leader_epoch", "kips": []}
    cases = [
        {"name": f"case/{number}", "status": status, "seconds": 0.1, **more, "replay": "again", "exchanges": told}
        for number, status in enumerate(statuses)
    ]
    return {"format": 1, "target": "127.0.0.1:9092", "run": "x", "counts": {}, "cases": cases}


def test_the_first_case_that_fails_is_a_run() -> None:
    answer = JsonExplorer().ask("import", trace=results("not supported", "fail", "fail"))
    assert answer["answer"] == "recording"
    views = answer["recording"]["views"]
    assert [view["position"] for view in views] == [1, 2, 3]
    last = views[-1]
    assert (last["run"]["model"], last["run"]["told"], last["moves"]) == ("case case/1", True, [])
    assert last["whole"] == last["address"] == "file~case%2F1~~3"
    assert [step["violates"] for step in last["steps"]] == [[], ["AnswersAreExpected"]]
    assert last["steps"][1]["events"] == [
        {"from": "client A", "to": "broker 1", "words": "fetch from <b>here</b>"},
        {"from": "broker 1", "to": "client A", "words": "not as expected: error_code: 0, not 75"},
    ]
    (prop,) = last["properties"]
    assert (prop["verdict"], prop["first_at"], prop["along"]) == ("violated", 3, "110")
    assert views[1]["properties"][0]["verdict"] == "holds"
    assert last["step"]["rules"][0]["rule"] == "spec.broker.rules.fencing.check_leader_epoch"
    assert {change["slot"] for change in last["step"]["changes"]} == {"expected", "answered", "wrong", "sent by client A"}
    assert is_recording(answer["recording"])
    assert is_recording(shortened(answer["recording"]))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (results("pass", "not applicable"), "there is no failure to show"),
        ({"counts": {}, "cases": [1]}, "are not whole"),
        ({"counts": {}, "cases": [{"status": "fail"}]}, "are not whole"),
        ({"counts": {}, "cases": [{"status": "fail", "exchanges": [{}]}]}, "are not whole"),
        ({"counts": {}, "cases": []}, "there is no failure to show"),
    ],
)
def test_results_without_a_failure_or_torn_say_so(document: dict[str, Any], words: str) -> None:
    page = JsonExplorer()
    kind, said = page.error("import", trace=document)
    assert kind == "bad-trace"
    assert words in said


def test_the_address_of_such_a_run_says_where_the_run_is() -> None:
    kind, said = JsonExplorer().error("open", address="file~simulated-1~~12")
    assert kind == "bad-address"
    assert "kspec explore --run FILE" in said


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"format": 1}, {"format": 2, "views": [{}]}, {"format": 1, "views": []}, {"format": 1, "views": {}}],
)
def test_what_is_no_recording(document: Any) -> None:
    assert not is_recording(document)
