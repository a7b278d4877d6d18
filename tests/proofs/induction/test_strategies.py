"""Obligations and the ways to try them are apart: a strategy can be exchanged for another."""

import pytest

from kspec.proofs.induction.any_number import ObligationsForAnyNumber
from kspec.proofs.induction.by_outcome import ObligationsByOutcome
from kspec.proofs.induction.claims import Claim, Status
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.induction.proof import Proof
from kspec.proofs.induction.strategies.by_instances import ByInstances
from kspec.proofs.induction.strategies.few_brokers import ByFewBrokers
from kspec.proofs.induction.strategies.search import BySearch
from kspec.proofs.induction.strategies.strategy import OnFailure, Strategy
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.theorems import THEOREMS

KIP_320 = THEOREMS["kip-320"]
COMMIT = "FencedLeaderIncHighWatermark(leader=1)"


def statuses(proof: Proof, task: str, only: str | None = None) -> dict[str, str]:
    return {found.conjunct: found.status for found in proof.prove(task, only=only)}


@pytest.fixture(scope="module")
def obligations() -> Obligations:
    return Obligations(KIP_320, ProofSettings(KIP_320.name, 2))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Init", "ControllerElectLeader(replica=1)", COMMIT, "Property"])
def test_search_and_instances_prove_the_same_obligations(obligations: Obligations, task: str) -> None:
    by_search = statuses(Proof(obligations, BySearch(obligations)), task)
    by_instances = statuses(Proof(obligations, ByInstances(obligations)), task)
    assert set(by_search.values()) == {"proved"}
    assert by_instances == by_search


def test_few_brokers_and_search_prove_the_same_of_any_number() -> None:
    obligations = ObligationsForAnyNumber(KIP_320, ProofSettings(KIP_320.name, ANY))
    by_few = statuses(Proof(obligations, ByFewBrokers(obligations)), "LeaderWrite(leader=a)", "LogStart")
    assert by_few == statuses(Proof(obligations, BySearch(obligations)), "LeaderWrite(leader=a)", "LogStart")
    assert by_few == {"LogStart": "proved"}


class ScriptedStrategy(Strategy):
    """Proves nothing about one conjunct, and everything else; it never asks."""

    def __init__(self, obligations: Obligations, unproved: str) -> None:
        super().__init__(obligations)
        self.unproved = unproved
        self.begun: list[str] = []

    def begin(self, task: str) -> None:
        self.begun.append(task)

    def prove_claim(self, claim: Claim, on_failure: OnFailure) -> Status:
        if claim.conjunct != self.unproved:
            return "proved"
        return "refuted" if on_failure(claim) else "unknown"

    def core_of(self, claim: Claim) -> frozenset[str]:
        return frozenset({claim.conjunct})


def test_a_proof_asks_nobody_but_its_strategy(obligations: Obligations) -> None:
    strategy = ScriptedStrategy(obligations, "LogStart")
    proof = Proof(obligations, strategy)
    expected = {conjunct.name: "proved" for conjunct in KIP_320.conjuncts} | {"LogStart": "unknown"}
    assert statuses(proof, COMMIT) == expected
    (refuted,) = proof.prove(COMMIT, lambda claim: True, only="LogStart")
    assert refuted.status == "refuted"
    assert strategy.begun == [COMMIT, COMMIT]
    assert proof.cores("Init") == {conjunct.name: frozenset({conjunct.name}) for conjunct in KIP_320.conjuncts}


def test_an_obligation_is_proved_if_it_is_for_every_outcome() -> None:
    """Of the outcomes of an action, the last one is not proved: then the obligation is not."""
    theorem = THEOREMS["kafka-next"]
    obligations = ObligationsByOutcome(theorem, ProofSettings(theorem.name, 2))
    task = "UncleanShutdown(broker=1, checkpointed=checkpointed)"
    claims = [claim for claim in obligations.claims(task) if claim.conjunct == "LogShape"]
    asked: list[Claim] = []

    class AllButTheLast(ScriptedStrategy):
        def prove_claim(self, claim: Claim, on_failure: OnFailure) -> Status:
            asked.append(claim)
            return "proved" if len(asked) < len(claims) else "unknown"

    (found,) = Proof(obligations, AllButTheLast(obligations, "")).prove(task, only="LogShape")
    assert len(asked) == len(claims) > 1
    assert (found.status, found.paths) == ("unknown", sum(claim.paths for claim in claims))
