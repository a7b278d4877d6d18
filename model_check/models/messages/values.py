"""The values of the model's slots: messages with what their receivers read, and the history that proofs speak of."""

from typing import NamedTuple, NewType

from spec.broker.rules.followers import NEVER_FETCHED
from spec.broker.rules.isr.proposal import LeaderIsr
from spec.metadata import NOBODY
from spec.values import (
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
    PartitionId,
    Record,
)

PARTITION = PartitionId(0)
"""The one partition of the model."""

FetchId = NewType("FetchId", int)
"""The number of a fetch: a correlation id that is never used again."""

NO_FETCH_ID = FetchId(-1)

ProposalId = NewType("ProposalId", int)
"""The number of a proposal of an ISR: a correlation id that is never used again."""

NO_PROPOSAL_ID = ProposalId(-1)


class Decision(NamedTuple):
    """What the controller has decided about the partition."""

    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    isr: frozenset[BrokerId] = NOBODY
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    elr: frozenset[BrokerId] = NOBODY


NOT_DECIDED = Decision()


FIRST_RUN = BrokerEpoch(0)
"""The broker epoch of every broker's first run."""


class Registered(NamedTuple):
    """What the controller knows of a broker: the broker epoch of the run that is registered, and whether it is fenced."""

    run: BrokerEpoch = FIRST_RUN
    fenced: bool = False


NOT_FENCED = Registered()


class Since(NamedTuple):
    """The decision that was the controller's last when a broker's present run registered."""

    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    leader_epoch: Epoch = NO_EPOCH


FROM_THE_START = Since()


class Role(NamedTuple):
    """Whom a replica believes to lead, and of a leader its ISR and where its epoch started."""

    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    isr: LeaderIsr = LeaderIsr(NOBODY, NO_PARTITION_EPOCH, NOBODY, NO_PARTITION_EPOCH)
    epoch_start: Offset = UNKNOWN_OFFSET


NO_ROLE = Role()


class KnownFollower(NamedTuple):
    """What a leader knows of a follower: where its log ended when it fetched last, and which run of it that was."""

    end_offset: Offset = UNKNOWN_OFFSET
    run: BrokerEpoch = NEVER_FETCHED


UNKNOWN = KnownFollower()


class Fetch(NamedTuple):
    """A follower's fetch: whom it asks, in which epoch, from where on, and in which epoch its last record was written.

    `run` is the sender's broker epoch.
    """

    follower: BrokerId = NO_LEADER
    leader: BrokerId = NO_LEADER
    epoch: Epoch = NO_EPOCH
    offset: Offset = UNKNOWN_OFFSET
    last_epoch: Epoch = NO_EPOCH
    run: BrokerEpoch = NO_BROKER_EPOCH


NOT_SENT = Fetch()


class FetchReply(NamedTuple):
    """The answer to a fetch, once it is `given`, with at most one record."""

    given: bool = False
    error: Error = Error.NONE
    record: Record | None = None
    high_watermark: Offset = UNKNOWN_OFFSET
    diverging: EpochEndOffset = UNDEFINED_EPOCH_END


NO_REPLY = FetchReply()


class Proposed(NamedTuple):
    """An ISR that a leader asks the controller for (AlterPartition). `run` is the leader's broker epoch."""

    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    isr: frozenset[BrokerId] = NOBODY
    run: BrokerEpoch = NO_BROKER_EPOCH


NOT_PROPOSED = Proposed()


class Verdict(NamedTuple):
    """The controller's answer to a proposal, while it is `given` and not yet taken.

    `for_good`: it says that the proposal was not and will not be carried out, for no copy of it is still on its way.
    """

    given: bool = False
    for_good: bool = False
    error: Error = Error.NONE
    leader_epoch: Epoch = NO_EPOCH
    isr: frozenset[BrokerId] = NOBODY
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH


NO_VERDICT = Verdict()


class Reign(NamedTuple):
    """An epoch as the controller opened it, with its last ISR and ELR. Only the model knows it as a whole."""

    leader: BrokerId = NO_LEADER
    isr: frozenset[BrokerId] = NOBODY
    elr: frozenset[BrokerId] = NOBODY


NO_REIGN = Reign()


class Term(NamedTuple):
    """An epoch as its leader lived it: whether it has `begun`, where its log ended then, up to where it has committed."""

    begun: bool = False
    start: Offset = Offset(0)
    committed: Offset = Offset(0)


NO_TERM = Term()


class Settled(NamedTuple):
    """The epoch whose leader has committed furthest of all, and up to where (an offset)."""

    epoch: Epoch = NO_EPOCH
    end: Offset = Offset(0)


NOTHING_SETTLED = Settled()


class LastFetch(NamedTuple):
    """The last fetch that a replica sent in an epoch: from where on, and in which epoch its last record was written.

    `run` is the run that sent it. `anew`: that run registered in this very epoch, so an earlier one may have fetched in it.
    """

    offset: Offset = UNKNOWN_OFFSET
    last_epoch: Epoch = NO_EPOCH
    run: BrokerEpoch = NO_BROKER_EPOCH
    anew: bool = False


NO_FETCH = LastFetch()
