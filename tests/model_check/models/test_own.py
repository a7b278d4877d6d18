"""Models of one's own: what is wrong with a file is one line that names it, and status 2."""

import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from model_check.core.model import Model
from model_check.models.own import OwnModelError, own_entry
from tests.model_check.commands import Command

NUMBERS = count(1)

COUNTER = """
from model_check.core.model import Model, then, when
from model_check.core.parameters import Parameter
from model_check.models import ModelEntry


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
    assert "How far to count" in command("check", place, "--help").stdout
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


def test_a_rule_that_raises_is_no_violation(command: Command, written: Path) -> None:
    written.write_text(COUNTER.replace("x + 1, slot", "x + 1 + 0 // (2 - x), slot"))
    for engine in ("compiled", "reference"):
        done = command("check", f"{written}:counter", "--quiet", "--engine", engine)
        assert done.status == 3
        assert done.stderr.splitlines()[-1].startswith("ZeroDivisionError")


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
