"""Findings of rounds on processes agree with the page, a round is read as it is written, and some are found anew."""

import sys

import pytest

from kspec.model_check.reports.sections import section_of
from tests.trials.faults.mutants import (
    MUTANTS,
    NEVER_WHOLE,
    OTHERS,
    PAGE,
    SECTION,
    hunt,
    judged,
    known,
    page,
    plans_for,
    round_of,
    rule_of,
)

ROUND = (
    "ready 127.0.0.1:1\n"
    "seed 1: ANOMALIES: lost-write 1, duplicate 2; 3,977 sent; kill 3\n"
    "record: 52,591 steps of 12 starts, all come out as recorded\n"
    "rule start_following: not as in next, decided 1,820 steps otherwise, first 1/steps-1.jsonl:2 (apply_change)\n"
)


def test_the_page_says_what_was_found() -> None:
    assert section_of(PAGE.read_text(encoding="utf-8"), SECTION) == page(known())
    assert set(known()) <= {one.name for one in MUTANTS} | set(OTHERS)


def test_the_record_of_a_mutant_that_was_found_names_its_rule() -> None:
    rules = {one.name: rule_of(one) for one in MUTANTS}
    found = {name: one for name, one in known().items() if "found" in one and name in rules}
    assert found
    for name, one in found.items():
        assert any(rules[name] in rule for rule in one["rules"]), name


def test_a_release_loses_nothing_in_the_same_round_once_the_rule_is_repaired() -> None:
    found = {name: one for name, one in known().items() if "repair" in one}
    assert found
    assert {one["repaired"] for one in found.values()} == {"nothing lost"}


def test_a_round_is_read_as_it_is_written() -> None:
    assert judged(ROUND) == {"found": "lost-write 1, duplicate 2", "rules": {"start_following": 1820}}
    assert judged("seed 1: nothing lost; 3 sent, 3 acknowledged\n") is None
    assert judged("seed 1: lost as acks=1 may: lost-write 4; 3 sent\n") == {"found": "lost-write 4", "rules": {}}
    assert judged("seed 1: NEVER WHOLE: not whole again after 90 s: t-0 leader -1; 3 sent\n") == {
        "found": NEVER_WHOLE,
        "rules": {},
    }


BY_NIGHT = (
    "no-epoch-for-a-smaller-assignment",
    "no-divergence-check",
    "keep-followers-over-missed-epochs",
    "stale-partition-epoch-accepted",
)

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="NOT RUN: rounds need Linux")


@LINUX
@pytest.mark.nightly  # by day the same plans break a promise on simulated clusters
@pytest.mark.xdist_group("rounds with mutants")  # each takes the first ports that are free, and two at a time the same
@pytest.mark.parametrize("name", BY_NIGHT)
def test_a_mutant_is_found_by_its_plan_and_next_loses_nothing_in_it(name: str) -> None:
    pytest.importorskip("confluent_kafka", reason="NOT RUN: confluent-kafka (librdkafka) is not installed")
    (mutant,) = (one for one in MUTANTS if one.name == name)
    found = hunt(name, range(1, 4))
    assert rule_of(mutant) in found.get("rules", {}), found
    said = round_of((), plans_for(name)[0], found["seed"])
    assert "nothing lost; " in said, said
    assert "not to its end" not in said, said
