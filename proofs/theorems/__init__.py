"""The theorems by name, and what is refuted."""

from proofs.invariant import Theorem
from proofs.refute import Refutable
from proofs.theorems.async_isr import ASYNC_ISR_THEOREM
from proofs.theorems.kip_320 import KIP_279_CLAIM, KIP_320_FIRST_TRY_CLAIM, KIP_320_THEOREM

THEOREMS: dict[str, Theorem] = {
    theorem.name: theorem for theorem in (KIP_320_THEOREM, ASYNC_ISR_THEOREM, KIP_279_CLAIM, KIP_320_FIRST_TRY_CLAIM)
}
"""What is proved by induction, and two claims of which the induction fails."""

REFUTABLE: dict[str, Refutable] = {
    "truncate-to-hw": Refutable("truncate-to-hw", "WeakIsr", replicas=2, log_size=2, max_epoch=1),
    "kip-101": Refutable("kip-101", "WeakIsr", replicas=2, log_size=2, max_epoch=2),
}
"""What runs from the initial state refute. Their bounds are the smallest that have a violation."""


def default_replicas(name: str) -> int:
    """For how many replicas a theorem is proved, or refuted, unless said otherwise."""
    return REFUTABLE[name].replicas if name in REFUTABLE else 3


NAMES = (*THEOREMS, *REFUTABLE)
HOLDING = tuple(name for name, theorem in THEOREMS.items() if theorem.holds)
"""Theorems that are true: those that are proved if none is named."""
