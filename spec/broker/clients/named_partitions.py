"""Requests that name a topic or a partition which there is not."""

from kspec.spec.values import Error

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


def check_hosted_partition(partitions: int, index: int, by_id: bool, offline: bool) -> Error:
    """The error for a partition of which a broker has no replica, or one that is offline.

    `partitions`, `index`, `by_id`: as for `check_named_partition`.

    Errors: `KAFKA_STORAGE_ERROR` (offline), `NOT_LEADER_OR_FOLLOWER` (a partition of other brokers), and those of
    `check_named_partition`.

    **Kafka:** `ReplicaManager.getPartitionOrError`.
    """
    if offline:
        return Error.KAFKA_STORAGE_ERROR
    error = check_named_partition(partitions, index, by_id)
    return Error.NOT_LEADER_OR_FOLLOWER if error == Error.NONE else error


def check_named_topic(has_valid_name: bool, of_partition: Error) -> Error:
    """The error for a partition whose topic may have a name that no topic can have.

    Errors: `INVALID_TOPIC_EXCEPTION`, and `of_partition`.

    **Kafka:** `KafkaApis.handleDescribeProducersRequest` (`Topic.validate`).
    """
    return of_partition if has_valid_name else Error.INVALID_TOPIC_EXCEPTION


def check_deletion_from(internal: bool, of_partition: Error) -> Error:
    """Whether clients may delete records of a topic: of none that Kafka keeps for itself.

    Errors: those of the partition (`of_partition`), `INVALID_TOPIC_EXCEPTION`.

    **Kafka:** `ReplicaManager.deleteRecordsOnLocalLog`.
    """
    return Error.INVALID_TOPIC_EXCEPTION if internal and of_partition == Error.NONE else of_partition


def check_isolation_level(level: int) -> Error:
    """Whether a fetch has an isolation level that there is: 0, uncommitted records too, or 1, committed ones only.

    Errors: `UNKNOWN_SERVER_ERROR`, of the request, and before version 13 of each of its partitions, too.

    **Kafka:** `IsolationLevel.forId`, whose exception `KafkaApis.handleError` answers; `FetchRequest.getErrorResponse`.
    """
    return Error.NONE if level in (0, 1) else Error.UNKNOWN_SERVER_ERROR


def check_named_once(times: int) -> Error:
    """Whether a request for offsets names a partition once; one that it names more often is answered once, with an error.

    Errors: `INVALID_REQUEST`.

    **Kafka:** `ListOffsetsRequest.duplicatePartitions`, `ReplicaManager.fetchOffset`.
    """
    return Error.NONE if times == 1 else Error.INVALID_REQUEST
