"""Names of topics."""

LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
LONGEST = 249

CLUSTER_METADATA = "__cluster_metadata"
CONSUMER_OFFSETS = "__consumer_offsets"
INTERNAL = frozenset({CONSUMER_OFFSETS, "__transaction_state", "__share_group_state"})
"""Topics that Kafka creates for itself. Kafka: `Topic.INTERNAL_TOPICS`."""


def wrong_with_name(name: str) -> str | None:
    """What is wrong with a topic's name, `None` if nothing is. **Kafka:** `Topic.validate`."""
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
