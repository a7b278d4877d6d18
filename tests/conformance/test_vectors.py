"""Expectations of Apache Kafka's unit tests, and the adapter that replays them."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.controller_vectors import CONTROLLER_COMPONENTS
from tests.conformance.vectors import COMPONENTS, DATA, KAFKA_VECTORS, Vector, VectorOutcome, load, main, replay

VECTORS = load(KAFKA_VECTORS)
MORE_VECTORS = load(DATA / "kafka-more-vectors.json")
ASSIGN: Vector = {
    "id": "example",
    "component": "epoch_cache",
    "setup": [
        {"op": "assign", "epoch": 2, "start_offset": 10},
        {"op": "end_offset_for", "epoch": 2, "log_end_offset": 11, "expect": [2, 11]},
    ],
    "expect": {"entries": [[2, 10]]},
}


@pytest.mark.parametrize("vector", VECTORS + MORE_VECTORS, ids=lambda vector: str(vector["id"]))
def test_kafka(vector: Vector) -> None:
    assert replay(vector) == VectorOutcome(vector["id"], "pass")


def other_than(expected: Any) -> Any:
    """A value of the same kind that no vector expects."""
    match expected:
        case bool():
            return not expected
        case int():
            return expected + 777
        case list():
            return [*expected, 777]
        case str():
            return "nonempty" if expected == "empty" else "INVALID_PRODUCER_EPOCH_OF_NOBODY"
    return 777


def part_of(vector: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        vector = vector[name]
    return vector


def leaves(expected: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Paths to the values of an expectation; an object that expects nothing has none."""
    if isinstance(expected, dict):
        for name, part in expected.items():
            yield from leaves(part, (*path, name))
    else:
        yield path


def expectations(vector: Vector) -> Iterator[tuple[Any, ...]]:
    """Paths to all values that a vector expects."""
    steps = enumerate(vector["setup"])
    asked = [("setup", number, name) for number, step in steps for name in step if name.startswith("expect")]
    for root in (("expect",), *asked):
        yield from leaves(part_of(vector, root), root)


def test_every_expectation_counts() -> None:
    """With any one value of its expectations changed, no vector passes."""
    for vector in VECTORS + MORE_VECTORS:
        for path in expectations(vector):
            wrong = copy.deepcopy(vector)
            holder = part_of(wrong, path[:-1])
            holder[path[-1]] = other_than(holder[path[-1]])
            assert replay(wrong).verdict != "pass", (vector["id"], path)


def test_every_component_has_vectors() -> None:
    elsewhere = {*CONTROLLER_COMPONENTS, "cluster", "controller"}
    assert {vector["component"] for vector in VECTORS} == set(COMPONENTS) - elsewhere
    assert {vector["component"] for vector in MORE_VECTORS} == set(COMPONENTS)
    assert len({vector["id"] for vector in VECTORS + MORE_VECTORS}) == len(VECTORS) + len(MORE_VECTORS) == 236


def changed(**changes: object) -> Vector:
    return copy.deepcopy(ASSIGN) | changes


def test_a_wrong_answer_fails() -> None:
    wrong = changed()
    wrong["setup"][1]["expect"] = [2, 12]
    reason = "operation 2, end_offset_for: expected [2, 12], got [2, 11]"
    assert replay(wrong) == VectorOutcome("example", "fail", reason)


def test_an_expected_null_is_compared_too() -> None:
    wrong = changed()
    wrong["setup"][1]["expect"] = None
    assert replay(wrong).verdict == "fail"


def test_a_wrong_final_state_fails() -> None:
    outcome = replay(changed(expect={"entries": []}))
    assert outcome == VectorOutcome("example", "fail", "final entries: expected [], got [[2, 10]]")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"component": "quorum"}, "component quorum"),
        ({"setup": [{"op": "compact"}]}, "operation 1, compact"),
        ({"setup": [{"op": "clear", "at": 3}]}, "operation 1, clear, argument at"),
        ({"setup": [{"op": "truncate_to"}]}, "operation 1, truncate_to"),
        ({"setup": [{"op": "truncate_from_end"}]}, "operation 1, truncate_from_end, no argument offset"),
        ({"setup": [{"op": "__init__"}]}, "operation 1, __init__"),
        ({"setup": [{"op": "final_state"}]}, "operation 1, final_state"),
        ({"setup": [{"op": "latest_epoch", "expect": None, "expect_age": 3}]}, "operation 1, latest_epoch, expect_age"),
        ({"setup": [{"op": "state", "expect": {"flushed": True}}]}, "operation 1, state flushed"),
        ({"expect": {"flushed": True}}, "final flushed"),
        (
            {"component": "fetcher", "setup": [{"op": "leader_error", "api": "ping", "error": "NONE"}]},
            "operation 1, leader_error, step ping",
        ),
        (
            {"component": "log", "setup": [{"op": "read", "offset": 0, "isolation": "dirty"}]},
            "operation 1, read, isolation dirty",
        ),
    ],
)
def test_what_no_component_does_is_unsupported(changes: dict[str, object], reason: str) -> None:
    assert replay(changed(**changes)) == VectorOutcome("example", "unsupported", reason)


def log_vector(*operations: dict[str, object], **expect: object) -> Vector:
    return {"id": "log", "component": "log", "setup": list(operations), "expect": expect}


def test_an_error_that_is_not_expected_fails() -> None:
    moved = {"op": "increment_log_start", "offset": 1}
    assert (
        replay(log_vector(moved)).reason
        == 'operation 1, increment_log_start, error: expected "NONE", got "OFFSET_OUT_OF_RANGE"'
    )
    assert replay(log_vector(moved | {"expect_error": "OFFSET_OUT_OF_RANGE"})).verdict == "pass"


def test_an_expected_error_that_does_not_come_fails() -> None:
    appended = {"op": "append_leader", "count": 1, "leader_epoch": 0}
    assert replay(log_vector(appended | {"expect_error": "NOT_LEADER_OR_FOLLOWER"})).verdict == "fail"
    assert replay(log_vector(appended | {"expect_status": "NONE"}, leo=1)).verdict == "pass"


def test_a_state_in_between_is_compared_where_a_vector_speaks_of_it() -> None:
    appended = {"op": "append_leader", "count": 2, "leader_epoch": 0}
    assert replay(log_vector(appended, {"op": "state", "expect": {"leo": 2}})).verdict == "pass"
    wrong = replay(log_vector(appended, {"op": "state", "expect": {"leo": 3}}))
    assert wrong == VectorOutcome("log", "fail", "operation 2, state leo: expected 3, got 2")


def test_every_mode_has_to_pass() -> None:
    def follower(*modes: bool) -> Vector:
        setup = [
            {"op": "mode", "truncate_on_fetch": list(modes)},
            {"op": "follower", "log": [[0, 1, 0]], "leader_epoch": 0, "hw": 0},
            {"op": "add_partition", "init_offset": 1, "leader_epoch": 0},
        ]
        return {"id": "modes", "component": "fetcher", "setup": setup, "expect": {"fetch_state": "Fetching"}}

    assert [replay(follower(*modes)).verdict for modes in ((True,), (False,), (True, False))] == ["pass", "fail", "fail"]


@pytest.mark.parametrize(
    ("vectors", "status", "last_line"),
    [
        ([ASSIGN], 0, "1 vectors: 1 pass, 0 fail, 0 unsupported"),
        ([ASSIGN, changed(component="quorum")], 0, "2 vectors: 1 pass, 0 fail, 1 unsupported"),
        ([changed(expect={"entries": []}), ASSIGN], 1, "2 vectors: 1 pass, 1 fail, 0 unsupported"),
    ],
)
def test_the_exit_status_tells_failures(
    vectors: list[Vector], status: int, last_line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vectors.json"
    file.write_text(json.dumps(vectors), encoding="utf-8")
    assert main([str(file)]) == status
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[:-1]] == [replay(vector).verdict for vector in vectors]
    assert printed[-1] == last_line


def test_without_a_file_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "", "{}", "[1", '"vectors"'])
def test_what_is_no_file_of_vectors_gets_one_line(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vectors.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert main([str(file)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert "no file of vectors, which is a JSON list" in printed.err


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"component": "leader_partition", "setup": [{"op": "seed_batches", "batches": [[1, 2, 3, 4]]}]}, "operation 1"),
        ({"setup": [{"op": "assign", "epoch": "two", "start_offset": [1]}]}, "operation 1, assign, epoch 'two'"),
        ({"setup": [{"epoch": 2}]}, "not in the vocabulary: KeyError"),
        ({"setup": {"op": "clear"}}, "not in the vocabulary: AttributeError"),
        ({"component": "log", "setup": [{"op": "append_leader", "count": None}]}, "operation 1, append_leader, count None"),
        ({"component": ["log"]}, "not in the vocabulary: TypeError"),
        ({"component": "log", "setup": [{"op": "append_leader", "times": 10**9}]}, "operation 1"),
        ({"setup": [{"op": "clear", "expect_entries": [], "expect_age": 3}]}, "operation 1, clear, expect_age"),
    ],
)
def test_arguments_of_another_form_are_unsupported_and_no_exception(changes: dict[str, object], reason: str) -> None:
    outcome = replay(changed(**changes))
    assert outcome.verdict == "unsupported"
    assert outcome.reason.startswith(reason)


def test_what_no_broker_can_be_in_fails_and_does_not_end_the_run() -> None:
    over = {"op": "seed_batches", "batches": [[0, 3, 0], [1, 1, 0]]}
    outcome = replay(changed(component="leader_partition", setup=[over], expect={}))
    assert outcome.verdict == "fail"
    assert "would overwrite a log" in outcome.reason


@pytest.mark.parametrize(
    ("role", "current", "error"),
    [
        ("leader", 5, "NONE"),
        ("leader", 4, "FENCED_LEADER_EPOCH"),
        ("leader", 6, "UNKNOWN_LEADER_EPOCH"),
        ("leader", None, "NONE"),
        ("follower", 5, "NOT_LEADER_OR_FOLLOWER"),
        ("follower", 4, "FENCED_LEADER_EPOCH"),
        ("online_partition_without_log", 5, "NOT_LEADER_OR_FOLLOWER"),
        ("not_in_metadata", 5, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_whoever_is_asked_for_an_epochs_end_checks_the_epoch_of_the_request(
    role: str, current: int | None, error: str
) -> None:
    host = {"op": "host", "role": role, "leader_epoch": 5, "log_end_offset_for": {"3": [3, 7]}}
    end = (3, 7) if error == "NONE" else (-1, -1)
    answer = {"error": error, "epoch": end[0], "end_offset": end[1]}
    asked = {"op": "offset_for_leader_epoch", "current_leader_epoch": current, "leader_epoch": 3, "expect": answer}
    vector = changed(component="offset_for_leader_epoch_api", setup=[host, asked], expect={})
    assert replay(vector) == VectorOutcome("example", "pass")


def test_a_role_that_is_not_known_is_unsupported() -> None:
    vector = changed(component="offset_for_leader_epoch_api", setup=[{"op": "host", "role": "observer"}], expect={})
    assert replay(vector) == VectorOutcome("example", "unsupported", "operation 1, host, role observer")
