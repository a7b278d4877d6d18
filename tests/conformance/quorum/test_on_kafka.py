"""A real controller among three voters, where Java and the jars are: a part of what `kspec world quorum` does."""

import json
import shutil

import pytest
from click.testing import CliRunner, Result

from kspec.cli.main import cli
from tests.conformance.kafka.releases import NEWEST, OLD, jars_or_skip
from tests.limits.marks import marked


def kspec(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["world", "quorum", *arguments], standalone_mode=False)


def told(*arguments: str) -> dict[str, object]:
    done = kspec(*arguments, "--json")
    assert done.return_value == 0, done.output
    (run,) = json.loads(done.output)["runs"]
    assert isinstance(run, dict)
    return run


def has_compiler() -> bool:
    return any(shutil.which(name) for name in ("cc", "gcc", "clang"))


@pytest.mark.slow
def test_a_controller_that_lost_an_election_and_starts_again_ends() -> None:
    jars_or_skip(NEWEST)
    run = told("kept-vote")
    assert run["confirmed"] is True
    lines = run["lines"]
    assert isinstance(lines, list)
    assert (
        sum("has ended: java.lang.IllegalStateException: Received unexpected invalid request" in line for line in lines) == 2
    )


@pytest.mark.slow
@pytest.mark.nightly
def test_up_to_3_9_it_follows_the_leader_that_it_knew() -> None:
    jars_or_skip(OLD)
    run = told("kept-vote", "--kafka", OLD)
    assert run["confirmed"] is False
    lines = run["lines"]
    assert isinstance(lines, list)
    assert lines[6] == "  6  1 is killed, and starts again | follower in epoch 1, leader 2, log of 1 (1 of epoch 1)"


@pytest.mark.slow
@pytest.mark.nightly
def test_no_release_has_the_repair_of_next() -> None:
    jars_or_skip(NEWEST)
    done = kspec("kept-vote", "--rules", "next", "--plain")
    assert done.return_value == 1
    assert "departs at step 8, 1 is killed, and starts again: the controller: expected follower in epoch 1" in done.output


REFUTED = ("fetch-unseats", "new-voter", "removed-leader-resigns")
BY_DAY = ["pre-vote-unseats", "last-epoch", "removed-voter-answers", "snapshot-with-voters"]
NIGHTLY = ["fetch-unseats", "new-voter", "lost-disk", "goes-back", "lost-leader", "old-voter", "another-leader"]
NIGHTLY += ["removed-leader", "removed-leader-resigns", "lagging-voter", "needed-voter", "snapshot"]


@pytest.mark.slow
@pytest.mark.parametrize("name", marked([*BY_DAY, *NIGHTLY], nightly=NIGHTLY))
def test_candidates_on_a_real_controller(name: str) -> None:
    jars_or_skip(NEWEST)
    assert told(name)["confirmed"] is (name not in REFUTED)


@pytest.mark.slow
def test_a_controller_that_is_alone_loses_what_it_has_answered() -> None:
    jars_or_skip(NEWEST)
    if not has_compiler():
        pytest.skip("NOT RUN: there is no C compiler, and a disk that loses what was not synced needs one")
    assert told("answers-before-flush")["confirmed"] is True


@pytest.mark.slow
@pytest.mark.nightly
def test_one_that_is_not_alone_loses_nothing_and_next_would_lose_nothing() -> None:
    jars_or_skip(NEWEST)
    if not has_compiler():
        pytest.skip("NOT RUN: there is no C compiler, and a disk that loses what was not synced needs one")
    assert told("answers-after-flush")["confirmed"] is False
    assert kspec("answers-before-flush", "--rules", "next").return_value == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["seed", "changes", "snapshots"])
@pytest.mark.parametrize("traces", marked([1, 10], nightly=[10]))
def test_walks_of_the_model_are_followed(kind: str, traces: int) -> None:
    jars_or_skip(NEWEST)
    done = kspec(f"{kind}:1", "--traces", str(traces), "--json")
    found = json.loads(done.output)
    assert (found["follow"], done.return_value) == (traces, 0)
    assert found["steps"] > 15 * traces


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["kept-votes"], "there is no run and no file 'kept-votes'"),
        (["kept-vote", "--kafka", "3.8.0"], "expected a release from 3.9.0 on"),
        (["kept-vote", "--kafka", "x"], "expected a release from 3.9.0 on"),
        (["kept-vote", "--rules", "9"], "there are no rules '9'"),
        (["pre-vote-unseats", "--kafka", "3.9.2"], "a run of releases from 4.0.0 on"),
        (["kept-vote", "--traces", "2"], "--traces goes with seed:N, changes:N, snapshots:N"),
        (["pyproject.toml"], "pyproject.toml: Expecting value"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], complaint: str) -> None:
    assert complaint in str(kspec(*arguments).exception)
