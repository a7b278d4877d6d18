"""The values of the model's slots: messages with the fields that receivers read, and history variables for proofs."""

from typing import NamedTuple, NewType

from kspec.spec.broker.rules.followers import NEVER_FETCHED
from kspec.spec.metadata import NOBODY
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    NO_PARTITION_EPOCH,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    Offset,
    PartitionEpoch,
    Record,
)

FetchId = NewType("FetchId", int)
"""The number of a fetch: a correlation id that is never used again."""

NO_FETCH_ID = FetchId(-1)

ProposalId = NewType("ProposalId", int)
"""The number of a proposal of an ISR: a correlation id that is never used again."""

NO_PROPOSAL_ID = ProposalId(-1)


class PartitionState(NamedTuple):
    """A decision of the controller about the partition."""

    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    isr: frozenset[BrokerId] = NOBODY
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    elr: frozenset[BrokerId] = NOBODY


NOT_DECIDED = PartitionState()


FIRST_BROKER_EPOCH = BrokerEpoch(0)
"""The broker epoch of every broker's first incarnation."""


class RegistrationState(NamedTuple):
    """The controller's registration of a broker: its broker epoch, and whether it is fenced."""

    broker_epoch: BrokerEpoch = FIRST_BROKER_EPOCH
    fenced: bool = False


NOT_FENCED = RegistrationState()


class RegisteredAt(NamedTuple):
    """The decision that was the controller's last when a broker's present incarnation registered."""

    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    leader_epoch: Epoch = NO_EPOCH


FROM_THE_START = RegisteredAt()


class KnownFollower(NamedTuple):
    """A leader's state of a follower. The fields are some of `FollowerState`; `NOT_REMEMBERED` has the others."""

    end_offset: Offset = UNKNOWN_OFFSET
    broker_epoch: BrokerEpoch = NEVER_FETCHED


NOT_REMEMBERED = ("start_offset", "leader_end_offset", "fetch_time", "caught_up_time")
"""Fields of `FollowerState` that this model leaves out: nothing is deleted, and time is a choice at each fetch."""


UNKNOWN = KnownFollower()


class Fetch(NamedTuple):
    """A follower's fetch: the leader, the epoch, the fetch offset, and the epoch of the follower's last record.

    `broker_epoch` is the sender's broker epoch.
    """

    follower: BrokerId = NO_LEADER
    leader: BrokerId = NO_LEADER
    epoch: Epoch = NO_EPOCH
    offset: Offset = UNKNOWN_OFFSET
    last_epoch: Epoch = NO_EPOCH
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


NOT_SENT = Fetch()


class FetchAnswer(NamedTuple):
    """The answer to a fetch, if it is `given`, with at most one record."""

    given: bool = False
    error: Error = Error.NONE
    record: Record | None = None
    high_watermark: Offset = UNKNOWN_OFFSET
    diverging: EpochEndOffset = UNDEFINED_EPOCH_END


NO_FETCH_ANSWER = FetchAnswer()


class IsrProposal(NamedTuple):
    """An ISR that a leader asks the controller for (AlterPartition). `broker_epoch` is the leader's broker epoch."""

    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    isr: frozenset[BrokerId] = NOBODY
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH


NOT_PROPOSED = IsrProposal()


class IsrAnswer(NamedTuple):
    """The controller's answer to a proposal, while it is `given` and not yet taken.

    `for_good`: the proposal was refused for good, so no copy of it will be granted, and the leader drops it.
    """

    given: bool = False
    for_good: bool = False
    error: Error = Error.NONE
    leader_epoch: Epoch = NO_EPOCH
    isr: frozenset[BrokerId] = NOBODY
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH


NO_ISR_ANSWER = IsrAnswer()


class LastDecision(NamedTuple):
    """The controller's last decision in an epoch. Only the model knows it as a whole."""

    leader: BrokerId = NO_LEADER
    isr: frozenset[BrokerId] = NOBODY
    elr: frozenset[BrokerId] = NOBODY


NO_LAST_DECISION = LastDecision()


class Leadership(NamedTuple):
    """An epoch's leadership: whether the leader has `begun` to lead, its log end at that time, the end of its commits."""

    begun: bool = False
    start: Offset = Offset(0)
    committed: Offset = Offset(0)


NO_LEADERSHIP = Leadership()


class FurthestCommit(NamedTuple):
    """The epoch whose leader has committed furthest, and the end of its commits (an offset)."""

    epoch: Epoch = NO_EPOCH
    end: Offset = Offset(0)


NOTHING_COMMITTED = FurthestCommit()


class LastFetch(NamedTuple):
    """The last fetch that a replica sent in an epoch: the fetch offset, and the epoch of its last record.

    `broker_epoch` is the sender's. `anew`: its incarnation registered in this epoch, so an earlier one may have fetched in
    it.
    """

    offset: Offset = UNKNOWN_OFFSET
    last_epoch: Epoch = NO_EPOCH
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    anew: bool = False


NO_FETCH = LastFetch()
