"""The generations of a group, and who is in one."""


def is_present_generation(asked: int, present: int) -> bool:
    """Whether a request names the generation that the group is in. **Kafka:** `ClassicGroup.generationId`."""
    return asked == present


def following_generation(generation: int) -> int:
    """The number of the generation that begins. **Kafka:** `ClassicGroup.initNextGeneration`."""
    return generation + 1


def is_left_behind(has_joined: bool, is_static: bool) -> bool:
    """Whether a member is out when the joining ends. A static one stays without having joined.

    **Kafka:** `GroupMetadataManager.completeClassicGroupJoin`, `ClassicGroup.allDynamicMembersNotYetRejoined`.
    """
    return not has_joined and not is_static


def is_heard(waits: bool, is_new: bool) -> bool:
    """Whether a member whose session ends counts as alive, since it waits for an answer; a new one never does.

    **Kafka:** `ClassicGroupMember.hasSatisfiedHeartbeat`.
    """
    return waits and not is_new


def may_commit(completing: bool) -> bool:
    """Whether a member of the generation may commit offsets: not before the generation has its assignment.

    **Kafka:** `ClassicGroup.validateOffsetCommit`.
    """
    return not completing
