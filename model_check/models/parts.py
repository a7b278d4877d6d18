"""The shared parts of the two models of brokers and controller that pass messages, `kafka` and `messages`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from kspec.model_check.core.model import REFUSED, Effect, Slot, then
from kspec.model_check.models.carriers import ModelLog
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.rules.fetcher import FetchState
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.topics.create_topics import CreateTopicsRequest, NewTopic, ReplicaAssignment
from kspec.spec.metadata import NOBODY
from kspec.spec.values import (
    NO_EPOCH,
    NO_LEADER,
    NO_PARTITION_EPOCH,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    MonotonicMs,
    Offset,
    PartitionId,
    TopicId,
)

PARTITION = PartitionId(0)
"""The one partition of a model, and the first that a controller creates."""

TOPIC_ID = TopicId(b"\1" * 16)


def creation_of(replicas: tuple[BrokerId, ...]) -> CreateTopicsRequest:
    """The request that creates the partition on these replicas, in order of preference, in a topic of its own."""
    return CreateTopicsRequest((NewTopic("topic", TOPIC_ID, assignments=(ReplicaAssignment(0, replicas),)),))


LATE = MonotonicMs(1_000_000)
"""A time at which every delay is over and every lag too long (milliseconds)."""

LocalModelLog: TypeAlias = LocalLog[ModelLog]
"""A replica's log with its high watermark."""


class Role(NamedTuple):
    """The leader that a replica knows; for a leader also its ISR and the start of its epoch."""

    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    isr: LeaderIsr = LeaderIsr(NOBODY, NO_PARTITION_EPOCH, NOBODY, NO_PARTITION_EPOCH)
    epoch_start: Offset = UNKNOWN_OFFSET


NO_ROLE = Role()


def role_of(partition: Partition[ModelLog], replica: BrokerId) -> Role:
    """A replica's role. A follower's partition epoch is not kept, because metadata reach it in order."""
    isr = partition.isr if partition.leader == replica else NO_ROLE.isr
    return Role(partition.leader, partition.leader_epoch, isr, partition.epoch_start)


def following(local: LocalModelLog, fetcher: FetchState) -> Partition[ModelLog]:
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
