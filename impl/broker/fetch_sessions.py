"""The fetch sessions that this broker keeps. What a session may do is decided by `spec.broker.clients.fetch_sessions`.

A session may have thousands of partitions of which most stay as they are. A fetch looks at those of which there is news, and
at no other. A partition has news until it is looked at and the same fetch would be answered the same
(`spec.broker.leader.fetch.repeats`), and again when it changes. Each fetch of a follower also shows its leader that the
follower is alive and has all of such a partition: that is noted before anything else is done with the partition, with the
time of the session's last fetch, as if each fetch had been handled in its time.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

from kspec.impl.broker.calls import Call, DelayedOperation, StoredPartition
from kspec.impl.broker.replica import Replica
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.fetch_sessions import (
    NO_SESSION,
    NOTHING_SENT,
    FetchContext,
    SentPartition,
    after_sending,
    context_of,
    may_evict,
    next_session_epoch,
)
from kspec.spec.broker.partition import Broker
from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.releases.fetch_sessions import NEWEST as RULES
from kspec.spec.topics import TopicPartition
from kspec.spec.values import Error, MonotonicMs

LEAST_AGE_MS = 120_000
"""Kafka: `KafkaBroker.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`."""

GREATEST_ID = 2**31 - 1

NO_WAITING: dict[DelayedOperation, None] = {}
NOT_NOTED = MonotonicMs(0)


class RequestedPartition(NamedTuple):
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
    def key(self) -> TopicPartition:
        """The partition by name, if the request has names."""
        return TopicPartition(self.topic, self.partition)


Key = tuple[str | bytes, int]


@dataclass(slots=True, eq=False)
class FetchedPartition:
    """A partition that a client fetches, once or in a session. It observes the partition for its session."""

    wanted: RequestedPartition
    session: "FetchSession | None" = None
    rank: int = 0
    """Its place in the session: what gave records goes to the end, so that the others have their turn."""
    sent: SentPartition = NOTHING_SENT
    """The partition's state in the last response to the client."""
    request: FetchRequest | None = None
    """The request in the words of `spec`; none until it has been translated."""
    replica: Replica | None = None
    repeats: bool = False
    """Whether the same fetch would be answered the same, by what was seen last."""
    broker: Broker | None = None
    """The broker's rules and settings at the last fetch."""
    noted_ms: MonotonicMs = NOT_NOTED
    """The time of the session's last fetch that its leader has taken note of."""

    @property
    def waiting(self) -> dict[DelayedOperation, None]:
        """The fetches that wait in its session."""
        return NO_WAITING if self.session is None else self.session.waiting

    def changed(self) -> None:
        """There is news of the partition."""
        self.repeats = False
        if self.session is not None:
            self.session.news[self] = None
        if self.replica is not None:
            self.replica.postponed.pop(self, None)

    def found_at(self, replica: Replica | None) -> None:
        """It is this partition of this broker now, or none."""
        if self.replica is not replica and self.session is not None:
            if self.replica is not None:
                self.replica.observers.pop(self, None)
                self.replica.postponed.pop(self, None)
            if replica is not None:
                replica.observers[self] = None
        self.replica = replica

    def is_quiet(self) -> None:
        """No fetch of the session looks at it until it changes."""
        assert self.session is not None
        del self.session.news[self]
        if self.replica is not None and self.broker is not None:
            self.noted_ms = self.session.last_used
            self.replica.postponed[self] = None

    def take_note(self) -> tuple[Broker, FetchRequest, MonotonicMs] | None:
        """The fetch with the time of the session's last one; none if its leader knows of that."""
        assert self.session is not None
        last_used = self.session.last_used
        if self.noted_ms == last_used or self.broker is None or self.request is None:
            return None
        self.noted_ms = last_used
        return self.broker, self.request, last_used

    def leave(self) -> None:
        """Its session does not have it any more."""
        if self.session is not None:
            self.session.news.pop(self, None)
        self.found_at(None)
        self.session = None


@dataclass(slots=True, eq=False)
class FetchSession:
    """The state that spares a client repetition: its partitions, and what it has been told of each."""

    session_id: int
    epoch: int
    uses_topic_ids: bool
    last_used: MonotonicMs
    terms: object
    """The common fields of all its requests so far, and the broker's registrations of others."""
    partitions: dict[Key, FetchedPartition] = field(default_factory=dict)
    news: dict[FetchedPartition, None] = field(default_factory=dict)
    """The partitions that the next fetch looks at."""
    waiting: dict[DelayedOperation, None] = field(default_factory=dict)
    """The fetches that wait for more to read."""
    ranks: int = 0

    def next_rank(self) -> int:
        """The place at the end."""
        self.ranks += 1
        return self.ranks

    def put(self, key: Key, wanted: RequestedPartition) -> None:
        """The client wants this of a partition from now on."""
        known = self.partitions.get(key)
        if known is None:
            known = self.partitions[key] = FetchedPartition(wanted, self, self.next_rank())
        known.wanted, known.request = wanted, None
        known.changed()

    def at(self, replica: StoredPartition) -> FetchedPartition | None:
        """A partition of the session."""
        place = replica.place
        return self.partitions.get((replica.topic_id if self.uses_topic_ids else place.topic, place.partition))

    def in_order(self) -> list[FetchedPartition]:
        """The partitions of which there is news, in the order of the session."""
        return sorted(self.news, key=attrgetter("rank"))


class ClientFetch(NamedTuple):
    """A client's fetch: its request, its session if it has one, and the partitions that it looks at first."""

    call: Call
    session: FetchSession | None
    asked: list[FetchedPartition]

    @property
    def partitions(self) -> list[FetchedPartition]:
        """The partitions that the answer is about now: in a session those of which there is news."""
        return self.asked if self.session is None else self.session.in_order()


class PartitionRead(Protocol):
    """One partition's part of an answer, as far as a session looks at it."""

    @property
    def fetched(self) -> FetchedPartition:
        """The partition that was asked for."""

    @property
    def answer(self) -> FetchResponse:
        """The answer of `spec`."""

    @property
    def size(self) -> int:
        """The bytes of its records."""


ReadT = TypeVar("ReadT", bound=PartitionRead)


class FetchSessions:
    """All sessions, at most `slots`. Kafka: `FetchSessionCache`, `FetchManager`.

    `before_change`: called before a partition of a session is asked for otherwise, or leaves: what was postponed is handled.
    """

    def __init__(
        self,
        slots: int,
        random_id: Callable[[], int] | None = None,
        before_change: Callable[[Replica], None] = lambda replica: None,
    ) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}
        self._random_id = random_id or (lambda: random.randint(1, GREATEST_ID))
        self._before_change = before_change

    def __len__(self) -> int:
        return len(self._sessions)

    def disturbed_by(self, call: Call) -> list[DelayedOperation]:
        """The fetches that wait in the session that a request goes on with or ends: they are answered before."""
        session = self._sessions.get(call.message.session_id)
        return [] if session is None else list(session.waiting)

    def begin(self, call: Call, terms: object, now: MonotonicMs) -> tuple[Error, "ClientFetch"]:
        """The session of a fetch, and the partitions that it looks at: those of which there is news. Or the error of it all.

        Parameters: `terms`, on which all answers depend: with other ones all partitions of the session are looked at.
        """
        request = call.message
        uses_topic_ids = call.version >= 13
        context = context_of(request.session_epoch)
        named = {_key(one, uses_topic_ids): one for one in _named(request)} if request.topics else {}
        if context != FetchContext.INCREMENTAL:
            ended = self._sessions.pop(request.session_id, None)
            if ended is not None:
                self._end(ended)
            if context == FetchContext.FULL and named and self._has_room(len(named), now):
                return Error.NONE, self._open(call, named, uses_topic_ids, terms, now)
            return Error.NONE, ClientFetch(call, None, [FetchedPartition(one) for one in named.values()])
        session = self._sessions.get(request.session_id)
        known = (session.epoch, session.uses_topic_ids) if session is not None else (None, False)
        error = RULES.check_session(known[0], request.session_epoch, uses_topic_ids, known[1])
        if session is None or error != Error.NONE:
            return error, ClientFetch(call, None, [])
        return Error.NONE, self._continue(call, session, named, terms, now)

    def _open(
        self, call: Call, named: dict[Key, RequestedPartition], uses_topic_ids: bool, terms: object, now: MonotonicMs
    ) -> "ClientFetch":
        session_id = self._random_id()
        while session_id in self._sessions:
            session_id = self._random_id()
        session = FetchSession(session_id, next_session_epoch(0), uses_topic_ids, now, terms)
        for key, wanted in named.items():
            session.put(key, wanted)
        self._sessions[session_id] = session
        return ClientFetch(call, session, session.in_order())

    def _has_room(self, new_size: int, now: MonotonicMs) -> bool:
        """Whether a session may begin; another one goes for it if it must and may."""
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used)
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        for one in (oldest, smallest):
            if may_evict(one.last_used, len(one.partitions), now, LEAST_AGE_MS, new_size):
                self._end(self._sessions.pop(one.session_id))
                return True
        return False

    def _end(self, session: FetchSession) -> None:
        for one in session.partitions.values():
            self._settle(one)
            one.leave()

    def _settle(self, one: FetchedPartition) -> None:
        """Postponed work on a partition is done now."""
        if one.replica is not None and one in one.replica.postponed:
            self._before_change(one.replica)

    def _continue(
        self, call: Call, session: FetchSession, named: dict[Key, RequestedPartition], terms: object, now: MonotonicMs
    ) -> "ClientFetch":
        size_before = len(session.partitions)
        for topic in call.message.forgotten_topics_data:
            for index in topic.partitions:
                key = (bytes(topic.topic_id) if session.uses_topic_ids else topic.topic, index)
                gone = session.partitions.pop(key, None)
                if gone is not None:
                    self._settle(gone)
                    gone.leave()
        if session.terms != terms:
            session.terms = terms
            for one in session.partitions.values():
                self._settle(one)
                one.request = None
                one.changed()
        for key, wanted in named.items():
            if key in session.partitions:
                self._settle(session.partitions[key])
            session.put(key, wanted)
        session.last_used = RULES.used(session.last_used, len(session.partitions) != size_before, now)
        session.epoch = next_session_epoch(session.epoch)
        if session.partitions:
            return ClientFetch(call, session, session.in_order())
        del self._sessions[session.session_id]
        return ClientFetch(call, None, [])

    def finish(self, fetch: "ClientFetch", reads: list[ReadT]) -> tuple[int, list[ReadT]]:
        """The session id of the answer, and the partitions that it names."""
        session = fetch.session
        if session is None:
            return NO_SESSION, reads
        incremental = context_of(fetch.call.message.session_epoch) == FetchContext.INCREMENTAL
        told = []
        for read in reads:
            one, found = read.fetched, read.answer
            news = RULES.is_news(
                one.sent,
                found.error,
                read.size > 0,
                is_diverging(found),
                found.high_watermark,
                found.log_start_offset,
            )
            if news or not incremental:
                one.sent = after_sending(found.error, found.high_watermark, found.log_start_offset)
                told.append(read)
            if one.session is not session:  # ended meanwhile
                continue
            if incremental and RULES.goes_last(news, read.size > 0):
                one.rank = session.next_rank()
            if one.repeats and not read.size and one in session.news:
                one.is_quiet()
        return session.session_id, told


def _key(wanted: RequestedPartition, uses_topic_ids: bool) -> Key:
    return (wanted.topic_id if uses_topic_ids else wanted.topic, wanted.partition)


def _named(request: Message) -> list[RequestedPartition]:
    return [
        RequestedPartition(
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
