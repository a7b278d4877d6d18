"""The functions that cases do not reach whole are listed, with what is left out."""

import pytest

from kspec.conformance.wire.choice.cover import covering
from kspec.conformance.wire.choice.graph import explored
from kspec.conformance.wire.model.subjects import SUBJECTS
from kspec.spec.releases.broker import NEWEST
from tests.conformance.wire.power.reached import reached

pytestmark = pytest.mark.slow


def test_a_branch_that_only_one_subject_takes_is_left_out_without_it() -> None:
    room = ["log.producers"]
    by_name = {one.name: one for one in SUBJECTS}
    sequences, others = (covering(by_name[name], explored(by_name[name], NEWEST)) for name in ("sequences", "metadata"))
    whole = {one.name for one in reached(sequences, room) if one.whole}
    by_others = {one.name: one for one in reached(others, room)}
    assert "log.producers:check_sequence" in whole
    assert not by_others["log.producers:check_sequence"].whole
    assert by_others["log.producers:check_sequence"].lines
    assert reached(others, ["no.such.room"]) == []
