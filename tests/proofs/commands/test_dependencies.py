"""Dependencies between conjuncts: the pages, and how they find a conjunct that is not needed."""

from dataclasses import replace
from itertools import count

import pytest

from kspec.proofs.commands.choice import proof_of
from kspec.proofs.commands.dependencies import first_failure_without, rests_on
from kspec.proofs.settings import ProofSettings
from kspec.proofs.theorems import HOLDING, THEOREMS
from tests.places import DOCS

COMMIT = "FencedLeaderIncHighWatermark(leader=a)"


@pytest.mark.parametrize("name", HOLDING)
def test_the_page_speaks_of_each_conjunct_and_none_is_redundant(name: str) -> None:
    page = (DOCS / f"proofs-{name}.md").read_text(encoding="utf-8")
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert headings == [*(conjunct.name for conjunct in THEOREMS[name].conjuncts), "Properties"]
    assert all(conjunct.because in page for conjunct in THEOREMS[name].conjuncts)
    assert page.count("- Without it: ") == len(THEOREMS[name].conjuncts)
    assert "everything is proved all the same" not in page


CLAIMED = {"SomebodyIsLeft"}
"""Conjuncts that nothing else rests on: that somebody can be elected is no matter of safety."""


def test_the_page_of_a_theorem_by_outcome_speaks_of_each_conjunct() -> None:
    theorem = THEOREMS["kafka-next-power-loss"]
    page = (DOCS / f"proofs-{theorem.name}.md").read_text(encoding="utf-8")
    sections = {section.splitlines()[0]: section for section in page.split("\n## ")[1:]}
    assert list(sections) == [*(conjunct.name for conjunct in theorem.conjuncts), "Properties"]
    assert all(conjunct.because in sections[conjunct.name] for conjunct in theorem.conjuncts)
    assert {name for name, section in sections.items() if "- What rests on it: nothing else." in section} == CLAIMED
    assert all(f"- {claim.name} rests on: " in sections["Properties"] for claim in theorem.consequences)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_proof_by_instances_rests_on_named_conjuncts() -> None:
    theorem = THEOREMS["kafka-next-power-loss"]
    cores = proof_of(theorem, ProofSettings(theorem.name, 2)).cores(
        "UncleanShutdown(broker=1, checkpointed=checkpointed, survives=survives)"
    )
    assert cores["WrittenByLeader"] >= {"WrittenByLeader"}
    assert cores["Decisions"] == frozenset()


@pytest.mark.slow
def test_a_conjunct_rests_on_what_the_proofs_of_all_outcomes_rest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    theorem = THEOREMS["kafka-next-power-loss"]
    proof = proof_of(theorem, ProofSettings(theorem.name, 2))
    task = "UncleanShutdown(broker=1, checkpointed=checkpointed, survives=survives)"
    outcomes = len(list(proof.obligations.claims(task))) // len(theorem.conjuncts)
    numbers = map(str, count())
    monkeypatch.setattr(proof.strategy, "core_of", lambda claim: frozenset({next(numbers)}))
    assert outcomes > 1
    assert {len(core) for core in proof.cores(task).values()} == {outcomes}


@pytest.mark.slow
def test_what_a_conjunct_is_needed_for_fails_without_it() -> None:
    rests = {(COMMIT, "BelowHighWatermark"): frozenset({"OwnCommits"})}
    assert first_failure_without(THEOREMS["kip-320"], "OwnCommits", rests) == f"{COMMIT} breaks BelowHighWatermark"


@pytest.mark.slow
def test_nothing_fails_without_a_conjunct_that_another_repeats() -> None:
    theorem = THEOREMS["kip-320"]
    own_commits = next(conjunct for conjunct in theorem.conjuncts if conjunct.name == "OwnCommits")
    repeated = replace(theorem, conjuncts=(*theorem.conjuncts, replace(own_commits, name="OwnCommitsAgain")))
    rests = {(COMMIT, "BelowHighWatermark"): frozenset({"OwnCommits", "OwnCommitsAgain"})}
    assert first_failure_without(repeated, "OwnCommits", rests, effort=60_000_000) is None
    assert first_failure_without(repeated, "OwnCommitsAgain", rests, effort=60_000_000) is None


def test_proofs_rest_on_named_conjuncts() -> None:
    rests = rests_on(THEOREMS["async-isr"], replicas=2)
    assert rests["LeaderHandleUpdate(partition_epoch=next partition epoch)", "MaximalIsrCoversTrueIsr"] >= {
        "AnnouncedIsrCoversTrueIsr"
    }
    assert rests["Property", "ValidHighWatermark"] >= {"MaximalIsrCoversTrueIsr"}
