"""A leader's reaction to the refusal of a proposal, by error and release."""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from kspec.spec.values import Error


class AfterError(Enum):
    """A leader's reaction to the refusal of its proposal."""

    ROLL_BACK = "roll back"
    """The proposal was certainly not applied and never will be: back to the last confirmed ISR."""

    AWAIT_METADATA = "await metadata"
    """The leader's state is outdated, or may be: every replica that may be in sync counts until new metadata come."""

    RETRY = "retry"
    """The same proposal again."""


OnIsrError: TypeAlias = Callable[[Error], AfterError]


OUT_OF_DATE = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.FENCED_LEADER_EPOCH, Error.INVALID_UPDATE_VERSION)


def roll_back_always(error: Error) -> AfterError:
    """A refused write to ZooKeeper counts as not done.

    This is wrong if the write was done, its confirmation was lost, and the controller has written since: then the refusal
    concerns the second attempt. The leader keeps an ISR that is no longer in force, and may commit without a member.

    **Kafka:** `Partition.updateIsr` up to 2.6.
    """
    return AfterError.ROLL_BACK


def never_roll_back(error: Error) -> AfterError:
    """No error proves that a proposal was not applied. **Kafka:** `Partition.handleAlterIsrResponse`, 2.7 to 3.0."""
    return AfterError.AWAIT_METADATA if error in OUT_OF_DATE else AfterError.RETRY


def roll_back_if_not_attempted(error: Error) -> AfterError:
    """As `never_roll_back`, but `OPERATION_NOT_ATTEMPTED` proves that the proposal was not applied.

    **Kafka:** `Partition.handleAlterIsrError`, 3.1, as it was meant: see `roll_back_instead_of_retry`.
    """
    return AfterError.ROLL_BACK if error == Error.OPERATION_NOT_ATTEMPTED else never_roll_back(error)


def roll_back_instead_of_retry(error: Error) -> AfterError:
    """As `roll_back_if_not_attempted`, but an error that nobody expected ends the proposal, as if it had not been made.

    The leader asks again before its last request is forgotten, so the second is refused without being sent (KAFKA-14010).
    A request from a stale incarnation is repeated by another party, and its proposal stays.

    **Kafka:** `Partition.handleAlterIsrError`, `AlterIsrManager.submit` in 3.1 (and 3.2.0).
    """
    what = roll_back_if_not_attempted(error)
    return AfterError.ROLL_BACK if what == AfterError.RETRY and error != Error.STALE_BROKER_EPOCH else what


def give_up_if_invalid_or_roll_back(error: Error) -> AfterError:
    """As `roll_back_instead_of_retry`, but an invalid proposal is not taken back: the leader waits for metadata.

    **Kafka:** `Partition.handleAlterPartitionError`, `AlterIsrManager.submit` in 3.2.0.
    """
    return AfterError.AWAIT_METADATA if error == Error.INVALID_REQUEST else roll_back_instead_of_retry(error)


def give_up_if_invalid(error: Error) -> AfterError:
    """As `roll_back_if_not_attempted`, but an invalid proposal is not sent again.

    **Kafka:** `Partition.handleAlterPartitionError`, 3.2.1 (KAFKA-14010).
    """
    return AfterError.AWAIT_METADATA if error == Error.INVALID_REQUEST else roll_back_if_not_attempted(error)


def roll_back_if_ineligible(error: Error) -> AfterError:
    """As `give_up_if_invalid`; `INELIGIBLE_REPLICA` proves it, too. `NEW_LEADER_ELECTED` proves that it *was* applied.

    **Kafka:** `Partition.handleAlterPartitionError` (KIP-841, since 3.3).
    """
    if error == Error.INELIGIBLE_REPLICA:
        return AfterError.ROLL_BACK
    return AfterError.AWAIT_METADATA if error == Error.NEW_LEADER_ELECTED else give_up_if_invalid(error)
