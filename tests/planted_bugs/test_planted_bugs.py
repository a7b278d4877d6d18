"""Operators plant what they say, in one place each; a bug is gone afterwards; what notices it is found."""

import inspect
import re
import subprocess
import sys
import textwrap
import time
from collections import Counter
from functools import cache

import pytest

from kspec.spec.broker.rules.produce import completion
from kspec.spec.log import producers
from kspec.spec.values import Error, Offset
from tests.limits.marks import is_night
from tests.places import REPOSITORY
from tests.planted_bugs.by_hand import BY_HAND
from tests.planted_bugs.constants import OPERATOR, others
from tests.planted_bugs.folding import folded
from tests.planted_bugs.operators import OPERATORS
from tests.planted_bugs.page import OTHERS, page, place_of
from tests.planted_bugs.planting import PlantedBug, bugs_in, code_with, function_of, modules_of, planted
from tests.planted_bugs.processes import DIES, HANGS, in_a_process
from tests.planted_bugs.score import FILE, NOTHING, PAGE, REASONS, UNIT_TESTS, as_text, load, score
from tests.planted_bugs.simulated import failures

pytestmark = pytest.mark.slow

bugs_of = cache(lambda module: tuple(bugs_in(module)))
MODULES = ("broker.rules.produce", "broker.leader.produce", "controller.rules.partition_change", "log.local_log", "metadata")


def bug_of(function: str, before: str, after: str) -> PlantedBug:
    """The bug that an operator plants there: the first whose texts are these."""
    found = (bug for bug in bugs_of(function.partition(":")[0]) if bug.function == function)
    return next(bug for bug in found if (bug.before, bug.after) == (before, after))


def test_every_operator_plants_something() -> None:
    counts = Counter(bug.operator for module in (*MODULES, *modules_of("log")) for bug in bugs_of(module))
    assert set(counts) - set(OTHERS) == {operator.__name__ for operator in OPERATORS}


@pytest.mark.parametrize("function", BY_HAND)
def test_what_is_planted_by_hand_is_what_no_operator_makes(function: str) -> None:
    found = [bug for bug in bugs_of(function.partition(":")[0]) if bug.function == function]
    made = {folded(bug.source) for bug in found if bug.operator != "by_hand"}
    for bug in found:
        assert bug.operator != "by_hand" or (code_with(bug) and folded(bug.source) not in made), bug


def test_each_bug_changes_its_function_in_one_way() -> None:
    known: set[tuple[str, str]] = set()
    bugs = [bug for module in MODULES for bug in bugs_of(module)]
    for bug in bugs:
        if bug.operator == OPERATOR:
            continue
        assert folded(bug.source) != folded(_source(bug)), bug
        assert (bug.function, folded(bug.source)) not in known, bug
        known.add((bug.function, folded(bug.source)))
        code, sound = code_with(bug), function_of(bug.function).__code__
        assert code.co_varnames[: code.co_argcount] == sound.co_varnames[: sound.co_argcount]
    assert len(bugs) > 1_000


def _source(bug: PlantedBug) -> str:
    return textwrap.dedent(inspect.getsource(function_of(bug.function)))


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        ("broker.rules.produce:completion", "high_watermark < required_offset", "(high_watermark <= required_offset)"),
        ("broker.rules.produce:completion", "high_watermark < required_offset", "(high_watermark + 1 < required_offset)"),
        ("broker.rules.produce:min_isr_within_replicas", "min(min_isr, replicas)", "(min_isr)"),
        ("broker.leader.produce:_acknowledge", "stored + completed.effects", "(completed.effects + stored)"),
        ("broker.leader.produce:_acknowledge", "complete_waiting(broker, partition)", "Step(partition)"),
        ("broker.leader.produce:handle_produce", "advance(broker, appended, now)", "(appended)"),
        ("broker.leader.produce:handle_produce", "Error.NOT_LEADER_OR_FOLLOWER", "Error.NONE"),
        ("log.local_log:restart", "offset", "local.high_watermark"),
        ("controller.rules.partition_change:without_removed", "target.isr - target.removing", "target.isr"),
    ],
)
def test_a_bug_that_somebody_would_plant_is_planted(function: str, before: str, after: str) -> None:
    assert code_with(bug_of(function, before, after))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a <= b + 1", "a - 1 <= b"),
        ("a + 1 <= b + 1", "a <= b"),
        ("a < b + 1", "a - 1 < b"),
        ("x if True else y", "x"),
        ("x if not a else y", "y if a else x"),
        ("a and True and b", "a and b"),
        ("(*a,)", "a"),
        ("Offset(a + 1)", "a + 1"),
        ("[a for a in b if True]", "[a for a in b]"),
    ],
)
def test_what_does_the_same_is_one_bug(one: str, other: str) -> None:
    assert folded(f"def f():\n    return {one}") == folded(f"def f():\n    return {other}")


@pytest.mark.parametrize(("one", "other"), [("a < b", "a <= b"), ("a + 1 <= b", "a <= b"), ("a or b", "b or a"), ("a", "b")])
def test_what_does_not_do_the_same_are_two(one: str, other: str) -> None:
    assert folded(f"def f():\n    return {one}") != folded(f"def f():\n    return {other}")


EARLY = ("broker.rules.produce:completion", "high_watermark < required_offset", "(high_watermark + 1 < required_offset)")


def test_a_planted_bug_is_gone_afterwards() -> None:
    def answer() -> Error | None:
        return completion(True, Offset(4), Offset(5), isr_size=3, min_isr=2)

    assert answer() is None
    with planted(bug_of(*EARLY)):
        assert answer() == Error.NONE
    assert answer() is None


def test_a_constant_is_another_one_while_the_bug_lasts() -> None:
    assert producers.BATCHES_REMEMBERED == 5
    with planted(bug_of("log.producers:BATCHES_REMEMBERED", "5", "4")):
        assert producers.BATCHES_REMEMBERED == 4
    assert producers.BATCHES_REMEMBERED == 5


def test_a_collection_lacks_one_of_its_elements() -> None:
    assert [value for _, value in others(frozenset({2, 1}))] == [{2}, {1}]
    assert list(others(True)) == [("False", False)]
    assert [value for _, value in others({"a": 1, "b": 2})] == [{"b": 2}, {"a": 1}]
    assert list(others("text")) == []


def test_simulated_clusters_notice_a_bug() -> None:
    assert next(failures(bug_of(*EARLY)))


def test_nothing_fails_without_a_bug() -> None:
    assert list(failures(None)) == []


def test_a_process_answers_hangs_or_dies() -> None:
    assert in_a_process(lambda: "fine", 20) == "fine"
    assert in_a_process(lambda: "", 20) == ""
    assert in_a_process(lambda: f"{time.sleep(60)}", 0.2) == HANGS  # type: ignore[func-returns-value]
    assert in_a_process(lambda: sys.exit(1), 20) == DIES


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.planted_bugs", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=600)


def test_a_room_that_is_none_is_named() -> None:
    done = run("made_up")
    assert done.returncode == 2
    assert "no room is called spec.made_up" in done.stderr


def test_no_bug_at_all_cannot_be_asked_for() -> None:
    assert "--every must be at least 1" in run("log", "--every", "0").stderr


def test_bugs_of_a_room_are_looked_for_by_its_tests() -> None:
    kept = FILE.read_bytes()
    done = run("broker.rules.produce", "--every", "60" if is_night() else "240", "--units", "--only-look")
    assert done.returncode == 0, done.stderr
    assert "broker/rules/test_produce.py::" in done.stdout or "broker/leader/test_produce.py::" in done.stdout
    assert "broker.rules.produce: " in done.stdout
    assert FILE.read_bytes() == kept


@pytest.mark.nightly
@pytest.mark.parametrize("room", ["broker.rules", "controller.rules", "coordinator", "log"])
def test_most_bugs_of_another_sample_are_noticed(room: str) -> None:
    """Another sample than that of the page, which the tests were written by."""
    done = run(room, "--every", "400", "--first", "200", "--only-look")
    found = re.search(r"^all: (\d+) of (\d+) noticed", done.stdout, re.MULTILINE)
    assert found, done.stderr
    assert 4 * int(found[1]) >= 3 * int(found[2]) > 0, done.stdout


def test_the_page_says_what_the_file_says() -> None:
    scores = load()
    assert FILE.read_text(encoding="utf-8") == as_text(scores)
    assert PAGE.read_text(encoding="utf-8") == page(scores)


def test_the_page_names_functions_that_there_are() -> None:
    for module, score_of in load().items():
        bugs = {bug.function for bug in bugs_of(module)}
        assert {f"{module}:{name}" for name in score_of.functions} <= bugs


def test_a_score_counts_what_caught_each_bug() -> None:
    bug = bug_of(*EARLY)
    found = [(bug, "tests/spec/broker/test_roles.py::test_a"), (bug, "simulated clusters: Promise"), (bug, "")]
    one = score(3, found)
    assert one.operators == {"compare": {UNIT_TESTS: 1, "simulated clusters": 1, NOTHING: 1}}
    assert one.functions == {"completion": {"broker/test_roles.py": 1, "simulated clusters: Promise": 1, NOTHING: 1}}
    assert (one.every, one.planted, one.unnoticed) == (3, 3, [str(bug)])


def test_reasons_are_those_of_bugs_that_are_planted() -> None:
    modules = {reason.partition(":")[0] for reason in REASONS}
    assert set(REASONS) <= {place_of(str(bug)) for module in modules for bug in bugs_of(module)}
