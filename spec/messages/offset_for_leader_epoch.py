"""OffsetForLeaderEpoch (KIP-101): where a leader epoch ends in a replica's log."""

from typing import NamedTuple

from spec.values import Epoch, EpochEndOffset, Error


class OffsetForLeaderEpochRequest(NamedTuple):
    """Where does `leader_epoch` end in your log? Asked in `current_leader_epoch`. Kafka: `OffsetForLeaderEpochRequest`.

    `leader_only`: only a leader may answer; always so on the wire.
    """

    current_leader_epoch: Epoch
    leader_epoch: Epoch
    leader_only: bool = True


class OffsetForLeaderEpochResponse(NamedTuple):
    """The leader's answer to OffsetForLeaderEpoch: an error, else the epoch and its end offset."""

    error: Error
    end: EpochEndOffset
