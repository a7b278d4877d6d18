"""Runs of transactions for a broker, without a broker: which there are, in which release and version, and what they are."""

import json
from pathlib import Path

import pytest

from kspec.conformance.kafka.run_files import NoRunInFileError
from kspec.conformance.transactions.clusters import CLUSTER_OBSERVATIONS
from kspec.conformance.transactions.looks import expected
from kspec.conformance.transactions.observations import OBSERVATIONS
from kspec.conformance.transactions.prompt import BY_ITSELF, LEFT_OUT, NoTransactionsRunError, prompt_model, release_of
from kspec.conformance.transactions.runs import CANDIDATES, NAMED, Rules, found_run, run_in_file, steps_of, walk
from kspec.conformance.transactions.session import OBSERVED
from kspec.model_check.models import MODELS

NEWEST: Rules = {"release": "4.3", "mutant": None}
LATE_MARKERS = ("late-marker", "late-abort-marker", "torn-transaction")


@pytest.mark.parametrize(
    ("kafka", "release"), [("4.4.0", "4.3"), ("4.3.1", "4.3"), ("4.2.0", "4.2"), ("4.1.1", "4.1"), ("3.9.2", "3.8")]
)
def test_the_rules_of_a_version_are_those_of_the_latest_release_that_changed_them(kafka: str, release: str) -> None:
    assert release_of(kafka) == release


def shown(name: str, release: str, level: int) -> tuple[int, bool]:
    found = found_run(NAMED[name], {"release": release, "mutant": None}, level)
    return len(found.steps), found.is_shown


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("late-commit", 16),
        ("late-abort", 23),
        ("late-offset", 27),
        ("late-marker", 16),
        ("late-abort-marker", 20),
        ("torn-transaction", 25),
    ],
)
def test_before_version_2_what_is_late_ends_the_next_transaction(name: str, steps: int) -> None:
    assert shown(name, "4.3", 1) == shown(name, "3.8", 0) == (steps, True)
    assert shown(name, "4.3", 2)[1] is False, "in version 2 it arrives, too, and changes nothing"
    assert shown(name, "4.1", 2)[1] is (name in LATE_MARKERS), "up to 4.1 a late marker counts in version 2"


def test_an_overtaken_commit_is_told_of_an_invalid_state_until_the_next_release() -> None:
    assert shown("overtaken-commit", "4.3", 2) == (10, True)
    with pytest.raises(NoTransactionsRunError, match="no run within the bounds by the rules of next"):
        shown("overtaken-commit", "next", 2)
    with pytest.raises(NoTransactionsRunError, match=r"a run of transaction\.version 2, and not 1"):
        shown("overtaken-commit", "4.3", 1)


def test_a_producer_that_is_alone_is_fenced() -> None:
    assert shown("late-start", "4.3", 1) == (8, True)
    assert shown("late-start", "4.3", 2) == (11, True)
    assert shown("fenced-retry", "4.3", 1) == shown("fenced-retry", "3.8", 0) == (17, True)
    with pytest.raises(NoTransactionsRunError, match=r"a run of transaction\.version 0 or 1, and not 2"):
        shown("fenced-retry", "4.3", 2)


def test_each_name_is_given_once() -> None:
    assert len(NAMED) == len(CANDIDATES)
    every = (*OBSERVATIONS, *CLUSTER_OBSERVATIONS)
    assert len(OBSERVED) == len(every)
    assert not set(NAMED) & set(OBSERVED)
    assert all(set(one.levels) <= {0, 1, 2} for one in (*CANDIDATES, *every))


def test_nothing_is_replayed_that_a_broker_cannot_show() -> None:
    parameters = {"refusals": 1, "unknown_appends": 1, "leader_changes": 1, "moves": 1, "inputs": 1, "rebalances": 1}
    parameters["uncommitted_loads"] = 1
    names = {action.name for action in prompt_model({**parameters, "producers": 2}).actions}
    assert not names & set(LEFT_OUT)
    assert set(LEFT_OUT) <= {action.name for action in MODELS["transactions"].build({**parameters, "producers": 2}).actions}
    kept = [one.args for one in prompt_model({"moves": 1}).actions if one.name == "MoveCoordinator"]
    assert kept == [{"kept": 0}]


def test_the_broker_is_at_rest_after_each_step() -> None:
    found = walk(7, NEWEST, 1)
    fire = [action.bind() for action in found.model.actions if action.name in BY_ITSELF]
    assert len(found.steps) > 30
    following = [*(step.action.name for step in found.steps[1:]), ""]
    for step, name in zip(found.steps, following, strict=True):
        assert name == "DelayMarker" or all(one(step.after) is None for one in fire)
    labels = [step.action.label for step in found.steps]
    assert labels == [step.action.label for step in walk(7, NEWEST, 1).steps]
    assert labels != [step.action.label for step in walk(8, NEWEST, 1).steps]


def test_a_step_that_is_not_possible_is_left_out() -> None:
    model = prompt_model({"transaction_version": "1", "release": "4.3"})
    one = {"producer": 1}
    moves = [("Initialise", one), ("Deliver", one), ("CommitRecord", {}), ("Commit", one), ("Receive", one), ("Nothing", {})]
    assert [step.action.name for step in steps_of(model, moves)] == ["Initialise", "Deliver", "Receive"]


def test_what_is_expected_is_told_in_words() -> None:
    found = found_run(NAMED["late-offset"], NEWEST, 1)
    looks = [expected(found.model, step.after) for step in found.steps]
    assert looks[0].in_words() == "no such id; 0: empty, stable up to 0, read as committed: nothing; offset none"
    assert looks[-1].in_words() == (
        "CompleteCommit, 1 in epoch 0; 0: abort(1.0) 1.2(1.0.0) abort(1.0), stable up to 3, read as committed: nothing;"
        " offset 1"
    )
    assert looks[-2].differences(looks[-1])[0].startswith("coordinator: expected Ongoing")


def test_a_run_in_a_file_is_one_of_the_model(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    trace = [{}, {"action": "Initialise", "args": {"producer": 1}}, {"action": "Deliver", "args": {"producer": 1}}]
    parameters = {"release": "next", "transaction-version": "0", "late-requests": 1, "mutant": "any-guard"}
    file.write_text(json.dumps({"model": "transactions", "parameters": parameters, "properties": [{"trace": trace}]}))
    found = run_in_file(file, NEWEST)
    assert [step.action.name for step in found.steps] == ["Initialise", "Deliver"]
    assert (found.run.levels, found.model.parameters["release"], found.model.parameters["mutant"]) == ((0,), "4.3", None)
    for content in ("{", "[]", "{}", json.dumps({"model": "quorum", "properties": [{"trace": trace}]})):
        file.write_text(content)
        with pytest.raises(NoRunInFileError):
            run_in_file(file, NEWEST)
    file.write_text(json.dumps({"#meta": {"parameters": {**parameters, "no-such": 1}}, "states": trace}))
    with pytest.raises(NoRunInFileError, match="no-such"):
        run_in_file(file, NEWEST)
