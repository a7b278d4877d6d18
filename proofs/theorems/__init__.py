"""The theorems by name, and what is refuted."""

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


def default_timeout(name: str, runs_from: int | None) -> float:
    """How many seconds an obligation, or the search through all runs of one length, may take unless said otherwise."""
    return 300.0 if by_runs(name, runs_from) else 20.0


NAMES = tuple(dict.fromkeys((*THEOREMS, *REFUTABLE)))
HOLDING = tuple(name for name, theorem in THEOREMS.items() if theorem.holds and not theorem.by_outcome)
"""Theorems that are true, and proved in seconds: those that are proved if none is named."""
