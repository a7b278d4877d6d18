"""Output that cannot be written: one line, exit status 2, no half file. Ctrl-C at any time: one line, exit status 3."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from kspec.cli.main import cli
from kspec.cli.terminal.output import Output, OutputFolder
from kspec.model_check.core.exploration import Exploration, uninterrupted
from kspec.model_check.models import MODELS
from kspec.model_check.reports.studies import catalogue
from tests.cli.test_cli import EMERGENCY_S, SMALL
from tests.limits.marks import marked
from tests.model_check.commands import Command

FULL = Path("/dev/full")
needs_dev_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full, which Linux has")

LOSS = ("check", "kip-101", "--replicas", "2", "--invariant", "StrongIsr", "--quiet")

START = "from kspec.cli.start import main; main()"


def started(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    """`kspec` in a process of its own, as the installed command starts."""
    return subprocess.Popen([sys.executable, "-c", START, *arguments], stderr=subprocess.PIPE, text=True, **more)


def told_by(process: subprocess.Popen[str]) -> str:
    """Standard error of the process once it has ended."""
    assert process.stderr is not None
    with process:
        told = process.stderr.read()
        process.wait(EMERGENCY_S)
    return told


@pytest.mark.slow
@needs_dev_full
@pytest.mark.parametrize("arguments", [("models",), ("--help",), ("study",), LOSS, (*LOSS, "--itf", "-"), (*LOSS, "--json")])
def test_a_full_standard_output_is_told_in_one_line(arguments: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        process = started(*arguments, stdout=full)
    assert told_by(process) == f"kspec: cannot write the output: {os.strerror(errno.ENOSPC)}\n"
    assert process.returncode == 2


@needs_dev_full
@pytest.mark.parametrize("option", ["--itf", "--mermaid"])
def test_a_full_device_is_told_in_one_line(option: str, command: Command) -> None:
    done = command(*LOSS, option, str(FULL))
    assert (done.status, done.stderr) == (2, f"kspec: cannot write {FULL}: {os.strerror(errno.ENOSPC)}\n")


def run_out_of_space(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("before", [None, "what was there before"])
def test_no_half_file_stays(before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    file = tmp_path / "trace.itf.json"
    if before is not None:
        file.write_text(before)
    write = Path.write_text

    def half(path: Path, text: str, *args: Any, **more: Any) -> int:
        write(path, text[: len(text) // 2], *args, **more)
        return int(run_out_of_space())

    monkeypatch.setattr(Path, "write_text", half)
    done = command(*LOSS, "--itf", str(file))
    assert (done.status, done.stderr) == (2, f"kspec: cannot write {file}: {os.strerror(errno.ENOSPC)}\n")
    assert [path.name for path in tmp_path.iterdir()] == ([file.name] if before else [])
    assert before is None or file.read_text() == before


def test_a_file_of_a_command_without_a_trace_does_not_appear(tmp_path: Path, command: Command) -> None:
    assert command("check", "kip-320", *SMALL, "--itf", str(tmp_path / "trace.json"), "--quiet").status == 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch(0o640)
    link.symlink_to(file)
    Output(str(link)).write("text")
    assert (file.read_text(), file.stat().st_mode & 0o777, link.is_symlink()) == ("text", 0o640, True)


@pytest.mark.parametrize("there", [False, True])
def test_plots_that_cannot_be_drawn_leave_nothing(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    folder = tmp_path / "new" / "plots"
    if there:
        folder.mkdir(parents=True)
        (folder / "notes.txt").touch()
    monkeypatch.setattr(pyplot.Figure, "savefig", run_out_of_space)
    done = command("stats", "kip-320", *SMALL, "--plots", str(folder), "--quiet")
    assert (done.status, done.stderr) == (2, f"kspec: cannot write {folder}: {os.strerror(errno.ENOSPC)}\n")
    assert [path.name for path in tmp_path.rglob("*")] == (["new", "plots", "notes.txt"] if there else [])


def test_a_folder_is_filled_at_the_end_or_not_at_all(tmp_path: Path) -> None:
    folder = OutputFolder(str(tmp_path / "new"))
    assert not folder.path.exists()

    def fill(interrupted: bool) -> None:
        with folder.filled() as unfinished:
            (unfinished / "one").touch()
            if interrupted:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(interrupted=True)
    assert not folder.path.exists()
    fill(interrupted=False)
    assert [path.name for path in folder.path.iterdir()] == ["one"]


@pytest.mark.parametrize("theorem", ["kip-320", "truncate-to-hw"])
def test_an_obligation_is_written_whole_or_not_at_all(
    theorem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    pytest.importorskip("z3")
    monkeypatch.setattr(Path, "write_text", run_out_of_space)
    done = command("prove", theorem, "--replicas", "2", "--workers", "1", "--export", str(tmp_path / "new"), "--quiet")
    assert done.mistake == (2, 1)
    assert f"cannot write {tmp_path / 'new'}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_cover_that_fails_leaves_no_folder(tmp_path: Path, command: Command) -> None:
    pytest.importorskip("pyspark")
    done = command("cover", str(tmp_path / "missing"), "--out", str(tmp_path / "traces"), "--quiet", "--master", "nowhere")
    assert done.mistake == (2, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_that_is_closed_ends_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    process = started("models", stdout=write)
    os.close(write)
    assert (told_by(process), process.returncode) == ("", 128 + signal.SIGPIPE)


OTHERS = [("study", "missed-epoch", "--quiet"), ("history", "--quiet")]


def test_ctrl_c_while_the_command_line_is_read_prints_no_empty_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, "make_context", stop)
    with pytest.raises(click.Abort):
        cli.main(["check"], standalone_mode=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", marked([("check", "kip-320", "--quiet"), *OTHERS], nightly=OTHERS))
def test_ctrl_c_at_any_time_is_one_line(arguments: tuple[str, ...]) -> None:
    """From the moment on in which Python has begun to load `kspec`, which it takes part of a second to do."""
    begun = f"import sys; print('begun', flush=True); {START}"
    for seconds in (random.Random(1).uniform(0, 1) for _ in range(12)):
        command = [sys.executable, "-c", begun, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            out, told = process.communicate(timeout=EMERGENCY_S)
        if told or "interrupted" not in out:
            assert told == "kspec: interrupted\n", (seconds, told)
        assert process.returncode == 3


def test_a_ctrl_c_in_a_callback_is_not_lost() -> None:
    """Python cannot raise it there, and imports have such callbacks."""
    lines = (
        "import signal, time, weakref",
        "from kspec.cli.start import keep_interrupts",
        "keep_interrupts()",
        "held = type('Held', (), {})()",
        "known = weakref.ref(held, lambda _: signal.raise_signal(signal.SIGINT))",
        "try:",
        "    del held",
        f"    time.sleep({EMERGENCY_S})",
        "except KeyboardInterrupt:",
        "    print('interrupted')",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, timeout=600)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize("arguments", [("study", catalogue.STUDIES[0].name), ("history",), ("mutants",), ("matrix",)])
def test_ctrl_c_in_a_command_with_several_explorations_ends_it(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """Not only the exploration that it meets."""
    explored = []

    def interrupted(model: Any, properties: Any, limits: Any, *_: Any) -> Any:
        result = Exploration(model, "reference", [])
        result.stopped_because = "interrupted"
        explored.append(model)
        return result

    for name in ("history", "mutants", "matrix", "studies.tell"):
        monkeypatch.setattr(import_module(f"kspec.model_check.reports.{name}"), "explorer", lambda **_: interrupted)
    monkeypatch.setattr(
        import_module("kspec.model_check.reports.studies.tell"), "explore_with_reference_engine", interrupted
    )
    done = command(*arguments, "--quiet")
    assert (done.status, done.stdout, done.stderr) == (3, "", "kspec: interrupted\n")
    assert len(explored) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("master", "complaint"),
    [
        ("nowhere", "--master nowhere: expected local, local[N], local[*], spark://HOST:PORT, k8s://URL or yarn"),
        ("yarn", "--master yarn: set HADOOP_CONF_DIR or YARN_CONF_DIR to the folder of the cluster's configuration"),
        ("spark://somewhere:7077", "master spark://somewhere:7077 needs --spill DIR"),
    ],
)
def test_a_wrong_master_of_spark_is_one_line(master: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the trace of Java, which is not even started."""
    pytest.importorskip("pyspark")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    process = started("check", "kip-320", *SMALL, "--engine", "spark", "--master", master, "--quiet")
    told = told_by(process)
    assert (process.returncode, told.count("\n")) == (2, 1)
    assert told.startswith(f"kspec: {complaint}")


@pytest.mark.parametrize("arguments", [("models",), ("--version",), ("check", "--help")], ids=" ".join)
@pytest.mark.parametrize("closed", [(1,), (0, 1), (0, 1, 2)], ids=str)
def test_a_closed_standard_output_is_told_in_one_line(arguments: tuple[str, ...], closed: tuple[int, ...]) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    process = started(*arguments, preexec_fn=close)
    said = "" if 2 in closed else f"kspec: cannot write the output: {os.strerror(errno.EBADF)}\n"
    assert (told_by(process), process.returncode) == (said, 2)


def test_a_closed_standard_error_is_no_file_of_ours(tmp_path: Path) -> None:
    """The next file that is opened would have its number, and get what is told there."""
    itf = tmp_path / "trace.itf.json"
    process = started(*LOSS[:-1], "--itf", str(itf), stdout=subprocess.DEVNULL, preexec_fn=lambda: os.close(2))
    told_by(process)
    assert process.returncode == 1
    assert itf.read_text().startswith("{")


@pytest.mark.parametrize("error", [errno.ENOMEM, errno.EAGAIN])
def test_an_error_elsewhere_is_not_one_of_the_output(error: int) -> None:
    """It was told as "cannot write the output: Cannot allocate memory"."""
    fails = f"def build(*_): raise OSError({error}, os.strerror({error}))"
    script = f"import os\nfrom kspec.cli import check\n{fails}\ncheck.build = build\n{START}"
    command = [sys.executable, "-c", script, "check", "kip-320"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=EMERGENCY_S, check=False)
    what = "out of memory" if error == errno.ENOMEM else "the operating system refuses"
    assert (done.returncode, done.stderr) == (3, f"kspec: {what}: {os.strerror(error)}\n")


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["all", "the one that waits"])
@pytest.mark.parametrize("after_s", marked([0.5, 3.0, 8.0], nightly=[8.0]))
def test_ctrl_c_ends_all_workers_at_once(whom: str, after_s: float) -> None:
    """Processes that are starting, and those at work; a terminal sends it to all of them."""
    process = started(
        "simulate-cluster", "--seeds", "50", "--workers", "2", stdout=subprocess.DEVNULL, start_new_session=True
    )
    time.sleep(after_s)
    (os.killpg if whom == "all" else os.kill)(process.pid, signal.SIGINT)
    began = time.monotonic()
    told = told_by(process)
    assert time.monotonic() - began < 10  # they would go on for a minute
    assert (told, process.returncode) == ("kspec: interrupted\n", 3)


def test_ctrl_c_at_the_end_of_an_exploration_ends_what_follows_it() -> None:
    model = MODELS["kip-101"].build({"replicas": 2})
    result = Exploration(model, "compiled", [], stopped_because="a property is violated")
    assert uninterrupted(result) is result
    result.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(result)


def test_what_cannot_be_read_is_said_without_numbers_of_errors(command: Command, tmp_path: Path) -> None:
    missing, file = tmp_path / "missing", tmp_path / "file"
    file.write_text("no trace")
    said = f"kspec: cannot read {missing}: {os.strerror(errno.ENOENT)}\n"
    assert command("replay", str(missing))[::2] == (2, said)
    assert command("replay", str(file))[::2] == (2, f"kspec: {file} is no trace: `kspec broker --trace FILE` writes one\n")
    status, _, told = command("broker", "--log-dir", str(file))
    assert (status, told.count("\n")) == (2, 1)
    assert told.endswith(f"{file} is a file; name a folder, or one that can be made\n")


def test_spark_does_not_start_for_folders_that_are_wrong(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        raise AssertionError("Spark starts")

    pytest.importorskip("pyspark", reason="engine spark is not installed")
    monkeypatch.setattr(import_module("kspec.model_check.engines.spark.session"), "spark_context", start)
    monkeypatch.setattr(import_module("kspec.model_check.engines.spark.engine"), "spark_context", start)
    empty, file = tmp_path / "empty", tmp_path / "file"
    empty.mkdir()
    file.touch()
    out = str(tmp_path / "out")
    for folder in (str(empty), str(tmp_path / "missing")):
        done = command("cover", folder, "--out", out)
        assert done.mistake == (2, 1)
        assert done.stderr.startswith(f"kspec: {folder} holds no tables of an exploration")
    assert command("cover", str(empty), "--out", out, "--master", "here").stderr.startswith("kspec: --master here: expected")
    for option in ("--spill", "--tables"):
        done = command("check", "kip-320", "--engine", "spark", option, f"{file}/x", "--quiet")
        assert done.mistake == (2, 1)
        assert done.stderr == f"kspec: {option} {file}/x: {file} is not a folder that can be written to\n"
