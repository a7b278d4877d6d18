"""Answers are compared with what a case expects: also the records themselves, and what is to be new."""

from typing import Any

import pytest

from kspec.conformance.wire.run.checking import differences
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message

NOW = 1_700_000_000_000
BATCH = new_batch([(NOW, b"k", b"one"), (NOW + 5, b"k", b"two"), (NOW + 9, None, None)])
STAMPED = new_batch([(NOW, b"k", b"one"), (NOW + 5, b"k", b"two"), (NOW + 9, b"k", b"")], attributes=0x08)
WHERE = "records"


def lines(constraint: Any, answer: Message, **known: Any) -> list[str]:
    return differences([{"path": WHERE} | constraint], 0, answer, known)


def of_records(data: bytes, **more: Any) -> list[str]:
    wanted = {"offsets": [0, 1, 2], "leader_epochs": [-1, -1, -1]} | more
    return lines({"records": wanted}, Message(records=data), now=NOW)


VALUES = [{"hex": one.hex()} for one in (b"one", b"two", b"")]
TIMES = [{"hole": "now", "plus": plus} for plus in (0, 5, 9)]
SAME_TIMES = [{"hole": "now", "plus": 9}] * 3


@pytest.mark.parametrize(("data", "times"), [(BATCH, TIMES), (STAMPED, SAME_TIMES)])
def test_records_with_their_values_and_times(data: bytes, times: list[Any]) -> None:
    assert of_records(data, values=VALUES, times=times) == []


def test_values_and_times_that_differ() -> None:
    assert of_records(BATCH, values=VALUES[::-1]) == [
        "records: values ['6f6e65', '74776f', ''], not ['', '74776f', '6f6e65']"
    ]
    (line,) = of_records(BATCH, times=SAME_TIMES)
    assert line.startswith(f"records: times ['{NOW}'")


def test_only_the_records_at_the_offsets_count() -> None:
    wanted = {"offsets": [1, 2], "leader_epochs": [-1, -1], "values": VALUES[1:], "times": TIMES[1:]}
    assert lines({"records": wanted}, Message(records=BATCH), now=NOW) == []


def test_bytes_that_are_no_records() -> None:
    damaged = BATCH[:61] + b"\xff" * (len(BATCH) - 61)
    (line,) = of_records(damaged, values=VALUES)
    assert line.startswith("records: ")


@pytest.mark.parametrize(
    ("constraint", "found", "is_right"),
    [
        ({"none_of": [{"hole": "old"}]}, 8, True),
        ({"none_of": [{"hole": "old"}]}, 7, False),
        ({"at_least": {"hole": "old", "plus": 1}}, 8, True),
        ({"at_least": {"hole": "old", "plus": 1}}, 7, False),
        ({"at_least": 3}, None, False),
    ],
)
def test_what_is_new_or_large_enough(constraint: Any, found: Any, is_right: bool) -> None:
    assert (lines(constraint, Message(records=found), old=7) == []) is is_right


def test_a_hole_that_nobody_has_told_is_a_difference() -> None:
    assert lines({"none_of": [{"hole": "old"}]}, Message(records=7)) == ["records: 7, and no answer has told the old"]


@pytest.mark.parametrize(
    ("path", "is_right"),
    [
        ("topics[0].default_of_minus_1", True),  # a tagged field is not in the message
        ("topics[0].nothing.inside", False),
        ("topics[1].error_code", False),
        ("topics[error_code=7].error_code", False),
        ("none[0].error_code", False),
    ],
)
def test_only_a_field_may_be_missing_for_its_default_and_no_entry(path: str, is_right: bool) -> None:
    answer = Message(topics=[Message(error_code=0, nothing=None)], none=None)
    found = lines({"path": path, "one_of": [-1]}, answer)
    assert found == ([] if is_right else [f"{path}: there is none"])
