"""Vote (KIP-595; asked before an epoch begins, too: KIP-996): a replica asks a voter for its vote."""

from dataclasses import dataclass

from kspec.spec.values import NO_LEADER, NO_REPLICA, BrokerId, Epoch, Error, Offset, ReplicaKey


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """A replica asks for a vote in an epoch, or whether it would get one. Kafka: `VoteRequestData.PartitionData`.

    - `epoch`: that in which it is a candidate; before it is one, its own epoch;
    - `replica`, `voter`: who asks whom. `voter` is `NO_REPLICA` in requests of releases before 3.9;
    - `last_epoch`, `end_offset`: the epoch of the last record of its log, and the offset after it;
    - `is_pre_vote`: it asks before it becomes a candidate (since 4.0).
    """

    epoch: Epoch
    replica: ReplicaKey
    last_epoch: Epoch
    end_offset: Offset
    voter: ReplicaKey = NO_REPLICA
    is_pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class VoteResponse:
    """The answer to Vote, with the epoch and the leader that the voter knows. Kafka: `VoteResponseData.PartitionData`."""

    error: Error
    epoch: Epoch
    leader: BrokerId = NO_LEADER
    is_granted: bool = False
