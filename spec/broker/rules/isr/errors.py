"""What a leader does with a proposal that was not granted, by error and release."""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from spec.values import Error


class AfterError(Enum):
    """What a leader does with its proposal when it was not granted."""

    ROLL_BACK = "roll back"
    """The proposal was certainly not applied and never will be: back to the ISR last confirmed."""

    AWAIT_METADATA = "await metadata"
    """What the leader knows is out of date, or may be: everybody who may be in sync counts until it learns more."""

    RETRY = "retry"
    """The same proposal again."""


OnIsrError: TypeAlias = Callable[[Error], AfterError]


OUT_OF_DATE = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.FENCED_LEADER_EPOCH, Error.INVALID_UPDATE_VERSION)


def roll_back_always(error: Error) -> AfterError:
    """A write to ZooKeeper that was refused was not done.

    Not so if it had been done, its confirmation was lost, and the controller has written since: then the refusal is of the
    second attempt. The leader believes in an ISR that is no longer in force, and may commit without a member.

    **Kafka:** `Partition.updateIsr` up to 2.6.
    """
    return AfterError.ROLL_BACK


def never_roll_back(error: Error) -> AfterError:
    """No error proves that a proposal was not applied. **Kafka:** `Partition.handleAlterIsrResponse`, 2.7 to 3.0."""
    return AfterError.AWAIT_METADATA if error in OUT_OF_DATE else AfterError.RETRY


def roll_back_if_not_attempted(error: Error) -> AfterError:
    """As `never_roll_back`, but `OPERATION_NOT_ATTEMPTED` says that the proposal was not looked at.

    **Kafka:** `Partition.handleAlterPartitionError`, 3.1.
    """
    return AfterError.ROLL_BACK if error == Error.OPERATION_NOT_ATTEMPTED else never_roll_back(error)


def give_up_if_invalid(error: Error) -> AfterError:
    """As `roll_back_if_not_attempted`, but an invalid proposal is not sent again.

    **Kafka:** `Partition.handleAlterPartitionError`, 3.2.
    """
    return AfterError.AWAIT_METADATA if error == Error.INVALID_REQUEST else roll_back_if_not_attempted(error)


def roll_back_if_ineligible(error: Error) -> AfterError:
    """As `give_up_if_invalid`; an ineligible replica proves it too. `NEW_LEADER_ELECTED` says that it *was* applied.

    **Kafka:** `Partition.handleAlterPartitionError` (KIP-841, since 3.3).
    """
    if error == Error.INELIGIBLE_REPLICA:
        return AfterError.ROLL_BACK
    return AfterError.AWAIT_METADATA if error == Error.NEW_LEADER_ELECTED else give_up_if_invalid(error)
