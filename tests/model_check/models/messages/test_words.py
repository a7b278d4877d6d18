"""The values of model `messages` as a reader of traces sees them."""

import pytest

from kspec.model_check.models import MODELS
from kspec.model_check.models.messages import board  # noqa: F401 (makes traces know the words of values)
from kspec.model_check.models.messages.values import (
    FROM_THE_START,
    NOT_DECIDED,
    NOT_FENCED,
    UNKNOWN,
    KnownFollower,
    PartitionState,
    RegisteredAt,
    RegistrationState,
)
from kspec.model_check.traces.encode import in_words
from kspec.spec.values import NO_LEADER, BrokerEpoch, BrokerId, Epoch, Offset, PartitionEpoch

ONE, TWO = BrokerId(1), BrokerId(2)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (NOT_DECIDED, "none"),
        (
            PartitionState(TWO, Epoch(1), frozenset({TWO}), PartitionEpoch(3), frozenset({ONE})),
            "2 leads in epoch 1, ISR {2}, partition epoch 3, eligible {1}",
        ),
        (
            PartitionState(NO_LEADER, Epoch(2), frozenset({TWO}), PartitionEpoch(4)),
            "nobody leads in epoch 2, ISR {2}, partition epoch 4",
        ),
        (NOT_FENCED, "none"),
        (RegistrationState(BrokerEpoch(2), fenced=True), "broker epoch 2, fenced"),
        (RegistrationState(BrokerEpoch(2)), "broker epoch 2"),
        (FROM_THE_START, "none"),
        (RegisteredAt(PartitionEpoch(1), Epoch(0)), "partition epoch 1, leader epoch 0"),
        (UNKNOWN, "none"),
        (KnownFollower(Offset(3), BrokerEpoch(1)), "ends at 3, broker epoch 1"),
    ],
)
def test_values_in_words(value: object, words: str) -> None:
    assert in_words(value) == words


def test_numbers_are_left_out_as_long_as_they_are_the_first_ones() -> None:
    model = MODELS["messages"].build({})
    shown = {slot.name: (slot.words, first) for slot, first in zip(model.slots, model.initial, strict=True)}
    for name, later in (("highestEpoch", "2"), ("awaits 1", "2"), ("latestProposal", "2"), ("brokerEpoch", "2")):
        words, first = shown[name]
        assert words is not None
        assert (words(first), words(2)) == ("none", later)
