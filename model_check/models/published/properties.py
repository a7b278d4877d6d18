"""Properties of the published replication models."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from kspec.model_check.core.model import Local, Model, Slot, when
from kspec.model_check.models.carriers import ModelLog, empty_log
from kspec.model_check.models.published.exchange import LeaderState, committed
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.claims import claim
from kspec.spec.published.election import may_lead_next
from kspec.spec.published.replica import NO_ROLE
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, LeaderAndIsr

if TYPE_CHECKING:
    from kspec.model_check.models.published.board import Board, Slots


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
    model.always("TypeOk", _type_terms(slots, replicas, parameters), claim("TypeOk", "published"), None)
    model.always(
        "LeaderInIsr",
        [when(lambda state: state.leader in state.isr, partition)],
        claim("LeaderInIsr", "published"),
        "SomebodyLeads",
        by_default=False,
    )
    model.always(
        "LeaderNoneOrInIsr",
        [when(lambda state: state.leader == NO_LEADER or state.leader in state.isr, partition)],
        claim("LeaderNoneOrInIsr", "published"),
        "SomebodyLeads",
    )
    model.sometimes(
        "SomebodyLeads", [when(lambda state: state.leader != NO_LEADER, partition)], claim("SomebodyLeads", "published")
    )

    def own_isr_agrees(other: BrokerId) -> Callable[[LeaderState, ModelLog], bool]:
        return lambda own, log: other not in own.role.isr or own.log.agrees_below(log, own.high_watermark)

    def true_isr_agrees(other: BrokerId) -> Callable[[ModelLog, frozenset[BrokerId], ModelLog], bool]:
        return lambda known, isr, log: other not in isr or known.agrees_below(log, known.end_offset)

    true_isr = model.view("true ISR", lambda state: state.isr, partition)
    nothing = empty_log(board.parameters)
    known_to_leader = {
        leader: model.view(
            "committed by a presumed leader",
            lambda role, log, end, leader=leader: committed(log, end) if is_leader(leader, role) else nothing,
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
        claim("WeakIsr", "published"),
        "LeaderHasCommittedWithOthers",
    )
    model.always(
        "StrongIsr",
        [when(true_isr_agrees(other), known_to_leader[leader], true_isr, slots.log[other]) for leader, other in everyone],
        claim("StrongIsr", "published"),
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
        claim("LeaderHasCommittedWithOthers", "published"),
    )


def _plain(board: "Board") -> None:
    model, slots, replicas, unclean = board.model, board.slots, board.replicas, board.parameters["unclean"]
    known = board.views.committed

    def next_leader_agrees(other: BrokerId) -> Callable[[ModelLog, LeaderAndIsr, ModelLog], bool]:
        return lambda mine, state, log: not may_lead_next(state, other, unclean) or mine.agrees_below(log, mine.end_offset)

    def follower_agrees(leader: BrokerId) -> Callable[[LeaderState, LeaderAndIsr, ModelLog], bool]:
        def agrees(own: LeaderState, role: LeaderAndIsr, theirs: ModelLog) -> bool:
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
        claim("CommittedOnNextLeader", "published"),
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
        claim("LogMatching", "published"),
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
        claim("FollowersMatchLeader", "published"),
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
        claim("TwoReplicasKnowOfCommit", "published"),
    )


def _acknowledged(model: Model, slots: "Slots", acknowledged: Slot, replicas: Sequence[BrokerId], unclean: bool) -> None:
    def holds_all(promises: frozenset[Any], log: ModelLog) -> bool:
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
        claim("AcknowledgedOnLeader", "published"),
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
        claim("AcknowledgedAcrossLeaders", "published"),
    )


def _type_terms(slots: "Slots", replicas: Sequence[BrokerId], parameters: Mapping[str, Any]) -> list[Local]:
    ids = frozenset(replicas)
    max_epoch, log_size, max_records = parameters["max_epoch"], parameters["log_size"], parameters["max_records"]

    def role_ok(role: LeaderAndIsr) -> bool:
        return role.leader in {*ids, NO_LEADER} and NO_EPOCH <= role.leader_epoch <= max_epoch and role.isr <= ids

    def log_ok(log: ModelLog) -> bool:
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
