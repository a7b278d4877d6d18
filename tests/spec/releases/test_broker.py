"""The releases of the broker, and the mutants of its rules. What each release changes is in `docs/releases`."""

from dataclasses import fields
from itertools import pairwise

import pytest

from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.fetcher import FetchState, FetchStatus
from kspec.spec.broker.rules.followers import UNKNOWN_FOLLOWER, FollowerFetch
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.broker.rules.isr.request import IsrWriter, WriteIsr
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState, acts_on_any_metadata
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.messages.broker_registration import BrokerRegistrationResponse
from kspec.spec.messages.fetch import Isolation
from kspec.spec.mutation import Mutant, names_of_rules, weaken
from kspec.spec.releases.broker import BROKER_NEXT, BROKER_RELEASES
from kspec.spec.releases.broker_mutants import (
    BROKER_MUTANTS,
    count_what_is_sent,
    has_fetched,
    one_is_enough,
    takes_any_announcement,
    takes_any_offset,
    takes_any_registration,
)
from kspec.spec.values import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Incarnation,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    PartitionId,
    Record,
)

RULES = names_of_rules(BROKER_NEXT)


def changed(before: BrokerProtocol, after: BrokerProtocol) -> set[str]:
    return {rule for rule in RULES if getattr(before, rule) != getattr(after, rule)}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_of_the_record_was_changed_or_is_weakened(rule: str) -> None:
    weakened = {mutant.field for mutant in BROKER_MUTANTS}
    assert rule in weakened or any(rule in changed(before, after) for before, after in pairwise(BROKER_RELEASES))


@pytest.mark.parametrize("mutant", BROKER_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_weakens_one_rule_of_the_repaired_version(mutant: Mutant) -> None:
    weakened = weaken(BROKER_NEXT, mutant)
    assert changed(BROKER_NEXT, weakened) == {mutant.field}
    assert "**Kafka:**" in mutant.rule.__doc__


def test_mutants_have_different_names() -> None:
    assert len({mutant.name for mutant in BROKER_MUTANTS}) == len(BROKER_MUTANTS)


def test_what_the_rules_that_never_were_allow() -> None:
    nobody = LeaderIsr(frozenset(), PartitionEpoch(9), frozenset(), PartitionEpoch(-1))
    assert takes_any_announcement(Epoch(5), nobody, Epoch(1), PartitionEpoch(1))
    assert has_fetched(Offset(0), Offset(9), Offset(9))
    assert not has_fetched(UNKNOWN_OFFSET, Offset(0), Offset(0))
    assert takes_any_offset(FetchState(FetchStatus.TRUNCATING), Offset(3), Epoch(1))
    assert not takes_any_offset(FetchState(), Offset(3), Epoch(1))
    run, response = BrokerLifecycle(BrokerId(1), Incarnation(2)), BrokerRegistrationResponse(Error.NONE, Incarnation(1))
    assert takes_any_registration(run, response)
    assert not BROKER_NEXT.takes_registration(run, response)
    assert (one_is_enough(2, 3), acts_on_any_metadata(run, Offset(0), Offset(9))) == (1, True)
    fetch = FollowerFetch(MonotonicMs(0), Offset(2), Offset(0), Offset(9), BrokerEpoch(1))
    counted, noted = count_what_is_sent(UNKNOWN_FOLLOWER, fetch), BROKER_NEXT.notes_fetch(UNKNOWN_FOLLOWER, fetch)
    assert (counted.end_offset, noted.end_offset) == (9, 2)


def test_what_was_repaired_is_not_undone_later() -> None:
    """Except in 1.0, 2.4, 2.7, 2.8, 3.0, 3.5 and 3.6, which brought bugs with them that a later release or `next` took back,
    and in 4.0.0, which is older than 3.9.1."""
    for rule in RULES:
        rules = [getattr(version, rule) for version in BROKER_RELEASES if version.name != "3.9.1"]
        distinct = [after for before, after in pairwise([None, *rules]) if after != before]
        back_again = {"acts_on_metadata", "counts_fetch", "high_watermark_when_diverging", "last_epoch"}
        back_again |= {"advances_when_granted", "answered_high_watermark", "begins_epoch", "drops"}
        assert len(set(distinct)) == len(distinct) - (rule in back_again), rule


def test_every_function_of_a_release_says_which_of_kafka_it_states() -> None:
    for version in BROKER_RELEASES:
        for rule in RULES:
            function = getattr(version, rule)
            assert "**Kafka:**" in (function.__doc__ or ""), f"{version.name}: {function.__name__}"


# ---- what the record says of its rules


TRAITS = {field.name for field in fields(BrokerProtocol)} - {"name", "transactions", *RULES}

WEAKENED = [weaken(BROKER_NEXT, mutant) for mutant in BROKER_MUTANTS]

LOGS = [EMPTY_LOG, EMPTY_LOG.append((Record(1, Epoch(0)),)), EMPTY_LOG.append((Record(1, Epoch(0)), Record(2, Epoch(1))))]


def what_rules_come_to(protocol: BrokerProtocol) -> dict[str, object]:
    """Facts that the record states about its rules, found out by calling them."""
    request = AlterPartitionRequest(
        BrokerId(1), BrokerEpoch(1), PartitionId(0), Epoch(0), PartitionEpoch(0), frozenset({IsrMember(BrokerId(1))})
    )
    writes = isinstance(protocol.asks_for_isr(request), WriteIsr)
    offsets = [Offset(offset) for offset in range(3)]
    fetchers = [FetchState(last_fetched_epoch=epoch) for epoch in (NO_EPOCH, Epoch(0), Epoch(1))]
    return {
        "isr_writer": IsrWriter.LEADER if writes else IsrWriter.CONTROLLER,
        "acts_on_old_metadata": any(
            protocol.acts_on_metadata(BrokerLifecycle(BrokerId(1), Incarnation(1), state), read, known)
            for state in (BrokerState.STARTING, BrokerState.RECOVERY)
            for read in offsets
            for known in offsets
            if read < known
        ),
        "truncates_at_once": any(
            protocol.start_following(log, offset).kept_end < log.end_offset for log in LOGS for offset in offsets
        ),
        "last_epoch_needs_answer": any(
            protocol.last_epoch(fetcher, log.records) != protocol.last_epoch(fetcher._replace(answered=True), log.records)
            for fetcher in fetchers
            for log in LOGS
        ),
        "answers_after_fetch": protocol.answered_high_watermark(Offset(1), Offset(2)) == 2,
        "promises_latest_offset": any(
            protocol.latest_offset_lags(Isolation.HIGH_WATERMARK, high_watermark, epoch_start) != Error.NONE
            for high_watermark in offsets
            for epoch_start in offsets
        ),
    }


@pytest.mark.parametrize("protocol", [*BROKER_RELEASES, *WEAKENED], ids=lambda protocol: str(protocol.name))
def test_the_record_says_of_its_rules_what_they_do(protocol: BrokerProtocol) -> None:
    """But that a mutant breaks the promise about the latest offset does not take it back."""
    expected = what_rules_come_to(protocol)
    assert set(expected) == TRAITS
    if protocol.name == "next with latest-offset-goes-back":
        assert expected.pop("promises_latest_offset") is False
    assert {name: getattr(protocol, name) for name in expected} == expected


def test_what_the_record_says_differs_between_releases_or_mutants() -> None:
    assert all(len({getattr(protocol, name) for protocol in (*BROKER_RELEASES, *WEAKENED)}) > 1 for name in TRAITS)
