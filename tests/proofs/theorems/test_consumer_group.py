"""Theorem consumer-group: no partition of a consumer group has two owners at the coordinator."""

import pytest

from kspec.proofs.commands.prove import prove
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.theorems import consumer_group
from kspec.proofs.theorems.consumer_group import CONJUNCTS, CONSUMER_GROUP_THEOREM, NAME, TASKS


def failing(mutant: str | None = None) -> set[str]:
    """The conjuncts that are not proved, with the steps that break them."""
    settings = ProofSettings(NAME, ANY, mutant)
    found = [one for proved in TASKS.values() for one in proved(settings)]
    assert {one.conjunct for one in found} == set(CONJUNCTS)
    return {f"{one.action} {one.conjunct}" for one in found if one.status != "proved"}


def test_of_a_single_partition_it_is_proved_and_a_weaker_rule_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as below, in a second; rules that only clients need are not needed for it."""
    monkeypatch.setattr(consumer_group, "PARTITIONS", consumer_group.PARTITIONS[:1])
    assert failing() == set()
    broken = failing("free-though-owned")
    assert {"Heartbeat(stable) OneOwner", "Heartbeat(unreleased_partitions) OneOwner"} <= broken
    assert {one.split("(", maxsplit=1)[0] for one in broken} == {"Heartbeat"}
    assert [failing(mutant) for mutant in CONSUMER_GROUP_THEOREM.mutants if mutant != "free-though-owned"] == [set(), set()]


@pytest.mark.nightly
def test_it_is_proved() -> None:
    outcome = prove(ProofSettings(NAME, ANY), workers=1)
    assert (outcome.status, len(outcome.obligations)) == ("proved", len(TASKS) * len(CONJUNCTS))
    assert "any number of members: proved" in outcome.as_text()
