"""The values of model `kafka` as a reader of traces sees them."""

from typing import Any

import pytest

from kspec.model_check.models.kafka.reductions import image_for
from kspec.model_check.models.kafka.values import (
    NO_EXCHANGE,
    NO_MEMORY,
    NO_TOPIC,
    NOTHING_LATE,
    NOTHING_SEEN,
    AlterPartitionExchange,
    ClientKnowledge,
    Image,
    LateFetch,
    Memory,
    ModelController,
    PlacedRecord,
    Process,
    RequestState,
    TopicRegistration,
)
from kspec.model_check.models.kafka.words import reading_in_words
from kspec.model_check.models.parts import NO_ROLE, Role
from kspec.model_check.traces.encode import in_words
from kspec.spec.broker.partition import WaitingProduce
from kspec.spec.broker.rules.fetcher import NOT_FETCHING, FetchState, FetchStatus
from kspec.spec.broker.rules.followers import Follower, FollowerState
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.broker.rules.produce import AppendedRecords
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.messages.alter_partition import IsrMember
from kspec.spec.messages.fetch import FetchPosition, FetchResponse
from kspec.spec.metadata import BrokerRegistration, LeaderRecoveryState
from kspec.spec.values import (
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    Incarnation,
    Offset,
    PartitionEpoch,
    Record,
)


def ids(*brokers: int) -> frozenset[BrokerId]:
    return frozenset(map(BrokerId, brokers))


TOPIC = TopicRegistration(ids(1, 2), ids(1), BrokerId(1), Epoch(2), PartitionEpoch(3))
RECORD = Record(1, Epoch(0))
FIRST = BrokerRegistration(BrokerId(1), BrokerEpoch(1), Incarnation(1), fenced=False)
AGAIN = BrokerRegistration(BrokerId(2), BrokerEpoch(2), Incarnation(2), fenced=True)
PROPOSED = NO_EXCHANGE.request._replace(isr=frozenset({IsrMember(BrokerId(1))}), partition_epoch=PartitionEpoch(3))
RUNS = BrokerLifecycle(BrokerId(1), Incarnation(1), BrokerState.RUNNING, BrokerEpoch(1))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (NO_TOPIC, "no partition"),
        (TOPIC, "1 leads in epoch 2, ISR {1}, partition epoch 3"),
        (
            TOPIC._replace(leader=NO_LEADER, elr=ids(2), last_known_elr=ids(1), recovery=LeaderRecoveryState.RECOVERING),
            "nobody leads in epoch 2, ISR {1}, partition epoch 3, eligible {2}, last known {1}, recovering",
        ),
        (
            TOPIC._replace(adding=ids(3), removing=ids(1)),
            "1 leads in epoch 2, ISR {1}, partition epoch 3, adding {3}, removing {1}",
        ),
        (
            ModelController(TOPIC, frozenset({FIRST, AGAIN}), ids(1)),
            "1 leads in epoch 2, ISR {1}, partition epoch 3, fenced {2}, broker epoch of 2 is 2, leaving {1}",
        ),
        (
            Image(TOPIC, frozenset({FIRST._replace(in_controlled_shutdown=True)})),
            "1 leads in epoch 2, ISR {1}, partition epoch 3, shutting down {1}",
        ),
        (NO_ROLE, "none"),
        (Role(BrokerId(1), Epoch(2)), "1 leads in epoch 2"),
        (
            Role(BrokerId(1), Epoch(2), LeaderIsr(ids(1), PartitionEpoch(3), ids(1, 2), PartitionEpoch(3)), Offset(0)),
            "1 leads in epoch 2 from offset 0, ISR {1}, partition epoch 3, pending {1, 2}",
        ),
        (NO_MEMORY, "none"),
        (
            Memory(
                frozenset(
                    {Follower(BrokerId(2)), Follower(BrokerId(3), FollowerState(Offset(1), broker_epoch=BrokerEpoch(2)))}
                ),
                frozenset({WaitingProduce(1, AppendedRecords(Offset(0), Offset(1)))}),
            ),
            "2 ends at ?, 3 ends at 1 (broker epoch 2), producer waits for offset 1",
        ),
        (LocalLog(EMPTY_LOG.append((RECORD,)), Offset(1)), "m1(e0), high watermark 1"),
        (NOT_FETCHING, "none"),
        (
            FetchState(FetchStatus.FETCHING, BrokerId(1), Epoch(2), Offset(1), Epoch(0), answered=True),
            "fetches from 1 in epoch 2 at 1 after epoch 0, answered",
        ),
        (FetchState(FetchStatus.TRUNCATING, BrokerId(1), Epoch(2), Offset(0)), "asks 1 in epoch 2 where logs part"),
        (FetchState(FetchStatus.FAILED, BrokerId(1), Epoch(2), Offset(0)), "failed: 1 in epoch 2, at 0"),
        (Process(True, RUNS, published=True), "up"),
        (
            Process(True, RUNS._replace(state=BrokerState.STARTING, broker_epoch=BrokerEpoch(2))),
            "up, broker epoch 2, registers, and catches up with the metadata",
        ),
        (Process(False, RUNS), "down"),
        (Process(False, RUNS, noted=BrokerEpoch(1)), "down, stopped in order in broker epoch 1"),
        (NO_EXCHANGE, "none"),
        (
            AlterPartitionExchange(RequestState.SENT, PROPOSED, NO_EXCHANGE.response),
            "ISR {1} on partition epoch 3 is under way",
        ),
        (
            AlterPartitionExchange(
                RequestState.ANSWERED, PROPOSED, NO_EXCHANGE.response._replace(partition_epoch=PartitionEpoch(4))
            ),
            "ISR {1} on partition epoch 3 was granted, partition epoch 4",
        ),
        (
            AlterPartitionExchange(
                RequestState.ANSWERED, PROPOSED, NO_EXCHANGE.response._replace(error=Error.INELIGIBLE_REPLICA)
            ),
            "ISR {1} on partition epoch 3 was refused: INELIGIBLE_REPLICA",
        ),
        (NOTHING_SEEN, "none"),
        (
            ClientKnowledge(frozenset({PlacedRecord(Offset(0), RECORD)}), frozenset({PlacedRecord(Offset(0), RECORD)})),
            "acknowledged m1(e0) at 0, readable m1(e0) at 0",
        ),
    ],
)
def test_in_words(value: Any, words: str) -> None:
    assert in_words(value) == words


LATE = NOTHING_LATE._replace(
    state=RequestState.SENT,
    leader=BrokerId(1),
    asked_in=Epoch(0),
    request=NOTHING_LATE.request._replace(fetch=FetchPosition(Epoch(0), Offset(1), Epoch(0))),
)
ANSWERED = LATE._replace(state=RequestState.ANSWERED, awaited=True)


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (NOTHING_LATE, "none"),
        (LATE, "asked 1 in epoch 0 from offset 1, nobody waits for it"),
        (
            ANSWERED._replace(answer=FetchResponse(Error.NONE, Offset(0), (RECORD,), Offset(0))),
            "answer of 1 in epoch 0 from offset 1: m1(e0), high watermark 0",
        ),
        (
            ANSWERED._replace(answer=FetchResponse(Error.NONE, high_watermark=Offset(1))),
            "answer of 1 in epoch 0 from offset 1: no records, high watermark 1",
        ),
        (
            ANSWERED._replace(answer=FetchResponse(Error.NONE, diverging=EpochEndOffset(Epoch(0), Offset(1)))),
            "answer of 1 in epoch 0 from offset 1: logs part after epoch 0 at 1",
        ),
        (
            ANSWERED._replace(answer=FetchResponse(Error.FENCED_LEADER_EPOCH)),
            "answer of 1 in epoch 0 from offset 1: FENCED_LEADER_EPOCH",
        ),
    ],
)
def test_a_late_fetch_in_words(late: LateFetch, words: str) -> None:
    assert in_words(late) == words


def test_what_is_still_to_read_in_words() -> None:
    cluster = ModelController(TOPIC, frozenset({FIRST}))
    before, leads, follows = (
        image_for(BrokerId(3), ModelController(NO_TOPIC, frozenset()), remembers=False),
        image_for(BrokerId(1), cluster, remembers=False),
        image_for(BrokerId(3), cluster, remembers=False),
    )
    assert reading_in_words(()) == "none"
    assert reading_in_words((before,)) == "all read"
    assert reading_in_words((before, leads)) == "to read: 1 leads in epoch 2, ISR {1}, partition epoch 3"
    assert reading_in_words((before, leads, follows)).endswith("; then 1 leads in epoch 2, no replica here")
