"""The ways in which replication is known to go wrong. A study names its hazard."""

from typing import NamedTuple


class Hazard(NamedTuple):
    """A known failure, and the KIP or issue about it. `why` is the reason if no study is about the hazard."""

    name: str
    what: str
    reference: str
    why: str = ""


def _progress(mutant: str) -> str:
    return f"costs progress, not records: mutant `{mutant}` in [mutants.md](../mutants.md)"


HAZARDS = (
    Hazard("Z1", "truncation to the high watermark loses a committed record", "KIP-101, KAFKA-1211"),
    Hazard(
        "Z2",
        "truncation to the high watermark keeps a record that another leader has replaced",
        "KIP-101, KAFKA-1211",
    ),
    Hazard(
        "Z3",
        "fast leader changes defeat KIP-101",
        "KIP-279, KAFKA-6361",
    ),
    Hazard("Z4", "a leader without an entry for its own epoch", "KAFKA-7415"),
    Hazard("Z5", "truncation by the answer of a deposed leader", "KIP-320, KAFKA-6880"),
    Hazard("Z6", "only the last record's epoch is compared", "KIP-320, first draft"),
    Hazard("Z7", "truncation is not fenced", "KIP-320"),
    Hazard("Z8", "followers of another epoch count", "KIP-320"),
    Hazard("Z9", "a follower joins below the start of the epoch", "KAFKA-7128, KIP-320"),
    Hazard(
        "Z10",
        "the wrong ISR counts while a change of it is pending",
        "KIP-497",
    ),
    Hazard("Z11", "a replica joins by the fetch of an earlier incarnation", "KIP-903, KAFKA-14139"),
    Hazard("Z12", "a fenced replica joins the ISR", "KIP-841, KAFKA-13916"),
    Hazard(
        "Z13",
        "the last replica in the ISR comes back without its records",
        "KIP-966, KAFKA-18106",
    ),
    Hazard("Z14", "records are committed below min.insync.replicas", "KIP-966, KAFKA-15583"),
    Hazard("Z15", "unclean election", "KIP-106"),
    Hazard("Z16", "acks=1", "`acks`"),
    Hazard("Z17", "acks=all with min.insync.replicas=1", "`min.insync.replicas`"),
    Hazard(
        "Z18",
        "the latest offset goes back after an election",
        "KIP-207",
    ),
    Hazard("Z19", "a leader that missed an epoch keeps its followers' offsets", "not reported"),
    Hazard("Z20", "an answer to a fetch of an earlier epoch is applied", "KAFKA-18991"),
    Hazard(
        "Z21",
        "the leader's high watermark is applied before truncation",
        "KAFKA-14704",
    ),
    Hazard("Z22", "a fetch that diverges counts", "KAFKA-13141"),
    Hazard(
        "Z23",
        "truncation never ends, because an opened epoch stays",
        "KAFKA-10706",
        _progress("truncate-only-if-longer"),
    ),
    Hazard("Z24", "records of a later epoch are appended", "KAFKA-18723"),
    Hazard(
        "Z25",
        "the last known leader is elected, though fenced",
        "KAFKA-19522",
        _progress("last-known-leader-while-down"),
    ),
    Hazard("Z26", "the high watermark waits for a replica that may not join", "KAFKA-15021", _progress("await-ineligible")),
    Hazard("Z27", "a slow follower joins and leaves below min ISR", "KAFKA-19996", _progress("join-under-min-isr")),
    Hazard("Z28", "an empty answer makes the next fetch name no epoch", "KAFKA-15510"),
    Hazard(
        "Z29",
        "a reassignment removes a replica and adds it again within one difference",
        "no issue known",
        "a replica joins only by a fetch, which replaces its leader's state of it, so no rule can be wrong. But"
        " eligibility outlives a reassignment: mutant `eligible-without-assignment` in [mutants.md](../mutants.md)",
    ),
    Hazard("Z30", "metadata that are not new drop a proposal made after them", "not reported"),
    Hazard(
        "Z31",
        "a broker leads its old epoch again before its new incarnation is registered",
        "none: Kafka's ports are closed",
    ),
    Hazard("Z32", "a fetch sent before the registration names no broker epoch", "not reported"),
    Hazard("Z33", "a second copy of a refused proposal is granted", "not reported"),
)
"""The hazards in the order of their numbers."""
