"""The liveness properties of the published replication models, and the fairness that they declare.

The modules declare fairness and no temporal theorem. The properties here are ours; each says what it assumes beyond what is
published.
"""

from model_check.core.model import Case, Condition, LivenessProperty, Local, when
from model_check.core.temporal import strong, weak
from model_check.models.published.board import Board
from model_check.models.published.exchange import is_in_office
from spec.broker.rules.leadership import is_leader
from spec.log.record_log import RecordLog
from spec.published.election import may_elect_cleanly
from spec.values import NO_LEADER, BrokerId, Epoch, LeaderAndIsr, Offset


def add_liveness(board: Board) -> None:
    """Add the published fairness, and the properties."""
    names = board.names
    # In the first draft of KIP-320 a follower truncates in a step of its own, and cannot fetch before that.
    replicating = [weak(name) for name in (names.fetch, names.truncate) if name in board.model.action_names]
    board.model.fairness += [
        strong(names.advance_high_watermark),
        strong(names.expand_isr),
        strong("LeaderWrite"),
        weak(names.become_follower),
        weak("BecomeLeader"),
    ]
    followers = [
        _catches_up(board, *pair, Offset(end)) for pair in board.pairs() for end in range(board.parameters["log_size"])
    ]
    board.model.liveness += [
        LivenessProperty(
            "AnnouncedEpochIsApplied",
            "leads-to",
            tuple(_is_applied(board, epoch, replica) for epoch in board.epochs for replica in board.replicas),
            "a replica applies each announcement with a leader, or the controller has made a newer one",
        ),
        LivenessProperty(
            "DeposedLeaderStepsDown",
            "leads-to",
            tuple(_steps_down(board, replica) for replica in board.replicas),
            "a deposed leader stops leading in its epoch, unless the partition loses its leader",
        ),
        LivenessProperty(
            "RecordIsDecided",
            "leads-to",
            tuple(_is_decided(board, value) for value in range(board.parameters["max_records"])),
            "a record in any log is committed, or truncated from every log, unless the partition loses its leader",
            tuple(replicating),
        ),
        LivenessProperty(
            "FollowerCatchesUp",
            "leads-to",
            tuple(followers),
            "a follower in the epoch of the true leader gets every record of this leader's log, or the leader changes",
            tuple(replicating),
        ),
        LivenessProperty(
            "FollowerJoinsIsr",
            "leads-to",
            tuple(_joins(board, *pair) for pair in board.pairs()),
            "a follower in the epoch of the true leader is in the ISR at some time, or the leader changes",
            tuple(replicating),
        ),
        LivenessProperty(
            "LeaderTakesOffice",
            "eventually",
            (_takes_office(board),),
            "some replica leads in the controller's epoch, or the controller has no epochs or no in-sync replicas left",
            (weak("ControllerElectLeader"),),
        ),
    ]


def _is_true_leader(board: Board, replica: BrokerId) -> tuple[Local, ...]:
    """The replica believes it leads, in the controller's epoch."""
    role, partition = board.slots.role[replica], board.slots.partition
    in_office = when(is_in_office, partition, role)
    return board.is_leader[replica], in_office


def _is_not_in_office(board: Board, replica: BrokerId) -> Local:
    """The controller has deposed this leader, or the replica does not know yet that it leads."""
    role, partition = board.slots.role[replica], board.slots.partition
    return when(lambda state, role: not is_in_office(state, role), partition, role)


def _nobody_leads(board: Board) -> Local:
    return when(lambda state: state.leader == NO_LEADER, board.slots.partition)


def _holds(log: RecordLog, value: int) -> bool:
    return any(record.value == value for record in log.records)


def _is_decided(board: Board, value: int) -> Case:
    logs, committed = board.slots.log, board.views.committed
    somewhere: Condition = tuple((when(lambda log: _holds(log, value), logs[replica]),) for replica in board.replicas)
    is_committed = tuple((when(lambda log: _holds(log, value), committed[replica]),) for replica in board.replicas)
    nowhere = tuple(when(lambda log: not _holds(log, value), logs[replica]) for replica in board.replicas)
    return Case(f"record m{value}", somewhere, (*is_committed, nowhere, (_nobody_leads(board),)))


def _is_applied(board: Board, epoch: Epoch, replica: BrokerId) -> Case:
    def seen(role: LeaderAndIsr) -> bool:
        return role.leader_epoch >= epoch

    def newer(partition: LeaderAndIsr) -> bool:
        return partition.leader_epoch > epoch

    slots = board.slots
    names_a_leader = when(lambda announced: announced.leader != NO_LEADER, slots.announcement[epoch])
    goal = ((when(seen, slots.role[replica]),), (when(newer, slots.partition),))
    return Case(f"epoch {epoch}, broker {replica}", ((names_a_leader,),), goal)


def _steps_down(board: Board, replica: BrokerId) -> Case:
    role, partition = board.slots.role[replica], board.slots.partition
    other_leads = when(lambda state: state.leader != NO_LEADER and not is_leader(replica, state), partition)
    is_over = when(lambda role: not is_leader(replica, role), role)
    in_office = when(is_in_office, partition, role)
    goal = ((is_over,), (in_office,), (_nobody_leads(board),))
    return Case(f"broker {replica}", ((board.is_leader[replica], other_leads),), goal)


def _follows(board: Board, leader: BrokerId, follower: BrokerId) -> Local:
    """The follower follows this leader, in the leader's epoch."""
    role = board.slots.role

    def in_epoch(own: LeaderAndIsr, other: LeaderAndIsr) -> bool:
        return is_leader(leader, other) and other.leader_epoch == own.leader_epoch

    return when(in_epoch, role[leader], role[follower])


def _catches_up(board: Board, leader: BrokerId, follower: BrokerId, offset: Offset) -> Case:
    log = board.slots.log
    behind = when(lambda own, other: other.end_offset <= offset < own.end_offset, log[leader], log[follower])
    caught_up = when(lambda other: other.end_offset > offset, log[follower])
    return Case(
        f"offset {offset}, broker {follower} behind broker {leader}",
        ((*_is_true_leader(board, leader), _follows(board, leader, follower), behind),),
        ((caught_up,), (_is_not_in_office(board, leader),)),
    )


def _joins(board: Board, leader: BrokerId, follower: BrokerId) -> Case:
    is_member = when(lambda role: follower in role.isr, board.slots.role[leader])
    return Case(
        f"broker {follower} and broker {leader}",
        ((*_is_true_leader(board, leader), _follows(board, leader, follower)),),
        ((is_member,), (_is_not_in_office(board, leader),)),
    )


def _takes_office(board: Board) -> Case:
    partition, last = board.slots.partition, board.epochs[-1]
    nobody_to_elect = when(lambda state: not any(may_elect_cleanly(state, replica) for replica in board.replicas), partition)
    no_epochs_left = when(lambda state: state.leader_epoch == last, partition)
    goal: Condition = tuple(_is_true_leader(board, replica) for replica in board.replicas)
    return Case("the initial state", (), (*goal, (no_epochs_left,), (_nobody_leads(board), nobody_to_elect)))
