"""Versions of its requests in which a case is run, and the way out where a target lacks a request."""

from typing import Any

import pytest

from kspec.conformance.wire.run.versions import Choice, in_versions, shared, steps_of

FETCH, LIST, MADE = 1, 2, 19


def step(key: int, first: int, last: int, **more: Any) -> Any:
    return {
        "api": {FETCH: "Fetch", LIST: "ListOffsets", MADE: "CreateTopics"}[key],
        "key": key,
        "versions": [first, last],
    } | more


OFFERED = {FETCH: (4, 18), LIST: (1, 9)}
CASE = {"name": "reading/x", "steps": [step(LIST, 7, 11, setup=True), step(FETCH, 12, 17), step(LIST, 8, 11)]}


def versions(case: Any) -> list[list[int]]:
    return [one["versions"] for one in case["steps"]]


def test_the_versions_that_both_sides_know() -> None:
    assert list(shared(step(LIST, 7, 11), OFFERED)) == [7, 8, 9]
    assert not shared(step(LIST, 10, 11), OFFERED)
    assert not shared(step(MADE, 0, 7), OFFERED)


def test_the_newest_versions_are_those_of_the_case_itself() -> None:
    assert in_versions([CASE], Choice.NEWEST, OFFERED) == [CASE]


def test_the_oldest_versions_leave_the_preparation_as_it_is() -> None:
    (found,) = in_versions([CASE], Choice.OLDEST, OFFERED)
    assert versions(found) == [[7, 11], [12, 12], [8, 8]]
    assert (found["name"], found["case"]) == ("reading/x (Fetch 12, ListOffsets 8)", "reading/x")


def test_every_version_of_every_request_is_used() -> None:
    found = in_versions([CASE], Choice.ALL, OFFERED)
    assert [versions(one)[1:] for one in found] == [
        [[17, 17], [9, 9]],
        [[16, 16], [8, 8]],
        *([[older, older], [8, 8]] for older in (15, 14, 13, 12)),
    ]
    assert len({one["name"] for one in found}) == len(found)


def test_a_case_that_the_target_cannot_run_stays_as_it_is() -> None:
    lacking = CASE | {"steps": [*CASE["steps"], step(MADE, 0, 7)]}
    assert in_versions([lacking], Choice.ALL, OFFERED) == [lacking]


def test_a_look_that_the_target_does_not_offer_is_no_reason() -> None:
    looking = CASE | {"steps": [*CASE["steps"], step(MADE, 0, 7, optional=True)]}
    assert len(in_versions([looking], Choice.ALL, OFFERED)) == 6


@pytest.mark.parametrize(
    ("steps", "done"),
    [
        ([step(MADE, 0, 7, otherwise=step(FETCH, 4, 12))], [FETCH]),
        ([step(FETCH, 4, 12, otherwise=step(LIST, 1, 2))], [FETCH]),
        ([step(MADE, 0, 7, optional=True), step(LIST, 1, 2)], [LIST]),
        ([step(LIST, 1, 2, optional=True)], [LIST]),
        ([step(MADE, 0, 7)], [MADE]),
    ],
)
def test_what_is_done_where_the_target_lacks_a_request(steps: list[Any], done: list[int]) -> None:
    assert [one["key"] for one in steps_of({"steps": steps}, OFFERED)] == done
