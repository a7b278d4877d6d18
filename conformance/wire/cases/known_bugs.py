"""Bugs that Kafka and systems like it had in production, and the cases that find them again."""

from typing import NamedTuple

REDPANDA, AUTOMQ = "https://github.com/redpanda-data/redpanda/issues", "https://github.com/AutoMQ/automq/issues"
FRANZ_GO, KAFKA = "https://github.com/twmb/franz-go/issues", "https://issues.apache.org/jira/browse"


class KnownBug(NamedTuple):
    """A bug: where it was, its report, what was wrong, and the cases that fail on a broker that has it.

    Without cases `why_not` says what a case at this level lacks.
    """

    system: str
    link: str
    what: str
    cases: tuple[str, ...]
    why_not: str = ""


ENDS = ("reading/end-of-epoch.current/an-end", "leader-epochs/end-of-epoch.second/an-end")
LISTED = ("leader-epochs/list-offsets.time-of-first/an-offset", "leader-epochs/list-offsets.max-timestamp/an-offset")
TAGGED = ("reading/fetch.start/records", "leader-epochs/fetch.start/records")
DIVERGING = ("reading/fetch.end.last-older/diverging", "reading/fetch.past-end.last-current/diverging")
WITHOUT_EPOCH = ("offsets/offsets.of-partition/an-offset-without-epoch",)

KNOWN_BUGS = (
    KnownBug(
        "Redpanda",
        f"{REDPANDA}/11864",
        "OffsetForLeaderEpoch: an epoch that is yet to come has no end, and one that is over is named in its answer",
        ("reading/end-of-epoch.newer/undefined", "leader-epochs/end-of-epoch.first/an-end"),
    ),
    KnownBug("Redpanda", f"{REDPANDA}/5435", "the end of the current epoch lay below what a consumer had read", ENDS),
    KnownBug("Redpanda", f"{REDPANDA}/17674", "a fetch's last fetched epoch was ignored", DIVERGING),
    KnownBug("Redpanda", f"{REDPANDA}/30347", "ListOffsets answered the current epoch, and not the record's", LISTED),
    KnownBug("Redpanda", f"{REDPANDA}/1181", "batches and answers had no leader epochs", TAGGED),
    KnownBug("Redpanda", f"{REDPANDA}/3788", "batches and answers had no leader epochs", TAGGED),
    KnownBug(
        "Redpanda",
        f"{REDPANDA}/17260",
        "a group's committed epoch was -2147483648 after its coordinator had moved",
        (),
        "one broker has no other to which the coordinator could move; "
        "`offsets/offsets.of-partition/an-offset` compares the epoch without a move",
    ),
    KnownBug("AutoMQ", f"{AUTOMQ}/2863", "an old end of an epoch was answered, and consumers went back", ENDS),
    KnownBug("Alibaba Cloud", f"{FRANZ_GO}/699", "every epoch ended at offset 0, and consumers began anew", ENDS),
    KnownBug(
        "Kafka",
        f"{KAFKA}/KAFKA-6857",
        "the end of an undefined epoch is undefined",
        ("reading/end-of-epoch.undefined/undefined",),
    ),
    KnownBug("Kafka", f"{KAFKA}/KAFKA-20507", "a commit without an epoch was read with epoch 0, and not -1", WITHOUT_EPOCH),
    KnownBug("Kafka", f"{KAFKA}/KAFKA-20770", "a commit without an epoch was read with epoch 0, and not -1", WITHOUT_EPOCH),
    KnownBug(
        "Kafka",
        f"{KAFKA}/KAFKA-9212",
        "brokers answered Metadata with an older epoch than the leader's while a partition was reassigned",
        (),
        "one broker reassigns nothing",
    ),
    KnownBug(
        "Kafka",
        f"{KAFKA}/KAFKA-7347",
        "a broker that is no replica answered where an epoch ends",
        (),
        "it takes a second broker",
    ),
    KnownBug(
        "Kafka",
        f"{KAFKA}/KAFKA-12686",
        "two changes of the ISR crossed, and the older one won",
        (),
        "it takes a second replica",
    ),
)
"""Sources: the reports. What clients did wrong (librdkafka, kafkajs, kafka-python) is left out: a broker cannot show it."""


def known_bugs_of(case: str) -> tuple[KnownBug, ...]:
    """The bugs that a case finds again."""
    return tuple(one for one in KNOWN_BUGS if case in one.cases)
