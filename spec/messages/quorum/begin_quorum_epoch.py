"""BeginQuorumEpoch (KIP-595): a leader tells a voter that it leads."""

from dataclasses import dataclass

from kspec.spec.values import NO_LEADER, NO_REPLICA, BrokerId, Epoch, Error, ReplicaKey


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest:
    """A leader tells a voter in which epoch it leads. Kafka: `BeginQuorumEpochRequestData.PartitionData`.

    `voter` is `NO_REPLICA` in requests of releases before 3.9. **Leaves out:** the leader's addresses.
    """

    epoch: Epoch
    leader: BrokerId
    voter: ReplicaKey = NO_REPLICA


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochResponse:
    """The answer, with epoch and leader that the voter knows. Kafka: `BeginQuorumEpochResponseData.PartitionData`."""

    error: Error
    epoch: Epoch
    leader: BrokerId = NO_LEADER
