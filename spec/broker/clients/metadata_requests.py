"""Topics in Metadata requests: which ones a request may name, and how."""

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from kspec.spec.values import NO_LEADER, BrokerId, Error


def check_missing_topic(by_id: bool, has_valid_name: bool) -> Error:
    """The error for a topic that does not exist.

    Errors: `UNKNOWN_TOPIC_ID`; `INVALID_TOPIC_EXCEPTION` for a name that no topic can have; `UNKNOWN_TOPIC_OR_PARTITION`.

    **Kafka:** `KafkaApis.handleTopicMetadataRequest`, `AutoTopicCreationManager.createTopics`.
    """
    if by_id:
        return Error.UNKNOWN_TOPIC_ID
    return Error.UNKNOWN_TOPIC_OR_PARTITION if has_valid_name else Error.INVALID_TOPIC_EXCEPTION


FIRST_BY_ID = 12
"""Versions 10 and 11 have a field for a topic's id, and no broker takes it there (KIP-516)."""


def check_named_topics(version_number: int, topics: tuple[tuple[bool, bool], ...]) -> Error:
    """Whether a request of this version may name topics like this: of each, whether it has a name, and whether it has an id.

    Errors: `INVALID_REQUEST`, for each topic of the request.

    **Kafka:** `KafkaApis.handleTopicMetadataRequest`, `MetadataRequest.getErrorResponse`.
    """
    if version_number >= FIRST_BY_ID:
        return Error.NONE
    return Error.NONE if all(has_name and not has_id for has_name, has_id in topics) else Error.INVALID_REQUEST


def counts_by_id(topics: tuple[tuple[bool, bool], ...]) -> bool:
    """Whether a request names its topics by id; then their names count for nothing. Of each: whether it has a name, an id.

    **Kafka:** `KafkaApis.handleTopicMetadataRequest` (`useTopicId`).
    """
    return any(has_id for _, has_id in topics)


def entries_that_count(topics: tuple[tuple[bool, bool], ...]) -> tuple[int, ...]:
    """The positions of the entries that are answered: in a request by ids only those with an id. Of each as above.

    **Kafka:** `KafkaApis.handleTopicMetadataRequest` (`topicIds`, without the zero id).
    """
    by_id = counts_by_id(topics)
    return tuple(position for position, (_, has_id) in enumerate(topics) if has_id or not by_id)


class Cursor(NamedTuple):
    """The place where the next page of DescribeTopicPartitions begins."""

    topic: str
    partition: int


def check_cursor(topics: AbstractSet[str], cursor: Cursor | None) -> Error:
    """Whether a page may begin there: a topic that is asked for, or any if all are, and a partition number from 0 on.

    Errors: `INVALID_REQUEST`, for each topic of the request.

    **Kafka:** `DescribeTopicPartitionsRequestHandler.handleDescribeTopicPartitionsRequest`.
    """
    if cursor is None:
        return Error.NONE
    is_asked = not topics or cursor.topic in topics
    return Error.NONE if is_asked and cursor.partition >= 0 else Error.INVALID_REQUEST


def page_size(wanted: int, most: int) -> int:
    """The most partitions of a page: as many as the client wants and the broker allows, and one at least.

    `most`: max.request.partition.size.limit.

    **Kafka:** `DescribeTopicPartitionsRequestHandler.handleDescribeTopicPartitionsRequest`.
    """
    return max(min(wanted, most), 1)


OF_BROKERS, OF_CONTROLLERS = 1, 2
"""Kafka: `EndpointType`."""


def check_endpoint_type(own: int, asked: int) -> Error:
    """Whether a listener tells of nodes of this kind: one for clients of brokers, the controller's of controllers.

    Errors: `MISMATCHED_ENDPOINT_TYPE`, `UNSUPPORTED_ENDPOINT_TYPE` (no kind at all).

    **Kafka:** `AuthHelper.computeDescribeClusterResponse` (KIP-919).
    """
    if asked == own:
        return Error.NONE
    return Error.MISMATCHED_ENDPOINT_TYPE if asked in (OF_BROKERS, OF_CONTROLLERS) else Error.UNSUPPORTED_ENDPOINT_TYPE


def check_leader(leader: BrokerId) -> Error:
    """The error of a partition beside its leader. Errors: `LEADER_NOT_AVAILABLE`.

    **Kafka:** `KRaftMetadataCache.getPartitionMetadata`. **Leaves out:** `LISTENER_NOT_FOUND`, as there is one listener.
    """
    return Error.LEADER_NOT_AVAILABLE if leader == NO_LEADER else Error.NONE
