"""`kspec` as a user or a script meets it: output, files, exit status, and one line for each mistake."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import itf_py
import pytest

from kspec.cli.broker.client import outcome
from kspec.cli.common import Deadline
from kspec.cli.statuses import RefusedError
from kspec.model_check import extras
from kspec.model_check.extras import MEGABYTES, install
from kspec.model_check.models import MODELS
from kspec.spec.published.mutants import ISR_MUTANTS, MUTANTS
from tests.model_check.commands import Command
from tests.places import REPOSITORY

EMERGENCY_S = 900.0
"""The time after which a process that should have ended is given up, and the test fails."""

SMALL = ["--replicas", "2", "--max-epoch", "1"]


def kspec(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from kspec.cli.main import main; main()", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=EMERGENCY_S, cwd=cwd, check=False)


def kspec_json(*args: str) -> Any:
    return json.loads(kspec(*args, "--json").stdout)


def test_a_model_that_holds_ends_with_0_and_says_so() -> None:
    done = kspec("check", "kip-320", *SMALL)
    assert done.returncode == 0
    assert "957 distinct states, 1,800 transitions, depth 15" in done.stdout
    assert "every reachable state was explored" in done.stdout
    assert "VIOLATED" not in done.stdout


def test_a_violation_ends_with_1_and_shows_the_shortest_run() -> None:
    done = kspec("check", "truncate-to-hw", *SMALL, "--invariant", "StrongIsr")
    assert done.returncode == 1
    assert "Shortest run that violates StrongIsr (9 steps)" in done.stdout
    assert "high watermark  0 -> 1" in done.stdout


@pytest.mark.slow
def test_json_has_what_scripts_rely_on() -> None:
    done = kspec("check", "truncate-to-hw", *SMALL, "--all", "--json")
    assert done.returncode == 1
    assert done.stderr == ""
    result = json.loads(done.stdout)
    assert result["model"] == "truncate-to-hw"
    assert result["engine"] == "compiled"
    assert {**result, "engine": "reference", "duration_s": 0.0} == {
        **kspec_json("check", "truncate-to-hw", *SMALL, "--all", "--engine", "reference"),
        "duration_s": 0.0,
        "properties": result["properties"],  # another of several shortest traces may be shown
    }
    assert result["complete"] is True
    assert (result["distinct_states"], result["transitions"], result["depth"]) == (1251, 2690, 16)
    assert result["parameters"]["max-epoch"] == 1
    assert result["actions"]["FollowerReplicate"] == 428
    assert sum(result["actions"].values()) == result["transitions"]
    properties = {prop["name"]: prop for prop in result["properties"]}
    assert properties["LeaderInIsr"]["trace_length"] == 1
    assert properties["TypeOk"] == {
        **properties["TypeOk"],
        "kind": "always",
        "holds": True,
        "trace_length": None,
        "trace": None,
    }
    strong = properties["StrongIsr"]
    assert strong["holds"] is False
    assert strong["trace_length"] == len(strong["trace"]) == 10
    assert strong["trace"][0]["action"] is None
    assert strong["trace"][1]["action"] == "ControllerElectLeader"
    assert strong["trace"][-1]["args"].keys() == {"follower", "leader", "epoch"}
    assert strong["trace"][-1]["state"]["log"].keys() == {"1", "2"}


@pytest.mark.slow
def test_without_all_the_published_false_start_is_left_out() -> None:
    names = [prop["name"] for prop in kspec_json("check", "kip-320", *SMALL)["properties"]]
    assert "LeaderInIsr" not in names
    assert "LeaderNoneOrInIsr" in names


@pytest.mark.slow
def test_a_sometimes_that_is_asked_for_must_be_reached() -> None:
    assert kspec("check", "kip-320", "--replicas", "1", "--quiet").returncode == 0
    assert kspec("check", "kip-320", "--replicas", "1", "--invariant", "LeaderHasCommittedWithOthers").returncode == 1


@pytest.mark.slow
def test_a_property_whose_premise_is_never_met_is_called_vacuous() -> None:
    done = kspec("check", "kip-320", "--replicas", "1")
    assert "warning: StrongIsr holds, but LeaderHasCommittedWithOthers is never reached" in done.stdout


@pytest.mark.slow
def test_limits_end_with_3() -> None:
    done = kspec("check", "kip-320", "--max-states", "500")
    assert done.returncode == 3
    assert "stopped early: the limit of 500 states is reached" in done.stdout
    assert kspec("check", "kip-320", "--time-limit", "0.000001").returncode == 3


@pytest.mark.slow
def test_an_interrupt_ends_with_3_and_the_counts_so_far() -> None:
    begins = """
import sys
from kspec.cli.main import main
from kspec.model_check.engines import reference

explore = reference.explore

def begins(model, properties, limits, *more):
    def report(progress):
        if progress.level == 8:
            print("exploring", file=sys.stderr, flush=True)
    limits.report, limits.report_every = report, 0
    return explore(model, properties, limits, *more)

reference.explore = begins
main()
"""
    command = [sys.executable, "-c", begins, "check", "kip-320", "--json", "--engine", "reference", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "exploring\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=EMERGENCY_S)
    assert process.returncode == 3
    result = json.loads(out)
    assert result["stopped_because"] == "interrupted"
    assert result["complete"] is False
    assert 0 < result["distinct_states"] < 737_794


@pytest.mark.parametrize("at_ctrl_c", ["signal.default_int_handler", "signal.SIG_IGN"])
def test_sigterm_ends_with_3_also_where_ctrl_c_is_ignored(at_ctrl_c: str) -> None:
    """As it is in the background of a script."""
    explore = "def explore(*_): print('exploring', flush=True); [time.sleep(60) for _ in iter(int, 1)]"
    imports = "import signal, sys, time\nimport kspec.cli.check\nfrom kspec.cli.main import main\n"
    script = f"{imports}signal.signal(signal.SIGINT, {at_ctrl_c})\n{explore}\n"
    script += "sys.modules['kspec.cli.check'].explorer = lambda *_: explore\nmain()"
    command = [sys.executable, "-c", script, "check", "kip-320"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "exploring\n"
        process.terminate()
        _, told = process.communicate(timeout=EMERGENCY_S)
    assert (process.returncode, told.strip()) == (3, "kspec: interrupted")


def test_lack_of_memory_is_told_in_one_line() -> None:
    full = "def full(*_): raise MemoryError('a shard of the visited set is full')"
    script = f"import sys\nimport kspec.cli.check\nfrom kspec.cli.main import main\n{full}\n"
    script += "sys.modules['kspec.cli.check'].explorer = lambda *_: full\nmain()"
    command = [sys.executable, "-c", script, "check", "kip-320"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=EMERGENCY_S, check=False)
    assert (done.returncode, done.stderr) == (3, "kspec: out of memory: a shard of the visited set is full\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "needs", "extra"),
    [
        ("check kip-320 --engine spark", "engine spark needs pyspark and pyarrow", "spark"),
        ("simulate kip-101 --engine spark", "engine spark needs pyspark and pyarrow", "spark"),
        ("mutants --engine spark", "engine spark needs pyspark and pyarrow", "spark"),
        ("cover TABLES --out TRACES", "engine spark needs pyspark and pyarrow", "spark"),
        ("explore kip-320", "kspec explore needs starlette and uvicorn", "explore"),
        ("liveness kip-320", "kspec liveness needs scipy", "graph"),
        ("graph kip-320 --out states.parquet", "--format parquet needs pyarrow", "graph"),
        ("prove kip-320", "kspec prove needs z3", "prove"),
    ],
)
def test_a_library_that_is_missing_is_named_in_one_line(arguments: str, needs: str, extra: str, tmp_path: Path) -> None:
    lacking = "import sys; sys.modules.update(dict.fromkeys(['pyarrow', 'pyspark', 'scipy', 'starlette', 'uvicorn', 'z3']))"
    command = [sys.executable, "-c", f"{lacking}; from kspec.cli.main import main; main()", *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=EMERGENCY_S, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"kspec: {needs}; install it ({MEGABYTES[extra]} MB) with: ")
    assert done.stderr.endswith(f"{sys.executable} -m pip install -e {shlex.quote(f'{REPOSITORY}[{extra}]')}\n")


def test_the_command_for_an_extra_works_in_the_folder_that_the_user_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(sys, "executable", str(REPOSITORY / ".venv" / "bin" / "python"))
    assert install("graph") == ".venv/bin/python -m pip install -e '.[graph]'"
    monkeypatch.setattr(extras, "__file__", "/usr/lib/python3/site-packages/kspec/model_check/extras.py")
    assert install("graph").startswith(".venv/bin/python -m pip install ")
    assert "'scipy>=1.11'" in install("graph")
    assert "z3" not in install("graph")


@pytest.mark.slow
def test_deadlock_counts_as_violation_on_request() -> None:
    assert kspec("check", "kip-320", *SMALL, "--deadlock").returncode == 1


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (
            ["check", "kip-999"],
            "there is no model 'kip-999'; did you mean kip-279, kip-101 or kip-320? `kspec models` tells",
        ),
        (["check", "zookeeper"], "there is no model 'zookeeper'; `kspec models` tells all of them"),
        (["check", "kip-320", "--replicas", "0"], "--replicas 0: must be 1 or more"),
        (["check", "kip-320", "--log-size", "-1"], "--log-size -1: must be 0 or more"),
        (["check", "kip-320", "--replicas", "three"], "'three' is not a valid integer"),
        (
            ["check", "kip-320", "--max-partition-epoch", "3"],
            "model kip-320 has no parameter --max-partition-epoch; did you mean --max-epoch",
        ),
        (["check", "async-isr", "--max-epoch", "3"], "model async-isr has no parameter --max-epoch; choose from --replicas"),
        (["check", "kip-101", "--truncation", "exchange"], "model kip-101 has no parameter --truncation"),
        (["check", "kip-320", "--truncation", "guess"], "--truncation guess: choose from exchange, agreement"),
        (["check", "kip-320", "--repair", "everything"], "--repair everything: choose from leaderless-followers"),
        (["check", "kip-320", "--mutant", "none"], "--mutant none: choose from unfenced-truncation"),
        (["check", "kip-320", "--min-isr", "2"], "--min-isr 2: only --acks all looks at it"),
        (["check", "kip-320", "--invariant", "Strong"], "model kip-320 has no property 'Strong'; did you mean StrongIsr?"),
        (["check", "kip-320", "--engine", "steam"], "there is no engine 'steam'; engines: "),
        (["check", "kip-320", "--itf", "missing/folder/trace.json"], "cannot write missing/folder/trace.json"),
        (["check", "kip-320", "--invariant", "weakisr", "--quiet"], "did you mean WeakIsr"),
        (["check", "kip-320", "--invariant", "WeakIsr", "--invariant", "WeakIsr"], "--invariant WeakIsr is given twice"),
        (["check", "kafka", "--mutant", "unfenced-request"], "--mutant unfenced-request: did you mean unfenced-requests"),
        (["mutants", "unfenced-request"], "there is no mutant 'unfenced-request'; did you mean unfenced-requests"),
        (["check", "kip-320", "--replicas", "64"], "--replicas 64: too large, must be 12 or less"),
        (["check", "kip-320", "--log-size", "100000000"], "--log-size 100000000: too large, must be 200 or less"),
        (["check", "kip-320", "--max-records", str(2**63)], f"--max-records {2**63}: too large, must be 200 or less"),
        (["check", "kafka", "--brokers", "64"], "--brokers 64: too large, must be 12 or less"),
        (["check", "messages", "--fetches", "1000000"], "--fetches 1000000: too large, must be 200 or less"),
        (["check", "async-isr", "--max-offset", "1000000"], "--max-offset 1000000: too large, must be 200 or less"),
        (["check", "kip-320", "--replicas", "7", "--symmetry"], "symmetry is for 6 interchangeable brokers at most"),
        (["check", "kip-320", "--acks", "all", "--min-isr", "5"], "--min-isr 5: must be 3 or less, the number of replicas"),
        (["check", "kip-320", "--time-limit", "nan"], "nan is not a number that time can reach"),
        (["check", "kip-320", "--time-limit", "inf"], "inf is not a number that time can reach"),
        (["check", "kip-320", "--workers", "100000"], "100000 is not in the range 1<=x<=1024"),
        (["stats", "kip-320", "--workers", "100000"], "100000 is not in the range 1<=x<=1024"),
        (
            ["check", "kafka", "--release", "3.9", "--without-elr"],
            "--without-elr: --release 3.9 has no eligible leader repl",
        ),
        (["check", "kafka", "--mutant", "admit-anybody,admit-anybody"], "admit-anybody is named twice"),
        (["matrix", "--time-limit", "nan"], "nan is not a number that time can reach"),
        (["prove", "--effort", "nan"], "nan is not a number that time can reach"),
        (["check", "kip-320", "--json", "--itf", "-"], "--json and --itf - both write to standard output; leave one"),
        (["check", "kip-320", "--mermaid", "-", "--itf", "-"], "--itf - and --mermaid - both write to standard output"),
        (["simulate", "kip-320", "--json", "--mermaid", "-"], "--json and --mermaid - both write to standard output"),
        (["liveness", "kip-320", "--json", "--itf", "-"], "--json and --itf - both write to standard output"),
        (["models", "kip-32"], "there is no model 'kip-32'; did you mean kip-320"),
        (["check", "kip-320", "--speed", "9"], "No such option '--speed'"),
        (["check"], "Missing argument 'MODEL'"),
        (["prove-it"], "No such command 'prove-it'"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_status_2(
    args: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(*args)
    assert done.mistake == (2, 1)
    assert done.stdout == ""
    assert complaint in done.stderr
    assert done.stderr.startswith("kspec: ")


@pytest.mark.slow
def test_bounds_that_are_too_large_together_are_refused() -> None:
    """Each by itself is not; building a model that large is given up where it has more actions than any engine takes."""
    done = kspec("check", "async-isr", "--replicas", "12", "--max-partition-epoch", "200", "--quiet")
    complaint = "kspec: model async-isr has more than 65,535 actions within these bounds; choose less than "
    assert (done.returncode, done.stderr) == (2, f"{complaint}--replicas 12, --max-partition-epoch 200\n")


LARGE = ("--replicas", "12", "--log-size", "200")


def test_a_time_limit_ends_the_building_of_a_model() -> None:
    done = kspec("check", "kip-320", *LARGE, "--time-limit", "0.01")
    stopped = "kspec: stopped early: the time limit of 0.01 s is reached while building the model\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", stopped)


def test_time_spent_on_building_counts(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exploration gets what is left of the limit."""
    monkeypatch.setattr(Deadline, "spent", 59.5)
    monkeypatch.setattr("kspec.model_check.core.exploration.Clock.out_of_time", "no time is left")
    done = command("check", "kip-320", "--replicas", "4", "--time-limit", "60", "--engine", "reference", "--quiet")
    assert done.status == 3
    assert "stopped early: no time is left" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_ctrl_c_ends_what_comes_before_the_exploration(engine: str) -> None:
    begins = "from kspec.model_check.core import model\nfrom kspec.model_check.engines.compiled import rulebook as book\n"
    begins += "from kspec.cli.main import main\n"
    begins += "def working(doing): print(doing, flush=True); [time.sleep(60) for _ in iter(int, 1)]\n"
    begins += f"{'book' if engine == 'compiled' else 'model'}.at_work = working\nmain()"
    command = [sys.executable, "-c", f"import time\n{begins}", "check", "kip-320", "--engine", engine]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("preparing" if engine == "compiled" else "building")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=EMERGENCY_S)
    assert (process.returncode, told) == (3, "kspec: interrupted\n")


def compiling(tmp_path: Path, *options: str) -> "subprocess.Popen[str]":
    """A search that has begun to compile its loops, and does not come to an end with it."""
    script = "from kspec.model_check.engines.compiled import compilation\nfrom kspec.cli.main import main\n"
    script += "import time\ndef working(doing): print(doing, flush=True); [time.sleep(60) for _ in iter(int, 1)]\n"
    script += "compilation.at_work = working\nmain()"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script, "check", "kip-320", "--symmetry", "--quiet", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("compiling the engine's loops")
    return process


@pytest.mark.slow
def test_ctrl_c_while_loops_are_compiled_stops_at_once_and_tells_what_is_known(tmp_path: Path) -> None:
    with compiling(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        out, told = process.communicate(timeout=EMERGENCY_S)
    assert (process.returncode, told) == (3, "")
    assert "stopped early: interrupted" in out


@pytest.mark.slow
def test_the_time_limit_counts_while_loops_are_compiled(tmp_path: Path) -> None:
    with compiling(tmp_path, "--time-limit", "5") as process:
        out, told = process.communicate(timeout=EMERGENCY_S)
    assert (process.returncode, told) == (3, "")
    assert "stopped early: the time limit of 5 s is reached" in out


@pytest.mark.slow
def test_a_loss_of_power_needs_no_other_restart() -> None:
    """`--power-losses` has its own count; what the help says of it once made people think otherwise."""
    result = kspec_json("check", "truncate-to-hw", *SMALL, "--power-losses", "1", "--all")
    assert result["actions"]["PowerLoss"] > 0
    assert "Restart" not in result["actions"]


def test_models_lists_parameters_and_defaults() -> None:
    listed = kspec_json("models")["models"]
    assert [model["name"] for model in listed] == list(MODELS)
    parameters = {parameter["name"]: parameter["default"] for parameter in listed[4]["parameters"]}
    assert parameters["replicas"] == 3
    assert parameters["max-epoch"] == 2
    assert {prop["name"] for prop in listed[4]["properties"]} >= {"TypeOk", "WeakIsr", "StrongIsr", "CommittedOnNextLeader"}
    text = kspec("models").stdout
    assert all(f"{model['name']} {model['summary']}" in " ".join(text.split()) for model in listed)


def test_models_tells_all_of_one_model(command: Command) -> None:
    entry = MODELS["kafka"]
    told = command("models", "kafka").stdout
    (described,) = kspec_json("models", "kafka")["models"]
    names = {parameter.option for parameter in entry.parameters} | set(described["actions"]) | set(described["mutants"])
    names |= {prop["name"] for prop in (*described["properties"], *described["liveness"])}
    assert {name for name in names if f"\n  {name}" not in told} == set()
    mutant = next(parameter for parameter in entry.parameters if parameter.name == "mutant")
    assert tuple(described["mutants"]) == mutant.choices
    assert "4.4" in told, "all releases are told"


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("model", ["kip-279", "kafka"])
def test_tables_fit_the_terminal(columns: int, model: str, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    small = ("--replicas", "2", "--max-epoch", "1") if model == "kip-279" else ("--brokers", "2", "--elections", "0")
    for arguments in (
        ("models",),
        ("models", model),
        ("check", model, *small, "--all", "--quiet"),
        ("study",),
        ("check", "-h"),
    ):
        printed = command(*arguments).stdout
        assert max(map(len, printed.splitlines())) <= columns, arguments


def test_help_lists_parameters_by_kind_of_model_with_their_defaults(command: Command) -> None:
    told = command("check", "--help").stdout
    kinds = [line for line in told.splitlines() if line.startswith("Parameters of ")]
    assert kinds == [
        "Parameters of truncate-to-hw, kip-101, kip-279, kip-320-first-try, kip-320:",
        "Parameters of async-isr:",
        "Parameters of kafka:",
        "Parameters of messages:",
        "Parameters of controller:",
        "Parameters of shutdown:",
        "Parameters of group:",
        "Parameters of transactions:",
        "Parameters of delivery:",
        "Parameters of quorum:",
    ]
    for name, entry in MODELS.items():
        (section,) = [part for part in told.split("\nParameters of ") if name in part.split(":")[0].split(", ")]
        assert {one.option for one in entry.parameters} <= set(re.findall(r"^  (--[\w-]+)", section, re.MULTILINE))
    assert "[default: 3]" in told
    assert "Engine spark:" in told


@pytest.mark.slow
def test_the_examples_of_the_help_run(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = command("check", "--help").stdout
    examples = re.findall(r"^ +kspec (check .*)$", told, re.MULTILINE)
    assert len(examples) == 3
    monkeypatch.chdir(tmp_path)
    for example in examples:
        assert command(*example.split(), "--quiet", "--max-states", "2000").status in (0, 1, 3), example


@pytest.mark.slow
def test_itf_trace_loads_with_the_formats_own_library(tmp_path: Path) -> None:
    file = tmp_path / "trace.itf.json"
    done = kspec("check", "kip-101", "--replicas", "2", "--invariant", "StrongIsr", "--itf", str(file))
    assert done.returncode == 1
    trace = itf_py.trace_from_json(json.loads(file.read_text()))
    assert len(trace.states) == 12
    first, last = trace.states[0].values, trace.states[-1].values
    assert first["action"] == "init"
    assert last["action"] == "BecomeFollowerTruncateKip101"
    assert set(last["partition"].isr) == {1, 2}
    assert last["highWatermark"][1] == 1
    assert len(last["log"][1].records) == 1
    assert len(last["log"][2].records) == 0


@pytest.mark.slow
def test_mermaid_diagram_goes_to_a_file_or_to_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "trace.mmd"
    args = ["check", "kip-101", "--replicas", "2", "--invariant", "StrongIsr"]
    kspec(*args, "--mermaid", str(file))
    assert file.read_text().startswith("sequenceDiagram\n")
    assert kspec(*args, "--mermaid", "-").stdout == file.read_text()


def test_no_trace_to_write_is_said(tmp_path: Path) -> None:
    done = kspec("check", "kip-320", *SMALL, "--itf", str(tmp_path / "trace.json"))
    assert done.returncode == 0
    assert "no property was violated, so there is no run to write or show" in done.stderr


def test_audit_from_the_command_line() -> None:
    done = kspec("audit", "kip-320", *SMALL, "--states", "50")
    assert done.returncode == 0
    assert "every action reads and writes what it declares" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [mutant.name for mutant in (*MUTANTS, *ISR_MUTANTS)])
def test_mutants_can_be_named(mutant: str) -> None:
    model = "async-isr" if mutant in {isr.name for isr in ISR_MUTANTS} else "kip-320"
    assert (
        kspec_json("check", model, "--replicas", "2", "--mutant", mutant, "--max-states", "50")["parameters"]["mutant"]
        == mutant
    )


@pytest.mark.slow
@pytest.mark.nightly  # the test of the README runs it by day
def test_history_tells_which_versions_lose_a_committed_record() -> None:
    chapters = kspec_json("history")["chapters"]
    lengths = {
        chapter["kafka"] if chapter["model"] == "kafka" else chapter["model"]: chapter["properties"][0]["trace_length"]
        for chapter in chapters
    }
    assert lengths == {
        "truncate-to-hw": 9,
        "kip-101": 11,
        "kip-279": 11,
        "kip-320-first-try": 13,
        "kip-320": None,
        "async-isr": None,
        "3.0 (2021)": 13,
        "4.4 (newest)": 13,
        "4.4 repaired": None,
    }
    assert all(chapter["complete"] for chapter in chapters if chapter["properties"][0]["holds"])


@pytest.mark.slow
def test_study_lists_and_tells() -> None:
    listed = kspec("study").stdout
    assert "kip-101-loss" in listed
    told = kspec("study", "kip-101-loss")
    assert told.returncode == 0
    assert "The failing run" in told.stdout
    assert "truncate_to_epoch_end" in told.stdout
    assert kspec("study", "kip-101-loss", "--markdown").stdout.startswith("# A restarted follower")
    unknown = kspec("study", "kip-102")
    assert unknown.returncode == 2
    assert "there is no study 'kip-102'; did you mean kip-101-loss" in unknown.stderr


@pytest.mark.slow
def test_symmetry_visits_one_state_of_each_orbit() -> None:
    result = kspec_json("check", "kip-320", "--replicas", "2", "--symmetry")
    assert (result["distinct_states"], result["symmetry"]) == (2987, True)
    found = kspec_json("check", "kip-101", "--replicas", "2", "--symmetry", "--invariant", "StrongIsr")
    assert found["properties"][0]["trace_length"] == 12


@pytest.mark.slow
def test_simulate_reports_and_shrinks(tmp_path: Path) -> None:
    itf = tmp_path / "run.itf.json"
    walks = ("simulate", "truncate-to-hw", "--replicas", "2", "--traces", "2000", "--depth", "50")
    found = kspec(*walks, "--seed", "3", "--json", "--itf", str(itf), "--quiet")
    assert found.returncode == 1
    result = json.loads(found.stdout)
    assert (result["walks"], result["seed"], result["complete"], result["violated"]) == (2000, 3, True, True)
    weak = next(entry for entry in result["properties"] if entry["name"] == "WeakIsr")
    assert 9 <= weak["trace_length"] == len(weak["trace"]) <= weak["original_length"]
    assert json.loads(itf.read_text())["states"][0]["#meta"]["index"] == 0
    again = json.loads(kspec(*walks, "--seed", "3", "--json", "--quiet", "--workers", "1").stdout)
    assert {**again, "workers": 0, "duration_s": 0} == {**result, "workers": 0, "duration_s": 0}


@pytest.mark.slow
def test_simulate_with_weights() -> None:
    walks = ("simulate", "kip-320", "--replicas", "2", "--traces", "200", "--depth", "20", "--quiet")
    told = kspec(*walks, "--weight", "LeaderWrite=0")
    assert told.returncode == 0
    assert "LeaderWrite                                   0   forbidden" in told.stdout
    for weight, reason in (("LeaderWrite", "expected ACTION=W"), ("Write=1", "has no action 'Write'")):
        refused = kspec(*walks, "--weight", weight)
        assert (refused.returncode, reason in refused.stderr) == (2, True)


def test_a_cluster_that_does_not_answer_in_time_is_no_fault_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kspec.cli.broker.client.TIMEOUT_S", 0.01)
    with pytest.raises(RefusedError, match=r"^the cluster has not answered within 0\.01 s$"):
        outcome(Future())
