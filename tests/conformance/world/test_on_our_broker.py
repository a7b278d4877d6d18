"""The world around this project's own broker: it follows what Kafka follows, and a weakened rule is seen."""

import asyncio

import pytest

from kspec.conformance.world.choice.cover import BOUNDS, covering_runs, some_of
from kspec.conformance.world.environment.target import Own, WorldTarget
from kspec.conformance.world.runs.findings import finding_run
from kspec.conformance.world.session import replay_all
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.limits.marks import is_night
from tests.trials.cluster.running import kspec

pytestmark = pytest.mark.slow

RELEASE = "4.4"


def test_it_follows_the_findings_and_covering_runs() -> None:
    """By the rules of 4.4 it loses the record as Kafka does."""
    target = WorldTarget(jars_or_skip(NEWEST), Own(RELEASE))
    findings = [finding_run(name, NEWEST) for name in ("missed-epoch", "forgotten-proposal")]
    chosen = [
        one.run
        for one in some_of(list(covering_runs(NEWEST, BOUNDS if is_night() else BOUNDS[:1])), 12 if is_night() else 3)
    ]
    verdicts = {one.run.name: one.verdict for one in asyncio.run(replay_all(target, [*findings, *chosen]))}
    assert all(verdict is not None and verdict.departure is None for verdict in verdicts.values())
    assert {name for name, verdict in verdicts.items() if verdict is not None and verdict.acknowledged_lost} >= {
        "missed-epoch",
        "forgotten-proposal",
    }
    assert all(verdict is not None and verdict.as_json()["target"] == "kspec" for verdict in verdicts.values())


@pytest.mark.nightly
def test_a_weakened_rule_is_noticed_at_its_step() -> None:
    jars_or_skip(NEWEST)
    done = kspec("world", "score", "--runs", "4", "--mutant", "count-what-is-sent", "--mutant", "join-before-epoch-start")
    assert done.returncode == 0, done.stderr
    assert "count-what-is-sent: kspec with count-what-is-sent 4.4.0, broker 1 of" in done.stdout
    assert "high watermark is 1, expected 0" in done.stdout
    assert " of 2 mutants noticed by 4 covering runs and " in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("cover", "--weakened", "count-what-is-sent"), "--weakened goes with --target kspec"),
        (("cover", "--target", "kspec", "--weakened", "nothing"), "there is no mutant 'nothing' of a broker"),
        (("score", "--mutant", "nothing"), "there is no mutant 'nothing' of a broker"),
    ],
)
def test_what_makes_no_sense_is_refused(given: tuple[str, ...], said: str) -> None:
    done = kspec("world", *given)
    assert done.returncode == 2
    assert said in done.stderr
