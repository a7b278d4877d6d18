"""Actions of an upgrade: voters report their directories, and `kraft.version` is raised from 0 to 1."""

from kspec.model_check.core.model import Arrow, Note
from kspec.model_check.models.quorum.board import NOW, Board
from kspec.model_check.models.quorum.values import StepOutcome, VoterServer
from kspec.spec.quorum.effects import VoterChangeEnded
from kspec.spec.quorum.reconfiguration import (
    check_upgrade,
    handle_update_voter,
    handle_update_voter_response,
    update_of,
    upgrade_voters,
)
from kspec.spec.quorum.refusals import check_leader_epoch
from kspec.spec.values import BrokerId, Error

Outcomes = tuple[StepOutcome, ...]


def add_upgrades(board: Board) -> None:
    """Add all actions of an upgrade, if the model has one."""
    if not board.parameters["upgrades"]:
        return
    for one, other in board.pairs:
        _add_report(board, one, other)
    for one in board.ids:
        _add_upgrade(board, one)


def _add_report(board: Board, one: BrokerId, other: BrokerId) -> None:
    """A follower reports its directory to its leader, which answers.

    **Leaves out:** answers of one that does not lead in this epoch: they say what those to a fetch say.
    """

    def report(asking: VoterServer, leader: VoterServer) -> Outcomes | None:
        send = update_of(board.servers[one], asking.replica)
        is_up = asking.halted is None and leader.halted is None
        epoch = asking.replica.election.epoch
        if send is None or send.to != other or not is_up or check_leader_epoch(leader.replica, epoch) != Error.NONE:
            return None
        taken = handle_update_voter(board.servers[other], leader.replica, send.message, NOW)
        (error,) = (effect.response.error for effect in taken.effects if isinstance(effect, VoterChangeEnded))
        told = handle_update_voter_response(board.servers[one], asking.replica, error, epoch, other, NOW)
        return (board.taken(one, asking, told), board.taken(other, leader, taken))

    servers, arguments, name = board.slots.server, {"server": one, "asked": other}, "UpdateVoter"
    after = board.outcomes(name, arguments, report, servers[one], servers[other], link=(one, other))
    board.add(name, arguments, after, (one, other), [Arrow(one, other, name), Arrow(other, one, f"answer to {name}")])


def _add_upgrade(board: Board, one: BrokerId) -> None:
    def upgrade(leader: VoterServer) -> Outcomes | None:
        server, replica = board.servers[one], leader.replica
        if leader.halted is not None or replica.voters_in_log or check_upgrade(server, replica) != Error.NONE:
            return None
        return (board.taken(one, leader, upgrade_voters(server, replica, NOW)),)

    after = board.outcomes("Upgrade", {"server": one}, upgrade, board.slots.server[one])
    board.add("Upgrade", {"server": one}, after, (one,), [Note(one, "raises kraft.version to 1")], spends="upgrades")
