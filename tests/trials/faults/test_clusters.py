"""Clusters of real processes under load and faults: what they promise they keep, and what they do not is found."""

import asyncio
import re
from pathlib import Path

import pytest

from kspec.conformance.kafka.cluster import KafkaProgram
from kspec.trials.cluster.plan import Program
from kspec.trials.faults.controllers.changes import CHANGES
from kspec.trials.faults.links import CLIENTS
from kspec.trials.history.anomalies import anomalies_in, count_by_name, may_be_without_waiting
from kspec.trials.history.events import ACKNOWLEDGED, CommitOutcome, SendOutcome, read_history
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.limits.marks import is_night, marked
from tests.trials.cluster.running import free_ports, kspec, kspec_program
from tests.trials.faults.clusters import LoadedCluster, played

pytest.importorskip("confluent_kafka", reason="NOT RUN: confluent-kafka (librdkafka) is not installed")
pytestmark = pytest.mark.slow

ELECTED_S, UNANSWERED_S = 8.0, 10.0
"""Long enough for sessions to end and an election that must not happen; for producers to send again what is not answered."""


@pytest.fixture(params=["kspec", "kafka"])
def program(request: pytest.FixtureRequest) -> Program:
    return kspec_program() if request.param == "kspec" else KafkaProgram(jars_or_skip(NEWEST))


@pytest.mark.parametrize("program", marked(["kspec", "kafka"], nightly=["kafka"]), indirect=True)
def test_a_leader_that_dies_before_its_followers_have_heard_takes_with_it_what_acks_1_had_acknowledged(
    program: Program, tmp_path: Path
) -> None:
    """The followers are cut off from their leader, and in sync for a while all the same; then it is killed."""

    async def leader_dies_alone(played: LoadedCluster) -> None:
        links = [link for other in played.followers for link in ((other, played.leader), (played.leader, other))]
        played.links.cut(links)
        await played.until_acknowledged(100)
        played.kill(played.leader)
        played.links.mend()
        await played.until_led_by_others()
        await played.until_acknowledged(100)

    found = anomalies_in(played(program, tmp_path / "cluster", leader_dies_alone, acks="1", replica_lag_time_max_ms="60000"))
    assert "lost-write" in count_by_name(found), count_by_name(found)
    assert all(map(may_be_without_waiting, found)), [one for one in found if not may_be_without_waiting(one)]


async def unclean_election(played: LoadedCluster) -> None:
    """A follower is cut off from the others until it is out of the ISR; then the others are killed."""
    behind, other = played.followers
    played.links.cut([link for one in (other, played.leader) for link in ((behind, one), (one, behind))])
    await played.until_seen(lambda one: int(behind) not in one.isr)
    await played.until_acknowledged(100)
    played.kill(other)
    played.kill(played.leader)
    played.links.mend()
    await asyncio.sleep(ELECTED_S)


async def answers_do_not_arrive(played: LoadedCluster) -> None:
    """The leader stores what producers send, and they do not hear of it until they have sent it again."""
    played.links.cut([(played.leader, CLIENTS)])
    await asyncio.sleep(UNANSWERED_S)
    played.links.mend()
    await played.until_acknowledged(100)


@pytest.mark.nightly
def test_an_unclean_election_loses_what_was_acknowledged_and_without_one_everything_is_kept(tmp_path: Path) -> None:
    assert anomalies_in(played(kspec_program(), tmp_path / "clean", unclean_election)) == []
    unclean = {"unclean_leader_election_enable": "true"}
    found = count_by_name(anomalies_in(played(kspec_program(), tmp_path / "unclean", unclean_election, **unclean)))
    assert "lost-write" in found, found


@pytest.mark.parametrize("program", marked(["kspec", "kafka"], nightly=["kafka"]), indirect=True)
def test_who_sends_again_without_being_idempotent_has_records_twice(program: Program, tmp_path: Path) -> None:
    found = anomalies_in(played(program, tmp_path / "cluster", answers_do_not_arrive, acks="1"))
    assert "duplicate" in count_by_name(found), count_by_name(found)
    assert all(map(may_be_without_waiting, found))


@pytest.mark.nightly
def test_a_round_of_faults_on_apache_kafka_loses_nothing(tmp_path: Path) -> None:
    jars_or_skip(NEWEST)
    options = "--kafka", NEWEST, "--rounds", "1", "--seconds", "15", "--seed", "3", "--port", str(free_ports(8)), "--plain"
    done = kspec("cluster", "--log-dir", str(tmp_path / "cluster"), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nseed 3: nothing lost; " in done.stdout
    history = list(read_history(tmp_path / "cluster" / "rounds" / "seed-3" / "history.jsonl"))
    assert sum(isinstance(event, SendOutcome) for event in history) > 500
    assert anomalies_in(history) == []


def test_rounds_on_a_cluster_in_the_middle_of_an_upgrade_lose_nothing_and_its_record_is_one_of_the_rules(
    tmp_path: Path,
) -> None:
    """The plan is aimed at a rule that 3.9 has: others, such as late-news, lose records where broker 1 leads."""
    kspec_program()
    plans = ("random", "fast-elections") if is_night() else ("fast-elections",)
    rounds = "--rounds", str(len(plans)), "--seconds", "8" if is_night() else "3", "--plans", ",".join(plans)
    options = *rounds, "--trace", "--release", "1=3.9,2=next,3=next", "--port", str(free_ports(8))
    done = kspec("cluster", "--log-dir", str(tmp_path / "cluster"), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": nothing lost; ") == len(plans)
    assert re.search(r"^record: [\d,]+ steps of \d+ starts, all come out as recorded$", done.stdout, re.MULTILINE)


def test_rounds_on_a_single_process_that_is_broker_and_controller(tmp_path: Path) -> None:
    count = 2 if is_night() else 1
    rounds = "--rounds", str(count), "--seconds", "8" if is_night() else "4", "--groups", "1", "--consumers", "2"
    options = "--brokers", "1", "--combined", *rounds, "--port", str(free_ports(4)), "--trace"
    done = kspec("cluster", "--log-dir", str(tmp_path / "cluster"), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": nothing lost; ") == count
    assert re.search(r"^record: [\d,]+ steps of \d+ starts, all come out as recorded$", done.stdout, re.MULTILINE)
    assert not (tmp_path / "cluster" / "pids.json").exists()
    for folder in (tmp_path / "cluster" / "rounds").iterdir():
        outcomes = [one for one in read_history(folder / "history.jsonl") if isinstance(one, CommitOutcome)]
        commits = [one for one in outcomes if not one.partition.startswith(CHANGES)]
        groups = {one.partition.split("/")[0].rsplit("-", maxsplit=1)[1] for one in commits if one.kind == ACKNOWLEDGED}
        assert groups == {"members", "simple", "consumers"}
