"""Requests that name a topic or a partition which there is not."""

from spec.values import Error

NO_TOPIC = -1
"""In place of a number of partitions: there is no such topic."""


def check_named_partition(partitions: int, index: int, by_id: bool) -> Error:
    """Whether there is the partition `index` of a topic with so many partitions, which the request names by its id or not.

    Errors: `UNKNOWN_TOPIC_ID` for an id that no topic has, else `UNKNOWN_TOPIC_OR_PARTITION`, also for a known topic
    without such a partition.

    **Kafka:** `ReplicaManager.getPartitionOrError`, `KafkaApis.handleProduceRequest`, `KafkaApis.handleFetchRequest`,
    `KafkaApis.handleOffsetCommitRequest`, which look into the metadata (KIP-516).
    """
    if partitions == NO_TOPIC and by_id:
        return Error.UNKNOWN_TOPIC_ID
    return Error.NONE if 0 <= index < partitions else Error.UNKNOWN_TOPIC_OR_PARTITION


def check_isolation_level(level: int) -> Error:
    """Whether a fetch has an isolation level that there is: 0, uncommitted records too, or 1, committed ones only.

    Errors: `UNKNOWN_SERVER_ERROR`, of the request and of each of its partitions.

    **Kafka:** `IsolationLevel.forId`, whose exception `KafkaApis.handleError` answers.
    """
    return Error.NONE if level in (0, 1) else Error.UNKNOWN_SERVER_ERROR
