"""The claims about the quorum, as properties of the model."""

from functools import partial
from itertools import combinations

from kspec.model_check.core.model import when
from kspec.model_check.models.quorum.board import Board
from kspec.model_check.models.quorum.values import CommittedLog, ElectedLeader, VoterServer, whole_log
from kspec.spec.claims import claim
from kspec.spec.log.record_log import RecordLog
from kspec.spec.quorum.replica import QuorumServer, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import sets_below
from kspec.spec.values import NO_VALUE, UNKNOWN_OFFSET, Offset

Elected = frozenset[ElectedLeader]


def add_properties(board: Board) -> None:
    """Add all properties, and what shows that their premises can be met."""
    model, slots = board.model, board.slots
    servers = list(slots.server.values())
    model.always(
        "ElectionSafety", [when(is_one_each, slots.elected)], claim("ElectionSafety", "quorum"), "TwoEpochsHaveLeaders"
    )
    model.always(
        "VotesOnce",
        [when(lambda cast: not cast.is_second, cast) for cast in slots.cast.values()],
        claim("VotesOnce", "quorum"),
        "TwoEpochsHaveLeaders",
    )
    model.always(
        "SameEpochSameRecords",
        [when(match_in_epochs, one, other) for one, other in combinations(servers, 2)],
        claim("SameEpochSameRecords", "quorum"),
        "TwoEpochsHaveLeaders",
    )
    model.always(
        "CommittedOnNewestLeader",
        [when(holds_committed, server, slots.elected, slots.committed) for server in servers],
        claim("CommittedOnNewestLeader", "quorum"),
        "RecordIsCommitted",
    )
    model.always(
        "CommittedIsFinal",
        [when(lambda committed: not committed.is_torn, slots.committed)],
        claim("CommittedIsFinal", "quorum"),
        "RecordIsCommitted",
    )
    model.always(
        "HighWatermarkGrows",
        [when(knows_committed, server, slots.elected, slots.committed) for server in servers],
        claim("HighWatermarkGrows", "quorum"),
        "RecordIsCommitted",
    )
    model.always(
        "NoIllegalState",
        [when(lambda server: server.halted is None, server) for server in servers],
        claim("NoIllegalState", "quorum"),
        "TwoEpochsHaveLeaders",
    )
    model.sometimes(
        "TwoEpochsHaveLeaders",
        [when(lambda elected: len({leader.epoch for leader in elected}) > 1, slots.elected)],
        claim("TwoEpochsHaveLeaders", "quorum"),
    )
    model.sometimes("RecordIsCommitted", [when(has_record, slots.committed)], claim("RecordIsCommitted", "quorum"))
    _add_those_of_serving_leaders(board)
    if board.voters_in_log or board.parameters["upgrades"]:
        voting = list(zip(board.servers.values(), servers, strict=True))
        model.always(
            "RemovedLeaderResigns",
            [when(partial(has_resigned_if_removed, server), slot) for server, slot in voting],
            claim("RemovedLeaderResigns", "quorum"),
            "VotersHaveChanged",
        )
        model.sometimes(
            "VotersHaveChanged",
            [when(partial(knows_other_voters, server), slot) for server, slot in voting],
            claim("VotersHaveChanged", "quorum"),
        )


def _add_those_of_serving_leaders(board: Board) -> None:
    needless = board.slots.needless
    if needless is None:
        return
    if board.parameters["fair_timers"]:
        rule = when(lambda elections: not elections.stood, needless)
        board.model.always("NoNeedlessElection", [rule], claim("NoNeedlessElection", "quorum"), "TwoEpochsHaveLeaders")
    if board.parameters["strangers"]:
        rule = when(lambda elections: not elections.unseated, needless)
        board.model.always("StrangerUnseatsNobody", [rule], claim("StrangerUnseatsNobody", "quorum"), "TwoEpochsHaveLeaders")


def is_one_each(elected: Elected) -> bool:
    """Whether each epoch has one leader at most."""
    return len({leader.epoch for leader in elected}) == len(elected)


def match_in_epochs(one: VoterServer, other: VoterServer) -> bool:
    """Whether two logs agree up to the last record of one epoch at one offset, and on the voters, too."""
    first, second = whole_log(one), whole_log(other)
    common = Offset(_last_common(first, second))
    known, others = (sets_below(server.replica.voter_sets, common) for server in (one, other))
    if one.in_snapshot or other.in_snapshot:  # which has the last voters before its end, and no earlier ones
        agree = not known or not others or known[-1].voters == others[-1].voters
    else:
        agree = known == others
    return agree and common <= first.agreement_end(second)


def _last_common(first: RecordLog, second: RecordLog) -> int:
    """The offset after the last one at which both logs have a record of the same epoch; 0 if there is none."""
    end = min(first.end_offset, second.end_offset)
    same = [offset + 1 for offset in range(end) if first.epoch_at(Offset(offset)) == second.epoch_at(Offset(offset))]
    return max(same, default=0)


def is_newest_leader(server: VoterServer, elected: Elected) -> bool:
    """Whether a server leads, and nobody has been elected in a later epoch."""
    replica = server.replica
    newest = max((leader.epoch for leader in elected), default=replica.election.epoch)
    return replica.role == VoterRole.LEADER and replica.election.epoch >= newest


def holds_committed(server: VoterServer, elected: Elected, committed: CommittedLog) -> bool:
    """Whether the newest leader holds all that was ever committed."""
    records = committed.records
    return not is_newest_leader(server, elected) or whole_log(server).records[: len(records)] == records


def knows_committed(server: VoterServer, elected: Elected, committed: CommittedLog) -> bool:
    """Whether the newest leader's high watermark, once it has one, is not below what was ever committed."""
    known = server.replica.high_watermark
    return not is_newest_leader(server, elected) or known == UNKNOWN_OFFSET or known >= len(committed.records)


def has_resigned_if_removed(server: QuorumServer, state: VoterServer) -> bool:
    """Whether a server does not lead that knows its own removal to be committed."""
    replica = state.replica
    is_removed = not votes(server, replica) and replica.high_watermark > replica.voter_sets[-1].offset
    return replica.role != VoterRole.LEADER or not is_removed


def knows_other_voters(server: QuorumServer, state: VoterServer) -> bool:
    """Whether a server knows a change of the voters to be committed."""
    sets, known = state.replica.voter_sets, state.replica.high_watermark
    return any(entry.voters != sets[0].voters and entry.offset < known for entry in sets)


def has_record(committed: CommittedLog) -> bool:
    """Whether a record is committed that is not the first one of an epoch."""
    return any(record.value != NO_VALUE for record in committed.records)
