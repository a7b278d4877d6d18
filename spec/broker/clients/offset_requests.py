"""Meanings of a timestamp in a ListOffsets request."""

from enum import Enum

from kspec.spec.messages.list_offsets import ListOffsetsResponse
from kspec.spec.values import Error

LATEST, EARLIEST, LARGEST_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6

FIRST_VERSIONS = ((LARGEST_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11))
"""The first version of the request that may ask for it."""


UNREADABLE = ListOffsetsResponse(Error.INVALID_RECORD)
"""The answer where the search for a timestamp meets a batch whose records cannot be read.

**Kafka:** `DefaultRecord.readFrom` throws `InvalidRecordException`, and `ReplicaManager.fetchOffset` answers with its error.
"""


class OffsetQuestion(Enum):
    """The meaning of a timestamp in a ListOffsets request. Kafka: the negative timestamps of `ListOffsetsRequest`."""

    LATEST = "the end that the sender may see"
    EARLIEST = "the start"
    LARGEST_TIMESTAMP = "the record with the largest timestamp"
    BY_TIMESTAMP = "the first record at or after a timestamp"
    NOTHING = "an offset in remote storage, which there is not"
    UNSUPPORTED = "not allowed in this version"


def judge_timestamp(timestamp: int, version_number: int) -> OffsetQuestion:
    """The meaning of a timestamp (ms, or a negative number with a meaning of its own) in this version of the request.

    Without remote storage the start on this disk is the start, and nothing is in remote storage.

    **Kafka:** `KafkaApis.handleListOffsetRequest`, `ReplicaManager.isListOffsetsTimestampUnsupported`,
    `UnifiedLog.fetchOffsetByTimestamp`.
    """
    first = next((number for asked, number in FIRST_VERSIONS if asked == timestamp), 0)
    if version_number < first:
        return OffsetQuestion.UNSUPPORTED
    known = {
        LATEST: OffsetQuestion.LATEST,
        EARLIEST: OffsetQuestion.EARLIEST,
        EARLIEST_LOCAL: OffsetQuestion.EARLIEST,
        LARGEST_TIMESTAMP: OffsetQuestion.LARGEST_TIMESTAMP,
        LATEST_TIERED: OffsetQuestion.NOTHING,
        EARLIEST_PENDING_UPLOAD: OffsetQuestion.NOTHING,
    }
    return known.get(timestamp, OffsetQuestion.BY_TIMESTAMP)


def check_question(question: OffsetQuestion, of_partition: Error) -> Error:
    """The error before the log is read: the version may not ask for this, else the error of the partition.

    Errors: `UNSUPPORTED_VERSION`, and `of_partition`.

    **Kafka:** `KafkaApis.handleListOffsetRequest`, `ReplicaManager.fetchOffset`.
    """
    return Error.UNSUPPORTED_VERSION if question == OffsetQuestion.UNSUPPORTED else of_partition
