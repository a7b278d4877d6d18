"""The shared parts of the two models of brokers and controller that pass messages, `kafka` and `messages`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from model_check.core.model import REFUSED, Effect, Slot, then
from spec.broker.partition import Partition
from spec.broker.rules.fetcher import FetchState
from spec.broker.rules.isr.proposal import LeaderIsr
from spec.log.local_log import LocalLog
from spec.log.record_log import RecordLog
from spec.metadata import NOBODY
from spec.values import NO_EPOCH, NO_LEADER, NO_PARTITION_EPOCH, UNKNOWN_OFFSET, BrokerId, Epoch, Offset, PartitionId

PARTITION = PartitionId(0)
"""The one partition of a model."""

LATE = 1_000_000
"""A time at which every delay is over and every lag too long (milliseconds)."""

LocalRecordLog: TypeAlias = LocalLog[RecordLog]
"""A replica's log with its high watermark."""


class Role(NamedTuple):
    """The leader that a replica knows; for a leader also its ISR and the start of its epoch."""

    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    isr: LeaderIsr = LeaderIsr(NOBODY, NO_PARTITION_EPOCH, NOBODY, NO_PARTITION_EPOCH)
    epoch_start: Offset = UNKNOWN_OFFSET


NO_ROLE = Role()


def role_of(partition: Partition[RecordLog], replica: BrokerId) -> Role:
    """A replica's role. A follower's partition epoch is not kept, because metadata reach it in order."""
    isr = partition.isr if partition.leader == replica else NO_ROLE.isr
    return Role(partition.leader, partition.leader_epoch, isr, partition.epoch_start)


def following(local: LocalRecordLog, fetcher: FetchState) -> Partition[RecordLog]:
    """The partition with this log and fetcher."""
    return Partition(PARTITION, local, fetcher.leader, fetcher.leader_epoch, fetcher=fetcher)


Values: TypeAlias = Mapping[Slot, Any]
"""The values of some slots."""


def by_slot(writes: Sequence[Slot], function: Callable[[Values], object], reads: Sequence[Slot]) -> Effect:
    """An effect whose function gets the values that it reads by slot, and returns the values that it writes by slot, or
    refuses.
    """

    def apply(*values: Any) -> object:
        after = function(dict(zip(reads, values, strict=True)))
        if after is REFUSED:
            return REFUSED
        assert isinstance(after, dict)
        assert after.keys() == set(writes), "an effect says what each slot holds that it writes, and of no other"
        found = tuple(after[slot] for slot in writes)
        return found if len(found) > 1 else found[0]

    return then(writes, apply, *reads)
