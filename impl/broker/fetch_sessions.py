"""The fetch sessions that this broker keeps. What a session may do is decided by `spec.broker.clients.fetch_sessions`."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from impl.broker.calls import Call
from impl.broker.replica import Place
from impl.wire.values import Message
from spec.broker.clients.fetch_sessions import (
    NO_SESSION,
    NOTHING_SENT,
    FetchContext,
    SentPartition,
    after_sending,
    check_session,
    context_of,
    is_news,
    may_evict,
    next_session_epoch,
)
from spec.broker.rules.divergence import is_diverging
from spec.messages.fetch import FetchResponse
from spec.values import Error

LEAST_AGE_MS = 120_000
"""Kafka: `KafkaBroker.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`."""

GREATEST_ID = 2**31 - 1


class Wanted(NamedTuple):
    """One partition of a fetch, as the client asked for it. It is named by name or by id, by the version of the request."""

    topic: str
    topic_id: bytes
    partition: int
    leader_epoch: int
    offset: int
    last_epoch: int
    start_offset: int
    max_bytes: int

    @property
    def key(self) -> Place:
        """The partition by name, if the request has names."""
        return Place(self.topic, self.partition)


Key = tuple[Any, int]


@dataclass(slots=True)
class Session:
    """What a client does not have to repeat: its partitions, and what it has been told of each."""

    session_id: int
    epoch: int
    uses_topic_ids: bool
    last_used: int
    partitions: dict[Key, Wanted]
    sent: dict[Key, SentPartition]


class Read(Protocol):
    """One partition's part of an answer, as far as a session looks at it."""

    @property
    def wanted(self) -> Wanted:
        """What was asked."""

    @property
    def answer(self) -> FetchResponse:
        """What `spec` answers."""

    @property
    def size(self) -> int:
        """The bytes of its records."""


ReadT = TypeVar("ReadT", bound=Read)


class FetchSessions:
    """All sessions, at most `slots`. Kafka: `FetchSessionCache`, `FetchManager`."""

    def __init__(self, slots: int, random_id: Callable[[], int] | None = None) -> None:
        self._slots = slots
        self._sessions: dict[int, Session] = {}
        self._random_id = random_id or (lambda: random.randint(1, GREATEST_ID))

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, call: Call, now: int) -> tuple[Error, list[Wanted]]:
        """The partitions that a fetch asks for, those of its session included, or the error of the whole request."""
        request = call.message
        uses_topic_ids = call.version >= 13
        context = context_of(request.session_epoch)
        named = {_key(one, uses_topic_ids): one for one in _named(request)} if request.topics else {}
        if context != FetchContext.INCREMENTAL:
            self._sessions.pop(request.session_id, None)
            if context == FetchContext.FULL and named:
                self._open(call, named, uses_topic_ids, now)
            return Error.NONE, list(named.values())
        session = self._sessions.get(request.session_id)
        known = (session.epoch, session.uses_topic_ids) if session is not None else (None, False)
        error = check_session(known[0], request.session_epoch, uses_topic_ids, known[1])
        if session is None or error != Error.NONE:
            return error, []
        self._continue(call, session, named, now)
        return Error.NONE, list(session.partitions.values())

    def _open(self, call: Call, named: dict[Key, Wanted], uses_topic_ids: bool, now: int) -> None:
        if len(self._sessions) >= self._slots and not self._evict(len(named), now):
            return
        session_id = self._random_id()
        while session_id in self._sessions:
            session_id = self._random_id()
        session = Session(session_id, next_session_epoch(0), uses_topic_ids, now, named, {})
        self._sessions[session_id] = call.session = session

    def _evict(self, new_size: int, now: int) -> bool:
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used)
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        for one in (oldest, smallest):
            if may_evict(one.last_used, len(one.partitions), now, LEAST_AGE_MS, new_size):
                del self._sessions[one.session_id]
                return True
        return False

    def _continue(self, call: Call, session: Session, named: dict[Key, Wanted], now: int) -> None:
        for topic in call.message.forgotten_topics_data:
            for index in topic.partitions:
                key = (bytes(topic.topic_id) if session.uses_topic_ids else topic.topic, index)
                session.partitions.pop(key, None)
                session.sent.pop(key, None)
        session.partitions.update(named)
        session.last_used = now
        session.epoch = next_session_epoch(session.epoch)
        if session.partitions:
            call.session = session
        else:
            del self._sessions[session.session_id]

    def finish(self, call: Call, reads: list[ReadT]) -> tuple[int, list[ReadT]]:
        """The session id of the answer, and the partitions that it names."""
        session: Session | None = call.session
        if session is None:
            return NO_SESSION, reads
        incremental = context_of(call.message.session_epoch) == FetchContext.INCREMENTAL
        told = []
        for read in reads:
            key, found = _key(read.wanted, session.uses_topic_ids), read.answer
            news = is_news(
                session.sent.get(key, NOTHING_SENT),
                found.error,
                read.size > 0,
                is_diverging(found),
                found.high_watermark,
                found.log_start_offset,
            )
            if news or not incremental:
                session.sent[key] = after_sending(found.error, found.high_watermark, found.log_start_offset)
                told.append(read)
            if read.size and incremental and key in session.partitions:
                session.partitions[key] = session.partitions.pop(key)
        return session.session_id, told


def _key(wanted: Wanted, uses_topic_ids: bool) -> Key:
    return (wanted.topic_id if uses_topic_ids else wanted.topic, wanted.partition)


def _named(request: Message) -> list[Wanted]:
    return [
        Wanted(
            topic.topic,
            bytes(topic.topic_id),
            one.partition,
            one.current_leader_epoch,
            one.fetch_offset,
            one.last_fetched_epoch,
            one.log_start_offset,
            one.partition_max_bytes,
        )
        for topic in request.topics
        for one in topic.partitions
    ]
