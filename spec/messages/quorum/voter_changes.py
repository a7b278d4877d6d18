"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter (KIP-853): the voter set changes by one voter, or by its addresses."""

from dataclasses import dataclass

from kspec.spec.values import Error, ReplicaKey


@dataclass(frozen=True, slots=True)
class AddVoterRequest:
    """A replica is to vote. Kafka: `AddRaftVoterRequestData`. **Leaves out:** its addresses.

    `waits`: who asks waits until the change is committed, and not only until it is written (`ackWhenCommitted`).
    """

    voter: ReplicaKey
    waits: bool = True


@dataclass(frozen=True, slots=True)
class RemoveVoterRequest:
    """A replica is not to vote any more. Kafka: `RemoveRaftVoterRequestData`."""

    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class UpdateVoterRequest:
    """A voter is reached elsewhere; or, with `kraft.version` 0, it reports its directory. Kafka:
    `UpdateRaftVoterRequestData`. **Leaves out:** where it is reached.

    `may_upgrade`: it works with `kraft.version` 1.
    """

    voter: ReplicaKey
    may_upgrade: bool = True


@dataclass(frozen=True, slots=True)
class VoterChangeResponse:
    """The answer to each of them. After `REQUEST_TIMED_OUT` the change may come about all the same.

    Kafka: `AddRaftVoterResponseData`, `RemoveRaftVoterResponseData`, `UpdateRaftVoterResponseData`.
    """

    error: Error
