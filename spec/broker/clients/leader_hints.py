"""To whom a client is sent that has asked a broker which does not lead (KIP-951)."""

from kspec.spec.values import Error

FIRST_OF_FETCH, FIRST_OF_PRODUCE = 16, 10
"""The versions from which answers have the fields for it."""


def tells_leader_to_consumer(error: Error, version_number: int) -> bool:
    """Whether the answer to a fetch tells who leads the partition, and where that broker is reached.

    **Kafka:** `KafkaApis.handleFetchRequest` (`getCurrentLeader`).
    """
    return version_number >= FIRST_OF_FETCH and error in (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)


def tells_leader_to_producer(error: Error, version_number: int) -> bool:
    """Whether the answer to a producer tells who leads the partition, and where that broker is reached.

    **Kafka:** `KafkaApis.handleProduceRequest` (`getCurrentLeader`).
    """
    return version_number >= FIRST_OF_PRODUCE and error == Error.NOT_LEADER_OR_FOLLOWER
