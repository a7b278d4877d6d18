"""The theorems by name, and what is refuted."""

from proofs.effort import EMERGENCY_OF_RUNS_S, EMERGENCY_S
from proofs.induction.invariant import Theorem
from proofs.refutation.bounded import Refutable
from proofs.theorems.async_isr import ASYNC_ISR_THEOREM
from proofs.theorems.kafka_next.theorem import KAFKA_NEXT_POWER_LOSS_THEOREM, KAFKA_NEXT_THEOREM
from proofs.theorems.kip_320 import KIP_279_CLAIM, KIP_320_FIRST_TRY_CLAIM, KIP_320_THEOREM

THEOREMS: dict[str, Theorem] = {
    theorem.name: theorem
    for theorem in (
        KIP_320_THEOREM,
        ASYNC_ISR_THEOREM,
        KAFKA_NEXT_THEOREM,
        KAFKA_NEXT_POWER_LOSS_THEOREM,
        KIP_279_CLAIM,
        KIP_320_FIRST_TRY_CLAIM,
    )
}
"""What is proved by induction, and two claims of which the induction fails."""

REFUTABLE: dict[str, Refutable] = {
    "truncate-to-hw": Refutable("truncate-to-hw", "WeakIsr", replicas=2, log_size=2, max_epoch=1),
    "kip-101": Refutable("kip-101", "WeakIsr", replicas=2, log_size=2, max_epoch=2),
    "kip-279": Refutable("kip-279", "WeakIsr", replicas=3, log_size=2, max_epoch=2),
    "kip-320-first-try": Refutable("kip-320-first-try", "WeakIsr", replicas=3, log_size=2, max_epoch=2),
}
"""What runs from the initial state refute. Their bounds are the smallest that have a violation."""


def by_runs(name: str, runs_from: int | None) -> bool:
    """Whether something is refuted by runs: if that is asked for, or if there is no induction that fails."""
    return runs_from is not None or name not in THEOREMS


def default_replicas(name: str, runs_from: int | None) -> int:
    """For how many replicas a theorem is proved, or refuted, unless said otherwise."""
    return REFUTABLE[name].replicas if by_runs(name, runs_from) else THEOREMS[name].replicas


EFFORT, EFFORT_BY_OUTCOME, EFFORT_OF_RUNS = 60_000_000, 240_000_000, 4_000_000_000
"""How much Z3 may do, in its own units: for an obligation, for one that has many outcomes, and for all runs of a length."""


def default_effort(name: str, runs_from: int | None) -> int:
    """How much Z3 may do for an obligation, or all runs of one length, unless said otherwise."""
    if by_runs(name, runs_from):
        return EFFORT_OF_RUNS
    return EFFORT_BY_OUTCOME if THEOREMS[name].by_outcome else EFFORT


def default_time_limit(name: str, runs_from: int | None) -> float:
    """After how many seconds the clock stops a question to Z3 unless said otherwise."""
    return EMERGENCY_OF_RUNS_S if by_runs(name, runs_from) else EMERGENCY_S


NAMES = tuple(dict.fromkeys((*THEOREMS, *REFUTABLE)))
HOLDING = tuple(name for name, theorem in THEOREMS.items() if theorem.holds and not theorem.by_outcome)
"""Theorems that are true, and proved in seconds: those that are proved if none is named."""
