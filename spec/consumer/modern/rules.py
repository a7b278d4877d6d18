"""Rules of a consumer in a consumer group: what it tells the coordinator, and what it gives up."""

from kspec.spec.values import MemberId


def what_is_reconciled(reconciled: frozenset[int], to_come: frozenset[int]) -> frozenset[int]:
    """A consumer owns what it has come to: what it has revoked is out of its hands.

    **Kafka:** `ConsumerHeartbeatRequestManager.HeartbeatState.buildRequestData`, by `currentAssignment`.
    """
    return reconciled


def what_is_reconciled_or_to_come(reconciled: frozenset[int], to_come: frozenset[int]) -> frozenset[int]:
    """Also what it is about to take up, and may read before the answer comes.

    **Kafka:** `buildRequestData` names the former alone. **Departs from it:** as a repair.
    """
    return reconciled | to_come


def nothing_when_fenced(owned: frozenset[int]) -> frozenset[int]:
    """A consumer that is fenced reads nothing. **Kafka:** `AbstractMembershipManager.transitionToFenced`."""
    return frozenset()


def own_id(made_up: MemberId) -> MemberId:
    """A consumer makes up its id before it joins, so that it is one member whatever is lost (KIP-1082).

    **Kafka:** from 4.0 on, `AbstractMembershipManager.memberId`; before, the coordinator makes it and the answer tells it.
    """
    return made_up


def whenever_an_answer_is_missing(is_refused: bool) -> bool:
    """A full heartbeat follows an error as well as no answer. **Kafka:** `HeartbeatState.reset`."""
    return True
