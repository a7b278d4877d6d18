"""What is to be shown, and how it is tried, are apart: a strategy can be exchanged for another."""

import pytest

from proofs.induction.any_number import ObligationsForAnyNumber
from proofs.induction.claims import Claim
from proofs.induction.obligations import Obligations
from proofs.induction.proof import Proof
from proofs.induction.strategies.by_instances import ByInstances
from proofs.induction.strategies.few_brokers import ByFewBrokers
from proofs.induction.strategies.search import BySearch
from proofs.induction.strategies.strategy import OnFailure, Strategy
from proofs.settings import ANY, Settings
from proofs.theorems import THEOREMS

KIP_320 = THEOREMS["kip-320"]
COMMIT = "FencedLeaderIncHighWatermark(leader=1)"


def statuses(proof: Proof, task: str) -> dict[str, str]:
    return {found.conjunct: found.status for found in proof.prove(task)}


@pytest.fixture(scope="module")
def obligations() -> Obligations:
    return Obligations(KIP_320, Settings(KIP_320.name, 2))


@pytest.mark.parametrize("task", ["Init", "ControllerElectLeader(replica=1)", COMMIT, "Property"])
def test_search_and_instances_prove_the_same_obligations(obligations: Obligations, task: str) -> None:
    by_search = statuses(Proof(obligations, BySearch(obligations)), task)
    by_instances = statuses(Proof(obligations, ByInstances(obligations)), task)
    assert set(by_search.values()) == {"proved"}
    assert by_instances == by_search


def test_few_brokers_and_search_prove_the_same_of_any_number() -> None:
    obligations = ObligationsForAnyNumber(KIP_320, Settings(KIP_320.name, ANY))
    task = "FencedControllerFenceLeader" if "FencedControllerFenceLeader" in obligations.actions else "Init"
    few = statuses(Proof(obligations, ByFewBrokers(obligations)), task)
    assert set(few.values()) == {"proved"}
    assert statuses(Proof(obligations, BySearch(obligations)), task) == few


class Scripted(Strategy):
    """Answers without asking: nothing about one conjunct is proved."""

    def __init__(self, obligations: Obligations, unproved: str) -> None:
        super().__init__(obligations)
        self.unproved, self.begun = unproved, list[str]()

    def begin(self, task: str) -> None:
        self.begun.append(task)

    def prove_claim(self, claim: Claim, on_failure: OnFailure) -> str:  # type: ignore[override]
        if claim.conjunct != self.unproved:
            return "proved"
        return "refuted" if on_failure(claim) else "unknown"

    def core_of(self, claim: Claim) -> frozenset[str]:
        return frozenset({claim.conjunct})
