"""Incremental fetch sessions (KIP-227): a client names its partitions once, and then only what has changed."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.values import UNKNOWN_OFFSET, Error, MonotonicMs, Offset

NO_SESSION = 0
"""The session id of a fetch outside any session. Kafka: `FetchMetadata.INVALID_SESSION_ID`."""

FIRST_EPOCH = 0
"""The session epoch of a request that wants a new session. Kafka: `FetchMetadata.INITIAL_EPOCH`."""

LAST_EPOCH = -1
"""The session epoch of a request that wants none. Kafka: `FetchMetadata.FINAL_EPOCH`."""

GREATEST_EPOCH = 2**31 - 1


class FetchContext(Enum):
    """The kind of a fetch with regard to sessions. Kafka: the subclasses of `FetchContext`."""

    SESSIONLESS = "all partitions are named, and no session is kept"
    FULL = "all partitions are named, and a session may begin"
    INCREMENTAL = "a session goes on"


def context_of(session_epoch: int) -> FetchContext:
    """The kind of a fetch with this session epoch. **Kafka:** `FetchManager.newContext`, `FetchMetadata.isFull`."""
    if session_epoch == LAST_EPOCH:
        return FetchContext.SESSIONLESS
    return FetchContext.FULL if session_epoch == FIRST_EPOCH else FetchContext.INCREMENTAL


def check_session(known_epoch: int | None, session_epoch: int, uses_topic_ids: bool, session_uses_topic_ids: bool) -> Error:
    """Whether a session goes on with a request.

    Parameters: the epoch that the session expects, `None` if there is no such session; the request's; whether request and
    session name topics by id.

    Errors: `FETCH_SESSION_ID_NOT_FOUND`, `INVALID_FETCH_SESSION_EPOCH`, `FETCH_SESSION_TOPIC_ID_ERROR`.

    **Kafka:** `FetchManager.newContext`, since 3.1 (KAFKA-13111).
    """
    error = check_session_epoch(known_epoch, session_epoch, uses_topic_ids, session_uses_topic_ids)
    if error != Error.NONE:
        return error
    return Error.NONE if uses_topic_ids == session_uses_topic_ids else Error.FETCH_SESSION_TOPIC_ID_ERROR


def check_session_epoch(
    known_epoch: int | None, session_epoch: int, uses_topic_ids: bool, session_uses_topic_ids: bool
) -> Error:
    """As `check_session`, where all requests name topics by name. **Kafka:** `FetchManager.newContext` up to 3.0."""
    if known_epoch is None:
        return Error.FETCH_SESSION_ID_NOT_FOUND
    return Error.NONE if known_epoch == session_epoch else Error.INVALID_FETCH_SESSION_EPOCH


def next_session_epoch(session_epoch: int) -> int:
    """The epoch that the next request of a session must have; 1 follows the greatest.

    **Kafka:** `FetchMetadata.nextEpoch`.
    """
    if session_epoch == LAST_EPOCH:
        return LAST_EPOCH
    return 1 if session_epoch == GREATEST_EPOCH else session_epoch + 1


class SentPartition(NamedTuple):
    """The offsets of a partition that a session has last sent to its client. Kafka: `CachedPartition`."""

    high_watermark: Offset = UNKNOWN_OFFSET
    log_start_offset: Offset = UNKNOWN_OFFSET


NOTHING_SENT = SentPartition()


def is_news(
    sent: SentPartition, error: Error, has_records: bool, diverging: bool, high_watermark: Offset, log_start_offset: Offset
) -> bool:
    """Whether an incremental answer has to name a partition: records, an error, a divergence, or an offset that has moved.

    Parameters: what the client knows; the partition's answer.

    **Kafka:** `CachedPartition.maybeUpdateResponseData`, since 2.7. **Leaves out:** preferred read replicas, news since 2.4.
    """
    return diverging or is_news_without_divergence(sent, error, has_records, diverging, high_watermark, log_start_offset)


def is_news_without_divergence(
    sent: SentPartition, error: Error, has_records: bool, diverging: bool, high_watermark: Offset, log_start_offset: Offset
) -> bool:
    """As `is_news`, where no answer says that logs diverge.

    **Kafka:** `CachedPartition.maybeUpdateResponseData` up to 2.6.
    """
    moved = (high_watermark, log_start_offset) != (sent.high_watermark, sent.log_start_offset)
    return has_records or moved or error != Error.NONE


def after_sending(error: Error, high_watermark: Offset, log_start_offset: Offset) -> SentPartition:
    """The offsets that the client has once it has the answer; after an error they are sent again in any case.

    **Kafka:** `CachedPartition.maybeUpdateResponseData`.
    """
    return SentPartition(UNKNOWN_OFFSET if error != Error.NONE else high_watermark, log_start_offset)


def goes_last(news: bool, has_records: bool) -> bool:
    """Whether a partition goes to the end of its session, behind those that had less: if it had records.

    **Kafka:** `IncrementalFetchContext.PartitionIterator` (KAFKA-12330, since 3.0).
    """
    return has_records


def goes_last_with_news(news: bool, has_records: bool) -> bool:
    """As `goes_last`, but with any news: where answers are full, other partitions may starve.

    **Kafka:** `IncrementalFetchContext.PartitionIterator` up to 2.8.
    """
    return news


def used_now(last_used: MonotonicMs, resized: bool, now: MonotonicMs) -> MonotonicMs:
    """The time at which a session counts as used last, once a request goes on with it: now. All times are in ms.

    Parameters: when it was used last before; whether the request has changed its number of partitions; the time.

    **Kafka:** `FetchManager.newContext`, `FetchSessionCache.touch`, since 2.5 (KAFKA-9137).
    """
    return now


def used_at_start(last_used: MonotonicMs, resized: bool, now: MonotonicMs) -> MonotonicMs:
    """As `used_now`, but as before: a session in use counts as idle, and is dropped when the cache is full.

    **Kafka:** `FetchManager.newContext`, up to 2.4: `touch` with the session's own `lastUsedMs`.
    """
    return last_used


def may_evict(last_used: MonotonicMs, size: int, now: MonotonicMs, least_age: int, new_size: int) -> bool:
    """Whether a full cache drops a session for a new one: if it is idle for long, or smaller than the new one.

    Parameters: when the session was last used (ms), and how many partitions it has; the time; `least_age`, the idle time
    that is long (ms); the partitions of the new session.

    **Kafka:** `FetchSessionCacheShard.tryEvict`. **Leaves out:** that sessions of followers go before those of consumers.
    """
    return now - last_used > least_age or size < new_size


# ---- the side that fetches


class ClientSession(NamedTuple):
    """The session of a follower or consumer with one broker, as its next request will name it. Kafka: `FetchMetadata`."""

    session_id: int = NO_SESSION
    epoch: int = FIRST_EPOCH


def after_answer(session: ClientSession, error: Error, session_id: int) -> ClientSession:
    """The session after an answer with an error, or with this session id.

    After an error the next request names all partitions again. It names the old session too, so that the broker forgets it.

    **Kafka:** `FetchSessionHandler.handleResponse`.
    """
    if error == Error.FETCH_SESSION_ID_NOT_FOUND:
        return ClientSession()
    if error != Error.NONE:
        return session._replace(epoch=FIRST_EPOCH)
    if session_id == NO_SESSION:
        return ClientSession()
    return ClientSession(session_id, next_session_epoch(session.epoch))


def after_no_answer(session: ClientSession) -> ClientSession:
    """The session when no answer came: nobody knows whether the request arrived.

    **Kafka:** `FetchSessionHandler.handleError`.
    """
    return session._replace(epoch=FIRST_EPOCH)


def waits_after(error: Error) -> bool:
    """Whether a follower waits before it fetches again, after an answer with an error about the whole request.

    A session that has ended is begun anew at once.

    **Kafka:** `RemoteLeaderEndPoint.fetch`.
    """
    return error == Error.FETCH_SESSION_TOPIC_ID_ERROR
