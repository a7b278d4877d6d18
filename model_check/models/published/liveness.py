"""The liveness properties of the published replication models, and the fairness that they declare.

The modules declare fairness and no temporal theorem. The properties here are ours; each says what it assumes beyond what is
published.
"""

from kspec.model_check.core.model import Condition, LivenessProperty, Local, PropertyCase, when
from kspec.model_check.core.temporal import strong, weak
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.published.board import Board
from kspec.model_check.models.published.exchange import is_in_office
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.claims import claim
from kspec.spec.published.election import may_elect_cleanly
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, LeaderAndIsr, Offset


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
            claim("AnnouncedEpochIsApplied", "published"),
        ),
        LivenessProperty(
            "DeposedLeaderStepsDown",
            "leads-to",
            tuple(_steps_down(board, replica) for replica in board.replicas),
            claim("DeposedLeaderStepsDown", "published"),
        ),
        LivenessProperty(
            "RecordIsDecided",
            "leads-to",
            tuple(_is_decided(board, value) for value in range(board.parameters["max_records"])),
            claim("RecordIsDecided", "published"),
            tuple(replicating),
        ),
        LivenessProperty(
            "FollowerCatchesUp",
            "leads-to",
            tuple(followers),
            claim("FollowerCatchesUp", "published"),
            tuple(replicating),
        ),
        LivenessProperty(
            "FollowerJoinsIsr",
            "leads-to",
            tuple(_joins(board, *pair) for pair in board.pairs()),
            claim("FollowerJoinsIsr", "published"),
            tuple(replicating),
        ),
        LivenessProperty(
            "LeaderTakesOffice",
            "eventually",
            (_takes_office(board),),
            claim("LeaderTakesOffice", "published"),
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


def _holds(log: ModelLog, value: int) -> bool:
    return any(record.value == value for record in log.records)


def _is_decided(board: Board, value: int) -> PropertyCase:
    logs, committed = board.slots.log, board.views.committed
    somewhere: Condition = tuple((when(lambda log: _holds(log, value), logs[replica]),) for replica in board.replicas)
    is_committed = tuple((when(lambda log: _holds(log, value), committed[replica]),) for replica in board.replicas)
    nowhere = tuple(when(lambda log: not _holds(log, value), logs[replica]) for replica in board.replicas)
    return PropertyCase(f"record m{value}", somewhere, (*is_committed, nowhere, (_nobody_leads(board),)))


def _is_applied(board: Board, epoch: Epoch, replica: BrokerId) -> PropertyCase:
    def seen(role: LeaderAndIsr) -> bool:
        return role.leader_epoch >= epoch

    def newer(partition: LeaderAndIsr) -> bool:
        return partition.leader_epoch > epoch

    slots = board.slots
    names_a_leader = when(lambda announced: announced.leader != NO_LEADER, slots.announcement[epoch])
    goal = ((when(seen, slots.role[replica]),), (when(newer, slots.partition),))
    return PropertyCase(f"epoch {epoch}, broker {replica}", ((names_a_leader,),), goal)


def _steps_down(board: Board, replica: BrokerId) -> PropertyCase:
    role, partition = board.slots.role[replica], board.slots.partition
    other_leads = when(lambda state: state.leader != NO_LEADER and not is_leader(replica, state), partition)
    is_over = when(lambda role: not is_leader(replica, role), role)
    in_office = when(is_in_office, partition, role)
    goal = ((is_over,), (in_office,), (_nobody_leads(board),))
    return PropertyCase(f"broker {replica}", ((board.is_leader[replica], other_leads),), goal)


def _follows(board: Board, leader: BrokerId, follower: BrokerId) -> Local:
    """The follower follows this leader, in the leader's epoch."""
    role = board.slots.role

    def in_epoch(own: LeaderAndIsr, other: LeaderAndIsr) -> bool:
        return is_leader(leader, other) and other.leader_epoch == own.leader_epoch

    return when(in_epoch, role[leader], role[follower])


def _catches_up(board: Board, leader: BrokerId, follower: BrokerId, offset: Offset) -> PropertyCase:
    log = board.slots.log
    behind = when(lambda own, other: other.end_offset <= offset < own.end_offset, log[leader], log[follower])
    caught_up = when(lambda other: other.end_offset > offset, log[follower])
    return PropertyCase(
        f"offset {offset}, broker {follower} behind broker {leader}",
        ((*_is_true_leader(board, leader), _follows(board, leader, follower), behind),),
        ((caught_up,), (_is_not_in_office(board, leader),)),
    )


def _joins(board: Board, leader: BrokerId, follower: BrokerId) -> PropertyCase:
    is_member = when(lambda role: follower in role.isr, board.slots.role[leader])
    return PropertyCase(
        f"broker {follower} and broker {leader}",
        ((*_is_true_leader(board, leader), _follows(board, leader, follower)),),
        ((is_member,), (_is_not_in_office(board, leader),)),
    )


def _takes_office(board: Board) -> PropertyCase:
    partition, last = board.slots.partition, board.epochs[-1]
    nobody_to_elect = when(lambda state: not any(may_elect_cleanly(state, replica) for replica in board.replicas), partition)
    no_epochs_left = when(lambda state: state.leader_epoch == last, partition)
    goal: Condition = tuple(_is_true_leader(board, replica) for replica in board.replicas)
    return PropertyCase("the initial state", (), (*goal, (no_epochs_left,), (_nobody_leads(board), nobody_to_elect)))
