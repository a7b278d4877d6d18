"""The obligations of a theorem with these settings, and the strategy that tries them."""

from kspec.proofs.induction.any_number import ObligationsForAnyNumber
from kspec.proofs.induction.by_outcome import ObligationsByOutcome
from kspec.proofs.induction.invariant import Theorem
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.induction.proof import Proof
from kspec.proofs.induction.strategies.by_instances import ByInstances
from kspec.proofs.induction.strategies.few_brokers import ByFewBrokers
from kspec.proofs.induction.strategies.search import BySearch
from kspec.proofs.induction.strategies.strategy import Strategy
from kspec.proofs.refutation.weakened import WeakenedObligations
from kspec.proofs.settings import ANY, ProofSettings


def proof_of(theorem: Theorem, settings: ProofSettings) -> Proof:
    """A theorem for a number of replicas, or for any number of them, ready to be proved."""
    obligations = obligations_of(theorem, settings)
    return Proof(obligations, strategy_for(obligations))


def obligations_of(theorem: Theorem, settings: ProofSettings) -> Obligations:
    """The obligations of a theorem."""
    if theorem.by_outcome:
        by_outcome = ObligationsByOutcome if settings.mutant is None else WeakenedObligations
        return by_outcome(theorem, settings)
    return ObligationsForAnyNumber(theorem, settings) if settings.replicas == ANY else Obligations(theorem, settings)


def strategy_for(obligations: Obligations) -> Strategy:
    """The strategy for these obligations."""
    match obligations:
        case ObligationsForAnyNumber():
            return ByFewBrokers(obligations)
        case ObligationsByOutcome():
            return ByInstances(obligations)
        case _:
            return BySearch(obligations)
