"""TxnOffsetCommit: offsets of a group are committed in a transaction, and count once that is."""

from dataclasses import dataclass

from kspec.spec.messages.groups.offset_commit import OffsetToCommit, PartitionError
from kspec.spec.values import (
    NO_GENERATION,
    NO_MEMBER_ID,
    Generation,
    GroupId,
    MemberId,
    ProducerEpoch,
    ProducerId,
    TransactionalId,
)


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequest:
    """Commit offsets in a transaction. Kafka: `TxnOffsetCommitRequestData`.

    A producer that does not say of which member it commits (before v3) sends no member id, and `NO_GENERATION`.
    `reports_missing_group`: the client understands `GROUP_ID_NOT_FOUND` and `STALE_MEMBER_EPOCH` (v6 and later).
    `knows_loading`: the client understands `COORDINATOR_LOAD_IN_PROGRESS` (v2 and later).
    """

    transactional_id: TransactionalId
    group_id: GroupId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    offsets: tuple[OffsetToCommit, ...]
    generation: Generation = NO_GENERATION
    member_id: MemberId = NO_MEMBER_ID
    instance_id: str | None = None
    reports_missing_group: bool = False
    knows_loading: bool = True


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitResponse:
    """The outcome for each partition, in the order asked. Kafka: `TxnOffsetCommitResponseData`."""

    partitions: tuple[PartitionError, ...]
