"""Each branch of the rules of transactions is taken by a case of level 0, or the page names what else takes it."""

import json

from kspec.spec.transactions.loading import check_coordinates
from tests.conformance.wire.power.branches import (
    FILE,
    PAGE,
    REASONS,
    ROOM,
    Branch,
    as_json,
    as_markdown,
    branches_of,
)
from tests.conformance.wire.power.reached import reached_by


def test_the_page_has_each_branch_that_no_case_takes() -> None:
    found = json.loads(FILE.read_text(encoding="utf-8"))
    every = set(branches_of(ROOM).values())
    listed = [(Branch(*entry[:4]), entry[4]) for entry in found["by others"]]
    assert found["branches"] == len(every), "measure again: python -m tests.conformance.wire.power.branches"
    assert {branch for branch, _ in listed} <= every
    assert all(ways or branch.function in REASONS for branch, ways in listed)
    assert PAGE.read_text(encoding="utf-8") == as_markdown(found)


def test_a_branch_is_named_by_its_function_and_its_lines() -> None:
    fenced = [one for one in branches_of(ROOM).values() if one.function == "transactions.markers:_without_completion"]
    assert [(one.line, one.then) for one in fenced] == [
        ("if completion is None:", "return state"),
        (
            "if completion is None:",
            "forgets = coordinator.protocol.forgets_markers(marker.coordinator_epoch, completion.coordinator_epoch)",
        ),
    ]


def test_what_is_reached_is_measured() -> None:
    key = "transactions.loading"
    (missed,) = (
        one for one in reached_by(lambda: check_coordinates(True, False), [key]) if one.name == f"{key}:check_coordinates"
    )
    every = branches_of(ROOM)
    assert [every[key, *lines].then for lines in missed.branches] == [
        "return Error.NONE if is_loaded else Error.NOT_COORDINATOR"
    ]
    told = as_json({"cases": [every[key, *missed.branches[0]]], "model": [], "tests": [every[key, *missed.branches[0]]]})
    assert told["by others"][0][4] == ["model"]
