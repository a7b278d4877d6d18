"""What the published replication models must satisfy."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from model_check.core.model import Local, Model, Slot, when
from model_check.models.published.exchange import Leading, committed
from spec.broker.rules.leadership import is_leader
from spec.log.record_log import EMPTY_LOG, RecordLog
from spec.published.election import may_lead_next
from spec.published.replica import NO_ROLE
from spec.values import NO_EPOCH, NO_LEADER, BrokerId, LeaderAndIsr

if TYPE_CHECKING:
    from model_check.models.published.board import Board, Slots


def add_properties(board: "Board") -> None:
    """Add the published invariants, those stated in plain language, and the `sometimes` that show their premises met."""
    model, slots, replicas, parameters = board.model, board.slots, board.replicas, board.parameters
    _published(board)
    _plain(board)
    if slots.acknowledged:
        _acknowledged(model, slots, slots.acknowledged, replicas, parameters["unclean"])


def _published(board: "Board") -> None:
    model, slots, replicas, parameters = board.model, board.slots, board.replicas, board.parameters
    partition, leading = slots.partition, board.views.leading
    model.always(
        "TypeOk", _type_terms(slots, replicas, parameters), "every value is of its type and within its bounds", None
    )
    model.always(
        "LeaderInIsr",
        [when(lambda state: state.leader in state.isr, partition)],
        "the partition's leader is in the ISR (as published: false at the start, without a leader)",
        "SomebodyLeads",
        by_default=False,
    )
    model.always(
        "LeaderNoneOrInIsr",
        [when(lambda state: state.leader == NO_LEADER or state.leader in state.isr, partition)],
        "the partition has no leader, or its leader is in the ISR",
        "SomebodyLeads",
    )
    model.sometimes(
        "SomebodyLeads", [when(lambda state: state.leader != NO_LEADER, partition)], "the partition has a leader"
    )

    def own_isr_agrees(other: BrokerId) -> Callable[[Leading, RecordLog], bool]:
        return lambda own, log: other not in own.role.isr or own.log.agrees_below(log, own.high_watermark)

    def true_isr_agrees(other: BrokerId) -> Callable[[RecordLog, frozenset[BrokerId], RecordLog], bool]:
        return lambda known, isr, log: other not in isr or known.agrees_below(log, known.end_offset)

    true_isr = model.view("true ISR", lambda state: state.isr, partition)
    known_to_leader = {
        leader: model.view(
            "committed by a presumed leader",
            lambda role, log, end, leader=leader: committed(log, end) if is_leader(leader, role) else EMPTY_LOG,
            slots.role[leader],
            slots.log[leader],
            slots.high_watermark[leader],
            key=leader,
        )
        for leader in replicas
    }
    everyone = [(leader, other) for leader in replicas for other in replicas]
    model.always(
        "WeakIsr",
        [when(own_isr_agrees(other), leading[leader], slots.log[other]) for leader, other in everyone],
        "every record below a presumed leader's high watermark is on every member of this leader's own ISR",
        "LeaderHasCommittedWithOthers",
    )
    model.always(
        "StrongIsr",
        [when(true_isr_agrees(other), known_to_leader[leader], true_isr, slots.log[other]) for leader, other in everyone],
        "every record below a presumed leader's high watermark is on every member of the controller's ISR",
        "LeaderHasCommittedWithOthers",
    )
    model.sometimes(
        "LeaderHasCommittedWithOthers",
        [
            when(
                lambda known, isr, leader=leader: known.end_offset > 0 and bool(isr - {leader}),
                known_to_leader[leader],
                true_isr,
            )
            for leader in replicas
        ],
        "a presumed leader has committed a record, and the controller's ISR has another member",
    )


def _plain(board: "Board") -> None:
    model, slots, replicas, unclean = board.model, board.slots, board.replicas, board.parameters["unclean"]
    known = board.views.committed

    def next_leader_agrees(other: BrokerId) -> Callable[[RecordLog, LeaderAndIsr, RecordLog], bool]:
        return lambda mine, state, log: not may_lead_next(state, other, unclean) or mine.agrees_below(log, mine.end_offset)

    def follower_agrees(leader: BrokerId) -> Callable[[Leading, LeaderAndIsr, RecordLog], bool]:
        def agrees(own: Leading, role: LeaderAndIsr, theirs: RecordLog) -> bool:
            follows = is_leader(leader, own.role) and is_leader(leader, role) and own.role.leader_epoch == role.leader_epoch
            return not follows or own.log.agrees_below(theirs, min(own.high_watermark, theirs.end_offset))

        return agrees

    model.always(
        "CommittedOnNextLeader",
        [
            when(next_leader_agrees(other), known[replica], slots.partition, slots.log[other])
            for replica in replicas
            for other in replicas
            if other != replica
        ],
        "a committed record (below any replica's high watermark) is on every possible next leader",
        "LeaderHasCommittedWithOthers",
    )
    model.always(
        "LogMatching",
        [
            when(
                lambda mine, theirs: mine.agrees_below(theirs, min(mine.end_offset, theirs.end_offset)),
                known[replica],
                known[other],
            )
            for replica, other in combinations(replicas, 2)
        ],
        "two replicas hold the same records below both their high watermarks",
        "TwoReplicasKnowOfCommit",
    )
    model.always(
        "FollowersMatchLeader",
        [
            when(follower_agrees(leader), board.views.leading[leader], slots.role[follower], known[follower])
            for leader in replicas
            for follower in replicas
            if leader != follower
        ],
        "a follower in its leader's epoch holds the leader's records below both their high watermarks",
        "TwoReplicasKnowOfCommit",
    )
    model.sometimes(
        "TwoReplicasKnowOfCommit",
        [
            when(
                lambda end, other_end: min(end, other_end) > 0,
                slots.high_watermark[replica],
                slots.high_watermark[other],
            )
            for replica, other in combinations(replicas, 2)
        ],
        "two replicas know of a committed record",
    )


def _acknowledged(model: Model, slots: "Slots", acknowledged: Slot, replicas: Sequence[BrokerId], unclean: bool) -> None:
    def holds_all(promises: frozenset[Any], log: RecordLog) -> bool:
        return all(log.read(promise.offset, 1) == (promise.record,) for promise in promises)

    model.always(
        "AcknowledgedOnLeader",
        [
            when(
                lambda state, role, log, promises, leader=leader: (
                    not is_leader(leader, state) or role.leader_epoch != state.leader_epoch or holds_all(promises, log)
                ),
                slots.partition,
                slots.role[leader],
                slots.log[leader],
                acknowledged,
            )
            for leader in replicas
        ],
        "the true leader holds every acknowledged record",
        "AcknowledgedAcrossLeaders",
    )
    model.sometimes(
        "AcknowledgedAcrossLeaders",
        [
            when(
                lambda state, role, promises, leader=leader: (
                    is_leader(leader, state)
                    and role.leader_epoch == state.leader_epoch
                    and any(promise.record.leader_epoch < role.leader_epoch for promise in promises)
                ),
                slots.partition,
                slots.role[leader],
                acknowledged,
            )
            for leader in replicas
        ],
        "there is a true leader after a record was acknowledged in an earlier epoch",
    )


def _type_terms(slots: "Slots", replicas: Sequence[BrokerId], parameters: Mapping[str, Any]) -> list[Local]:
    ids = frozenset(replicas)
    max_epoch, log_size, max_records = parameters["max_epoch"], parameters["log_size"], parameters["max_records"]

    def role_ok(role: LeaderAndIsr) -> bool:
        return role.leader in {*ids, NO_LEADER} and NO_EPOCH <= role.leader_epoch <= max_epoch and role.isr <= ids

    def log_ok(log: RecordLog) -> bool:
        return log.end_offset <= log_size and all(
            0 <= record.value < max_records and 0 <= record.leader_epoch <= max_epoch for record in log.records
        )

    def announcement_ok(announced: LeaderAndIsr, epoch: int) -> bool:
        return announced == NO_ROLE or (role_ok(announced) and announced.leader_epoch == epoch)

    return [
        *(when(log_ok, slots.log[replica]) for replica in replicas),
        *(
            when(lambda end, log: 0 <= end <= log.end_offset, slots.high_watermark[replica], slots.log[replica])
            for replica in replicas
        ),
        *(when(role_ok, slots.role[replica]) for replica in replicas),
        when(role_ok, slots.partition),
        when(lambda value: 0 <= value <= max_records, slots.next_record),
        *(
            when(lambda announced, epoch=epoch: announcement_ok(announced, epoch), slot)
            for epoch, slot in slots.announcement.items()
        ),
    ]
