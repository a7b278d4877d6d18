"""The world on an unmodified broker: one start of each release, a dozen runs, and nothing left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kspec.conformance.world.choice.cover import covering_runs, some_of
from kspec.conformance.world.environment.target import WorldTarget
from kspec.conformance.world.environment.world import BrokerGoneError, World
from kspec.conformance.world.replay.replay import replay
from kspec.conformance.world.replay.verdict import RunVerdict
from kspec.conformance.world.runs.findings import FINDINGS, control_of, finding_run
from kspec.conformance.world.runs.run import WorldRun, model_for, trace_of_moves, walk
from kspec.conformance.world.session import replay_all
from tests.conformance.kafka.releases import NEWEST, OLD, jars_or_skip
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.places import REPOSITORY

pytestmark = pytest.mark.slow

SOME_BOUNDS = (
    {"elections": 1, "brokers": 2, "endless_lag": True},
    {"elections": 0, "reassignments": 1, "endless_lag": True},
)


def verdicts(kafka: str, runs: list[WorldRun]) -> list[RunVerdict]:
    outcomes = asyncio.run(replay_all(WorldTarget(jars_or_skip(kafka)), runs))
    assert [one.not_replayed for one in outcomes if one.verdict is None] == []
    return [one.verdict for one in outcomes if one.verdict is not None]


@pytest.mark.parametrize("kafka", marked([NEWEST, OLD], nightly=[OLD]))
def test_the_findings_and_their_controls(kafka: str) -> None:
    jars_or_skip(kafka)
    runs = [run for name in FINDINGS for run in (finding_run(name, kafka), control_of(name, kafka))]
    found = {verdict.run: verdict for verdict in verdicts(kafka, runs)}
    assert {name: verdict.departure for name, verdict in found.items()} == dict.fromkeys(found)
    for name, verdict in found.items():
        is_control = "control" in name
        assert verdict.acknowledged_lost is not is_control, name
        has_leader = name.startswith("fetch-before-registration")
        assert verdict.refused == ([1] if is_control and not has_leader else []), name


def test_a_dozen_covering_runs_are_followed() -> None:
    jars_or_skip(NEWEST)
    runs = [one.run for one in some_of(list(covering_runs(NEWEST, SOME_BOUNDS)), 12)]
    found = verdicts(NEWEST, runs)
    assert [verdict.departure for verdict in found] == [None] * 12
    assert [verdict.steps for verdict in found] == [len(run.moves) for run in runs]


def test_a_wrong_model_is_departed_from_at_its_step() -> None:
    """The high watermark passes a follower that the weakened leader does not wait for."""
    jars_or_skip(NEWEST)
    moves = [
        ("CreatePartition", {"leader": 1}),
        ("ReplayMetadata", {"broker": 1, "decisions": 1}),
        ("Produce", {"leader": 1}),
    ]
    model = model_for(NEWEST, {"elections": 0, "min_isr": 1, "acks": "1", "brokers": 2, "endless_lag": True})
    right = WorldRun("right", model, trace_of_moves(model, moves), 1)
    wrong_state = list(right.trace[-1].state)
    place = model.slot_named("log[1]").position
    wrong_state[place] = wrong_state[place]._replace(high_watermark=1)
    wrong = right._replace(name="wrong", trace=(*right.trace[:-1], right.trace[-1]._replace(state=tuple(wrong_state))))
    followed, departed = verdicts(NEWEST, [right, wrong])
    assert followed.departure is None
    assert departed.departure is not None
    assert (departed.departure.step, departed.departure.what) == (3, "the replica: high watermark")
    assert (departed.departure.expected, departed.departure.observed) == ("1", "0")


def test_a_departure_leaves_nothing_to_the_runs_behind_it() -> None:
    """A fetch that is not as expected has an answer; a question that a follower asks under a lock stops no metadata."""
    jars_or_skip(NEWEST)
    bounds = {"elections": 1, "brokers": 2, "endless_lag": True}
    wrong, right = model_for(NEWEST, {**bounds, "mutant": "no-epoch-entry"}), model_for(NEWEST, bounds)
    walks = [walk(wrong, 1, number, 25, f"walk {number}")._replace(real=1 + number % 2) for number in (0, 3)]
    behind = [walk(right, 1, number, 25, f"right {number}")._replace(real=2) for number in (1, 5)]
    found = verdicts(NEWEST, [walks[0], behind[0], walks[1], behind[1]])
    assert [verdict.departure and verdict.departure.what for verdict in found] == [
        "the follower's fetch: last fetched epoch",
        None,
        "a question of the follower",
        None,
    ]


def test_a_fetch_from_before_a_new_leader_epoch_is_not_taken_for_one_after_it() -> None:
    """By a wrong model the follower goes on in the old epoch; what it had asked in that epoch still lies there."""
    jars_or_skip(NEWEST)
    moves = [
        ("CreatePartition", {"leader": 2}),
        ("ElectPreferred", {"leader": 1}),
        ("Fence", {"broker": 1, "successor": 2}),
        ("ReplayMetadata", {"broker": 2, "decisions": 1}),
        ("ReplayMetadata", {"broker": 1, "decisions": 1}),
        ("ReplayMetadata", {"broker": 2, "decisions": 2}),
        ("ReplayMetadata", {"broker": 1, "decisions": 2}),
        ("Fetch", {"follower": 1, "leader": 2}),
    ]
    bounds = {"elections": 1, "fencings": 1, "brokers": 2, "min_isr": 1, "endless_lag": True}
    right, wrong = model_for(NEWEST, bounds), model_for(NEWEST, {**bounds, "mutant": "do-not-restart-fetcher"})
    runs = [WorldRun(name, model, trace_of_moves(model, moves), 1) for name, model in (("right", right), ("wrong", wrong))]
    followed, departed = verdicts(NEWEST, runs)
    assert followed.departure is None
    assert departed.departure is not None
    assert (departed.departure.step, departed.departure.what) == (8, "the follower's fetch: current leader epoch")


def test_a_broker_that_lost_its_log_comes_back() -> None:
    jars_or_skip(NEWEST)
    model = model_for(NEWEST, {"elections": 0, "unclean_shutdowns": 1, "brokers": 2, "min_isr": 1, "endless_lag": True})
    moves = [
        ("CreatePartition", {"leader": 1}),
        ("ReplayMetadata", {"broker": 1, "decisions": 1}),
        ("ReplayMetadata", {"broker": 2, "decisions": 1}),
        ("Produce", {"leader": 1}),
        ("Fetch", {"follower": 2, "leader": 1}),
        ("Fetch", {"follower": 2, "leader": 1}),
        ("UncleanShutdown", {"broker": 1, "kept": 0, "checkpointedHighWatermark": 0}),
        ("FenceDown", {"broker": 1, "successor": 2}),
        ("Register", {"broker": 1, "successor": 1}),
        ("ReplayMetadata", {"broker": 2, "decisions": 1}),
        ("TakeFirstImage", {"broker": 1, "decisions": 0}),
        ("Unfence", {"broker": 1, "successor": 1}),
        ("Fetch", {"follower": 1, "leader": 2}),
    ]
    (verdict,) = verdicts(NEWEST, [WorldRun("restart", model, trace_of_moves(model, moves), 1)])
    assert verdict.departure is None
    assert verdict.told[6].startswith("UncleanShutdown: nothing to see")
    assert "log nothing" in verdict.told[11]
    assert "log m1/0" in verdict.told[12]


STOPPING = {"elections": 0, "clean_shutdowns": 1, "brokers": 2, "min_isr": 1, "endless_lag": True}


def test_a_broker_stops_with_leave_and_names_its_epoch_when_it_comes_back() -> None:
    """And one that waits for leave at the end of a run leaves nothing to the next run."""
    jars_or_skip(NEWEST)
    moves = [
        ("CreatePartition", {"leader": 1}),
        ("ReplayMetadata", {"broker": 1, "decisions": 1}),
        ("Produce", {"leader": 1}),
        ("BeginShutdown", {"broker": 1, "successor": 2}),
        ("StopCleanly", {"broker": 1, "successor": 1}),
        ("Register", {"broker": 1, "successor": 1}),
        ("TakeFirstImage", {"broker": 1, "decisions": 0}),
        ("Unfence", {"broker": 1, "successor": 1}),
    ]
    model = model_for(NEWEST, STOPPING)
    trace = trace_of_moves(model, moves)
    stops, waits = WorldRun("stops", model, trace, 1), WorldRun("waits", model, trace[:5], 1)
    found = verdicts(NEWEST, [waits, stops])
    assert [verdict.departure for verdict in found] == [None, None]
    assert found[1].told[4].startswith("StopCleanly: nothing to see")
    assert "follows in epoch 1, log m1/0" in found[1].told[7]


def test_a_broker_acts_before_it_is_registered() -> None:
    """It follows, and fetches without a broker epoch, while its registration is refused."""
    jars_or_skip(NEWEST)
    run = finding_run("fetch-before-registration", NEWEST)._replace(real=2)
    (verdict,) = verdicts(NEWEST, [run])
    assert verdict.departure is None
    assert verdict.steps == len(run.moves)


def test_the_death_of_the_broker_is_told_and_leaves_nothing() -> None:
    jars = jars_or_skip(NEWEST)

    async def die() -> Path:
        async with World(WorldTarget(jars)) as world:
            folder = world.folder
            world.process.kill()
            with pytest.raises(BrokerGoneError, match="the broker has died"):
                await replay(world, finding_run("missed-epoch", NEWEST), "topic")
            return folder

    assert not asyncio.run(die()).exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_neither_process_nor_folder(how: signal.Signals, tmp_path: Path) -> None:
    jars_or_skip(NEWEST)
    start = "from kspec.cli.start import main; main()"
    command = [sys.executable, "-c", start, "world", "replay", "missed-epoch", "--times", "1000"]
    with subprocess.Popen(command, cwd=REPOSITORY, env={**os.environ, "TMPDIR": str(tmp_path)}) as program:
        deadline = time.monotonic() + 120
        turns = Turns()
        while not list(tmp_path.glob("kspec-world-*/data/run-*")) and time.monotonic() < deadline:
            turns.go()
            time.sleep(0.1)
        folders = list(tmp_path.iterdir())
        program.send_signal(how)
        assert program.wait(60) == 3
    assert folders, "the command has replayed runs"
    assert list(tmp_path.iterdir()) == []
    with_folder = ["pgrep", "-f", str(tmp_path)]
    assert subprocess.run(with_folder, capture_output=True, text=True, check=False, timeout=600).stdout == ""
