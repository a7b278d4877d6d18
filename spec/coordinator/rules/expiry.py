"""In which states of a group with members the offsets of topics that they do not read expire."""


def never_with_members(is_stable: bool, knows_topics: bool) -> bool:
    """While a group has members, nothing expires. **Kafka:** 2.1 to 2.3, `GroupMetadata.removeExpiredOffsets`."""
    return False


def whenever_topics_are_known(is_stable: bool, knows_topics: bool) -> bool:
    """Also during a rebalance: then the topics are those of the generation before (KIP-496, and KAFKA-13636).

    **Kafka:** 2.4 to 3.1.0, `GroupMetadata.removeExpiredOffsets`.
    """
    return knows_topics


def while_stable(is_stable: bool, knows_topics: bool) -> bool:
    """Only in a stable group, whose members' topics are known (KAFKA-13636).

    **Kafka:** from 3.2 on (and 2.8.2, 3.0.1, 3.1.1), `ClassicGroup.offsetExpirationCondition`.
    """
    return is_stable and knows_topics
