"""Which topics a Metadata request may name, and how."""

from spec.values import Error

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
