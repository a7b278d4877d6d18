"""What a timestamp in a ListOffsets request asks for."""

from enum import Enum

from spec.messages.list_offsets import ListOffsetsResponse
from spec.values import Error

LATEST, EARLIEST, LARGEST_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6

FIRST_VERSIONS = ((LARGEST_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11))
"""The first version of the request that may ask for it."""


UNREADABLE = ListOffsetsResponse(Error.INVALID_RECORD)
"""The answer where the search for a timestamp meets a batch whose records cannot be read.

**Kafka:** `DefaultRecord.readFrom` throws `InvalidRecordException`, and `ReplicaManager.fetchOffset` answers with its error.
"""


class Question(Enum):
    """What is asked. Kafka: the negative timestamps of `ListOffsetsRequest`."""

    LATEST = "the end that the sender may see"
    EARLIEST = "the start"
    LARGEST_TIMESTAMP = "the record with the largest timestamp"
    BY_TIMESTAMP = "the first record at or after a timestamp"
    NOTHING = "an offset in remote storage, which there is not"
    UNSUPPORTED = "not allowed in this version"


def judge_timestamp(timestamp: int, version_number: int) -> Question:
    """What a timestamp (ms, or a negative number of its own meaning) asks for in this version of the request.

    Without remote storage the start on this disk is the start, and nothing is in remote storage.

    **Kafka:** `KafkaApis.handleListOffsetRequest`, `ReplicaManager.isListOffsetsTimestampUnsupported`,
    `UnifiedLog.fetchOffsetByTimestamp`.
    """
    first = next((number for asked, number in FIRST_VERSIONS if asked == timestamp), 0)
    if version_number < first:
        return Question.UNSUPPORTED
    known = {
        LATEST: Question.LATEST,
        EARLIEST: Question.EARLIEST,
        EARLIEST_LOCAL: Question.EARLIEST,
        LARGEST_TIMESTAMP: Question.LARGEST_TIMESTAMP,
        LATEST_TIERED: Question.NOTHING,
        EARLIEST_PENDING_UPLOAD: Question.NOTHING,
    }
    return known.get(timestamp, Question.BY_TIMESTAMP)
