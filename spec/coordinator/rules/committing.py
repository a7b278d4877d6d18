"""Commits to an empty group without a generation: from consumers that assign partitions to themselves."""


def if_unnamed(names_member: bool) -> bool:
    """A commit that names a member or an instance has to come from one (KAFKA-14201).

    **Kafka:** up to 3.2, `GroupCoordinator.validateOffsetCommit`.
    """
    return not names_member


def also_if_named(names_member: bool) -> bool:
    """Names are not looked at. **Kafka:** from 3.3 on, `ClassicGroup.validateOffsetCommit`."""
    return True
