"""A real broker and its transactions, where Java and the jars are: a part of what `kspec world transactions` does."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kspec.cli.main import cli
from kspec.conformance.transactions.runs import NAMED
from kspec.conformance.transactions.session import OBSERVED
from tests.conformance.kafka.releases import NEWEST, OLD, jars_or_skip


def kspec(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["world", "transactions", *arguments], standalone_mode=False)


def told(*arguments: str) -> list[dict[str, Any]]:
    done = kspec(*arguments, "--json")
    assert done.return_value == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.output)["runs"]
    return found


def confirmed(runs: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The transaction versions in which each claim is true."""
    found: dict[str, list[int]] = {run["name"]: [] for run in runs}
    for run in runs:
        found[run["name"]] += [run["transaction_version"]] if run["confirmed"] else []
    return found


@pytest.mark.slow
def test_a_late_end_loses_a_committed_record_before_version_2() -> None:
    jars_or_skip(NEWEST)
    old, new = told("late-abort")
    assert (old["confirmed"], new["confirmed"]) == (True, False)
    assert old["lines"][16].endswith("abort(1.0) 1.2(1.0.0) abort(1.0), stable up to 3, read as committed: nothing")
    assert old["lines"][22].startswith(" 22  EndTxn to commit in epoch 0: NONE | CompleteCommit")
    assert "late: EndTxn to abort in epoch 0: PRODUCER_FENCED" in new["lines"][14]


@pytest.mark.slow
def test_a_commit_between_the_steps_of_a_fence() -> None:
    jars_or_skip(NEWEST)
    (run,) = told("commit-in-fence", "--transaction-version", "2")
    assert run["confirmed"] is True
    assert run["lines"][-3] == "  7  the transaction is CompleteAbort"
    assert run["lines"][4].endswith("meanwhile the first one commits: UNKNOWN_SERVER_ERROR")


@pytest.mark.slow
def test_a_second_marker_refuses_the_first_record_of_a_producer() -> None:
    jars_or_skip(NEWEST)
    (run,) = told("second-marker", "--transaction-version", "2")
    assert run["confirmed"] is True
    assert run["lines"][-3].endswith("the record: INVALID_TXN_STATE")


@pytest.mark.slow
@pytest.mark.nightly
def test_a_coordinator_that_is_ahead_of_its_log_aborts_what_is_committed_afterwards() -> None:
    jars_or_skip(NEWEST)
    (run,) = told("uncommitted-end", "--transaction-version", "2")
    assert run["confirmed"] is True


IN_BOTH = ["late-start", "lost-index", "given-up-marker", "commit-in-fence", "epoch-of-another-id"]
IN_BOTH += ["moved-before-markers", "deleted-before-markers", "second-marker", "uncommitted-end", "unknown-end"]
EXPECTED = {name: [1, 2] if name in IN_BOTH else [1] for name in [*NAMED, *OBSERVED]}
EXPECTED |= {"overtaken-commit": [2], "locked-id": [2]}
NOT_OLD = {"overtaken-commit", "locked-id", "commit-in-fence"}


@pytest.mark.slow
@pytest.mark.nightly
def test_all_runs_on_the_newest_release() -> None:
    jars_or_skip(NEWEST)
    assert confirmed(told()) == EXPECTED


@pytest.mark.slow
@pytest.mark.nightly
def test_all_runs_on_an_old_release() -> None:
    jars_or_skip(OLD)
    assert confirmed(told("--kafka", OLD)) == {name: [0] for name in EXPECTED if name not in NOT_OLD}


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("kafka", [NEWEST, OLD])
def test_walks_of_the_model_are_followed(kafka: str) -> None:
    jars_or_skip(kafka)
    assert all(run["follows"] for run in told("seed:1", "--traces", "20", "--kafka", kafka))


@pytest.mark.slow
@pytest.mark.nightly
def test_kafka_departs_from_other_rules() -> None:
    jars_or_skip(NEWEST)
    done = kspec("late-marker", "--transaction-version", "2", "--rules", "4.1", "--plain")
    assert done.return_value == 1
    assert "departs at step 13, WriteLateMarker(partition=0): partition 0: expected 1.1(1.0.0) commit(1.1)" in done.output
    done = kspec("late-commit", "--transaction-version", "2", "--mutant", "late-end-counts", "--plain")
    assert done.return_value == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["late-commits"], "there is no run and no file 'late-commits'"),
        (["late-commit", "--kafka", "3.8.0"], "expected a release from 3.9.0 on"),
        (["late-commit", "--kafka", "x"], "expected a release from 3.9.0 on"),
        (["late-commit", "--kafka", "3.9.2", "--transaction-version", "1"], "the clusters of 3.9.2 have version 0 alone"),
        (["overtaken-commit", "--transaction-version", "1"], "a run of transaction.version 2, and not 1"),
        (["locked-id", "--transaction-version", "1"], "locked-id is a run of transaction.version 2"),
        (["locked-id", "--kafka", "3.9.2"], "locked-id is a run of releases from 4.0.0 on"),
        (["late-commit", "--rules", "9"], "there are no rules '9'"),
        (["late-commit", "--mutant", "no"], "there is no mutant 'no'"),
        (["late-commit", "--traces", "2"], "--traces goes with seed:N"),
        (["pyproject.toml"], "pyproject.toml: Expecting value"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], complaint: str) -> None:
    assert complaint in str(kspec(*arguments).exception)
