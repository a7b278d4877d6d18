"""The rules of a consumer's membership, by the rebalance protocol: eager or cooperative (KIP-429)."""

from kspec.spec.assignors.subscribers import Assignment, Subscriber
from kspec.spec.assignors.turns import adjusted
from kspec.spec.consumer.protocol import ConsumerProtocol


def keep_nothing(owned: frozenset[int]) -> frozenset[int]:
    """A member owns nothing. **Kafka:** `ConsumerCoordinator.onJoinPrepare`."""
    return frozenset()


def keep_all(owned: frozenset[int]) -> frozenset[int]:
    """A member goes on with all that it owns. **Kafka:** `ConsumerCoordinator.onJoinPrepare`, `COOPERATIVE`."""
    return owned


def give_up_nothing(owned: frozenset[int], assigned: frozenset[int]) -> frozenset[int]:
    """An assignment takes nothing away: all was given up before. **Kafka:** `ConsumerCoordinator.onJoinComplete`."""
    return frozenset()


def give_up_what_is_not_assigned(owned: frozenset[int], assigned: frozenset[int]) -> frozenset[int]:
    """An assignment takes away what it does not have. **Kafka:** `ConsumerCoordinator.onJoinComplete`, `COOPERATIVE`."""
    return owned - assigned


def only_of_present_generation(is_present: bool) -> bool:
    """An error counts in the generation in which the request was sent.

    **Kafka:** `CoordinatorResponseHandler.generationUnchanged`.
    """
    return is_present


def keep_id_that_is_known(is_known: bool) -> bool:
    """A member that is out of its generation alone keeps its id. **Kafka:** `resetStateOnResponseError`."""
    return is_known


def hand_out_all(members: tuple[Subscriber[str], ...], assignment: Assignment[str]) -> Assignment[str]:
    """An assignment as it was made: nobody owns anything while all join. **Kafka:** `ConsumerPartitionAssignor`, `EAGER`."""
    return assignment


EAGER = ConsumerProtocol(
    "eager",
    keeps_while_joining=keep_nothing,
    gives_up_by_assignment=give_up_nothing,
    keeps_when_out=keep_nothing,
    is_answer_to_present=only_of_present_generation,
    keeps_member_id=keep_id_that_is_known,
    hands_out=hand_out_all,
)
"""All stop reading while they join. Kafka: `RebalanceProtocol.EAGER`."""

COOPERATIVE = ConsumerProtocol(
    "cooperative",
    keeps_while_joining=keep_all,
    gives_up_by_assignment=give_up_what_is_not_assigned,
    keeps_when_out=keep_nothing,
    is_answer_to_present=only_of_present_generation,
    keeps_member_id=keep_id_that_is_known,
    hands_out=adjusted,
)
"""All go on reading; what moves is given up first, in a rebalance of its own. Kafka: `RebalanceProtocol.COOPERATIVE`."""

CONSUMER_PROTOCOLS = (EAGER, COOPERATIVE)
