"""EndQuorumEpoch (KIP-595): a leader that resigns says so, and who is to follow it."""

from dataclasses import dataclass

from kspec.spec.values import NO_LEADER, BrokerId, Epoch, Error, ReplicaKey


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest:
    """A leader resigns. Kafka: `EndQuorumEpochRequestData.PartitionData`.

    `successors`: the voters, the one with the longest log first.
    """

    epoch: Epoch
    leader: BrokerId
    successors: tuple[ReplicaKey, ...] = ()


@dataclass(frozen=True, slots=True)
class EndQuorumEpochResponse:
    """The answer, with epoch and leader that the voter knows. Kafka: `EndQuorumEpochResponseData.PartitionData`."""

    error: Error
    epoch: Epoch
    leader: BrokerId = NO_LEADER
