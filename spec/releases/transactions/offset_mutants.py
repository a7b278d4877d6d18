"""Mutants of offsets in transactions: one rule of the group coordinator weakened, to show that the rule is needed."""

from kspec.spec.mutation import Mutant


def counts_if_committed(committed: bool, is_overtaken: bool) -> bool:
    """An offset counts when its transaction is committed, also over one that was written later."""
    return committed


def counts_though_aborted(committed: bool, is_overtaken: bool) -> bool:
    """An offset counts when its transaction ends, whatever the end is."""
    return not is_overtaken


def is_never_unstable(require_stable: bool, is_pending: bool) -> bool:
    """A reader is told an offset though a transaction is open that is to commit a later one."""
    return False


def is_any_generation(asked: int, present: int) -> bool:
    """Offsets of any generation are committed."""
    return True


OFFSET_MUTANTS = (
    Mutant(
        "offsets-checked-early",
        "checks_when_written",
        False,
        "the group is looked at before the transaction is verified, not when offsets are written (KAFKA-15784)",
    ),
    Mutant("earlier-offset-counts", "counts_at_end", counts_if_committed, "a marker commits an offset over a later one"),
    Mutant("aborted-offset-counts", "counts_at_end", counts_though_aborted, "offsets of an aborted transaction count"),
    Mutant("open-offset-hidden", "is_unstable", is_never_unstable, "nobody is told that an offset is open (KIP-447)"),
    Mutant(
        "offsets-of-any-generation",
        "is_present_generation",
        is_any_generation,
        "a member of an earlier generation commits in a transaction (KIP-447)",
    ),
)
"""The mutants of `next` that are about offsets in transactions."""
