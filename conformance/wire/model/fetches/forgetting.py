"""Fetch sessions of two partitions, one of which may be forgotten and named again."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, Exchange, NotEmpty, equals
from kspec.conformance.wire.model.batches import BatchShape, batch
from kspec.conformance.wire.model.fetches.sessions import PROMISE, SESSION
from kspec.conformance.wire.model.partition import Led, append, broker, led_partition, stored_at
from kspec.conformance.wire.model.reading.fetching import fetch_constraints
from kspec.conformance.wire.model.requests import (
    NOT_READY,
    PRODUCED,
    TOPIC,
    TOPIC_ID,
    create_topic,
    fetch,
    look_up_topic,
    produce,
    since,
    wait_for_leader,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.clients.fetch_sessions import NOTHING_SENT, SentPartition, after_sending, is_news
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.log.batch import Batch
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import NO_EPOCH, Offset

MOST_FETCHES = 3


class ForgettingState(NamedTuple):
    """The partitions, what the session has told of those that it has, and its next epoch: 0 before it begins."""

    partitions: tuple[Led, Led] = (led_partition(), led_partition())
    sent: tuple[tuple[int, SentPartition], ...] = ()
    epoch: int = 0


def _read(protocol: BrokerProtocol, partition: Led) -> FetchResponse:
    request = FetchRequest(CONSUMER, FetchPosition(NO_EPOCH, Offset(0), NO_EPOCH), has_client_metadata=True)
    return read_partition(broker(protocol), partition, request)


def _produce(number: int) -> Move:
    def take(protocol: BrokerProtocol, state: ForgettingState) -> MoveResult | None:
        partition = state.partitions[number]
        if partition.local.log.end_offset:
            return None
        done = append(protocol, partition, ACKS_ALL, Batch(1, payload=0))
        assert done.answer is not None, "a lone leader commits at once"
        one, other = state.partitions
        after = (done.partition, other) if number == 0 else (one, done.partition)
        constraints = (equals(f"{PRODUCED}.error_code", done.answer.error.value), *stored_at(done.answer, partition))
        request = produce(ACKS_ALL, batch(BatchShape()), partition=number)
        exchange = Exchange(request, "appended", constraints=constraints, retried=NOT_READY, client="B")
        return MoveResult(state._replace(partitions=after), exchange)

    return Move(f"produce-to-{number}", f"another client produces to partition {number}", handle_produce, PROMISE, take)


def _fetch(name: str, words: str, named: tuple[int, ...], forgotten: tuple[int, ...] = ()) -> Move:
    begins = name == "begin"

    def take(protocol: BrokerProtocol, state: ForgettingState) -> MoveResult | None:
        known = dict(state.sent)
        if begins != (state.epoch == 0) or state.epoch > MOST_FETCHES or not set(forgotten) <= known.keys():
            return None
        known = {one: sent for one, sent in known.items() if one not in forgotten} | dict.fromkeys(named, NOTHING_SENT)
        if not known or (named and not begins and set(named) <= dict(state.sent).keys()):
            return None
        answers = {one: _read(protocol, state.partitions[one]) for one in sorted(known)}
        told = [one for one, answer in answers.items() if begins or _is_news(known[one], answer)]
        constraints: list[Constraint] = [equals("error_code", 0)]
        constraints.append(NotEmpty("session_id") if begins else equals("session_id", SESSION))
        constraints.append(equals("responses[#]", int(bool(told))))
        if told:
            constraints.append(equals("responses[0].partitions[#]", len(told)))
        if len(told) == 1:
            constraints += [
                equals("responses[0].partitions[0].partition_index", told[0]),
                *fetch_constraints(answers[told[0]]),
            ]
        for one in told:
            answer = answers[one]
            known[one] = after_sending(answer.error, answer.high_watermark, answer.log_start_offset)
        after = state._replace(sent=tuple(sorted(known.items())), epoch=state.epoch + 1)
        sent = _request(named, forgotten, state.epoch)
        kept = (("session_id", "session_id"),) if begins else ()
        outcome = f"news of {' and '.join(map(str, told)) or 'none'}"
        return MoveResult(after, Exchange(sent, outcome, constraints=tuple(constraints), kept=kept))

    return Move(f"session.{name}", words, is_news, PROMISE, take)


def _is_news(sent: SentPartition, answer: FetchResponse) -> bool:
    return is_news(sent, answer.error, bool(answer.records), False, answer.high_watermark, answer.log_start_offset)


def _request(named: tuple[int, ...], forgotten: tuple[int, ...], epoch: int) -> Any:
    sent = fetch(0, versions=since(7))
    (topic,) = sent.fields["topics"]
    (asked,) = topic["partitions"]
    topics = [{**topic, "partitions": [{**asked, "partition": one} for one in named]}] if named else []
    gone = [{"topic": TOPIC, "topic_id": TOPIC_ID, "partitions": list(forgotten)}] if forgotten else []
    own = {"session_id": SESSION if epoch else 0, "session_epoch": epoch, "topics": topics, "forgotten_topics_data": gone}
    return sent._replace(fields={**sent.fields, **own})


FORGETTING = Subject(
    "forgetting",
    "partitions that a fetch session forgets, and that are named again",
    ForgettingState(),
    (
        _produce(0),
        _produce(1),
        _fetch("begin", "begin a session of two partitions", (0, 1)),
        _fetch("next", "go on with the session", ()),
        _fetch("forget-0", "go on without partition 0", (), (0,)),
        _fetch("forget-1", "go on without partition 1", (), (1,)),
        _fetch("name-0", "go on, with partition 0 again", (0,)),
    ),
    lambda state, holes: (create_topic(TOPIC, partitions=2), look_up_topic(), wait_for_leader(), wait_for_leader(1)),
    {"partitions": 2, "fetches": MOST_FETCHES + 1},
)
