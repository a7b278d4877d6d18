"""The rules of fetch sessions in which Kafka's releases differ."""

from collections.abc import Callable
from dataclasses import dataclass

from kspec.spec.broker.clients.fetch_sessions import SentPartition
from kspec.spec.values import Error, MonotonicMs, Offset


@dataclass(frozen=True, slots=True)
class SessionProtocol:
    """The rules of incremental fetch sessions of one release. `spec.releases.fetch_sessions` has the releases."""

    name: str

    check_session: Callable[[int | None, int, bool, bool], Error]
    """Whether a session goes on with a request."""

    is_news: Callable[[SentPartition, Error, bool, bool, Offset, Offset], bool]
    """Whether an answer has to name a partition."""

    goes_last: Callable[[bool, bool], bool]
    """Whether a partition that a request names goes to the end of the session."""

    used: Callable[[MonotonicMs, bool, MonotonicMs], MonotonicMs]
    """The time at which a session counts as used last."""
