"""The liveness of the quorum: a leader is elected, commits, is followed, and does not lead on when it reaches nobody."""

from collections.abc import Callable
from typing import Any

from kspec.model_check.core.model import LivenessProperty, Local, PropertyCase, when
from kspec.model_check.core.temporal import weak
from kspec.model_check.models.quorum.board import Board
from kspec.model_check.models.quorum.exchanges import KINDS
from kspec.model_check.models.quorum.network import CutLinks, Servers, leads, reaches, reaches_majority
from kspec.spec.claims import claim
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.values import BrokerId

Told = Callable[[Servers, CutLinks], bool]


def add_liveness(board: Board) -> None:
    """Add the properties, and the fairness that they rest on: no exchange and no timer is put off for ever."""
    model, fair_timers = board.model, board.parameters["fair_timers"]
    model.fairness += [weak(kind, each=True) for kind in KINDS]
    model.fairness += [weak("TimeOut", each=True), *([weak("CheckQuorum", each=True)] if fair_timers else [])]
    last: int = board.parameters["max_epoch"]

    def can_elect(servers: Servers, cut: CutLinks) -> bool:
        return any(server.halted is None and reaches_majority(servers, cut, one) for one, server in servers.items())

    def is_led_or_over(servers: Servers, cut: CutLinks) -> bool:
        is_led = any(leads(server) for server in servers.values())
        is_over = any(server.replica.election.epoch == last for server in servers.values())
        return is_led or is_over or not can_elect(servers, cut)

    elected = [_case(board, "the quorum", can_elect, is_led_or_over)]
    served = last - 1 if board.parameters["cuts"] else last
    commits = [_case(board, f"leader {one}", *_commits(one, served)) for one in board.ids]
    follows = [_case(board, f"leader {one}, voter {other}", *_follows(one, other, served)) for one, other in board.pairs]
    resigns = [_case(board, f"leader {one}", *_resigns(one)) for one in board.ids]
    for name, cases in (
        ("LeaderIsElected", elected),
        ("LeaderCommits", commits),
        ("VoterFollows", follows),
        *([("CutOffLeaderResigns", resigns)] if fair_timers else []),
    ):
        model.liveness.append(LivenessProperty(name, "leads-to", tuple(cases), claim(name, "quorum")))


def _case(board: Board, label: str, premise: Told, goal: Told) -> PropertyCase:
    return PropertyCase(label, ((_told(board, premise),),), ((_told(board, goal),),))


def _told(board: Board, told: Told) -> Local:
    def holds(*values: Any) -> bool:
        return told(*board.network_of(values))

    return when(holds, *board.network)


def _commits(one: BrokerId, last: int) -> tuple[Told, Told]:
    """Up to an epoch, `last`: where servers are cut off, one that asks for votes in the very last epoch gets no further."""

    def could(servers: Servers, cut: CutLinks) -> bool:
        replica = servers[one].replica
        lacks = replica.high_watermark < replica.local.log.end_offset and replica.election.epoch <= last
        return leads(servers[one]) and lacks and reaches_majority(servers, cut, one)

    return could, lambda servers, cut: not could(servers, cut)


def _follows(one: BrokerId, other: BrokerId, last: int) -> tuple[Told, Told]:
    def could(servers: Servers, cut: CutLinks) -> bool:
        is_led = leads(servers[one]) and servers[one].replica.election.epoch <= last
        return is_led and reaches(servers, cut, one, other) and not is_follower(servers)

    def is_follower(servers: Servers) -> bool:
        replica, (epoch, leader, _) = servers[other].replica, servers[one].replica.election
        return replica.role == VoterRole.FOLLOWER and replica.election[:2] == (epoch, leader)

    return could, lambda servers, cut: not could(servers, cut)


def _resigns(one: BrokerId) -> tuple[Told, Told]:
    def is_alone(servers: Servers, cut: CutLinks) -> bool:
        return leads(servers[one]) and not reaches_majority(servers, cut, one)

    return is_alone, lambda servers, cut: not is_alone(servers, cut)
