"""OffsetForLeaderEpoch (KIP-101): where a leader epoch ends in a replica's log."""

from typing import NamedTuple

from kspec.spec.values import Epoch, EpochEndOffset, Error


class OffsetForLeaderEpochRequest(NamedTuple):
    """The question "where does `leader_epoch` end in your log?", asked in `current_leader_epoch`. Kafka:
    `OffsetForLeaderEpochRequest`.

    `leader_only`: only a leader may answer; always true in Kafka's own requests.
    """

    current_leader_epoch: Epoch
    leader_epoch: Epoch
    leader_only: bool = True


class OffsetForLeaderEpochResponse(NamedTuple):
    """The leader's answer to OffsetForLeaderEpoch: an error, or the epoch and its end offset."""

    error: Error
    end: EpochEndOffset
