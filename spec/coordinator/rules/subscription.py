"""The topics that a consumer subscribes to, read from its JoinGroup. All else that members tell each other stays bytes."""


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics in a consumer's subscription, `None` if it cannot be read.

    The bytes are a version, the topics (a count, and each with its length), and the client's own data with its length; later
    versions append to that.

    **Kafka:** `ConsumerProtocol.deserializeVersion`, `ConsumerProtocol.deserializeConsumerProtocolSubscription`.
    """
    if len(metadata) < 6 or _integer(metadata, 0, 2) < 0:
        return None
    count, position, topics = _integer(metadata, 2, 4), 6, []
    for _ in range(count):
        length = _integer(metadata, position, 2)
        topics.append(metadata[position + 2 : position + 2 + length])
        position += 2 + length
        if length < 0 or position > len(metadata):
            return None
    length = _integer(metadata, position, 4)
    readable = count >= 0 and position + 4 + max(length, 0) <= len(metadata)
    return frozenset(topic.decode("utf-8", "replace") for topic in topics) if readable else None


def _integer(data: bytes, position: int, size: int) -> int:
    return int.from_bytes(data[position : position + size], "big", signed=True)
