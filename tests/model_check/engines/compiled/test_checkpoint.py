"""A search that is stopped or killed at any moment goes on from its checkpoint and ends with the same numbers."""

import fcntl
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kspec.cli import main as cli
from kspec.model_check.core.exploration import CheckpointError, CheckpointPlan, Exploration, Limits, Progress
from kspec.model_check.core.model import Model
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled import checkpoint, explore, layout, search, store
from kspec.model_check.engines.compiled.checkpoint import Checkpoint
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.model_check.engines.comparison import SMALL_MODELS, assert_replays, model_of, numbers_of
from tests.model_check.toy import counters
from tests.places import REPOSITORY

KIP_101 = ("kip-101", {"replicas": 2, "max_epoch": 2})


def run(
    model: Model,
    folder: Path | None,
    resume: bool = False,
    every: float = 0,
    workers: int = 1,
    report: Callable[[Progress], None] | None = None,
    told: list[str] | None = None,
    **more: Any,
) -> Exploration:
    """Explore everything, with a checkpoint after each block."""
    sentences = told if told is not None else []
    limits = Limits(stop_at_first=False, report=report, report_every=0)
    asked = CheckpointPlan(folder, sentences.append, resume, every) if folder else None
    return explore(model, model.properties, limits, workers, checkpointing=asked, **more)


def interrupt_after(blocks: int) -> Callable[[Progress], None]:
    """Press Ctrl-C before the block after so many."""
    seen: list[Progress] = []

    def report(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == blocks:
            signal.raise_signal(signal.SIGINT)

    return report


def manifest_in(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())["checkpoint"]


def assert_same(found: Exploration, expected: Exploration) -> None:
    assert numbers_of(found) == numbers_of(expected)
    assert found.represented == expected.represented
    for trace in [verdict.trace for verdict in found.verdicts] + [found.deadlock_trace]:
        if trace is not None:
            assert_replays(found.model, trace)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CHUNK", 64)
    monkeypatch.setattr(search, "BLOCK", 256)


# ---- stopped

EXAMPLES = settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
MANY_EXAMPLES = settings(EXAMPLES, max_examples=40)
STOPPED = given(
    named=st.sampled_from(SMALL_MODELS),
    symmetric=st.booleans(),
    stops=st.lists(st.integers(1, 40), max_size=4),
    workers=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    layouts=st.sampled_from([(1, 1), (1, 400), (300, 900), (4096, 1 << 20)]),
)


def resumes_like_undisturbed(
    folder: Path,
    named: tuple[str, dict[str, Any]],
    symmetric: bool,
    stops: list[int],
    workers: list[int],
    layouts: tuple[int, int],
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    model = model_of(*named)
    symmetry = Symmetry(model) if symmetric else None
    expected = run(model, None, symmetry=symmetry)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "WIDE_UNTIL", layouts[0])
        patch.setattr(search, "LOOSE_UNTIL", layouts[1])
        resume = False
        for number, blocks in enumerate(stops):
            team = workers[number % len(workers)]
            found = run(model, folder, resume, 1000 * (number % 2), team, interrupt_after(blocks), symmetry=symmetry)
            resume = True
            if found.complete:
                assert_same(found, expected)
            else:
                assert found.stopped_because == "interrupted"
                assert found.levels[:-1] == expected.levels[: found.depth - 1]
        assert_same(run(model, folder, resume, workers=workers[-1], symmetry=symmetry), expected)


@pytest.mark.slow
@EXAMPLES
@STOPPED
def test_stopped_after_any_blocks(tmp_path: Path, **drawn: Any) -> None:
    resumes_like_undisturbed(tmp_path / "kept", **drawn)


@pytest.mark.slow
@pytest.mark.nightly
@MANY_EXAMPLES
@STOPPED
def test_stopped_after_any_blocks_often(tmp_path: Path, **drawn: Any) -> None:
    resumes_like_undisturbed(tmp_path / "kept", **drawn)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Exploration]:
    """A copy of the folder after every block of a search, and the search undisturbed."""
    base = tmp_path_factory.mktemp("kept")
    copies: list[Path] = []

    def copy(progress: Progress) -> None:
        copies.append(shutil.copytree(base / "original", base / f"{len(copies)}"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "CHUNK", 64)
        patch.setattr(search, "BLOCK", 512)
        patch.setattr(search, "WIDE_UNTIL", 2000)
        found = run(model_of(*KIP_101), base / "original", report=copy)
    return copies, found


@pytest.mark.slow
def test_every_checkpoint_of_a_run_leads_to_its_end(kept: tuple[list[Path], Exploration], tmp_path: Path) -> None:
    copies, expected = kept
    assert len(copies) > expected.depth
    numbers = [manifest_in(copy) for copy in copies]
    assert {manifest["states"]["file"] for manifest in numbers} == {"states-1.kspec", "states-2.kspec"}
    assert (
        len({(len(manifest["moment"]["levels"]), manifest["moment"]["position"]) for manifest in numbers}) == len(copies) - 1
    )
    for copy in copies[::5]:
        folder = shutil.copytree(copy, tmp_path / copy.name)
        assert_same(run(model_of(*KIP_101), folder, resume=True, every=1000), expected)


def test_time_counts_on(tmp_path: Path) -> None:
    clock = [100.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: clock[0])

        def report(progress: Progress) -> None:
            clock[0] += 5
            interrupt_after(1)(progress)

        first = run(counters(), tmp_path, every=1000, report=report)
        reports: list[Progress] = []
        second = run(counters(), tmp_path, resume=True, every=1000, report=reports.append)
    assert first.duration_s == 5
    assert reports[0].seconds == second.duration_s == 5


def test_a_violation_that_was_found_is_not_forgotten(tmp_path: Path) -> None:
    model = model_of("truncate-to-hw", {"replicas": 2, "max_epoch": 1})
    properties = [prop for prop in model.properties if prop.name == "StrongIsr"]
    told: list[str] = []
    asked = CheckpointPlan(tmp_path, told.append)
    found = explore(model, properties, Limits(), 1, checkpointing=asked)
    again = explore(model, properties, Limits(), 1, checkpointing=asked._replace(resume=True))
    assert found.stopped_because == again.stopped_because == "a property is violated"
    assert_same(again, found)
    whole = explore(model, properties, Limits(stop_at_first=False), 1, checkpointing=asked._replace(resume=True))
    assert_same(whole, explore(model, properties, Limits(stop_at_first=False), 1))


def test_stopping_for_memory_leaves_a_checkpoint(tmp_path: Path) -> None:
    told: list[str] = []
    model = model_of("kip-320", {"replicas": 2, "max_epoch": 2})
    found = run(model, tmp_path, every=1000, memory=40_000, told=told)
    assert "memory" in str(found.stopped_because)
    assert told == [
        f"a checkpoint of {found.distinct_states:,} states is in {tmp_path}; --resume {tmp_path} goes on",
    ]
    assert_same(run(model, tmp_path, resume=True), run(model, None))


def test_little_memory_is_taken_by_saving(tmp_path: Path) -> None:
    """States go to the file from where they lie."""
    states = 3_000_000
    kept_states = store.StateStore(layout.wide_fields([3, 3]))
    size = kept_states.fields.size
    kept_states.count[:] = states // 64
    for base in kept_states.base.tolist():
        kept_states.content[base * size : (base + states // 64) * size] = 7
    moment = checkpoint.Moment([], 0, [], 0, None, {}, 0.0)
    keeper = Checkpoint(CheckpointPlan(tmp_path, print), {})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    keeper.begin(moment, kept_states, [])
    keeper.close()
    assert (tmp_path / "states-1.kspec").stat().st_size > states * size * 0.99
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 4_000_000


# ---- killed


class _CrashError(BaseException):
    """The process ends here."""


def crashing_at(crash_at: int, model: Model, folder: Path, steps: list[str] | None = None) -> Exploration | None:
    """Explore; the process ends before its `crash_at`-th step of saving (`None` if it did). `steps` get their names."""
    names = [] if steps is None else steps
    written = [0]

    def step_of(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any, **kwargs: Any) -> Any:
            names.append(name)
            if len(names) == crash_at:
                raise _CrashError
            return step(*args, **kwargs)

        return checked

    def some_of(write: Callable[..., Any]) -> Callable[..., Any]:
        """There is a write for each shard: every 25th will do."""
        one_step = step_of("write", write)

        def checked(*args: Any) -> Any:
            written[0] += 1
            return one_step(*args) if written[0] % 25 == 0 else write(*args)

        return checked

    with pytest.MonkeyPatch.context() as patch:
        for place, name in [
            (os, "fsync"),
            (Path, "replace"),
            (Path, "unlink"),
            (Path, "open"),
            (checkpoint, "_open_at"),
        ]:
            patch.setattr(place, name, step_of(name, getattr(place, name)))
        patch.setattr(checkpoint._DigestingWriter, "write", some_of(checkpoint._DigestingWriter.write))
        patch.setattr(search, "WIDE_UNTIL", 300)
        try:
            return run(model, folder)
        except _CrashError:
            return None


@pytest.mark.slow
@pytest.mark.parametrize("all_steps", marked([False, True], nightly=[True]))
def test_a_crash_between_any_two_steps_of_saving(tmp_path: Path, all_steps: bool) -> None:
    """Every flush, opening, replacement and removal, and some of the writes, in turn is what does not happen any more."""
    model = model_of("kip-101", {"replicas": 2, "max_epoch": 1})
    expected = run(model, None)
    steps: list[str] = []
    folder = tmp_path / "kept"
    assert crashing_at(-1, model, folder, steps) is not None
    by_name = {name: [at for at, step in enumerate(steps, 1) if step == name] for name in steps}
    assert {name: len(places) > 2 for name, places in by_name.items()} == {
        name: name != "unlink" for name in ("fsync", "replace", "unlink", "open", "_open_at", "write")
    }
    some = sorted({place for places in by_name.values() for place in (places[0], places[len(places) // 2], places[-1])})
    for crash_at in range(1, len(steps) + 1, 3) if all_steps else some:
        shutil.rmtree(folder)
        assert crashing_at(crash_at, model, folder) is None
        assert_same(run(model, folder, resume=(folder / "manifest.json").exists(), every=1000), expected)


def test_a_write_that_was_cut_off_does_not_count(kept: tuple[list[Path], Exploration], tmp_path: Path) -> None:
    """The files of a later checkpoint, cut anywhere, beside the manifest of an earlier one."""
    copies, expected = kept
    chance = random.Random(5)
    tried = 0
    for number, (earlier, later) in enumerate(zip(copies[4::7], copies[5::7], strict=False)):
        folder = shutil.copytree(earlier, tmp_path / str(number))
        for file in later.iterdir():
            target = folder / (f"{file.name}.unfinished" if file.name == "manifest.json" else file.name)
            kept_size = target.stat().st_size if target.exists() else 0
            cut = chance.randint(kept_size, max(kept_size, file.stat().st_size))
            target.write_bytes(file.read_bytes()[:cut])
            tried += kept_size < cut < file.stat().st_size
        assert_same(run(model_of(*KIP_101), folder, resume=True, every=1000), expected)
        assert not list(folder.glob("*.unfinished")) or not list(folder.glob("states-3*"))
    assert tried > 3


EMERGENCY_S = 900.0
"""The time after which a process that should have ended is given up, and the test fails."""

COMMAND = [sys.executable, "-c", "from kspec.cli.main import main; main()"]


def start(*args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([*COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def numbers_in(output: str) -> dict[str, Any]:
    """The output of `kspec check --json`, except for what may differ: seconds, and which of several shortest traces."""
    described = json.loads(output)
    del described["duration_s"]
    for prop in described["properties"]:
        prop["trace"] = prop["trace"] and len(prop["trace"])
    numbers: dict[str, Any] = described
    return numbers


KILLED_AT = """
import os, signal
from itertools import count
from kspec.model_check.core import exploration

def dies(function, at):
    numbers = count(1)
    def called(*args, **more):
        if next(numbers) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **more)
    return called

os.fsync = dies(os.fsync, {flush})
exploration.Clock.tick = dies(exploration.Clock.tick, {block})
from kspec.cli.main import main
main()
"""
"""A search that kills itself before it flushes a file for the so-and-so-many-th time, or before a block; 0: never."""


def wait_for_saves(process: "subprocess.Popen[Any]", folder: Path, which: int) -> None:
    """Wait until so many checkpoints were seen to replace the one before, or the process has ended."""
    seen, ends = None, time.monotonic() + EMERGENCY_S
    turns = Turns()
    while process.poll() is None and which > 0:
        turns.go()
        with suppress(FileNotFoundError):
            found = (folder / "manifest.json").stat().st_ino
            which -= found != seen
            seen = found
        assert time.monotonic() < ends, f"emergency stop: no checkpoint within {EMERGENCY_S} s"
        time.sleep(0.002)


def is_amid_a_save(folder: Path) -> bool:
    """Whether the files hold more than the manifest counts."""
    described = manifest_in(folder)
    return (
        (folder / "manifest.json.unfinished").exists()
        or (folder / described["states"]["file"]).stat().st_size > described["states"]["bytes"]
        or (folder / "values.kspec").stat().st_size > described["values"]["bytes"]
        or len(list(folder.glob("states-*"))) > 1
    )


def kill_until(kills: int, seed: int, arguments: list[str], folder: Path) -> dict[str, int]:
    """Kill searches at random moments and resume them; compare what those say that end.

    In turn: before some flush of a file, so amid a save; before some block; from outside, after some save.
    """
    chance = random.Random(seed)
    command = ["check", *arguments, "--all", "--json", "--quiet"]
    expected = numbers_in(start(*command).communicate(timeout=EMERGENCY_S)[0])
    output, problems = folder.parent / "output", folder.parent / "problems"
    counts = {"killed": 0, "with a checkpoint": 0, "amid a save": 0, "ended": 0}
    turns = Turns()
    while counts["killed"] < kills or not counts["ended"]:
        turns.go()
        kept_one = (folder / "manifest.json").exists()
        option = ["--resume" if kept_one else "--checkpoint", str(folder), "--checkpoint-interval", "0"]
        way = counts["killed"] % 3 if counts["killed"] < kills else None
        script = KILLED_AT.format(
            flush=chance.randint(1, 60) if way == 0 else 0, block=chance.randint(1, 20) if way == 1 else 0
        )
        with output.open("w") as out, problems.open("w") as err:
            process = subprocess.Popen(
                [sys.executable, "-c", script, *command, *option, "--workers", chance.choice("12")], stdout=out, stderr=err
            )
        if way == 2:
            wait_for_saves(process, folder, chance.randint(0, 8))
            process.kill()
        if process.wait(timeout=EMERGENCY_S) == -signal.SIGKILL:
            counts["killed"] += 1
            if (folder / "manifest.json").exists():
                counts["with a checkpoint"] += 1
                counts["amid a save"] += is_amid_a_save(folder)
        else:
            assert process.returncode in (0, 1), problems.read_text()
            assert numbers_in(output.read_text()) == expected
            counts["ended"] += 1
            shutil.rmtree(folder)
    return counts


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    arguments = ["kip-320", "--replicas", "3", "--max-epoch", "1", "--log-size", "2", "--max-records", "2"]
    assert kill_until(3, 1, arguments, tmp_path / "kept")["killed"] == 3


@pytest.mark.slow
@pytest.mark.nightly
def test_killed_at_random_moments_often(tmp_path: Path) -> None:
    arguments = ["kip-320", "--replicas", "3", "--max-epoch", "1", "--log-size", "2", "--max-records", "2"]
    counts = kill_until(30, 2, arguments, tmp_path / "kept")
    assert counts["killed"] == 30
    assert counts["with a checkpoint"] >= 20
    assert counts["amid a save"] >= 4
    assert counts["ended"] >= 1


STOPPED_AT_FIRST_SAVE = """
import os
from kspec.model_check.engines.compiled import checkpoint

begin = checkpoint.Checkpoint.begin
def begins(*args):
    begin(*args)
    os.kill(os.getpid(), {sent})
checkpoint.Checkpoint.begin = begins
from kspec.cli.main import main
main()
"""
"""A search that gets a signal as soon as its first checkpoint is there."""


@pytest.mark.slow
@pytest.mark.parametrize("asked_to_stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_checkpoint_and_ends_with_3(asked_to_stop: signal.Signals, tmp_path: Path) -> None:
    arguments = ["check", "kip-320", "--replicas", "3", "--max-epoch", "1", "--invariant", "StrongIsr", "--json", "--quiet"]
    folder = tmp_path / "kept"
    script = STOPPED_AT_FIRST_SAVE.format(sent=int(asked_to_stop))
    command = [sys.executable, "-c", script, *arguments, "--checkpoint", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=EMERGENCY_S, check=False)
    assert done.returncode == 3
    stopped = json.loads(done.stdout)
    assert stopped["stopped_because"] == "interrupted"
    states = f"{stopped['distinct_states']:,}"
    assert done.stderr == f"kspec: a checkpoint of {states} states is in {folder}; --resume {folder} goes on\n"
    process = start(*arguments, "--resume", str(folder))
    resumed = json.loads(process.communicate(timeout=EMERGENCY_S)[0])
    assert (resumed["distinct_states"], resumed["transitions"], resumed["depth"]) == (39_619, 102_219, 22)
    assert resumed["duration_s"] > stopped["duration_s"]


# ---- damaged

DAMAGE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@DAMAGE
@given(st.data())
def test_a_changed_byte_is_noticed(kept: tuple[list[Path], Exploration], tmp_path: Path, data: st.DataObject) -> None:
    copies, expected = kept
    folder = shutil.copytree(data.draw(st.sampled_from([copies[3], copies[-2]])), tmp_path / "damaged", dirs_exist_ok=True)
    try:
        path = data.draw(st.sampled_from(sorted(folder.iterdir())))
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        try:
            found = run(model_of(*KIP_101), folder, resume=True, every=1000)
        except CheckpointError as error:
            said = str(error)
        else:  # white space in the manifest
            said = str(folder)
            assert path.name == "manifest.json"
            assert_same(found, expected)
        assert str(folder) in said
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["manifest.json", "values.kspec", "states-2.kspec"])
@pytest.mark.parametrize("part", [0.0, 0.001, 0.5, 0.999])
def test_a_cut_file_is_noticed(kept: tuple[list[Path], Exploration], tmp_path: Path, name: str, part: float) -> None:
    folder = shutil.copytree(kept[0][-1], tmp_path / "cut")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(len(content) * part)])
    with pytest.raises(CheckpointError, match=f"{name} is damaged"):
        run(model_of(*KIP_101), folder, resume=True)


@pytest.mark.parametrize("name", ["values.kspec", "states-2.kspec"])
def test_a_missing_file_is_noticed(kept: tuple[list[Path], Exploration], tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(kept[0][-1], tmp_path / "cut")
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"cannot be read: .*{name}"):
        run(model_of(*KIP_101), folder, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept["moment"].update(position=kept["moment"]["position"] + 1),
        lambda kept: kept["moment"].update(deadlocks=kept["moment"]["deadlocks"] + 1),
        lambda kept: kept["moment"]["fired"].append(kept["moment"]["fired"].pop(0)),
        lambda kept: kept["moment"]["levels"].pop(0),
        lambda kept: kept["states"].update(count=kept["states"]["count"] - 1),
        lambda kept: kept["identity"]["properties"].pop(),
    ],
)
def test_a_changed_manifest_is_noticed(
    kept: tuple[list[Path], Exploration], tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    folder = shutil.copytree(kept[0][-1], tmp_path / "changed")
    content = json.loads((folder / "manifest.json").read_text())
    change(content["checkpoint"])
    (folder / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"manifest.json is damaged: its digest is not that of its content"):
        run(model_of(*KIP_101), folder, resume=True)


def test_bytes_after_the_end_do_not_count(kept: tuple[list[Path], Exploration], tmp_path: Path) -> None:
    folder = shutil.copytree(kept[0][-4], tmp_path / "longer")
    for name in ("values.kspec", "states-2.kspec"):
        with (folder / name).open("ab") as file:
            file.write(b"\xff" * 200_000)
    assert_same(run(model_of(*KIP_101), folder, resume=True), kept[1])
    assert (folder / "states-2.kspec").stat().st_size == manifest_in(folder)["states"]["bytes"]


def test_more_memory_than_there_is(kept: tuple[list[Path], Exploration], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "available_memory", lambda: 1000)
    with pytest.raises(CheckpointError, match=r"takes 0 MB of memory, and 0 MB are free"):
        run(model_of(*KIP_101), kept[0][-1], resume=True)


# ---- no room, no folder


@pytest.fixture
def _small_files() -> Iterator[None]:
    """No file may grow beyond 20,000 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("_small_files")
def test_without_room_the_search_goes_on_and_the_last_checkpoint_counts(tmp_path: Path) -> None:
    told: list[str] = []
    expected = run(model_of(*KIP_101), None)
    assert_same(run(model_of(*KIP_101), tmp_path, told=told), expected)
    assert set(told) == {f"no checkpoint could be written to {tmp_path}: File too large; the one before is still there"}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["manifest.json", "states-1.kspec", "values.kspec"]
    described = manifest_in(tmp_path)["states"]
    assert 0 < described["count"] < expected.distinct_states
    assert (tmp_path / "states-1.kspec").stat().st_size == described["bytes"]
    assert_same(run(model_of(*KIP_101), tmp_path, resume=True), expected)


def test_no_room_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=f"no checkpoint could be written to {tmp_path}: No space left on device"):
        run(model_of(*KIP_101), tmp_path)
    assert [file for file in tmp_path.iterdir() if file.stat().st_size] == []


def test_a_value_that_cannot_be_written(tmp_path: Path) -> None:
    model = Model("floats", {})
    model.slot("ratio", 0.5)
    with pytest.raises(CheckpointError, match=r"values of type builtins.float cannot be kept"):
        run(model, tmp_path)


# ---- of something else


def kspec(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[Any, str]:
    """Exit status and what is said on standard error."""
    monkeypatch.setattr(sys, "argv", ["kspec", *args])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().err


SMALL = ["check", "kip-101", "--replicas", "2", "--max-epoch", "1", "--all", "--quiet"]


def test_when_memory_is_short_kspec_ends_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """With a clear message, a checkpoint, and the counts so far."""
    folder = tmp_path / "kept"
    arguments = ["check", "kip-320", "--replicas", "2", "--max-epoch", "1"]
    free = iter([1 << 40, 1 << 40, 1 << 40])
    with monkeypatch.context() as short:
        short.setattr(search, "available_memory", lambda: next(free, 5_000_000))
        short.setattr(sys, "argv", ["kspec", *arguments, "--quiet", "--checkpoint", str(folder)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    output = capsys.readouterr()
    assert ended.value.code == 3
    assert "stopped early: memory is nearly exhausted: 5 MB are left" in output.out
    states = manifest_in(folder)["states"]["count"]
    assert f"{states} distinct states" in output.out
    assert output.err == f"kspec: a checkpoint of {states} states is in {folder}; --resume {folder} goes on\n"
    assert kspec(monkeypatch, capsys, *arguments, "--resume", str(folder)) == (0, "")


@pytest.fixture(scope="module")
def of_kip_101(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "of-kip-101"
    model = model_of("kip-101", {"replicas": 2, "max_epoch": 1})
    explore(model, model.properties, Limits(False, max_states=100), 1, checkpointing=CheckpointPlan(folder, print))
    return folder


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["check", "kip-279", *SMALL[2:]], "another model: kip-101, not kip-279"),
        ([*SMALL, "--max-epoch", "2"], "other parameters: max-epoch 1, not 2"),
        ([*SMALL, "--restarts", "1", "--unclean"], "other parameters: unclean False, not True, restarts 0, not 1"),
        ([*SMALL, "--mutant", "unfenced-truncation"], "other parameters: mutant None, not unfenced-truncation"),
        ([*SMALL, "--invariant", "StrongIsr"], "other properties: TypeOk, "),
        ([*SMALL, "--symmetry"], "an exploration without --symmetry"),
    ],
)
def test_another_checkpoint_is_refused(
    changed: list[str],
    said: str,
    of_kip_101: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, error = kspec(monkeypatch, capsys, *changed, "--resume", str(of_kip_101))
    assert status == 2
    assert error.startswith(f"kspec: the checkpoint in {of_kip_101} is of {said}")
    assert error.count("\n") == 1
    assert kspec(monkeypatch, capsys, *SMALL, "--resume", str(of_kip_101))[0] == 1


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [("VERSION", "0.0.9", "another version: 0.1.0, not 0.0.9"), ("FORMAT", 2, "format 1; this version reads format 2")],
)
def test_another_version_is_refused(
    part: str, value: Any, said: str, of_kip_101: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, part, value)
    model = model_of("kip-101", {"replicas": 2, "max_epoch": 1})
    with pytest.raises(CheckpointError, match=said):
        run(model, of_kip_101, resume=True)


@pytest.mark.slow
@pytest.mark.parametrize("edited", ["spec/broker/rules/high_watermark.py", "model_check/models/published/leader.py"])
def test_other_sources_are_refused(edited: str, of_kip_101: Path, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "kspec", tmp_path / "kspec")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    path = tmp_path / "kspec" / edited
    content = path.read_text()
    path.write_text(content.replace(" < ", " <= ") if " < " in content else content + "\n# changed\n")
    assert path.read_text() != content
    done = subprocess.run(
        [*COMMAND, *SMALL, "--resume", str(of_kip_101)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"kspec: the checkpoint in {of_kip_101} is of other source code of the rules, the models or the engine; "
        "start anew in another folder\n"
    )


def test_other_names_of_slots_would_be_other_sources() -> None:
    assert checkpoint.sources_digest() == checkpoint.sources_digest()
    assert len(checkpoint.sources_digest()) == 64


# ---- use of folders


def test_a_checkpoint_is_not_overwritten(of_kip_101: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    before = (of_kip_101 / "manifest.json").read_bytes()
    status, error = kspec(monkeypatch, capsys, *SMALL, "--checkpoint", str(of_kip_101))
    assert status == 2
    assert error == (
        f"kspec: {of_kip_101} holds a checkpoint already: go on from it with --resume {of_kip_101}, or remove it\n"
    )
    assert (of_kip_101 / "manifest.json").read_bytes() == before


def test_wrong_use_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").write_text("mine")
    missing = tmp_path / "missing"
    for options, said in [
        (["--resume", str(missing)], f"there is no checkpoint in {missing} to resume"),
        (["--resume", str(full)], f"there is no checkpoint in {full} to resume"),
        (["--checkpoint", str(full)], f"{full} holds other files (letter.txt); checkpoints need a folder of their own"),
        (["--checkpoint", str(file)], f"{file} cannot hold checkpoints: File exists"),
        (["--checkpoint", str(file / "x")], f"{file / 'x'} cannot hold checkpoints: Not a directory"),
        (["--checkpoint", "a", "--resume", "b"], "--resume DIR goes on keeping checkpoints in DIR; leave --checkpoint out"),
        (["--checkpoint-interval", "5"], "--checkpoint-interval goes with --checkpoint or --resume"),
        (
            ["--checkpoint", str(missing), "--engine", "reference"],
            "engine reference keeps no checkpoints; --checkpoint and --resume are for compiled and spark",
        ),
        (
            ["--resume", str(missing), "--engine", "reference"],
            "engine reference keeps no checkpoints; --checkpoint and --resume are for compiled and spark",
        ),
    ]:
        assert kspec(monkeypatch, capsys, *SMALL, *options) == (2, f"kspec: {said}\n")
    assert not missing.exists()
    assert [entry.read_text() for entry in (file, full / "letter.txt")] == ["mine", "mine"]
    (full / "manifest.json").write_text('{"name": "a web page"}')
    status, error = kspec(monkeypatch, capsys, *SMALL, "--resume", str(full))
    assert status == 2
    assert "manifest.json is damaged, or no checkpoint's" in error


def test_two_searches_do_not_share_a_folder(of_kip_101: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    handle = os.open(of_kip_101, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        status, error = kspec(monkeypatch, capsys, *SMALL, "--resume", str(of_kip_101))
        assert (status, error) == (2, f"kspec: another exploration is writing its checkpoints to {of_kip_101}\n")
    finally:
        os.close(handle)


def test_what_a_killed_start_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "states-1.kspec").write_bytes(b"torn")
    (tmp_path / "manifest.json.unfinished").write_bytes(b"{")
    assert run(counters(), tmp_path).distinct_states == 10
    assert not (tmp_path / "manifest.json.unfinished").exists()
