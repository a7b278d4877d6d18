"""The theorems by name."""

from proofs.invariant import Theorem
from proofs.theorems.async_isr import ASYNC_ISR_THEOREM
from proofs.theorems.kip_320 import KIP_320_THEOREM

THEOREMS: dict[str, Theorem] = {theorem.name: theorem for theorem in (KIP_320_THEOREM, ASYNC_ISR_THEOREM)}
