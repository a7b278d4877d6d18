"""Vectors in other words: what means the same passes, and what means nothing is unsupported, whatever it is."""

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.values import Error
from tests.conformance.components.batches import batches_of
from tests.conformance.outcomes import UnsupportedError
from tests.conformance.vectors import DATA, VectorOutcome, load, replay
from tests.conformance.vocabulary import bind, error_name, field_of, in_snake_case, read_as

VECTORS = [vector for file in sorted(DATA.glob("*.json")) for vector in load(file)]
ONE_OF_EACH = {vector["component"]: vector for vector in VECTORS}


# ---- the same in other words


def renamed(value: Any, rename: Any) -> Any:
    """Every name of an operation's arguments and expectations in another way."""
    if isinstance(value, dict):
        return {name if name == "op" else rename(name): renamed(part, rename) for name, part in value.items()}
    return [renamed(part, rename) for part in value] if isinstance(value, list) else value


def in_camel_case(name: str) -> str:
    return name if name in ("expect", "op") else re.sub(r"(?<=[a-z])_([a-z])", lambda found: found[1].upper(), name)


def test_camel_case_means_the_same() -> None:
    for vector in VECTORS:
        setup = [renamed(step, in_camel_case) if step["op"] != "mode" else step for step in vector["setup"]]
        assert replay(vector | {"setup": setup}) == VectorOutcome(vector["id"], "pass")


def with_error_codes(operation: dict[str, Any]) -> dict[str, Any]:
    codes = {error.name: error.value for error in Error if isinstance(error.value, int)}
    return {name: codes.get(value, value) if name == "expect_error" else value for name, value in operation.items()}


def test_an_error_may_be_a_code() -> None:
    for vector in VECTORS:
        setup = [with_error_codes(step) for step in vector["setup"]]
        assert replay(vector | {"setup": setup}) == VectorOutcome(vector["id"], "pass")


@pytest.mark.parametrize(
    ("given_as", "name"),
    [
        (None, "NONE"),
        (0, "NONE"),
        ("NONE", "NONE"),
        ("none", "NONE"),
        (74, "FENCED_LEADER_EPOCH"),
        ("FencedLeaderEpochException", "FENCED_LEADER_EPOCH"),
        ("OutOfOrderSequenceException", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("KafkaStorageException", "KAFKA_STORAGE_ERROR"),
        ("IllegalArgumentException", "ILLEGAL_ARGUMENT"),
        ("UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_names_of_errors(given_as: object, name: str) -> None:
    assert error_name(given_as) == name


@pytest.mark.parametrize("error", [4711, True, [], {}])
def test_what_is_no_error_is_unsupported(error: object) -> None:
    with pytest.raises(UnsupportedError):
        error_name(error)


def cache_vector(**changes: Any) -> VectorOutcome:
    asked = {"op": "end_offset_for", "epoch": 2, "log_end_offset": 11, "expect": [2, 11]} | changes
    assigned = {"op": "assign", "epoch": 2, "start_offset": 10}
    return replay({"id": "x", "component": "epoch_cache", "setup": [assigned, asked], "expect": {"entries": [[2, 10]]}})


@pytest.mark.parametrize(
    "expect",
    [[2, 11], {"epoch": 2, "end_offset": 11}, {"endOffset": 11, "leaderEpoch": 2}, {"end_offset": 11, "epoch": 2}],
)
def test_a_pair_may_be_an_object(expect: Any) -> None:
    assert cache_vector(expect=expect).verdict == "pass"


@pytest.mark.parametrize("expect", [[11, 2], {"epoch": 11, "end_offset": 2}, {"epoch": 2}, None, [-1, -1], "2"])
def test_another_pair_fails(expect: Any) -> None:
    assert cache_vector(expect=expect).verdict == "fail"


def test_what_is_not_there_may_be_null_or_undefined() -> None:
    for nothing in (None, -1, [-1, -1], {"epoch": -1, "end_offset": -1}):
        assert cache_vector(epoch=3, expect=nothing).verdict == "pass"
    assert cache_vector(epoch=3, expect=[3, -1]).verdict == "fail"


def test_numbers_may_be_text_and_other_names_are_known() -> None:
    assert cache_vector(epoch="2", leo="11", log_end_offset=11).verdict == "unsupported"
    asked = {"op": "epochEndOffset", "leaderEpoch": "2", "leo": "11", "expect": [2, 11]}
    assigned = {"op": "assign", "entries": [[1, 4], [2, 10]], "notes": "two at once"}
    vector = {
        "id": "x",
        "component": "epoch_cache",
        "setup": [assigned, asked],
        "expect": {"epochEntries": [[1, 4], [2, 10]]},
    }
    assert replay(vector) == VectorOutcome("x", "pass")


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [
        ({"expect": "OFFSET_OUT_OF_RANGE"}, "pass"),
        ({"expect_error": True}, "pass"),
        ({"expect_exception": "OffsetOutOfRangeException"}, "pass"),
        ({"expect": {"error": 1}}, "pass"),
        ({"expect_throws": "FencedLeaderEpochException"}, "fail"),
        ({"expect": {"error": "NONE"}}, "fail"),
        ({"expect": {"error": "NONE"}, "expect_status": 1}, "unsupported"),
        ({}, "fail"),
    ],
)
def test_an_error_may_be_expected_in_many_ways(expected: dict[str, Any], verdict: str) -> None:
    step = {"op": "read", "offset": 7} | expected
    assert replay({"id": "x", "component": "log", "setup": [step]}).verdict == verdict


def test_any_error_does_not_mean_none() -> None:
    step = {"op": "read", "offset": 0, "expect_error": True}
    assert replay({"id": "x", "component": "log", "setup": [step]}).verdict == "fail"


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [
        ({"expect_duplicate": True, "expect_first_offset": 0, "expect_leo": 2}, "pass"),
        ({"expect_duplicate_of": [0, 1]}, "pass"),
        ({"expect_duplicate_of": 0}, "pass"),
        ({"expect_duplicate": False}, "fail"),
        ({"expect_duplicate_of": None}, "fail"),
        ({"expect_duplicate_of": [2, 3]}, "fail"),
        ({"expect_duplicate_of": 1}, "fail"),
        ({"expect_last_offset": 1, "expect_last_seq": 2}, "fail"),
    ],
)
def test_a_duplicate_has_the_offsets_of_the_first_append(expected: dict[str, Any], verdict: str) -> None:
    step = {"op": "append", "producer_id": 1, "producer_epoch": 0, "first_seq": 0, "count": 2}
    assert replay({"id": "x", "component": "producer_state", "setup": [step, step | expected]}).verdict == verdict
    fresh = {"expect_duplicate": False, "expect_duplicate_of": None, "expect_appended": True}
    assert replay({"id": "x", "component": "producer_state", "setup": [step | fresh]}).verdict == "pass"


# ---- batches


@pytest.mark.parametrize(
    "given_as",
    [
        [[10, 2, 0], [12, 3, 3]],
        [[2, 0], [3, 3]],
        [[0, 2], [3, 3]],
        [{"count": 2}, {"records": 3, "leader_epoch": 3}],
        [{"base_offset": 10, "count": 2, "epoch": 0}, {"count": 3, "epoch": 3}],
    ],
)
def test_batches_in_each_form(given_as: Any) -> None:
    assert batches_of(given_as, 10) == [(10, 2, 0), (12, 3, 3)]


@pytest.mark.parametrize("given_as", [[[1, 2], [1, 3]], [[0, 0]], [[1]], [[1, 2, 3], [1, 2]], [{"size": 1}], 7, ["ab"]])
def test_batches_that_cannot_be_told_are_unsupported(given_as: Any) -> None:
    with pytest.raises(UnsupportedError):
        batches_of(given_as, 0)


# ---- the pieces


def test_names_in_snake_case() -> None:
    assert [in_snake_case(name) for name in ("replicaId", "lastKnownElr", "leo", "first_seq")] == [
        "replica_id",
        "last_known_elr",
        "leo",
        "first_seq",
    ]


def test_a_field_has_its_own_name_before_any_other() -> None:
    assert field_of(["epoch", "leader_epoch"], "leader_epoch") == "leader_epoch"
    assert field_of(["epoch"], "leaderEpoch") == "epoch"
    assert field_of(["epoch"], "offset") is None


@pytest.mark.parametrize(
    ("hint", "value", "read"),
    [
        (int, "7", 7),
        (int | str, "7", 7),
        (int | str, "local", "local"),
        (int | None, None, None),
        (list[int], ["1", 2], [1, 2]),
        (dict[str, int], {"a": "1"}, {"a": 1}),
        (bool, False, False),
        (Any, [None], [None]),
    ],
)
def test_values_in_the_form_that_is_wanted(hint: Any, value: Any, read: Any) -> None:
    assert read_as(hint, value, "it") == read


@pytest.mark.parametrize(
    ("hint", "value"),
    [(int, "x"), (int, True), (int, 1.5), (int, None), (bool, 1), (str, 1), (list[int], 3), (list[int], ["x"]), (dict, [])],
)
def test_values_of_another_form_are_unsupported(hint: Any, value: Any) -> None:
    with pytest.raises(UnsupportedError):
        read_as(hint, value, "it")


def test_arguments_go_to_the_parameter_that_they_name_best() -> None:
    def operation(leader_epoch: int, current_leader_epoch: int | None = None, count: int = 1) -> None:
        """As some components have them."""

    assert bind(operation, {"leader_epoch": 1, "records": "3"}) == {"leader_epoch": 1, "count": 3}
    assert bind(operation, {"epoch": 1}) == {"leader_epoch": 1}
    for wrong in ({}, {"leader_epoch": 1, "colour": 2}, {"leader_epoch": None}):
        with pytest.raises(UnsupportedError):
            bind(operation, wrong)


# ---- anything at all

names = st.sampled_from(sorted({name for vector in VECTORS for step in vector["setup"] for name in step} | {"rack", "op"}))
operations = st.sampled_from(sorted({step["op"] for vector in VECTORS for step in vector["setup"]} | {"compact"}))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 120)
    | st.sampled_from([2**31, -(2**40), 10**12, 0.5])
    | st.text("a1-\n", max_size=4)
    | st.sampled_from(["latest", "local", "NONE", "client", "all", "5", "follower"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mangled(draw: st.DrawFn) -> Any:
    """One of the vectors, with a few of its parts replaced, renamed, dropped, doubled or made up."""
    vector: Any = copy.deepcopy(draw(st.sampled_from(VECTORS) | st.sampled_from(list(ONE_OF_EACH.values()))))
    for _ in range(draw(st.integers(1, 3))):
        steps = vector["setup"]
        if not steps:
            break
        place = draw(st.integers(0, len(steps) - 1))
        step = steps[place]
        change = draw(st.sampled_from(["value", "name", "drop", "add", "operation", "double", "remove", "whole"]))
        if change in ("value", "name", "drop") and len(step) > 1:
            name = draw(st.sampled_from(sorted(set(step) - {"op"})))
            value = step.pop(name)
            if change != "drop":
                step[draw(names) if change == "name" else name] = value if change == "name" else draw(json_values)
        elif change == "add":
            step[draw(names)] = draw(json_values)
        elif change == "operation":
            step["op"] = draw(operations)
        elif change == "double":
            steps.insert(place, copy.deepcopy(step))
        elif change == "remove":
            del steps[place]
        elif change == "whole":
            vector[draw(st.sampled_from(["component", "expect", "id"]))] = draw(json_values)
    return vector


def is_told(outcome: VectorOutcome) -> bool:
    return outcome.verdict == "pass" or (outcome.verdict in ("fail", "unsupported") and outcome.reason != "")


@given(mangled())
def test_a_mangled_vector_never_ends_the_run(vector: Any) -> None:
    assert is_told(replay(vector))


@given(json_values)
def test_anything_that_is_json_has_an_outcome(value: Any) -> None:
    assert is_told(replay(value))
    assert is_told(replay({"id": "x", "component": "log", "setup": value, "expect": value}))
