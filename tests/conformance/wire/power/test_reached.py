"""The functions that cases do not reach whole are listed, with what is left out."""

import pytest

from tests.conformance.conftest import MadeSuite
from tests.conformance.wire.power.reached import reached

pytestmark = pytest.mark.slow


def test_a_branch_that_only_one_subject_takes_is_left_out_without_it(made_suite: MadeSuite) -> None:
    room = ["log.producers"]
    sequences = [one for one in made_suite.runs if one.subject.name == "sequences"]
    others = [one for one in made_suite.runs if one.subject.name == "topics"]
    whole = {one.name for one in reached(sequences, room) if one.whole}
    by_others = {one.name: one for one in reached(others, room)}
    assert "log.producers:check_sequence" in whole
    assert not by_others["log.producers:check_sequence"].whole
    assert by_others["log.producers:check_sequence"].lines
    assert reached(others, ["no.such.room"]) == []
