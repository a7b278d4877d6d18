"""Effects of a broker's handlers: store, send, answer."""

from dataclasses import dataclass
from typing import TypeAlias

from kspec.spec.broker.rules.isr.request import WriteIsr
from kspec.spec.log.batch import Batches
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.messages.delete_records import DeleteRecordsResponse
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.messages.produce import ProduceResponse
from kspec.spec.step import Reply, Send, SendToController
from kspec.spec.values import Epoch, Error, Offset


@dataclass(frozen=True, slots=True)
class BatchesAppended:
    """Write these batches at the end of the log, the first at `base_offset`; a gap may lie before it."""

    base_offset: Offset
    batches: Batches


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """Cut the log, and the epoch history with it, at this offset."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class LogRestarted:
    """Delete the whole log, epochs included, and start an empty one here."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """The records before this offset may be deleted, and must no longer be read."""

    start_offset: Offset


@dataclass(frozen=True, slots=True)
class EpochOpened:
    """Write to the epoch history that this epoch starts here. Kafka writes the checkpoint file through to the disk."""

    leader_epoch: Epoch
    start_offset: Offset


@dataclass(frozen=True, slots=True)
class LogDeleted:
    """The broker no longer has a replica of the partition."""


LogChange: TypeAlias = BatchesAppended | LogTruncated | LogRestarted | LogStartMoved | EpochOpened | LogDeleted


@dataclass(frozen=True, slots=True)
class Persist:
    """Change the stored log, before any later effect. In Kafka: in the page cache, not through to the disk."""

    change: LogChange


@dataclass(frozen=True, slots=True)
class RebuildProducers:
    """Give the batches that are left in the log to `spec.broker.roles.producers_rebuilt`, before any other message."""


@dataclass(frozen=True, slots=True)
class AnswerProducer:
    """Answer a produce request by its number: this one or an earlier one."""

    request: int
    response: ProduceResponse


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close the connection: the only way to tell a producer with acks=0 of a failure."""

    request: int


@dataclass(frozen=True, slots=True)
class VerificationAnswer:
    """The begin of a verification: an error, or the guard under which the coordinator is asked, `NO_GUARD` if it is not."""

    error: Error
    guard: int = 0


FollowerRequest: TypeAlias = FetchRequest | OffsetForLeaderEpochRequest | ListOffsetsRequest

LeaderAnswer: TypeAlias = (
    FetchResponse | OffsetForLeaderEpochResponse | ListOffsetsResponse | DeleteRecordsResponse | VerificationAnswer
)

Effect: TypeAlias = (
    Persist
    | RebuildProducers
    | AnswerProducer
    | CloseConnection
    | Send[FollowerRequest]
    | SendToController[AlterPartitionRequest]
    | WriteIsr
    | Reply[LeaderAnswer]
)
