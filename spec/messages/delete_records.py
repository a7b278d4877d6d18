"""DeleteRecords (KIP-107): move a log's start."""

from dataclasses import dataclass

from kspec.spec.values import UNKNOWN_OFFSET, Error, Offset

TO_HIGH_WATERMARK = Offset(-1)
"""The offset that stands for the high watermark: a client deletes all committed records.

Kafka: `DeleteRecordsRequest.HIGH_WATERMARK`.
"""


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest:
    """Delete the records before `offset`, or all committed ones (`TO_HIGH_WATERMARK`). Kafka: `DeleteRecordsRequest`."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse:
    """The outcome of DeleteRecords: an error; or an `offset`, and it is done once `low_watermark` has reached that.

    Kafka: `LogDeleteRecordsResult`.
    """

    error: Error
    offset: Offset = UNKNOWN_OFFSET
    low_watermark: Offset = UNKNOWN_OFFSET
