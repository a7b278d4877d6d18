"""The ways in which replication is known to go wrong, Z1 to Z29, and the study of each that loses or changes records."""

from typing import NamedTuple


class Hazard(NamedTuple):
    """A known failure, the KIP or issue about it, and its studies; without one, `why` says why there is none."""

    name: str
    what: str
    reference: str
    studies: tuple[str, ...] = ()
    why: str = ""


HAZARDS = (
    Hazard("Z1", "truncation to the high watermark loses a committed record", "KIP-101, KAFKA-1211", ("kip-101-loss",)),
    Hazard(
        "Z2",
        "truncation to the high watermark keeps what another has replaced",
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
    Hazard("Z5", "truncation against a leader of the past", "KIP-320, KAFKA-6880", ("kip-320-zombie", "unfenced-fetch")),
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
        "Z11",
        "a replica joins by what an earlier run of it has fetched",
        "KIP-903, KAFKA-14139",
        (),
        "three brokers, an ISR shrink and a loss of power take too long for a study: mutant"
        " `stale-broker-epoch-accepted` in"
        " [mutants.md](../mutants.md)",
    ),
    Hazard("Z12", "a fenced replica joins the ISR", "KIP-841, KAFKA-13916", ("fenced-replica",)),
    Hazard(
        "Z13",
        "the last replica in the ISR comes back without its records",
        "KIP-966, KAFKA-18106",
        ("last-replica-standing", "unclean-run-in-isr"),
    ),
    Hazard("Z14", "records are committed below min.insync.replicas", "KIP-966, KAFKA-15583", ("below-min-isr",)),
    Hazard("Z15", "unclean election", "KIP-106", ("unclean-election",)),
    Hazard("Z16", "acks=1", "`acks`", ("acks-1",)),
    Hazard("Z17", "acks=all with min.insync.replicas=1", "`min.insync.replicas`", ("min-isr-1",)),
    Hazard(
        "Z18",
        "the latest offset goes back after an election",
        "KIP-207",
        ("latest-offset-goes-back",),
    ),
    Hazard("Z19", "a leader that missed an epoch keeps its followers' offsets", "not reported", ("missed-epoch",)),
    Hazard("Z20", "an answer to a fetch of an earlier epoch is applied", "KAFKA-18991", ("late-answer",)),
    Hazard(
        "Z21",
        "the leader's high watermark is applied before truncation",
        "KAFKA-14704",
        ("high-watermark-before-truncation",),
    ),
    Hazard("Z22", "a fetch that diverges counts", "KAFKA-13141", ("diverging-fetch",)),
    Hazard("Z23", "an opened epoch survives truncation, which never ends", "KAFKA-10706", (), "costs progress, not records"),
    Hazard(
        "Z24",
        "records of a later epoch are appended",
        "KAFKA-18723",
        (),
        "it takes four records and a late answer, too much for a study: mutant `take-later-epochs` in"
        " [mutants.md](../mutants.md)",
    ),
    Hazard(
        "Z25",
        "the last known leader is elected while it is fenced",
        "KAFKA-19522",
        (),
        "costs progress first: the partition has a leader that is down. Records are lost only if more brokers lose"
        " theirs than"
        " min.insync.replicas tolerates. Rule `last_known_leader_if_up`; `tests/spec`",
    ),
    Hazard(
        "Z26", "the high watermark waits for a replica that may not join", "KAFKA-15021", (), "costs progress, not records"
    ),
    Hazard(
        "Z27", "a slow follower joins and leaves below min.insync.replicas", "KAFKA-19996", (), "costs progress, not records"
    ),
    Hazard(
        "Z28",
        "an empty answer makes the next fetch name no epoch",
        "KAFKA-15510",
        ("forgotten-last-epoch",),
    ),
    Hazard(
        "Z29",
        "a reassignment removes a replica and adds it again within one difference",
        "no issue known",
        (),
        "a replica joins only by a fetch, which replaces what its leader knew of it, so no rule is there to be wrong."
        " What a"
        " reassignment may leave behind is eligibility: mutant `eligible-without-assignment` in [mutants.md](../mutants.md)",
    ),
)
"""In the order of their numbers."""
