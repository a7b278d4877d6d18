"""The ways in which replication is known to go wrong, Z1 to Z29, and the study of each that loses or changes records."""

from typing import NamedTuple


class Hazard(NamedTuple):
    """A known failure, the KIP or issue about it, and its studies; without one, `why` says why there is none."""

    name: str
    what: str
    reference: str
    studies: tuple[str, ...] = ()
    why: str = ""


def _progress(mutant: str) -> str:
    return f"costs progress, not records: mutant `{mutant}` in [mutants.md](../mutants.md)"


HAZARDS = (
    Hazard("Z1", "truncation to the high watermark loses a committed record", "KIP-101, KAFKA-1211", ("kip-101-loss",)),
    Hazard(
        "Z2",
        "truncation to the high watermark keeps a record that another leader has replaced",
        "KIP-101, KAFKA-1211",
        ("kip-101-divergence",),
    ),
    Hazard(
        "Z3",
        "fast leader changes defeat KIP-101",
        "KIP-279, KAFKA-6361",
        ("kip-279-fast-leader-changes", "epochs-out-of-order"),
    ),
    Hazard("Z4", "a leader without an entry for its own epoch", "KAFKA-7415", ("kafka-7415-own-epoch",)),
    Hazard(
        "Z5", "truncation by the answer of a deposed leader", "KIP-320, KAFKA-6880", ("kip-320-zombie", "unfenced-fetch")
    ),
    Hazard("Z6", "only the last record's epoch is compared", "KIP-320, first draft", ("kip-320-first-try",)),
    Hazard("Z7", "truncation is not fenced", "KIP-320", ("unfenced-truncation",)),
    Hazard("Z8", "followers of another epoch count", "KIP-320", ("high-watermark-without-epoch",)),
    Hazard("Z9", "a follower joins below the start of the epoch", "KAFKA-7128, KIP-320", ("join-before-epoch-start",)),
    Hazard(
        "Z10",
        "the wrong ISR counts while a change of it is pending",
        "KIP-497",
        ("async-isr-committed-only", "async-isr-shrink-early", "rolled-back-proposal"),
    ),
    Hazard(
        "Z11", "a replica joins by the fetch of an earlier incarnation", "KIP-903, KAFKA-14139", ("earlier-incarnation",)
    ),
    Hazard("Z12", "a fenced replica joins the ISR", "KIP-841, KAFKA-13916", ("fenced-replica",)),
    Hazard(
        "Z13",
        "the last replica in the ISR comes back without its records",
        "KIP-966, KAFKA-18106",
        ("last-replica-standing", "unclean-incarnation-in-isr"),
    ),
    Hazard("Z14", "records are committed below min.insync.replicas", "KIP-966, KAFKA-15583", ("below-min-isr",)),
    Hazard("Z15", "unclean election", "KIP-106", ("unclean-election",)),
    Hazard("Z16", "acks=1", "`acks`", ("acks-1",)),
    Hazard("Z17", "acks=all with min.insync.replicas=1", "`min.insync.replicas`", ("min-isr-1",)),
    Hazard(
        "Z18",
        "the latest offset goes back after an election",
        "KIP-207",
        ("latest-offset",),
    ),
    Hazard("Z19", "a leader that missed an epoch keeps its followers' offsets", "not reported", ("missed-epoch",)),
    Hazard("Z20", "an answer to a fetch of an earlier epoch is applied", "KAFKA-18991", ("late-divergence",)),
    Hazard(
        "Z21",
        "the leader's high watermark is applied before truncation",
        "KAFKA-14704",
        ("high-watermark-before-truncation",),
    ),
    Hazard("Z22", "a fetch that diverges counts", "KAFKA-13141", ("diverging-fetch",)),
    Hazard(
        "Z23",
        "truncation never ends, because an opened epoch stays",
        "KAFKA-10706",
        (),
        _progress("truncate-only-if-longer"),
    ),
    Hazard("Z24", "records of a later epoch are appended", "KAFKA-18723", ("records-read-late",)),
    Hazard(
        "Z25",
        "the last known leader is elected, though fenced",
        "KAFKA-19522",
        (),
        _progress("last-known-leader-while-down"),
    ),
    Hazard(
        "Z26", "the high watermark waits for a replica that may not join", "KAFKA-15021", (), _progress("await-ineligible")
    ),
    Hazard("Z27", "a slow follower joins and leaves below min ISR", "KAFKA-19996", (), _progress("join-under-min-isr")),
    Hazard("Z28", "an empty answer makes the next fetch name no epoch", "KAFKA-15510", ("forgotten-epoch",)),
    Hazard(
        "Z29",
        "a reassignment removes a replica and adds it again within one difference",
        "no issue known",
        (),
        "a replica joins only by a fetch, which replaces its leader's state of it, so no rule can be wrong. But"
        " eligibility outlives a reassignment: mutant `eligible-without-assignment` in [mutants.md](../mutants.md)",
    ),
)
"""In the order of their numbers."""
