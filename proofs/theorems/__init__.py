"""The theorems by name, and the refuted claims."""

from kspec.proofs.effort import EMERGENCY_OF_RUNS_S, EMERGENCY_S
from kspec.proofs.induction.by_steps import StepTheorem
from kspec.proofs.induction.invariant import Theorem
from kspec.proofs.refutation.bounded import Refutable
from kspec.proofs.settings import ANY, Replicas
from kspec.proofs.theorems.async_isr import ASYNC_ISR_THEOREM
from kspec.proofs.theorems.consumer_group import CONSUMER_GROUP_THEOREM
from kspec.proofs.theorems.kafka_next.theorem import KAFKA_NEXT_POWER_LOSS_THEOREM, KAFKA_NEXT_THEOREM
from kspec.proofs.theorems.kip_320 import KIP_279_CLAIM, KIP_320_FIRST_TRY_CLAIM, KIP_320_THEOREM
from kspec.proofs.theorems.quorum.elections import QUORUM_ELECTIONS_THEOREM
from kspec.proofs.theorems.quorum.logs import QUORUM_LOGS_THEOREM
from kspec.proofs.theorems.quorum.voters import QUORUM_VOTERS_THEOREM

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
"""The theorems that are proved by induction, and two claims whose induction fails."""

BY_STEPS: dict[str, StepTheorem] = {
    theorem.name: theorem
    for theorem in (CONSUMER_GROUP_THEOREM, QUORUM_ELECTIONS_THEOREM, QUORUM_LOGS_THEOREM, QUORUM_VOTERS_THEOREM)
}
"""The theorems about one party and all others together: a member of a consumer group, a voter of the quorum."""

REFUTABLE: dict[str, Refutable] = {
    "truncate-to-hw": Refutable("truncate-to-hw", "WeakIsr", replicas=2, log_size=2, max_epoch=1),
    "kip-101": Refutable("kip-101", "WeakIsr", replicas=2, log_size=2, max_epoch=2),
    "kip-279": Refutable("kip-279", "WeakIsr", replicas=3, log_size=2, max_epoch=2),
    "kip-320-first-try": Refutable("kip-320-first-try", "WeakIsr", replicas=3, log_size=2, max_epoch=2),
}
"""The claims that runs from the initial state refute. Their bounds are the smallest that have a violation."""


def by_runs(name: str, runs_from: int | None) -> bool:
    """Whether a claim is refuted by runs: if that is asked for, or if it has no failing induction."""
    return runs_from is not None or (name not in THEOREMS and name not in BY_STEPS)


def default_replicas(name: str, runs_from: int | None) -> Replicas:
    """The default number of replicas for which a theorem is proved, or refuted."""
    if name in BY_STEPS:
        return BY_STEPS[name].replicas or ANY
    return REFUTABLE[name].replicas if by_runs(name, runs_from) else THEOREMS[name].replicas


EFFORT, EFFORT_BY_OUTCOME, EFFORT_OF_RUNS = 60_000_000, 240_000_000, 4_000_000_000
"""Limits of Z3, in its own units: for an obligation, for one that has many outcomes, and for all runs of a length."""


def default_effort(name: str, runs_from: int | None) -> int:
    """The default limit of Z3's work for an obligation, or for all runs of one length."""
    if by_runs(name, runs_from):
        return EFFORT_OF_RUNS
    return EFFORT_BY_OUTCOME if name in THEOREMS and THEOREMS[name].by_outcome else EFFORT


def default_time_limit(name: str, runs_from: int | None) -> float:
    """The default number of seconds after which the clock stops a question to Z3."""
    return EMERGENCY_OF_RUNS_S if by_runs(name, runs_from) else EMERGENCY_S


NAMES = tuple(dict.fromkeys((*THEOREMS, *BY_STEPS, *REFUTABLE)))
HOLDING = tuple(name for name, theorem in THEOREMS.items() if theorem.holds and not theorem.by_outcome)
"""Theorems that are true, and proved in seconds: those that are proved if none is named."""
