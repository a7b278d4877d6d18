"""Mutants: a protocol with one rule weakened, to show that the rule is needed.

A mutant is killed when the checker finds a counterexample in it. See `docs/studies/` for the runs.
"""

from kspec.spec.broker.rules.isr.proposal import committed_isr, propose_as_if_granted
from kspec.spec.mutation import Mutant
from kspec.spec.published.fetch import fetch_without_fencing
from kspec.spec.published.high_watermark import replicated_by_offset
from kspec.spec.published.isr import join_at_high_watermark
from kspec.spec.published.truncation import answer_anyone

MUTANTS = (
    Mutant(
        "unfenced-truncation",
        "truncation_fencing",
        answer_anyone,
        "a follower finds its truncation offset from any replica in any epoch",
    ),
    Mutant(
        "unfenced-fetch",
        "fetch_fencing",
        fetch_without_fencing,
        "a leader serves followers of any epoch",
    ),
    Mutant(
        "high-watermark-without-epoch",
        "has_replicated",
        replicated_by_offset,
        "a leader counts fetches made in another epoch",
    ),
    Mutant(
        "join-before-epoch-start",
        "may_join",
        join_at_high_watermark,
        "a follower joins the ISR before the high watermark has reached the leader's epoch",
    ),
)


ISR_MUTANTS = (
    Mutant(
        "high-watermark-over-committed-isr",
        "counted_isr",
        committed_isr,
        "the high watermark does not wait for replicas whose admission is pending",
    ),
    Mutant(
        "shrink-before-confirmation",
        "propose",
        propose_as_if_granted,
        "the leader behaves as if its proposal had been granted",
    ),
)
