"""The controller elects leaders and takes failed brokers out of the in-sync replicas."""

from collections.abc import Callable

from kspec.model_check.core.model import CONTROLLER, Note, then, when
from kspec.model_check.models.published.board import Board
from kspec.spec.published.election import may_elect_cleanly, may_elect_uncleanly, may_fail
from kspec.spec.values import BrokerId, LeaderAndIsr
from kspec.spec.zookeeper.decisions import elect_cleanly, elect_uncleanly


def add_controller(board: Board) -> None:
    """Add elections, clean and by setting unclean, and the removal of failed brokers."""
    for replica in board.replicas:
        _decide(board, "ControllerElectLeader", replica, may_elect_cleanly, elect_cleanly, "elects broker {}")
        _decide(board, "ControllerShrinkIsr", replica, may_fail, board.rules.fail_broker, "notices that broker {} failed")
        if board.parameters["unclean"]:
            _decide(
                board,
                "ControllerElectUncleanLeader",
                replica,
                may_elect_uncleanly,
                elect_uncleanly,
                "elects broker {}, which is out of sync",
            )


def _decide(
    board: Board,
    name: str,
    replica: BrokerId,
    may: Callable[[LeaderAndIsr, BrokerId], bool],
    decide: Callable[[LeaderAndIsr, BrokerId], LeaderAndIsr],
    story: str,
) -> None:
    """A decision of the controller: the partition changes, and the new state is announced under its epoch."""
    partition = board.slots.partition
    for epoch in board.epochs:
        board.model.action(
            name,
            {"replica": replica},
            events=[Note(CONTROLLER, story.format(replica))],
            guards=[board.is_next_epoch[epoch], when(lambda state: may(state, replica), partition)],
            effects=[
                then(
                    (partition, board.slots.announcement[epoch]),
                    lambda state: (decide(state, replica), decide(state, replica)),
                    partition,
                )
            ],
        )
