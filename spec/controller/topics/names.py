"""Names of topics."""

from kspec.spec.topics import TopicsImage
from kspec.spec.values import Error

LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
LONGEST = 249

CLUSTER_METADATA = "__cluster_metadata"
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state"})
"""Topics that Kafka creates for itself. Kafka: `Topic.INTERNAL_TOPICS`."""


def check_metadata_partition(topic: str, partition: int) -> Error:
    """Whether a request about the quorum names the metadata log: partition 0 of its topic.

    Errors: `UNKNOWN_TOPIC_OR_PARTITION`.

    **Kafka:** `RaftUtil.hasValidTopicPartition`, `DescribeQuorumRequest.getPartitionLevelErrorResponse`.
    """
    named = topic == CLUSTER_METADATA and partition == 0
    return Error.NONE if named else Error.UNKNOWN_TOPIC_OR_PARTITION


def wrong_with_name(name: str) -> str | None:
    """The fault of a topic's name, `None` if it has none. **Kafka:** `Topic.validate`."""
    if not name:
        return "a topic name may not be empty"
    if name in (".", ".."):
        return f"a topic name may not be '{name}'"
    if len(name) > LONGEST:
        return f"a topic name has at most {LONGEST} characters, and this one has {len(name)}"
    if not LEGAL.issuperset(name):
        return f"a topic name consists of ASCII letters, digits, '.', '_' and '-', and '{name}' does not"
    return None


def unified(name: str) -> str:
    """The name as metrics show it: they do not tell '.' from '_'. **Kafka:** `Topic.unifyCollisionChars`."""
    return name.replace(".", "_")


def may_collide(name: str) -> bool:
    """Whether another name may look the same in metrics. **Kafka:** `Topic.hasCollisionChars`."""
    return "_" in name or "." in name


def look_alike(topics: TopicsImage, name: str) -> str | None:
    """A topic, this one included, whose name looks the same in metrics, `None` if there is none.

    **Kafka:** `ReplicationControlManager.validateNewTopicNames`, which keeps the names that may collide.
    """
    if not may_collide(name):
        return None
    alike = (one.name for one in topics.by_name if may_collide(one.name) and unified(one.name) == unified(name))
    return next(alike, None)
