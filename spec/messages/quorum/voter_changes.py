"""AddRaftVoter and RemoveRaftVoter (KIP-853): an operator changes the voter set by one voter."""

from dataclasses import dataclass

from kspec.spec.values import Error, ReplicaKey


@dataclass(frozen=True, slots=True)
class AddVoterRequest:
    """A replica is to vote. Kafka: `AddRaftVoterRequestData`. **Leaves out:** its addresses, `ackWhenCommitted`."""

    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class RemoveVoterRequest:
    """A replica is not to vote any more. Kafka: `RemoveRaftVoterRequestData`."""

    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class VoterChangeResponse:
    """The answer to either. After `REQUEST_TIMED_OUT` the change may come about all the same.

    Kafka: `AddRaftVoterResponseData`, `RemoveRaftVoterResponseData`.
    """

    error: Error
