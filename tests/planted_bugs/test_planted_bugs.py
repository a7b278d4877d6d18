"""Bugs are planted in one place each, do what they say, and are gone afterwards; what noticed them soon does so again."""

import json
from typing import Any

import pytest

from spec.broker.rules.produce import completion
from spec.values import Error, Offset
from tests.places import DATA, DOCS
from tests.planted_bugs.bugs import BUGS, BY_NAME
from tests.planted_bugs.page import page
from tests.planted_bugs.planting import PlantedBug, code_with, function_of, planted
from tests.planted_bugs.reasons import REASONS
from tests.planted_bugs.simulated import SETUPS, found_by
from tests.simulation.oracle.world import ORACLES
from tests.simulation.properties import ALWAYS

FOUND: dict[str, dict[str, Any]] = json.loads((DATA / "planted-bugs.json").read_text(encoding="utf-8"))

SOON, PERHAPS = 120, 1500
"""Moves within which a property or an oracle is asked again: in every run of the tests, and in a slow one."""


def test_there_are_many_and_each_has_its_name() -> None:
    assert len(BUGS) == len(BY_NAME) > 400


@pytest.mark.parametrize("bugs", [BUGS[start::8] for start in range(8)], ids=range(8))
def test_each_changes_one_place_of_one_function(bugs: tuple[PlantedBug, ...]) -> None:
    for bug in bugs:
        sound, code = function_of(bug).__code__, code_with(bug)
        told = (sound.co_code, sound.co_consts, sound.co_names)
        assert (code.co_code, code.co_consts, code.co_names) != told, bug.name
        assert code.co_varnames[: code.co_argcount] == sound.co_varnames[: sound.co_argcount]


def test_a_planted_bug_is_gone_afterwards() -> None:
    def answer() -> Error | None:
        return completion(True, Offset(4), Offset(5), isr_size=3, min_isr=2)

    assert answer() is None
    with planted(BY_NAME["complete-one-record-early"]):
        assert answer() == Error.NONE
    assert answer() is None


def test_a_text_that_is_not_there_cannot_be_changed() -> None:
    with pytest.raises(AssertionError, match="0 places"):
        code_with(PlantedBug("made-up", "broker.rules.produce:completion", "no such text", ""))


def test_the_page_says_what_the_file_says() -> None:
    assert (DOCS / "planted-bugs.md").read_text(encoding="utf-8") == page(FOUND)
    assert set(FOUND) == set(BY_NAME)


def test_what_is_not_noticed_has_a_reason() -> None:
    unnoticed = {name for name, found in FOUND.items() if not any(found.values())}
    assert unnoticed == set(REASONS)


def _of(how: str, fewest: int, most: int) -> list[str]:
    known = {*ALWAYS, *ORACLES}
    return [
        name
        for name, found in FOUND.items()
        if how in found and found[how]["name"] in known and fewest <= found[how]["moves"] <= most
    ]


def _noticed_again(names: list[str], how: str) -> None:
    for name in names:
        wanted, moves = FOUND[name][how], FOUND[name][how]["moves"]
        setups = [how] if how == "property" else [one for one in SETUPS if one != "property"]
        assert any(found_by(BY_NAME[name], one, moves) == wanted for one in setups), name


def test_properties_notice_soon() -> None:
    _noticed_again(_of("property", 1, SOON), "property")


def test_oracles_notice_soon() -> None:
    _noticed_again(_of("oracle", 1, SOON)[::3], "oracle")


@pytest.mark.slow
def test_properties_notice() -> None:
    _noticed_again(_of("property", SOON + 1, PERHAPS), "property")
