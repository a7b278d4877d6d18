"""The history of fetch sessions (KIP-227): each release is the one before with some rules replaced.

A release is Kafka's x.y.0, and is listed where a rule changed in it. See `docs/rules-by-release.md`. No model runs them; a
broker has those of its release.
"""

from dataclasses import replace

from kspec.spec.broker.clients import fetch_sessions
from kspec.spec.broker.clients.session_protocol import SessionProtocol

SESSIONS_1_1 = SessionProtocol(
    name="1.1",
    check_session=fetch_sessions.check_session_epoch,
    is_news=fetch_sessions.is_news_without_divergence,
    goes_last=fetch_sessions.goes_last_with_news,
    used=fetch_sessions.used_at_start,
)
"""1.1: the first fetch sessions."""

SESSIONS_2_5 = replace(SESSIONS_1_1, name="2.5", used=fetch_sessions.used_now)
"""A session that is used stays (KAFKA-9137)."""

SESSIONS_2_7 = replace(SESSIONS_2_5, name="2.7", is_news=fetch_sessions.is_news)
"""A divergence is news (KIP-595)."""

SESSIONS_3_0 = replace(SESSIONS_2_7, name="3.0", goes_last=fetch_sessions.goes_last)
"""Partitions with records take turns (KAFKA-12330)."""

SESSIONS_3_1 = replace(SESSIONS_3_0, name="3.1", check_session=fetch_sessions.check_session)
"""Sessions by topic ids (KIP-516, KAFKA-13111)."""

NEWEST = SESSIONS_3_1
"""The rules of the newest release."""

SESSION_RELEASES: tuple[SessionProtocol, ...] = tuple(
    release for name, release in vars().items() if name.startswith("SESSIONS_")
)
"""The releases above, the oldest first."""
