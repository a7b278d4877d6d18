"""Retention, compaction and fetch sessions of each release where releases differ. See `docs/rules-by-release.md`."""

from collections.abc import Callable
from dataclasses import fields
from itertools import groupby, pairwise
from typing import Any

import pytest

from kspec.spec.broker.clients.fetch_sessions import SentPartition
from kspec.spec.log.compaction import NO_BOUND, DirtySegment, EmptyBatch, SegmentSize
from kspec.spec.log.segments import Retention, StoredSegment
from kspec.spec.mutation import changed_rules
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.fetch_sessions import SESSION_RELEASES
from kspec.spec.releases.upkeep import NEWEST, UPKEEP_RELEASES
from kspec.spec.values import UNKNOWN_OFFSET, Error, Offset

HISTORIES: dict[str, tuple[Any, ...]] = {"upkeep": UPKEEP_RELEASES, "sessions": SESSION_RELEASES}


def history(releases: tuple[Any, ...], case: Callable[[Any], object]) -> dict[str, object]:
    """The first release of each value."""
    values = [(rules.name, case(rules)) for rules in releases]
    return {next(group)[0]: value for value, group in groupby(values, key=lambda named: named[1])}


SEGMENTS = tuple(StoredSegment(Offset(base), 100, 0) for base in (0, 10, 20))

YOUNG = StoredSegment(Offset(0), 100, 1000)


def deleted(rules: Any, high_watermark: int, *, deletes: bool = True) -> int:
    """The number of three old segments that are deleted; the log starts at 10, and ends at 30."""
    retention = Retention(5, -1, deletes)
    return int(rules.deletable_segments(SEGMENTS, Offset(10), Offset(30), Offset(high_watermark), retention, 1000))


UPKEEP: list[tuple[Callable[[Any], object], dict[str, object]]] = [
    # KAFKA-17076: last offset 9, the part that is compacted ends at 10, the high watermark (which does not matter) is 12
    (
        lambda rules: rules.empty_batch(Offset(9), UNKNOWN_OFFSET, Offset(10)),
        {"0.10": EmptyBatch.GOES, "3.9.2": EmptyBatch.STAYS},
    ),
    (lambda rules: rules.empty_batch(Offset(9), UNKNOWN_OFFSET, Offset(12)), {"0.10": EmptyBatch.GOES}),
    # KAFKA-5490: the last batch of its producer
    (
        lambda rules: rules.empty_batch(Offset(9), Offset(9), Offset(20)),
        {"0.10": EmptyBatch.GOES, "0.11": EmptyBatch.STAYS},
    ),
    # KAFKA-8335: the last sequence number of the producer, in an earlier epoch and in the last one; without sequence numbers
    (
        lambda rules: rules.empty_batch(Offset(4), Offset(9), Offset(20), 1, 1),
        {"0.10": EmptyBatch.GOES, "0.11": EmptyBatch.STAYS, "2.3": EmptyBatch.GOES},
    ),
    (lambda rules: rules.empty_batch(Offset(4), Offset(9), Offset(20), 1, 2), {"0.10": EmptyBatch.GOES}),
    (lambda rules: rules.empty_batch(Offset(4), UNKNOWN_OFFSET, Offset(20), -1, -1), {"0.10": EmptyBatch.GOES}),
    (
        lambda rules: rules.empty_batch(Offset(9), Offset(9), Offset(20), 1, 2),
        {"0.10": EmptyBatch.GOES, "2.3": EmptyBatch.STAYS},
    ),
    # KIP-534: a tombstone of a batch that has a horizon, or none; its segment is older than the last compacted one, or not
    (lambda rules: rules.tombstone_horizon(500, 100, 150, 50), {"0.10": 100, "3.1": 500}),
    (lambda rules: rules.tombstone_horizon(-1, 100, 150, 50), {"0.10": 100, "3.1": -1}),
    (lambda rules: rules.tombstone_horizon(-1, 100, 149, 50), {"0.10": -1}),
    (lambda rules: rules.tombstone_horizon(500, 100, -1, 50), {"0.10": -1, "3.1": 500}),
    (lambda rules: rules.new_delete_horizon(-1, True, 1000, 50), {"0.10": -1, "3.1": 1050}),
    (lambda rules: rules.new_delete_horizon(500, True, 1000, 50), {"0.10": 500}),
    # A tombstone that is due, and a record without a key, beyond the part whose keys were noted
    (
        lambda rules: rules.keeps_record(Offset(9), UNKNOWN_OFFSET, True, False, Offset(9), 0, 5),
        {"0.10": False, "0.11": True},
    ),
    (
        lambda rules: rules.keeps_record(Offset(9), UNKNOWN_OFFSET, False, True, Offset(9), -1, 5),
        {"0.10": False, "0.11": True},
    ),
    (lambda rules: rules.keeps_record(Offset(8), UNKNOWN_OFFSET, True, True, Offset(9), -1, 5), {"0.10": True}),
    # KAFKA-13194: the high watermark is 7, and no transaction is open, or one from 5 on
    (lambda rules: rules.compacted_end(Offset(7), UNKNOWN_OFFSET), {"0.10": NO_BOUND, "3.1": 7}),
    (lambda rules: rules.compacted_end(Offset(7), Offset(5)), {"0.10": 5}),
    (lambda rules: rules.compacted_end(Offset(7), Offset(9)), {"0.10": 9, "3.1": 7}),
    # KAFKA-8724: the checkpoint says 50, and the log ends at 30
    (lambda rules: rules.first_dirty_offset(Offset(50), Offset(10), Offset(30)), {"0.10": 50, "2.4": 10}),
    (lambda rules: rules.first_dirty_offset(Offset(5), Offset(10), Offset(30)), {"0.10": 10}),
    # Without a checkpoint, and with one before the log start: the first segment begins at 7, the log at 10
    (lambda rules: rules.first_dirty_offset(UNKNOWN_OFFSET, Offset(10), Offset(30), Offset(7)), {"0.10": 7, "2.4": 10}),
    (lambda rules: rules.first_dirty_offset(Offset(8), Offset(10), Offset(30), Offset(7)), {"0.10": 8, "2.4": 10}),
    (lambda rules: rules.first_dirty_offset(Offset(20), Offset(10), Offset(30), Offset(7)), {"0.10": 20}),
    # KIP-354: a little is dirty, for longer than max.compaction.lag.ms
    (lambda rules: rules.is_cleanable(99, 1, 0.5, 0, 10, 1000), {"0.10": False, "2.3": True}),
    (lambda rules: rules.is_cleanable(1, 99, 0.5, 0, 10, 1000), {"0.10": True}),
    # KAFKA-12889: an empty segment whose offsets are too far from the first one's
    (
        lambda rules: rules.group(
            (SegmentSize(Offset(0), Offset(5), 9, 1), SegmentSize(Offset(90), Offset(99), 0, 0)), 99, 9, 50
        ),
        {"0.10": (1, 1), "3.0": (2,)},
    ),
    # KAFKA-5634: only the first segment is committed; KAFKA-7400: compacted only, one segment before the log start
    (lambda rules: deleted(rules, 10), {"0.10": 3, "1.0": 1}),
    (lambda rules: deleted(rules, 30, deletes=False), {"0.10": 0, "2.1": 1}),
    # KAFKA-12177: the first segment is too much, and young; the second is old
    (
        lambda rules: rules.deletable_segments(
            (YOUNG, *SEGMENTS[1:]), Offset(0), Offset(30), Offset(20), Retention(5, 200), 1000
        ),
        {"0.10": 1, "3.0": 2},
    ),
    # KIP-58 (0.10.1): min.compaction.lag.ms
    (
        lambda rules: rules.first_uncleanable_offset(Offset(7), Offset(30), [DirtySegment(Offset(5), 990)], 20, 1000),
        {"0.10": 7, "0.11": 5},
    ),
    (lambda rules: rules.first_uncleanable_offset(Offset(99), Offset(30), [], 20, 1000), {"0.10": 30}),
]

SENT = SentPartition(Offset(3), Offset(0))

SESSIONS: list[tuple[Callable[[Any], object], dict[str, object]]] = [
    (lambda rules: rules.check_session(4, 4, True, False), {"1.1": Error.NONE, "3.1": Error.FETCH_SESSION_TOPIC_ID_ERROR}),
    (lambda rules: rules.check_session(4, 5, True, False), {"1.1": Error.INVALID_FETCH_SESSION_EPOCH}),
    (lambda rules: rules.check_session(None, 5, True, True), {"1.1": Error.FETCH_SESSION_ID_NOT_FOUND}),
    (lambda rules: rules.is_news(SENT, Error.NONE, False, True, Offset(3), Offset(0)), {"1.1": False, "2.7": True}),
    (lambda rules: rules.is_news(SENT, Error.NONE, False, False, Offset(3), Offset(1)), {"1.1": True}),
    (lambda rules: (rules.goes_last(True, False), rules.goes_last(True, True)), {"1.1": (True, True), "3.0": (False, True)}),
    (lambda rules: rules.used(100, False, 900), {"1.1": 100, "2.5": 900}),
]


@pytest.mark.parametrize(("case", "expected"), UPKEEP)
def test_upkeep_of_a_release_does_what_kafka_did(case: Callable[[Any], object], expected: dict[str, object]) -> None:
    assert history(UPKEEP_RELEASES, case) == expected


@pytest.mark.parametrize(("case", "expected"), SESSIONS)
def test_sessions_of_a_release_do_what_kafka_did(case: Callable[[Any], object], expected: dict[str, object]) -> None:
    assert history(SESSION_RELEASES, case) == expected


@pytest.mark.parametrize("releases", HISTORIES.values(), ids=HISTORIES)
def test_a_release_is_listed_where_a_rule_changed_and_every_rule_says_which_of_kafka_it_states(
    releases: tuple[Any, ...],
) -> None:
    """4.0 is listed beside 3.9.2, which came out after it."""
    named = {protocol.name for protocol in BROKER_RELEASES} | {"3.9.2"}
    assert {rules.name for rules in releases} <= named
    assert all(changed_rules(before, after) or after.name == NEWEST.name for before, after in pairwise(releases))
    for rules in releases:
        assert all("**Kafka:**" in getattr(rules, field.name).__doc__ for field in fields(rules) if field.name != "name")
