"""Models of one's own: what is wrong with a file is one line that names it, and status 2."""

import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from kspec.model_check.core.model import Model
from kspec.model_check.models.own import OwnModelError, own_entry
from tests.model_check.commands import Command

NUMBERS = count(1)

COUNTER = """
from kspec.model_check.core.model import Model, then, when
from kspec.model_check.core.parameters import Parameter
from kspec.model_check.models import ModelEntry


def build(parameters):
    model = Model("counter", parameters)
    slot = model.slot("x", 0)
    model.action("Step", {}, [when(lambda x: x < parameters["most"], slot)], [then(slot, lambda x: x + 1, slot)])
    model.always("Below", [when(lambda x: x < 5, slot)], "x is below 5", None)
    return model


def of_three():
    return build({"most": 3})


counter = ModelEntry("counter", "counts", (Parameter("most", 4, "how far to count", minimum=1),), {}, build)
three = of_three()
"""


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Path]:
    """A file that is not there yet, and whose module is forgotten afterwards: every test has its own."""
    path = tmp_path / f"own_{next(NUMBERS)}.py"
    yield path
    sys.modules.pop(path.stem, None)


@pytest.mark.parametrize(("name", "states"), [("counter", 5), ("three", 4), ("of_three", 4)])
def test_an_entry_a_model_or_a_function(command: Command, written: Path, name: str, states: int) -> None:
    written.write_text(COUNTER)
    done = command("check", f"{written}:{name}", "--quiet", "--json")
    assert done.status == 0
    assert json.loads(done.stdout)["distinct_states"] == states


def test_its_parameters_are_options(command: Command, written: Path) -> None:
    written.write_text(COUNTER)
    place = f"{written}:counter"
    assert command("check", place, "--most", "9", "--quiet").status == 1
    assert "how far to count" in command("check", place, "--help").stdout
    assert command("check", place, "--most", "0").stderr == "kspec: --most 0: must be 1 or more\n"
    assert command("check", place, "--most", "many").mistake == (2, 1)
    assert (
        command("check", place, "--replicas", "2").stderr
        == "kspec: model counter has no parameter --replicas; choose from --most\n"
    )
    assert command("check", "kip-320", "--most", "2").mistake == (2, 1)


def test_a_parameter_is_no_option_of_the_command(command: Command, written: Path) -> None:
    written.write_text(COUNTER.replace('Parameter("most"', 'Parameter("workers"').replace('"most"', '"workers"'))
    done = command("check", f"{written}:counter")
    assert done.mistake == (2, 1)
    assert "--workers is an option of kspec check" in done.stderr


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (None, ":counter", "{file}: there is no such file"),
        (COUNTER, "", "{file}: say which model of the file: {file}:counter; it has counter, three"),
        (COUNTER, ":", "{file}:: say which model of the file: {file}:counter; it has counter, three"),
        (COUNTER, ":other", "{file} has no 'other'; it has counter, three"),
        ("", ":other", "{file} has no 'other'"),
        ("x = 1\ny = 1 / 0\n", ":x", "{file} raises ZeroDivisionError in line 2: division by zero"),
        ("import nowhere_at_all\n", ":x", "{file} raises ModuleNotFoundError in line 1: No module named 'nowhere_at_all'"),
        ("x = (1,\n", ":x", "{file} is no Python, line 1: '(' was never closed"),
        ("raise SystemExit('no')\n", ":x", "{file} raises SystemExit in line 1: no"),
        ("x = 1\n", ":x", "{file}:x is of type int, and no model: it must be a Model, a ModelEntry, or a function that"),
        ("class x: pass\n", ":x", "{file}:x is of type type, and no model: it must be a Model, a ModelEntry, or a function"),
        ("def x():\n    return 3\n", ":x", "{file}:x gives a int, and no Model"),
        ("def x():\n    return {}[3]\n", ":x", "{file}:x raises KeyError in line 2: 3"),
        ("def x(n):\n    pass\n", ":x", "{file}:x raises TypeError: x() missing 1 required positional argument: 'n'"),
        (
            COUNTER.replace(
                "return model\n", 'model.constraint += [when(bool, Model("a", {}).slot("y", 1))]\n    return model\n'
            ),
            ":counter",
            "{file}:counter: slot y is used by a rule, and is no slot of model counter",
        ),
        (
            COUNTER.replace("x + 1, slot", "[x], slot"),
            ":counter",
            "model counter: slot x holds [0] (list), which is not hashable",
        ),
    ],
)
def test_what_is_wrong_is_one_line(command: Command, written: Path, text: str | None, name: str, said: str) -> None:
    if text is not None:
        written.write_text(text)
    done = command("check", f"{written}{name}", "--quiet")
    assert done.mistake == (2, 1)
    assert done.stdout == ""
    assert done.stderr.startswith("kspec: " + said.format(file=written))


def test_a_file_has_no_name_of_another_module(tmp_path: Path) -> None:
    path = tmp_path / "spec.py"
    path.write_text(COUNTER)
    with pytest.raises(OwnModelError, match="there is a module called spec already"):
        own_entry(f"{path}:counter")
    (tmp_path / "colorsys.py").write_text(COUNTER)
    with pytest.raises(OwnModelError, match="there is a module called colorsys already"):
        own_entry(f"{tmp_path / 'colorsys.py'}:counter")


RAISING = """
import sys
from kspec.model_check.core.model import Model, then, when

def fail(x):
    return {}[x] if x == 2 else True

def count(guard=lambda x: True, grow=lambda x: x + 1, below=lambda x, y: True, view=lambda x: x, bound=None):
    model = Model("counter", {})
    slot = model.slot("x", 0)
    model.action("Step", {}, [when(lambda x: x < 5, slot), when(guard, slot)], [then(slot, grow, slot)])
    model.always("Below", [when(below, slot, model.view("y", view, slot))], "x is below")
    if bound is not None:
        model.constraint.append(when(bound, slot))
    return model

def guard(): return count(guard=fail)
def effect(): return count(grow=lambda x: fail(x) + x)
def prop(): return count(below=lambda x, y: fail(x))
def view(): return count(view=fail)
def bound(): return count(bound=fail)
def leaves(): return count(guard=lambda x: sys.exit(0) if x == 2 else True)
def arity(): return count(below=lambda x: True)
"""
"""A model in which a rule of each kind raises an error when x is 2."""

AT_FAIL = "line 6, fail raises KeyError: 2"
KINDS = {
    "guard": AT_FAIL,
    "effect": AT_FAIL,
    "prop": AT_FAIL,
    "view": AT_FAIL,
    "bound": AT_FAIL,
    "leaves": "line 22, <lambda> raises SystemExit: 0",
    "arity": "line 23, <lambda> raises TypeError: arity.<locals>.<lambda>() takes 1 positional argument but 2 were given",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "asked",
    [
        ("check",),
        ("check", "--engine", "reference"),
        pytest.param(("simulate", "--traces", "3"), marks=pytest.mark.slow),
        pytest.param(("check", "--engine", "spark", "--master", "local[2]", "--driver-states", "0"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_rule_that_raises_is_one_line_with_its_place(
    command: Command, written: Path, kind: str, asked: tuple[str, ...]
) -> None:
    """The status is 2 for any rule and any engine; status 1 would say that a property is violated."""
    if kind == "leaves" and "spark" in asked:
        pytest.skip("Spark's own words for a worker that leaves")
    written.write_text(RAISING)
    done = command(asked[0], f"{written}:{kind}", *asked[1:], "--quiet")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"kspec: {written}, {KINDS[kind]}"
    if "spark" not in asked:  # whose virtual machine may warn of something
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", ["guard", "effect", "bound"])
@pytest.mark.parametrize("asked", ["audit", "stats"])
def test_other_commands_name_the_place_too(command: Command, written: Path, kind: str, asked: str) -> None:
    written.write_text(RAISING)
    done = command(asked, f"{written}:{kind}")
    assert done.mistake == (2, 1)
    assert done.stderr == f"kspec: {written}, {AT_FAIL}\n"


TWINS = """
from kspec.model_check.core.model import Model, then, when

def count(twin, *more):
    model = Model("counter", {})
    slot = model.slot("x", 0)
    model.action("Step", {}, [when(lambda x: x < 3, slot)], [then(slot, lambda x: x + 1, slot)])
    model.always("Below", [when(lambda x: x < 5, slot)], "x is below 5", twin)
    model.always("Above", [when(lambda x: x > -1, slot)], "x is above -1")
    model.sometimes("Moved", [when(lambda x: x > 0, slot)], "x is above 0")
    for name in more:
        model.sometimes(name, [when(lambda x: x > 0, slot)], "x is above 0")
    return model

def right(): return count("Moved")
def none(): return count(None)
def wrong(): return count("Moves")
def always(): return count("Above")
def number(): return count(3)
def again(): return count("Moved", "Moved")
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("right", ""),
        ("none", ""),
        ("wrong", "the twin of Below, 'Moves', is no property of this model; a twin is the name of a sometimes"),
        ("always", "the twin of Below, 'Above', is an always itself; a twin is the name of a sometimes"),
        ("number", "the twin of Below, a int, is no property of this model; a twin is the name of a sometimes"),
        ("again", "model counter has two properties called Moved; give one of them another name"),
    ],
)
def test_a_twin_is_a_sometimes_of_the_model(command: Command, written: Path, name: str, said: str) -> None:
    written.write_text(TWINS)
    done = command("check", f"{written}:{name}", "--quiet")
    assert done.status == (2 if said else 0)
    assert said in done.stderr
    assert done.stderr.count("\n") == (1 if said else 0)


def test_a_model_of_ones_own_is_told_of(command: Command, written: Path) -> None:
    written.write_text(COUNTER)
    told = command("models", f"{written}:counter")
    assert told.status == 0
    assert "--most how far to count [default: 4]" in " ".join(told.stdout.split())
    (described,) = json.loads(command("models", f"{written}:counter", "--json").stdout)["models"]
    assert described["parameters"][0]["name"] == "most"


def test_help_is_of_the_model_that_is_named(command: Command, written: Path) -> None:
    written.write_text(COUNTER)
    for named, titles in (
        ("kip-320", ["Parameters of kip-320:"]),
        ("kafka", ["Parameters of kafka:"]),
        (f"{written}:counter", ["Parameters of counter:"]),
    ):
        told = command("check", named, "--help").stdout
        assert [line for line in told.splitlines() if line.startswith("Parameters of")] == titles
    assert command("check", "--help").stdout.count("Parameters of") > 3


SYMMETRIC = """
from kspec.model_check.core.model import Model, then, when
class Odd: pass
def lonely():
    model = Model("lonely", {})
    model.interchangeable = (1, 2)
    model.broker_slots("x", (1,), 0)
    return model
def odd():
    model = Model("odd", {})
    model.interchangeable = (1, 2)
    model.broker_slots("x", (1, 2), 0)
    model.slot("y", 0, holds=Odd)
    return model
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lonely", "model lonely has slot x[1], and none like it for another of its interchangeable brokers 1, 2"),
        ("odd", "slot y: how are values of <class "),
    ],
)
def test_what_symmetry_cannot_use_is_one_line(command: Command, written: Path, name: str, said: str) -> None:
    written.write_text(SYMMETRIC)
    done = command("check", f"{written}:{name}", "--symmetry", "--quiet")
    assert done.mistake == (2, 1)
    assert said in done.stderr


def test_a_checkpoint_is_of_the_content_of_the_file(command: Command, written: Path, tmp_path: Path) -> None:
    written.write_text(COUNTER)
    place, folder = f"{written}:counter", str(tmp_path / "kept")
    assert command("check", place, "--most", "9", "--max-states", "2", "--checkpoint", folder, "--quiet").status == 3
    assert command("check", place, "--most", "9", "--resume", folder, "--quiet").status == 1
    written.write_text(COUNTER + "\n# Another content.\n")
    sys.modules.pop(written.stem)
    done = command("check", place, "--most", "9", "--resume", folder, "--quiet")
    assert done.mistake == (2, 1)
    assert "checkpoint" in done.stderr


def test_a_slot_is_found_by_its_label() -> None:
    model = Model("toy", {})
    slots = model.broker_slots("log", (1, 2), 0)
    assert model.slot_named("log[2]") is slots[2]
    with pytest.raises(KeyError, match=r"has no slot 'log'; it has log\[1\], log\[2\]"):
        model.slot_named("log")
