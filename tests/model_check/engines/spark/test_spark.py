"""Engine `spark`: the same numbers as the other engines, whatever the partitions and whoever dies on the way."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limits.marks import marked, marked_pairs
from tests.places import REPOSITORY

pytest.importorskip("pyspark", reason="engine spark is not installed: .venv/bin/pip install -e '.[spark]'")

from kspec.model_check.core.exploration import CheckpointError, CheckpointPlan, Exploration, Limits, Verdict
from kspec.model_check.core.model import Model
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines import compiled
from kspec.model_check.engines.compiled.checkpoint import identity
from kspec.model_check.engines.spark import engine, head
from kspec.model_check.engines.spark.checkpoint import SparkCheckpoint
from kspec.model_check.engines.spark.java import LAUNCHER_HOME, Java, NoJavaError, find_java, launched
from kspec.model_check.engines.spark.session import SparkError, SparkSettings, collected
from kspec.model_check.engines.spark.shuffles import SparkExploration
from kspec.model_check.engines.spark.worker import tasks
from kspec.model_check.engines.spark.worker.runs import Folder, Piece
from kspec.model_check.engines.spark.worker.transport import decode, encode, in_order
from tests.limits.turns import Turns
from tests.model_check.commands import Command
from tests.model_check.engines.comparison import OTHERS_OF_EACH, SMALL_MODELS, assert_replays, model_of, numbers_of
from tests.model_check.engines.spark.in_process import Context
from tests.model_check.toy import counters

EVERYTHING = Limits(stop_at_first=False)
QUIET = {"spark.ui.enabled": "false"}


def in_process(
    model: Model, partitions: int = 2, limits: Limits = EVERYTHING, symmetric: bool = False, driver_states: int = 0
) -> SparkExploration:
    """The engine with all tasks in this process."""
    settings, context = SparkSettings(partitions=partitions, driver_states=driver_states), Context()
    symmetry = Symmetry(model) if symmetric else None
    with engine.states_folder(settings, context) as folder:
        return engine.SparkSearch(model, model.properties, limits, settings, symmetry, context, folder).run()


def expected(model: Model, symmetric: bool = False) -> dict[str, Any]:
    symmetry = Symmetry(model) if symmetric else None
    return numbers_of(compiled.explore(model, model.properties, EVERYTHING, workers=1, symmetry=symmetry))


# ---- what tasks do, without Spark


@pytest.mark.parametrize(("name", "parameters"), SMALL_MODELS[:1])
def test_tasks_find_the_numbers_of_the_compiled_engine(name: str, parameters: dict[str, Any]) -> None:
    model = model_of(name, parameters)
    assert numbers_of(in_process(model)) == expected(model)


@pytest.mark.parametrize("partitions", [1, 2, 7, 64])
def test_numbers_do_not_depend_on_partitions(partitions: int) -> None:
    model = counters(3, cap=2)
    found = in_process(model, partitions)
    assert numbers_of(found) == expected(model)
    for verdict in found.verdicts:
        if verdict.trace:
            assert_replays(model, verdict.trace)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), marked_pairs(SMALL_MODELS, nightly=OTHERS_OF_EACH))
def test_tasks_find_the_numbers_of_every_small_model(name: str, parameters: dict[str, Any]) -> None:
    model = model_of(name, parameters)
    found = in_process(model, 3)
    assert numbers_of(found) == expected(model)
    for verdict in found.verdicts:
        if verdict.trace:
            assert_replays(model, verdict.trace)


@pytest.mark.slow
@pytest.mark.parametrize("driver_states", [0, 20])
def test_symmetry_visits_the_same_orbits(driver_states: int) -> None:
    model = model_of("kip-320", {"replicas": 3, "log_size": 1, "max_records": 1, "max_epoch": 1})
    found = in_process(model, 3, symmetric=True, driver_states=driver_states)
    assert numbers_of(found) == expected(model, symmetric=True)
    assert found.represented == expected(model)["distinct"]


@pytest.mark.parametrize("driver_states", [1, 30, 10_000])
def test_levels_that_the_driver_explores_count_like_others(driver_states: int) -> None:
    model = model_of("kip-320", {"replicas": 2, "max_epoch": 1})
    found = in_process(model, 3, driver_states=driver_states)
    assert numbers_of(found) == expected(model)
    assert found.shuffles is not None
    by_tasks = {work.level: work.new_states for work in found.shuffles.levels if work.new_states}
    first = min(by_tasks, default=found.depth)
    assert by_tasks == {level: states for level, states in enumerate(found.levels) if level >= first}
    assert (first == 2, first == found.depth) == (driver_states == 1, driver_states == 10_000)
    for verdict in found.verdicts:
        if verdict.trace:
            assert_replays(model, verdict.trace)


def test_the_driver_leaves_long_searches_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "MANY_LEVELS", 1)
    model = counters(12)
    found = in_process(model, driver_states=30)
    assert numbers_of(found) == expected(model)
    assert max(found.levels) < 30
    assert found.shuffles is not None
    first = found.shuffles.levels[0].level
    assert 30 < sum(found.levels[:first]) < 30 + max(found.levels)


def test_a_violation_in_the_drivers_levels_ends_the_search() -> None:
    model = model_of("kip-101", {"replicas": 2, "max_epoch": 2})
    properties = [prop for prop in model.properties if prop.by_default]
    settings, context = SparkSettings(partitions=2), Context()
    with engine.states_folder(settings, context) as folder:
        found = engine.SparkSearch(model, properties, Limits(), settings, None, context, folder).run()
    known = compiled.explore(model, properties, Limits())
    assert found.stopped_because == "a property is violated"
    lengths = [[len(verdict.trace or ()) for verdict in result.verdicts if verdict.violated] for result in (found, known)]
    assert lengths[0] == lengths[1]


def test_what_is_sent_is_counted() -> None:
    model = model_of("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2})
    found = in_process(model, 3)
    assert found.shuffles is not None
    levels = found.shuffles.levels
    assert sum(work.successors for work in levels) >= found.transitions
    assert sum(work.new_states for work in levels) == found.distinct_states - 1
    assert all(work.successors >= work.sent_states >= work.new_states for work in levels)
    assert all(work.sent_bytes > 0 for work in levels if work.sent_states)


@given(
    states=st.integers(1, 20).flatmap(
        lambda size: st.lists(st.binary(min_size=size, max_size=size), min_size=1, max_size=50)
    ),
)
def test_messages_hold_the_states_that_were_sent(states: list[bytes]) -> None:
    size = len(states[0])
    packed = np.frombuffer(b"".join(states), np.uint8)
    message = encode(packed, size, len(states))
    received, count = decode(message, size)
    assert count == len(states)
    rows = received[: count * size].reshape(count, size)
    assert sorted(row.tobytes() for row in rows) == sorted(states)
    keys = [int.from_bytes(row.tobytes()[:8], "little") for row in rows]
    assert keys == sorted(keys)


def test_states_of_a_level_travel_and_lie_in_few_bytes(tmp_path: Path) -> None:
    """Neighbours in a level have most bytes in common."""
    count, size = 50_000, 8
    numbers = np.unique(np.random.default_rng(1).integers(0, 1 << 20, count)).astype(np.uint64) * np.uint64(3 << 40 | 5)
    packed = in_order(numbers.view(np.uint8), size, numbers.size).reshape(-1)
    assert len(encode(packed, size, numbers.size)) < 0.7 * packed.size
    folder = Folder(str(tmp_path))
    name = folder.write_states("states", 0, packed, size, numbers.size)
    assert folder.size([name]) < 0.9 * packed.size
    read, read_size = folder.read(Piece(name, 0, 10, numbers.size - 10))
    assert (read_size, read[:-8].tobytes()) == (size, packed[10 * size :].tobytes())


def test_a_level_in_many_jobs_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_AT_A_TIME", 3)
    monkeypatch.setattr(tasks, "MOST_READ", 5)
    model = model_of("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2})
    assert numbers_of(in_process(model)) == expected(model)


def test_a_limit_on_states_stops_between_jobs() -> None:
    found = in_process(counters(40), limits=Limits(stop_at_first=False, max_states=100))
    assert found.stopped_because == "the limit of 100 states is reached"
    assert 100 <= found.distinct_states < 400


# ---- Java and sessions


def test_the_launcher_leaves_out_the_module_that_small_runtimes_lack(tmp_path: Path) -> None:
    real = tmp_path / "real java"
    real.write_text(
        '#!/bin/sh\ncase "$1" in -version) echo \'openjdk version "17.0.1"\' >&2;; *) printf "%s\\n" "$@";; esac\n'
    )
    real.chmod(0o755)
    environment = {**os.environ, **launched(Java(real, 17))}
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    launcher = LAUNCHER_HOME / "bin" / "java"
    done = subprocess.run([launcher, *arguments], env=environment, capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.splitlines() == ["-Xmx1g", "-cp", "a b", "Main"]


def test_a_java_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_292\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setattr("kspec.model_check.engines.spark.java._candidates", lambda: iter([old]))
    with pytest.raises(NoJavaError, match=r"needs Java 17 or later; found .*bin/java \(is Java 8\); set JAVA_HOME"):
        find_java()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "compiled", "--partitions", "2"), "are for engine spark"),
        (("--engine", "spark", "--partitions", "0"), "--partitions 0: must be from 1 to 65,536"),
        (("--engine", "spark", "--workers", "2"), "leave --workers out"),
        (("--engine", "spark", "--conf", "spark.ui.port"), "--conf spark.ui.port: expected NAME=VALUE"),
        (("--engine", "spark", "--spill", "a", "--checkpoint", "b"), "leave --spill out"),
        (("--engine", "spark", "--resume", "nowhere-at-all"), "there is no checkpoint of engine spark"),
    ],
)
def test_what_does_not_go_together_is_told_in_one_line(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("check", "kip-320", *arguments, "--quiet")
    assert done.mistake == (2, 1)
    assert message in done.stderr


# ---- tables, without Spark


@pytest.mark.slow
def test_tables_hold_every_state_and_transition_once(tmp_path: Path) -> None:
    model = model_of("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2})
    settings, context = SparkSettings(partitions=3, tables=str(tmp_path)), Context()
    with engine.states_folder(settings, context) as folder:
        found = engine.SparkSearch(model, model.properties, EVERYTHING, settings, None, context, folder).run()
    assert numbers_of(found) == expected(model)
    states = pyarrow.parquet.read_table(tmp_path / "states")
    transitions = pyarrow.parquet.read_table(tmp_path / "transitions").to_pylist()
    keys = states.column("state").to_pylist()
    assert len(set(keys)) == len(keys) == found.distinct_states
    assert Counter(states.column("depth").to_pylist()) == dict(enumerate(found.levels))
    assert Counter(row["action"] for row in transitions) == {name: n for name, n in found.actions.items() if n}
    depth = dict(zip(keys, states.column("depth").to_pylist(), strict=True))
    assert all(depth[row["source"]] == row["depth"] for row in transitions)
    assert all(depth[row["target"]] <= row["depth"] + 1 for row in transitions)
    assert {row["target"] for row in transitions} | {key for key in keys if depth[key] == 0} == set(keys)
    reached = {name for names in states.column("reached").to_pylist() for name in names}
    assert reached == {v.prop.name for v in found.verdicts if v.prop.kind == "sometimes" and v.holds}
    verdicts = pyarrow.parquet.read_table(tmp_path / "verdicts").to_pylist()
    assert {row["property"]: row["holds"] for row in verdicts} == {v.prop.name: v.holds for v in found.verdicts}


# ---- on Spark


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 7, 20])
def test_spark_gives_the_numbers_of_the_other_engines(spark: Any, partitions: int) -> None:
    model = counters(3, cap=2)
    found = engine.explore(model, model.properties, EVERYTHING, SparkSettings(partitions=partitions, driver_states=0))
    assert numbers_of(found) == expected(model)


@pytest.mark.slow
def test_processes_that_learn_by_themselves_agree(spark: Any) -> None:
    model = model_of("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2})
    found = engine.explore(model, model.properties, EVERYTHING, SparkSettings(partitions=2, driver_states=0))
    assert numbers_of(found) == expected(model)


@pytest.mark.slow
def test_spark_finds_shortest_violations(spark: Any) -> None:
    model = model_of("kip-101", {"replicas": 2, "max_epoch": 2})
    properties = [prop for prop in model.properties if prop.by_default]
    found = engine.explore(model, properties, Limits(), SparkSettings(partitions=3, driver_states=50))
    known = compiled.explore(model, properties, Limits())
    assert found.stopped_because == "a property is violated"
    assert [len(v.trace or ()) for v in found.verdicts if v.violated] == [
        len(v.trace or ()) for v in known.verdicts if v.violated
    ]
    for verdict in found.verdicts:
        if verdict.trace:
            assert_replays(model, verdict.trace)


@pytest.mark.slow
def test_another_master_than_the_running_one_is_refused(spark: Any) -> None:
    model = counters()
    with pytest.raises(SparkError, match=r"Spark runs already, with master local\[2,4\]"):
        engine.explore(model, model.properties, EVERYTHING, SparkSettings("local[1]"))


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(spark: Any) -> None:
    model = model_of("kip-320", {"replicas": 2, "max_epoch": 1})
    killed: list[int] = []
    over = threading.Event()

    def kill_now_and_then() -> None:
        turns = Turns()
        while not over.wait(0.2) and len(killed) < 2:
            turns.go()
            workers = _workers_of(spark)
            if workers:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        found = engine.explore(model, model.properties, EVERYTHING, SparkSettings(partitions=4, driver_states=0))
    finally:
        over.set()
        killer.join(timeout=600)
    assert killed
    assert numbers_of(found) == expected(model)


def _workers_of(context: Any) -> list[int]:
    """The Python workers of this session: the children of its daemon."""
    parents, daemons = {}, set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, parent = int(status.parent.name), int(status.read_text().rpartition(")")[2].split()[1])
            command = (status.parent / "cmdline").read_text()
        except OSError:
            continue
        if "pyspark.daemon" in command:
            parents[pid] = parent
            if parent == context._gateway.proc.pid:
                daemons.add(pid)
    return [pid for pid, parent in parents.items() if parent in daemons]


STOPPED_AT_SAVE = """
import os
from itertools import count
from kspec.model_check.engines.spark import checkpoint

save, saves = checkpoint.SparkCheckpoint.save, count(1)
def saves_and_stops(*args, **more):
    save(*args, **more)
    if next(saves) == 6:
        os.kill(os.getpid(), {sent})
checkpoint.SparkCheckpoint.save = saves_and_stops
from kspec.cli.main import main
main()
"""
"""A driver that gets a signal when it has written its sixth checkpoint."""

EMERGENCY_S = 900.0
"""The time after which a process that should have ended is given up, and the test fails."""


@pytest.mark.slow
@pytest.mark.parametrize("sent", marked([signal.SIGKILL, signal.SIGTERM], nightly=[signal.SIGTERM]))
def test_a_driver_that_was_stopped_goes_on_with_resume(sent: signal.Signals, tmp_path: Path) -> None:
    arguments = ["async-isr", "--replicas", "2", "--max-offset", "2", "--max-partition-epoch", "2", "--all", "--json"]
    folder = str(tmp_path / "checkpoints")
    options = ["check", *arguments, "--engine", "spark", "--quiet", "--master", "local[2]"]
    options += ["--conf", "spark.ui.enabled=false"]
    manifest = tmp_path / "checkpoints" / "spark-manifest.json"
    first = ["--partitions", "3", "--driver-states", "0", "--checkpoint", folder, "--checkpoint-interval", "0"]
    script = STOPPED_AT_SAVE.format(sent=int(sent))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    stopped = subprocess.run(
        [sys.executable, "-c", script, *options, *first],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        timeout=EMERGENCY_S,
        check=False,
    )
    status = stopped.returncode
    command = [sys.executable, "-m", "kspec.cli.submit", *options]
    assert status == (-signal.SIGKILL if sent == signal.SIGKILL else 3)
    assert not list(temporary.glob("*java*")), "Spark's way to Java is left behind"
    assert 4 <= _levels_in(manifest) < 12
    done = subprocess.run(
        [*command, "--resume", folder], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    model = model_of("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2})
    known, found = expected(model), json.loads(done.stdout)
    assert (found["distinct_states"], found["transitions"], found["levels"], found["actions"]) == (
        known["distinct"],
        known["transitions"],
        known["levels"],
        known["actions"],
    )
    verdicts = {entry["name"]: (entry["holds"], entry["trace_length"]) for entry in found["properties"]}
    assert verdicts == known["verdicts"]


def _levels_in(manifest: Path) -> int:
    checkpoint = json.loads(json.loads(manifest.read_text())["checkpoint"])
    return len(checkpoint["moment"]["levels"])


# ---- checkpoints, without Spark


def _interrupted(model: Model, folder: Path, states: int) -> Exploration:
    return _with_checkpoint(model, CheckpointPlan(folder, lambda _: None, every=0.0), Limits(False, states))


def _with_checkpoint(model: Model, asked: CheckpointPlan, limits: Limits, driver_states: int = 0) -> Exploration:
    asked_for = Exploration(model, "spark", [Verdict(prop) for prop in model.properties])
    checkpoint = SparkCheckpoint(asked, identity(asked_for))
    settings = SparkSettings(partitions=None if asked.resume else 3, driver_states=driver_states)
    with engine.states_folder(settings, Context(), checkpoint) as folder:
        return engine.SparkSearch(model, model.properties, limits, settings, None, Context(), folder, checkpoint).run()


def test_a_checkpoint_is_resumed_with_the_numbers_of_an_undisturbed_run(tmp_path: Path) -> None:
    model = model_of("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2})
    stopped = _interrupted(model, tmp_path, 60)
    assert not stopped.complete
    resumed = _with_checkpoint(model, CheckpointPlan(tmp_path, lambda _: None, resume=True), EVERYTHING)
    assert numbers_of(resumed) == expected(model)


@pytest.mark.parametrize("driver_states", [4, 1000])
def test_levels_of_the_driver_are_in_its_checkpoints(tmp_path: Path, driver_states: int) -> None:
    model = model_of("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2})
    asked = CheckpointPlan(tmp_path, lambda _: None, every=1000.0)
    assert numbers_of(_with_checkpoint(model, asked, EVERYTHING, driver_states)) == expected(model)
    resumed = _with_checkpoint(model, asked._replace(resume=True), EVERYTHING)
    assert numbers_of(resumed) == expected(model)


def test_an_interrupted_search_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2})
    jobs = count()

    def interrupted(tasks: Any) -> list[Any]:
        if next(jobs) == 5:
            raise KeyboardInterrupt
        return collected(tasks)

    monkeypatch.setattr(engine, "collected", interrupted)
    stopped = _with_checkpoint(model, CheckpointPlan(tmp_path, lambda _: None, every=1000.0), EVERYTHING)
    assert (stopped.complete, stopped.stopped_because) == (False, "interrupted")
    assert 1 < stopped.distinct_states < expected(model)["distinct"]
    resumed = _with_checkpoint(model, CheckpointPlan(tmp_path, lambda _: None, resume=True), EVERYTHING)
    assert numbers_of(resumed) == expected(model)


def test_an_interrupt_in_the_last_level_of_the_driver_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    conclude = head.HeadSearch.conclude

    def interrupted(search: head.HeadSearch) -> None:
        signal.raise_signal(signal.SIGINT)
        conclude(search)

    monkeypatch.setattr(head.HeadSearch, "conclude", interrupted)
    with pytest.raises(KeyboardInterrupt):
        in_process(counters(6), driver_states=2)


def test_a_checkpoint_of_something_else_or_damaged_is_refused(tmp_path: Path) -> None:
    model = counters(6)
    _interrupted(model, tmp_path, 5)
    with pytest.raises(CheckpointError, match="holds a checkpoint already"):
        _interrupted(model, tmp_path, 5)
    again = CheckpointPlan(tmp_path, lambda _: None, resume=True)
    with pytest.raises(CheckpointError, match="other parameters: limit 6, not 7"):
        _with_checkpoint(counters(7), again, EVERYTHING)
    states = next((tmp_path / "states").iterdir())
    states.write_bytes(states.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="are not as they were written"):
        _with_checkpoint(model, again, EVERYTHING)
    states.unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        _with_checkpoint(model, again, EVERYTHING)
    manifest = tmp_path / "spark-manifest.json"
    manifest.write_text(manifest.read_text().replace("levels", "lovely"))
    with pytest.raises(CheckpointError, match="its digest is not that of its content"):
        _with_checkpoint(model, again, EVERYTHING)
