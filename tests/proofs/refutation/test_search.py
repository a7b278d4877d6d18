"""The search for invariants keeps what induction keeps, and says why it drops the rest."""

from typing import Any

import pytest

from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.refutation.search import search
from kspec.proofs.symbolic.logic import all_of, implies, member
from kspec.proofs.theorems.async_isr import ASYNC_ISR_THEOREM, AsyncIsrView
from kspec.spec.values import BrokerId


@conjunct("NothingPending", "Wrong: the leader does propose changes.")
def nothing_pending(s: AsyncIsrView) -> Any:
    return s.leader.pending_epoch < 0


@conjunct("VersionsStaySmall", "True of the bounded model only.")
def versions_stay_small(s: AsyncIsrView) -> Any:
    return s.partition.partition_epoch <= 4


@conjunct("LeaderWaitsForItself", "True: the leader is in its ISR.")
def leader_waits_for_itself(s: AsyncIsrView, replica: BrokerId) -> Any:
    return implies(all_of(member(replica, s.leader.isr), replica == 1), s.counts(replica))


@pytest.mark.slow
def test_wrong_candidates_are_dropped_and_the_invariant_is_found() -> None:
    wrong = (nothing_pending, versions_stay_small, leader_waits_for_itself)
    found = search(ASYNC_ISR_THEOREM, (*ASYNC_ISR_THEOREM.conjuncts, *wrong))
    assert found.false == ("NothingPending",)
    assert found.inductive == (*(each.name for each in ASYNC_ISR_THEOREM.conjuncts), "LeaderWaitsForItself")
    assert list(found.not_kept) == ["VersionsStaySmall"]
    assert found.states > 40
