"""A real controller, where Java and the jars are: a small part of what `kspec world mirror --cover` does."""

import asyncio
import json
from pathlib import Path

import pytest

from kspec.conformance.kafka.jars import KafkaMissingError
from kspec.conformance.mirror.named import NAMED
from kspec.conformance.mirror.runs import rules_of, run_from_json
from kspec.conformance.mirror.session import Task, choose, replay_all, telling_apart
from kspec.spec.mutation import weaken
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from tests.conformance.kafka.releases import NEWEST, OLD, jars_or_skip
from tests.limits.marks import marked
from tests.model_check.commands import Command


@pytest.fixture
def kspec(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("kafka", marked([NEWEST, OLD], nightly=[OLD]))
def test_kafka_follows_covering_runs_and_departs_from_mutants(kafka: str) -> None:
    """One process: runs with a name, runs of the graph, and one run for each mutant that they tell apart."""
    jars, rules = jars_or_skip(kafka), rules_of(kafka)
    chosen = choose(kafka, rules, 20)
    same = [run for run in chosen.runs if run.eligible_leader_replicas == (kafka == NEWEST)]
    mutants = [task for task in telling_apart(chosen._replace(runs=tuple(same)), rules, CONTROLLER_MUTANTS) if task.run]
    found = asyncio.run(replay_all(jars, [*(Task(run, rules) for run in same), *mutants]))
    assert len(found) == len(same) + len(mutants)
    following = {replayed.run.name: replayed.departure for replayed in found[: len(same)]}
    assert {name: departure for name, departure in following.items() if departure is not None} == {}
    assert len(following) > 60
    caught = {replayed.rules: replayed.departure for replayed in found[len(same) :]}
    assert len(caught) >= (8 if kafka == NEWEST else 5)
    assert all(departure is not None and departure.step > 0 for departure in caught.values())


@pytest.mark.slow
def test_no_release_has_the_repairs_of_next() -> None:
    names = ("eligible-without-assignment", "second-copy-of-a-proposal", "reassignment-taken-back")
    found = asyncio.run(replay_all(jars_or_skip(NEWEST), [Task(NAMED[name](), KRAFT_NEXT) for name in names]))
    departures = [replayed.departure for replayed in found]
    assert [None if one is None else one.difference.rule.partition(":")[0] for one in departures] == [
        "eligible_leaders",
        "ends_refused",
        "complete_reassignment",
    ]


@pytest.mark.slow
def test_the_command(kspec: Command, tmp_path: Path) -> None:
    jars_or_skip(NEWEST)
    done = kspec("world", "mirror", "second-copy-of-a-proposal", "--json")
    told = json.loads(done.stdout)
    assert (done.status, told["verdict"], told["departure"]) == (0, "follows", None)
    assert "INELIGIBLE_REPLICA" in told["steps"][3]["answer"]
    assert "isr={1, 2, 3}" in told["steps"][5]["records"][0]
    kept = str(tmp_path / "kept")
    caught = kspec("world", "mirror", "late-registration", "--mutant", "second-registration-fences", "--keep", kept)
    assert caught.status == 1
    assert "rule  register_again: register_again_anew" in caught.stdout
    (file,) = (tmp_path / "kept").iterdir()
    assert run_from_json(json.loads(file.read_text())) == NAMED["late-registration"]()


def test_without_a_run_the_names_are_listed(kspec: Command) -> None:
    done = kspec("world", "mirror")
    assert done.status == 0
    assert all(name in done.stdout for name in NAMED)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["elections", "--cover"], "give one of RUN, --cover and --mutants"),
        (["elections", "--runs", "3"], "--runs goes with --cover"),
        (["elections", "--traces", "3"], "--traces goes with seed:N, and not with elections"),
        (["elections", "--states", "3"], "--states goes with --cover and --mutants"),
        (["elections", "--kafka", "2.8.0"], "--kafka 2.8.0: expected a release from 3.9.0 on"),
        (["elections", "--mutant", "typo"], "there is no mutant 'typo'"),
        (["elections", "--rules", "1.0"], "there are no rules '1.0'"),
        (["electoins"], "there is no run and no file 'electoins'"),
    ],
)
def test_bad_usage_is_one_line(kspec: Command, arguments: list[str], why: str) -> None:
    done = kspec("world", "mirror", *arguments)
    assert done.mistake == (2, 1)
    assert why in done.stderr


def test_missing_jars_are_one_line(kspec: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(release: str) -> None:
        raise KafkaMissingError(f"the jars of Kafka {release} are not there")

    monkeypatch.setattr("kspec.conformance.kafka.jars.find_jars", missing)
    monkeypatch.setattr("kspec.conformance.kafka.jars.java", lambda: "java")
    done = kspec("world", "mirror", "elections")
    assert done.mistake == (3, 1)
    assert "the jars of Kafka 4.4.0 are not there" in done.stderr


def test_weakened_rules_keep_their_name() -> None:
    names = {weaken(KRAFT_NEXT, mutant).name for mutant in CONTROLLER_MUTANTS}
    assert len(names) == len(CONTROLLER_MUTANTS), "results are found by them"
