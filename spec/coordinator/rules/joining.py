"""Choices of a coordinator at the JoinGroup of a member that it knows: time-outs, and whether the group stays stable."""


def keep_timeout(known_ms: int, asked_ms: int) -> int:
    """A member keeps the time-outs with which it came first. **Kafka:** up to 3.3.1, `GroupMetadata.updateMember`."""
    return known_ms


def take_timeout(known_ms: int, asked_ms: int) -> int:
    """A member has the time-outs that it asked for last (KAFKA-14009).

    **Kafka:** from 3.4 on (and 3.3.2), `ClassicGroup.updateMember`.
    """
    return asked_ms


def stays_with_protocol(same_protocol: bool, same_topics: bool) -> bool:
    """A static member that starts again leaves a stable group as it is, if the protocol stays; so topics that it has begun
    to read are given to nobody (KAFKA-12759).

    **Kafka:** up to 4.4, `GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin`.
    """
    return same_protocol


def stays_with_topics(same_protocol: bool, same_topics: bool) -> bool:
    """Only if it reads the same topics as before. **Kafka:** in no release yet (KAFKA-12759)."""
    return same_protocol and same_topics
