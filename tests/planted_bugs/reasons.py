"""Why a planted bug goes unnoticed, where it does."""

REASONS: dict[str, str] = {
    "high-watermark-goes-back": "nothing changes: `raise_high_watermark` never lowers it",
    "follower-shrinks": "nothing changes: a follower counts nobody as in sync, so nobody can drop out",
    "any-answer-is-pending": "nothing changes while a broker has one AlterPartition under way and answers come in order",
    "cut-by-leaders-end": "costs a round trip at most: the next fetch shows what is left of the divergence",
    "new-leader-keeps-followers": "nothing changes: whoever has not led knows no followers",
    "min-isr-above-assigned": "not reached: an assignment smaller than min.insync.replicas, with eligible leader replicas",
    "reverted-keeps-added-in-isr": "not reached: a move is taken back while only some replicas are in sync",
}
"""By the bug's name. "Not reached" means that neither the simulation, within its moves, nor a unit test has the case."""
