"""What the published replication models must satisfy."""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from model_check.model import Local, Model, Slot, when
from spec.election import may_lead_next
from spec.log import RecordLog
from spec.replica import NO_ROLE, leads
from spec.values import NO_EPOCH, NO_LEADER, BrokerId, LeaderAndIsr, Offset

if TYPE_CHECKING:
    from model_check.models.gustafson.board import Slots


def add_properties(model: Model, slots: "Slots", replicas: list[BrokerId], parameters: Mapping[str, Any]) -> None:
    """Add the published invariants, those stated in plain language, and the `sometimes` that show their premises met."""
    _published(model, slots, replicas, parameters)
    _plain(model, slots, replicas, parameters["unclean"])
    if slots.acknowledged:
        _acknowledged(model, slots, slots.acknowledged, replicas, parameters["unclean"])


def _published(model: Model, slots: "Slots", replicas: list[BrokerId], parameters: Mapping[str, Any]) -> None:
    partition = slots.partition
    model.always(
        "TypeOk", _type_terms(slots, replicas, parameters), "every value is of its type and within its bounds", None
    )
    model.always(
        "LeaderInIsr",
        [when(lambda state: state.leader in state.isr, partition)],
        "the partition's leader is in the ISR (as published: false at the start, when nobody leads)",
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

    def own_isr_agrees(leader: BrokerId, other: BrokerId) -> Callable[..., bool]:
        def agrees(role: LeaderAndIsr, end: Offset, log: RecordLog, other_log: RecordLog) -> bool:
            return not leads(leader, role) or other not in role.isr or log.agrees_below(other_log, end)

        return agrees

    def true_isr_agrees(leader: BrokerId, other: BrokerId) -> Callable[..., bool]:
        def agrees(role: LeaderAndIsr, end: Offset, log: RecordLog, state: LeaderAndIsr, other_log: RecordLog) -> bool:
            return not leads(leader, role) or other not in state.isr or log.agrees_below(other_log, end)

        return agrees

    def own(leader: BrokerId) -> tuple[Slot, Slot, Slot]:
        return slots.role[leader], slots.high_watermark[leader], slots.log[leader]

    everyone = [(leader, other) for leader in replicas for other in replicas]
    model.always(
        "WeakIsr",
        [when(own_isr_agrees(leader, other), *own(leader), slots.log[other]) for leader, other in everyone],
        "what lies below a presumed leader's high watermark is on every member of the ISR that this leader believes in",
        "LeaderHasCommitted",
    )
    model.always(
        "StrongIsr",
        [when(true_isr_agrees(leader, other), *own(leader), partition, slots.log[other]) for leader, other in everyone],
        "what lies below a presumed leader's high watermark is on every member of the true ISR",
        "LeaderHasCommitted",
    )
    model.sometimes(
        "LeaderHasCommitted",
        [
            when(
                lambda role, end, state, leader=leader: leads(leader, role) and end > 0 and bool(state.isr - {leader}),
                slots.role[leader],
                slots.high_watermark[leader],
                partition,
            )
            for leader in replicas
        ],
        "a presumed leader has committed a record, and the true ISR has another member",
    )


def _plain(model: Model, slots: "Slots", replicas: list[BrokerId], unclean: bool) -> None:
    def next_leader_agrees(other: BrokerId) -> Callable[..., bool]:
        def agrees(end: Offset, log: RecordLog, state: LeaderAndIsr, other_log: RecordLog) -> bool:
            return not may_lead_next(state, other, unclean) or log.agrees_below(other_log, end)

        return agrees

    def follower_agrees(leader: BrokerId, follower: BrokerId) -> Callable[..., bool]:
        def agrees(
            role: LeaderAndIsr, end: Offset, log: RecordLog, own: LeaderAndIsr, own_end: Offset, own_log: RecordLog
        ) -> bool:
            follows = leads(leader, role) and leads(leader, own) and own.leader_epoch == role.leader_epoch
            return not follows or log.agrees_below(own_log, min(end, own_end))

        return agrees

    model.always(
        "CommittedOnNextLeader",
        [
            when(
                next_leader_agrees(other),
                slots.high_watermark[replica],
                slots.log[replica],
                slots.partition,
                slots.log[other],
            )
            for replica in replicas
            for other in replicas
            if other != replica
        ],
        "a committed record (below any replica's high watermark) is on every possible next leader",
        "LeaderHasCommitted",
    )
    model.always(
        "LogMatching",
        [
            when(
                lambda end, log, other_end, other_log: log.agrees_below(other_log, min(end, other_end)),
                slots.high_watermark[replica],
                slots.log[replica],
                slots.high_watermark[other],
                slots.log[other],
            )
            for replica, other in combinations(replicas, 2)
        ],
        "two replicas hold the same records below both their high watermarks",
        "TwoReplicasKnowOfCommit",
    )
    model.always(
        "FollowersMatchLeader",
        [
            when(
                follower_agrees(leader, follower),
                slots.role[leader],
                slots.high_watermark[leader],
                slots.log[leader],
                slots.role[follower],
                slots.high_watermark[follower],
                slots.log[follower],
            )
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


def _acknowledged(model: Model, slots: "Slots", acknowledged: Slot, replicas: list[BrokerId], unclean: bool) -> None:
    def holds_all(promises: frozenset[Any], log: RecordLog) -> bool:
        return all(log.read(promise.offset, 1) == (promise.record,) for promise in promises)

    model.always(
        "AcknowledgedOnLeader",
        [
            when(
                lambda state, role, log, promises, leader=leader: (
                    not leads(leader, state) or role.leader_epoch != state.leader_epoch or holds_all(promises, log)
                ),
                slots.partition,
                slots.role[leader],
                slots.log[leader],
                acknowledged,
            )
            for leader in replicas
        ],
        "the leader in office holds every record that a producer was told is safe",
        "AcknowledgedAcrossLeaders",
    )
    model.sometimes(
        "AcknowledgedAcrossLeaders",
        [
            when(
                lambda state, role, promises, leader=leader: (
                    leads(leader, state)
                    and role.leader_epoch == state.leader_epoch
                    and any(promise.record.leader_epoch < role.leader_epoch for promise in promises)
                ),
                slots.partition,
                slots.role[leader],
                acknowledged,
            )
            for leader in replicas
        ],
        "a leader is in office after a record was acknowledged in an earlier epoch",
    )


def _type_terms(slots: "Slots", replicas: list[BrokerId], parameters: Mapping[str, Any]) -> list[Local]:
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
