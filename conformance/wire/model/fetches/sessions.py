"""Incremental fetch sessions: one client with one partition (KIP-227)."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, Exchange, Hole, NotEmpty, RequestFields, equals
from kspec.conformance.wire.model.batches import BatchShape, batch
from kspec.conformance.wire.model.partition import LogState, append, broker, keeps_records, led_partition, topic_ready
from kspec.conformance.wire.model.reading.fetching import fetch_constraints
from kspec.conformance.wire.model.reading.logs import ALL_RECORDS, delete_move
from kspec.conformance.wire.model.requests import PRODUCED, fetch, produce
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import FOREVER, Versions
from kspec.spec.broker.clients.fetch_sessions import (
    FIRST_EPOCH,
    LAST_EPOCH,
    NO_SESSION,
    NOTHING_SENT,
    FetchContext,
    SentPartition,
    after_sending,
    check_session,
    context_of,
    is_news,
    next_session_epoch,
)
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.log.batch import Batch
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import NO_EPOCH, Error, Offset

PROMISE = "a client that names its partitions once misses no news of them, and a client that is out of step is told so"
MOST_RECORDS, MOST_FETCHES = 2, 4
BY_NAME, BY_ID = Versions(7, 12), Versions(13, FOREVER)
SESSION = Hole("session_id")


class SessionModel(NamedTuple):
    """The broker's state: the epoch that it expects, where the client reads, and what the client has been told."""

    epoch: int
    by_id: bool
    offset: Offset
    sent: SentPartition


class SessionState(NamedTuple):
    """The partition and the session, if there is one. `had_one`: the client knows an id that was given to it."""

    log: LogState
    session: SessionModel | None = None
    had_one: bool = False


def _read(protocol: BrokerProtocol, state: SessionState, offset: Offset) -> FetchResponse:
    request = FetchRequest(CONSUMER, FetchPosition(NO_EPOCH, offset, NO_EPOCH), has_client_metadata=True)
    return read_partition(broker(protocol), state.log.partition, request)


def _ask(offset: int | None, session_id: Any, epoch: int, by_id: bool) -> RequestFields:
    """A fetch in a session: of the partition from an offset on, or of what the session has."""
    request = fetch(offset or 0, versions=BY_ID if by_id else BY_NAME, session_id=session_id, session_epoch=epoch)
    if offset is None:
        return request._replace(fields={**request.fields, "topics": []})
    return request


def _told(session: SessionModel, answer: FetchResponse) -> SessionModel:
    sent = after_sending(answer.error, answer.high_watermark, answer.log_start_offset)
    return session._replace(sent=sent)


def _begin(name: str, words: str, epoch: int, by_id: bool, again: bool) -> Move:
    """A fetch that names its partition: it begins a session, or wants none. It ends the session that it names."""

    def take(protocol: BrokerProtocol, state: SessionState) -> MoveResult | None:
        if again != (state.session is not None):
            return None
        offset = state.log.partition.local.log.end_offset
        answer = _read(protocol, state, offset)
        kept: tuple[tuple[str, str], ...] = ()
        opens = context_of(epoch) == FetchContext.FULL
        session = SessionModel(next_session_epoch(FIRST_EPOCH), by_id, offset, NOTHING_SENT) if opens else None
        given: Constraint = equals("session_id", NO_SESSION)
        if session is not None:
            session, kept, given = _told(session, answer), (("session_id", "session_id"),), NotEmpty("session_id")
        constraints = (equals("error_code", 0), given, *fetch_constraints(answer))
        request = _ask(offset, SESSION if again else NO_SESSION, epoch, by_id)
        exchange = Exchange(request, "a session" if opens else "no session", constraints=constraints, kept=kept)
        return MoveResult(SessionState(state.log, session, state.had_one or opens), exchange)

    return Move(f"session.{name}", words, context_of, PROMISE, take)


class SessionStep(NamedTuple):
    """A client's next fetch: which id it names, how far its epoch is from the expected one, how it names the topic."""

    own_id: bool = True
    ahead: int = 0
    other_naming: bool = False
    moves: bool = False
    """Whether it names the partition again, with the log end for its offset."""


def _go_on(name: str, words: str, how: SessionStep) -> Move:
    def take(protocol: BrokerProtocol, state: SessionState) -> MoveResult | None:
        session = state.session if how.own_id else None
        if how.own_id and not state.had_one:
            return None
        if session is None and (how.ahead or how.other_naming or how.moves):
            return None
        expected = None if session is None else session.epoch
        epoch = (1 if expected is None else expected) + how.ahead
        by_id = (session is not None and session.by_id) != how.other_naming
        if epoch > MOST_FETCHES or context_of(epoch) != FetchContext.INCREMENTAL:
            return None
        error = check_session(expected, epoch, by_id, session is not None and session.by_id)
        offset = state.log.partition.local.log.end_offset if how.moves else None
        request = _ask(offset, SESSION if how.own_id else NO_SESSION, epoch, by_id)
        if session is None or error != Error.NONE:
            constraints = (equals("error_code", error.value), equals("responses[#]", 0))
            return MoveResult(state, Exchange(request, error.name, error, constraints=constraints))
        session = session._replace(epoch=next_session_epoch(epoch), offset=session.offset if offset is None else offset)
        return _news(protocol, state, session, request)

    return Move(f"session.{name}", words, check_session, PROMISE, take)


def _news(protocol: BrokerProtocol, state: SessionState, session: SessionModel, request: RequestFields) -> MoveResult:
    """The answer within a session: it names the partition if there is news of it."""
    answer = _read(protocol, state, session.offset)
    news = is_news(
        session.sent,
        answer.error,
        bool(answer.records),
        is_diverging(answer),
        answer.high_watermark,
        answer.log_start_offset,
    )
    inside = fetch_constraints(answer) if news else ()
    constraints = (equals("error_code", 0), equals("session_id", SESSION), equals("responses[#]", int(news)), *inside)
    after = state._replace(session=_told(session, answer) if news else session)
    moved = answer.log_start_offset != session.sent.log_start_offset
    told = "news of the log start" if moved and answer.high_watermark == session.sent.high_watermark else "news"
    outcome = "records" if answer.records else told if news else "no news"
    return MoveResult(after, Exchange(request, outcome, constraints=constraints))


def _append() -> Move:
    def take(protocol: BrokerProtocol, state: SessionState) -> MoveResult | None:
        if state.log.partition.local.log.end_offset >= MOST_RECORDS:
            return None
        done = append(protocol, state.log.partition, ACKS_ALL, Batch(1, payload=0))
        assert done.answer is not None, "a lone leader commits at once"
        constraints = (equals(f"{PRODUCED}.error_code", done.answer.error.value),)
        exchange = Exchange(produce(ACKS_ALL, batch(BatchShape())), "appended", constraints=constraints, client="B")
        return MoveResult(state._replace(log=state.log._replace(partition=done.partition)), exchange)

    return Move("produce", "another client produces a record", handle_produce, PROMISE, take)


def _delete() -> Move:
    """The start of the log moves, and nothing else does."""

    def take(protocol: BrokerProtocol, state: SessionState) -> MoveResult | None:
        taken: Any = DELETE_ALL.take(protocol, state.log)
        if taken.state == state.log:
            return None
        return MoveResult(state._replace(log=taken.state), taken.exchange._replace(client="B"))

    return DELETE_ALL._replace(name="delete-records", words="another client deletes all records", take=take)


DELETE_ALL = delete_move(*ALL_RECORDS)
SESSIONS = Subject(
    "sessions",
    "fetch sessions: begun, gone on with, ended, and by clients that are out of step",
    SessionState(LogState(led_partition())),
    (
        _append(),
        _delete(),
        _begin("begin", "begin a session", FIRST_EPOCH, by_id=False, again=False),
        _begin("begin-by-id", "begin a session, the topic named by its id", FIRST_EPOCH, by_id=True, again=False),
        _begin("begin-again", "begin another session in place of one's own", FIRST_EPOCH, by_id=False, again=True),
        _begin("without", "fetch without a session", LAST_EPOCH, by_id=False, again=False),
        _begin("end", "end a session", LAST_EPOCH, by_id=False, again=True),
        _go_on("next", "go on with a session", SessionStep()),
        _go_on("next-moved", "go on with a session, from the log end", SessionStep(moves=True)),
        _go_on("ahead", "go on with a session, one epoch ahead", SessionStep(ahead=1)),
        _go_on("behind", "go on with a session, one epoch behind", SessionStep(ahead=-1)),
        _go_on("other-naming", "go on with a session, and name topics otherwise", SessionStep(other_naming=True)),
        _go_on("unknown", "go on with a session that nobody has", SessionStep(own_id=False)),
    ),
    lambda state, holes: topic_ready(keeps_records(state.log), holes),
    {"records": MOST_RECORDS, "fetches": MOST_FETCHES},
    by_release=True,
)
