"""DeleteRecords (KIP-107): let a log start later."""

from dataclasses import dataclass

from spec.values import UNKNOWN_OFFSET, Error, Offset

TO_HIGH_WATERMARK = Offset(-1)
"""The offset by which a client deletes all that is committed. Kafka: `DeleteRecordsRequest.HIGH_WATERMARK`."""


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest:
    """Delete the records before `offset`, or all that are committed (`TO_HIGH_WATERMARK`). Kafka: `DeleteRecordsRequest`."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse:
    """The outcome of DeleteRecords: an error; else it is done once `low_watermark` has reached `offset`.

    Kafka: `LogDeleteRecordsResult`.
    """

    error: Error
    offset: Offset = UNKNOWN_OFFSET
    low_watermark: Offset = UNKNOWN_OFFSET
