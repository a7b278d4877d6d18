"""The properties: committed records are on every later leader, and on every broker that may lead next."""

from collections.abc import Callable
from itertools import combinations

from kspec.model_check.core.model import when
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.messages.board import Board
from kspec.model_check.models.messages.values import FurthestCommit, Leadership, PartitionState
from kspec.model_check.models.parts import Role
from kspec.spec.broker.rules.isr.proposal import maximal_isr
from kspec.spec.claims import claim
from kspec.spec.values import NO_BROKER_EPOCH, NO_LEADER, BrokerEpoch, BrokerId, Offset

MEANINGS = {
    name: claim(name, "messages")
    for name in (
        "CommittedOnLaterLeaders",
        "CommittedOnNextLeader",
        "SameEpochSameRecords",
        "QuorumSuperset",
        "ReadableIsFinal",
        "LogMatching",
    )
}
"""The properties by name; all but the last one are proved of the model without its bounds (theorem `kafka-next`)."""


def add_properties(board: Board) -> None:
    """Add the properties; within bounds only, because they compare all epochs with one another."""
    _committed(board)
    _isr(board)
    _logs(board)
    _reads(board)


def _committed(board: Board) -> None:
    model, slots, epochs = board.model, board.slots, board.numbers.epochs
    pairs = [(epoch, later) for epoch in epochs for later in epochs if epoch < later]

    def is_on_later(so_far: Leadership, log: ModelLog, later: Leadership, later_log: ModelLog) -> bool:
        return bool(not later.begun or later_log.agrees_below(log, so_far.committed))

    model.always(
        "CommittedOnLaterLeaders",
        [
            when(
                is_on_later,
                slots.leadership[epoch],
                slots.leader_log[epoch],
                slots.leadership[later],
                slots.leader_log[later],
            )
            for epoch, later in pairs
        ],
        MEANINGS["CommittedOnLaterLeaders"],
        twin="SomeEpochCommits",
    )
    model.sometimes(
        "SomeEpochCommits",
        [
            when(
                lambda so_far, later: so_far.committed > 0 and later.begun, slots.leadership[epoch], slots.leadership[later]
            )
            for epoch, later in pairs
        ],
        claim("SomeEpochCommits", "messages"),
    )

    def candidate(broker: BrokerId) -> Callable[[PartitionState, BrokerEpoch, ModelLog, Leadership, ModelLog], bool]:
        def holds(
            partition: PartitionState, broker_epoch: BrokerEpoch, log: ModelLog, so_far: Leadership, leader_log: ModelLog
        ) -> bool:
            may_have_lost = board.loses and broker_epoch == NO_BROKER_EPOCH
            listed = broker in partition.isr or broker in partition.elr
            return bool(may_have_lost or not listed or log.agrees_below(leader_log, so_far.committed))

        return holds

    model.always(
        "CommittedOnNextLeader",
        [
            when(
                candidate(broker),
                slots.partition,
                slots.broker_epoch[broker],
                slots.log[broker],
                slots.leadership[epoch],
                slots.leader_log[epoch],
            )
            for broker in board.brokers
            for epoch in epochs
        ],
        MEANINGS["CommittedOnNextLeader"],
        twin="SomeEpochCommits",
    )


def _isr(board: Board) -> None:
    model, slots = board.model, board.slots

    def covers(leader: BrokerId) -> Callable[[PartitionState, Role], bool]:
        def holds(partition: PartitionState, role: Role) -> bool:
            in_office = role.leader == leader and role.leader_epoch == partition.leader_epoch
            return not in_office or partition.isr <= maximal_isr(role.isr)

        return holds

    model.always(
        "QuorumSuperset",
        [when(covers(broker), slots.partition, slots.role[broker]) for broker in board.brokers],
        MEANINGS["QuorumSuperset"],
        twin="SomebodyLeads",
    )
    model.sometimes(
        "SomebodyLeads",
        [when(lambda partition: partition.leader != NO_LEADER, slots.partition)],
        claim("SomebodyLeads", "messages"),
    )


def _logs(board: Board) -> None:
    model, slots = board.model, board.slots
    pairs = list(combinations(board.brokers, 2))
    model.always(
        "SameEpochSameRecords",
        [when(_agree_where_epochs_meet, slots.log[one], slots.log[other]) for one, other in pairs],
        MEANINGS["SameEpochSameRecords"],
        twin="TwoReplicasKnowOfCommit",
    )
    model.always(
        "LogMatching",
        [
            when(
                lambda log, known, other, known_to_other: log.agrees_below(other, min(known, known_to_other)),
                slots.log[one],
                slots.high_watermark[one],
                slots.log[other],
                slots.high_watermark[other],
            )
            for one, other in pairs
        ],
        MEANINGS["LogMatching"],
        twin="TwoReplicasKnowOfCommit",
    )
    model.sometimes(
        "TwoReplicasKnowOfCommit",
        [
            when(lambda one, other: min(one, other) > 0, slots.high_watermark[one], slots.high_watermark[other])
            for one, other in pairs
        ],
        claim("TwoReplicasKnowOfCommit", "messages"),
    )


def _agree_where_epochs_meet(log: ModelLog, other: ModelLog) -> bool:
    epochs = {record.leader_epoch for record in log.records} & {record.leader_epoch for record in other.records}
    ends = [min(_end_of(epoch, log), _end_of(epoch, other)) for epoch in epochs]
    return log.agrees_below(other, Offset(max(ends, default=0)))


def _end_of(epoch: int, log: ModelLog) -> int:
    """The offset after a log's last record of an epoch."""
    return 1 + max(offset for offset in range(log.end_offset) if log.epoch_at(Offset(offset)) == epoch)


def _reads(board: Board) -> None:
    model, slots = board.model, board.slots

    def is_final(
        log: ModelLog, high_watermark: Offset, most: FurthestCommit, so_far: Leadership, leader_log: ModelLog
    ) -> bool:
        return bool(high_watermark <= most.end and log.agrees_below(leader_log, min(high_watermark, so_far.committed)))

    model.always(
        "ReadableIsFinal",
        [
            when(
                is_final,
                slots.log[broker],
                slots.high_watermark[broker],
                slots.furthest_commit,
                slots.leadership[epoch],
                slots.leader_log[epoch],
            )
            for broker in board.brokers
            for epoch in board.numbers.epochs
        ],
        MEANINGS["ReadableIsFinal"],
        twin="TwoReplicasKnowOfCommit",
    )
