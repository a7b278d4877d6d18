"""Incremental fetch sessions (KIP-227): a client names its partitions once, and then only what has changed."""

from enum import Enum
from typing import NamedTuple

from spec.values import UNKNOWN_OFFSET, Error, Offset

NO_SESSION = 0
"""The session id of a fetch outside any session. Kafka: `FetchMetadata.INVALID_SESSION_ID`."""

FIRST_EPOCH = 0
"""The session epoch of a request that wants a new session. Kafka: `FetchMetadata.INITIAL_EPOCH`."""

LAST_EPOCH = -1
"""The session epoch of a request that wants none. Kafka: `FetchMetadata.FINAL_EPOCH`."""

GREATEST_EPOCH = 2**31 - 1


class FetchContext(Enum):
    """What a fetch is, with regard to sessions. Kafka: the subclasses of `FetchContext`."""

    SESSIONLESS = "all partitions are named, and no session is kept"
    FULL = "all partitions are named, and a session may begin"
    INCREMENTAL = "a session goes on"


def context_of(session_epoch: int) -> FetchContext:
    """What a fetch with this session epoch is. **Kafka:** `FetchManager.newContext`, `FetchMetadata.isFull`."""
    if session_epoch == LAST_EPOCH:
        return FetchContext.SESSIONLESS
    return FetchContext.FULL if session_epoch == FIRST_EPOCH else FetchContext.INCREMENTAL


def check_session(known_epoch: int | None, session_epoch: int, uses_topic_ids: bool, session_uses_topic_ids: bool) -> Error:
    """Whether a session goes on with a request.

    Parameters: the epoch that the session expects, `None` if there is no such session; the request's; whether request and
    session name topics by id.

    Errors: `FETCH_SESSION_ID_NOT_FOUND`, `INVALID_FETCH_SESSION_EPOCH`, `FETCH_SESSION_TOPIC_ID_ERROR`.

    **Kafka:** `FetchManager.newContext`.
    """
    if known_epoch is None:
        return Error.FETCH_SESSION_ID_NOT_FOUND
    if known_epoch != session_epoch:
        return Error.INVALID_FETCH_SESSION_EPOCH
    return Error.NONE if uses_topic_ids == session_uses_topic_ids else Error.FETCH_SESSION_TOPIC_ID_ERROR


def next_session_epoch(session_epoch: int) -> int:
    """The epoch that the next request of a session must have; 1 follows the greatest.

    **Kafka:** `FetchMetadata.nextEpoch`.
    """
    if session_epoch == LAST_EPOCH:
        return LAST_EPOCH
    return 1 if session_epoch == GREATEST_EPOCH else session_epoch + 1


class SentPartition(NamedTuple):
    """What a session has told its client about a partition. Kafka: `CachedPartition`."""

    high_watermark: Offset = UNKNOWN_OFFSET
    log_start_offset: Offset = UNKNOWN_OFFSET


NOTHING_SENT = SentPartition()


def is_news(
    sent: SentPartition, error: Error, has_records: bool, diverging: bool, high_watermark: Offset, log_start_offset: Offset
) -> bool:
    """Whether an incremental answer has to name a partition: records, an error, a divergence, or an offset that has moved.

    Parameters: what the client knows; the partition's answer.

    **Kafka:** `CachedPartition.maybeUpdateResponseData`. **Leaves out:** preferred read replicas.
    """
    moved = (high_watermark, log_start_offset) != (sent.high_watermark, sent.log_start_offset)
    return has_records or diverging or moved or error != Error.NONE


def after_sending(error: Error, high_watermark: Offset, log_start_offset: Offset) -> SentPartition:
    """What the client knows once it has the answer; after an error it is told again in any case.

    **Kafka:** `CachedPartition.maybeUpdateResponseData`.
    """
    return SentPartition(UNKNOWN_OFFSET if error != Error.NONE else high_watermark, log_start_offset)


def may_evict(last_used: int, size: int, now: int, least_age: int, new_size: int) -> bool:
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
