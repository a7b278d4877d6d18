"""Actions of one server: its time ends, it appends, resigns, stops and starts, loses what was not flushed, or its disk."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

from kspec.model_check.core.model import REFUSED, Arrow, Effect, Event, Note, Slot, then
from kspec.model_check.models.quorum.board import FROM_STRANGERS, NOW, Board, directory_of
from kspec.model_check.models.quorum.exchanges import answered, handled, kind_of, request_to
from kspec.model_check.models.quorum.network import CutLink, CutLinks, Servers, is_answered_in_time, reaches_majority
from kspec.model_check.models.quorum.values import StepOutcome, VoterServer, whole_log
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.messages.quorum.vote import VoteRequest
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, RemoveVoterRequest
from kspec.spec.quorum.effects import LogCommitted, LogFlushed, VotersAppended
from kspec.spec.quorum.elections import on_timeout
from kspec.spec.quorum.following import after_own_snapshot
from kspec.spec.quorum.leading import append, on_check_quorum, on_resignation
from kspec.spec.quorum.reconfiguration import (
    handle_add_voter,
    handle_remove_voter,
    on_versions,
    on_voter_change_timeout,
)
from kspec.spec.quorum.replica import NO_CHANGE, NO_ELECTION, own_key, voters_of, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.replication import FIRST_EPOCH
from kspec.spec.quorum.rules.voters import sets_below
from kspec.spec.quorum.transitions import LEADER_CHANGE, LEADER_CHANGE_AND_VOTERS, VERSION_AND_VOTERS, QuorumStep
from kspec.spec.step import Send, Step
from kspec.spec.values import NO_EPOCH, NO_REPLICA, BrokerId, Error, Offset, Record, ReplicaKey, next_epoch

Outcomes = tuple[StepOutcome, ...]


def add_disturbances(board: Board) -> None:
    """Add what happens on one server."""
    parameters = board.parameters
    first = LEADER_CHANGE_AND_VOTERS if board.voters_in_log else LEADER_CHANGE
    _add_cuts(board)
    of_leaders = first.record_count * parameters["max_epoch"]
    of_upgrades = VERSION_AND_VOTERS.record_count * parameters["upgrades"]
    longest = of_leaders + of_upgrades + parameters["records"] + parameters["voter_changes"]
    for one in board.ids:
        _add_timeout(board, one)
        if parameters["records"]:
            _add_append(board, one)
        if parameters["resignations"]:
            _add_resignation(board, one)
        if parameters["snapshots"]:
            _add_snapshot(board, one)
        if parameters["fair_timers"]:
            _add_check_quorum(board, one)
        if parameters["strangers"]:
            for name in FROM_STRANGERS:
                _add_stranger(board, name, one)
        if parameters["voter_changes"]:
            _add_change_timeout(board, one)
            for other in board.ids:
                _add_removal(board, one, other)
                if other != one:
                    _add_addition(board, one, other)
        if parameters["restarts"]:
            _add_restart(board, one)
        if parameters["wipes"]:
            _add_wipe(board, one)
        if parameters["power_losses"]:
            for kept in range(longest):
                _add_power_loss(board, one, Offset(kept))
            if parameters["records"]:
                _add_power_loss_while_appending(board, one)
                for other in board.ids:
                    if other != one:
                        _add_power_loss_after_answer(board, one, other)


def _add(
    board: Board, name: str, one: BrokerId, what: str, decide: Callable[[VoterServer], StepOutcome | None], **other: Any
) -> None:
    def outcome(server: VoterServer) -> Outcomes | None:
        found = None if server.halted is not None else decide(server)
        return None if found is None else (found,)

    arguments = {"server": one, **other.get("arguments", {})}
    after = board.outcomes(name, arguments, outcome, board.slots.server[one])
    board.add(name, arguments, after, (one,), [Note(one, what)], spends=other.get("spends", ""))


def _add_timeout(board: Board, one: BrokerId) -> None:
    """A timer ends: that of an election, of fetches, or of asking; a fair one only of who reaches nobody."""

    def time_out(server: VoterServer) -> StepOutcome | None:
        if server.replica.role == VoterRole.FOLLOWER and not votes(board.servers[one], server.replica):
            return None  # an observer that asks others
        step = on_timeout(board.servers[one], server.replica, NOW)
        return None if step.state is server.replica else board.taken(one, server, step)

    _add_of_timer(board, "TimeOut", one, "its time is over", time_out, is_answered_in_time)


def _add_of_timer(
    board: Board,
    name: str,
    one: BrokerId,
    what: str,
    decide: Callable[[VoterServer], StepOutcome | None],
    is_kept: Callable[[Servers, CutLinks, BrokerId], bool],
) -> None:
    """Add the end of a timer. If timers are fair, it does not end while something keeps it (`is_kept`)."""
    if not board.parameters["fair_timers"]:
        _add(board, name, one, what, decide)
        return

    def end(*values: Any) -> Outcomes | None:
        servers, cut = board.network_of(values)
        if servers[one].halted is not None or is_kept(servers, cut, one):
            return None
        found = decide(servers[one])
        return None if found is None else (found,)

    after = board.outcomes(name, {"server": one}, end, *board.network)
    board.add(name, {"server": one}, after, (one,), [Note(one, what)])


def _add_check_quorum(board: Board, one: BrokerId) -> None:
    """A leader that reaches no majority has heard of none for long."""

    def check(server: VoterServer) -> StepOutcome | None:
        step = on_check_quorum(board.servers[one], server.replica, NOW)
        return None if step.state is server.replica else board.taken(one, server, step)

    _add_of_timer(board, "CheckQuorum", one, "has heard of no majority for long", check, reaches_majority)


def _add_resignation(board: Board, one: BrokerId) -> None:
    def resign(server: VoterServer) -> StepOutcome | None:
        if server.replica.role != VoterRole.LEADER:
            return None
        return board.taken(one, server, on_resignation(board.servers[one], server.replica, NOW))

    _add(board, "Resign", one, "resigns", resign, spends="resignations")


# ---- others


def _add_stranger(board: Board, name: str, one: BrokerId) -> None:
    """One who is no voter asks for a vote, or before an election, in the next epoch; its log is empty."""
    stranger = ReplicaKey(BrokerId(len(board.ids) + 1), directory_of(1))

    def ask(server: VoterServer) -> StepOutcome:
        epoch = next_epoch(server.replica.election.epoch)
        request = VoteRequest(epoch, stranger, FIRST_EPOCH, Offset(0), NO_REPLICA, name == "StrangerPreVote")
        return handled(board, one, server, request)

    _add(board, name, one, "is asked for a vote by a stranger, in a later epoch", ask, spends="strangers")


def _add_cuts(board: Board) -> None:
    """Servers are cut off from each other, and reach each other again."""
    cut = board.slots.cut
    if cut is None:
        return
    left = board.slots.left["cuts"]
    for one, other in combinations(board.ids, 2):
        link, arguments = frozenset((one, other)), {"server": one, "other": other}
        _add_cut(board, arguments, cut, left, link)
        mends = then(cut, partial(_mended, link), cut)
        board.model.action("Mend", arguments, [], [mends], [Note(one, f"reaches {other} again")])


def _add_cut(board: Board, arguments: dict[str, Any], cut: Slot, left: Slot, link: CutLink) -> None:
    def cuts(known: CutLinks, number: int) -> object:
        return REFUSED if link in known or number == 0 else (known | {link}, number - 1)

    what = Note(arguments["server"], f"is cut off from {arguments['other']}")
    board.model.action("Cut", arguments, [], [then([cut, left], cuts, cut, left)], [what])


def _mended(link: CutLink, known: CutLinks) -> object:
    return known - {link} if link in known else REFUSED


# ---- appending


def _add_append(board: Board, one: BrokerId) -> None:
    server, left = board.slots.server[one], board.slots.left["records"]

    def outcome(leader: VoterServer, number: int) -> Outcomes | None:
        if leader.halted is not None or leader.replica.role != VoterRole.LEADER or number == 0:
            return None
        step = append(board.servers[one], leader.replica, _records(board, leader, number), NOW)
        return (board.taken(one, leader, step),)

    after = board.outcomes("Append", {"server": one}, outcome, server, left)
    board.add("Append", {"server": one}, after, (one,), [Note(one, "appends a record")], spends="records")


def _records(board: Board, leader: VoterServer, left: int) -> tuple[Record, ...]:
    return (Record(board.parameters["records"] - left, leader.replica.election.epoch),)


def _add_snapshot(board: Board, one: BrokerId) -> None:
    """A server takes a snapshot of as much as it may, and keeps no records before its end."""
    may_take = board.servers[one].protocol.may_take_snapshot

    def take(server: VoterServer) -> StepOutcome | None:
        local, log = server.replica.local, server.replica.local.log
        ends = range(log.start_offset + 1, log.end_offset + 1)
        end = max((Offset(end) for end in ends if may_take(Offset(end), local.high_watermark)), default=Offset(0))
        if not end:
            return None
        taken = after_own_snapshot(server.replica, SnapshotId(end, log.epoch_at(Offset(end - 1))))
        records, flushed = whole_log(server).records[:end], max(server.flushed, end)
        return StepOutcome(server._replace(replica=taken, in_snapshot=records, flushed=flushed))

    _add(board, "TakeSnapshot", one, "takes a snapshot", take, spends="snapshots")


# ---- changes of the voters


def _add_addition(board: Board, one: BrokerId, other: BrokerId) -> None:
    """A leader is asked to add a voter. **Leaves out:** the time in which the new voter tells its versions."""
    servers, arguments = board.slots.server, {"server": one, "voter": other}

    def outcome(leader: VoterServer, new: VoterServer) -> Outcomes | None:
        voter = own_key(board.servers[other], new.replica)
        asked = handle_add_voter(board.servers[one], leader.replica, AddVoterRequest(voter), NOW)
        return _changed(board, one, leader, on_versions(board.servers[one], asked.state, Error.NONE, True, NOW))

    after = board.outcomes("AddVoter", arguments, outcome, servers[one], servers[other])
    board.add("AddVoter", arguments, after, (one,), [Note(one, f"adds voter {other}")], spends="voter_changes")


def _add_removal(board: Board, one: BrokerId, other: BrokerId) -> None:
    """A leader is asked to remove a voter, which it may be itself."""
    arguments = {"server": one, "voter": other}

    def outcome(leader: VoterServer) -> Outcomes | None:
        voter = next((key for key in voters_of(leader.replica) if key.id == other), NO_REPLICA)
        asked = handle_remove_voter(board.servers[one], leader.replica, RemoveVoterRequest(voter), NOW)
        return _changed(board, one, leader, asked)

    after = board.outcomes("RemoveVoter", arguments, outcome, board.slots.server[one])
    board.add("RemoveVoter", arguments, after, (one,), [Note(one, f"removes voter {other}")], spends="voter_changes")


def _changed(board: Board, one: BrokerId, before: VoterServer, step: QuorumStep[RecordLog]) -> Outcomes | None:
    """The outcome if the leader has written new voters."""
    is_written = any(isinstance(effect, VotersAppended) for effect in step.effects)
    return (board.taken(one, before, step),) if is_written and before.halted is None else None


def _add_change_timeout(board: Board, one: BrokerId) -> None:
    def time_out(server: VoterServer) -> StepOutcome | None:
        if server.replica.change == NO_CHANGE:
            return None
        return board.taken(one, server, on_voter_change_timeout(board.servers[one], server.replica, NOW))

    _add(board, "VoterChangeTimesOut", one, "waits no longer for its change of voters", time_out)


# ---- stopping and starting


def _on_disk(log: RecordLog, kept: Offset, snapshot: SnapshotId) -> RecordLog:
    """The log that a server finds: an epoch without a record is not in it, but for that of a snapshot at its end."""
    found = log.truncate_to(kept)._replace(opened_epoch=NO_EPOCH)
    return found.open_epoch(snapshot.epoch) if snapshot.end_offset == found.end_offset else found


def _again(board: Board, one: BrokerId, server: VoterServer, kept: Offset) -> StepOutcome:
    replica, flushed = server.replica, min(server.flushed, kept)
    log, voter_sets = _on_disk(replica.local.log, kept, replica.snapshot), sets_below(replica.voter_sets, kept)
    snapshot, records = replica.snapshot, server.in_snapshot
    started = board.started(one, log, replica.directory, replica.election, flushed, voter_sets, snapshot, records)
    return started._replace(forgets=True)


def _add_restart(board: Board, one: BrokerId) -> None:
    def restart(server: VoterServer) -> StepOutcome:
        return _again(board, one, server, server.replica.local.log.end_offset)

    _add(board, "Restart", one, "stops and starts again", restart, spends="restarts")


def _add_power_loss(board: Board, one: BrokerId, kept: Offset) -> None:
    def lose(server: VoterServer) -> StepOutcome | None:
        end = server.replica.local.log.end_offset
        is_possible = server.flushed <= kept <= end
        return _again(board, one, server, kept) if is_possible else None

    what = f"loses what is not flushed, from {kept} on, and starts again"
    _add(board, "LosePower", one, what, lose, spends="power_losses", arguments={"kept": kept})


def _add_power_loss_while_appending(board: Board, one: BrokerId) -> None:
    """Power fails while a leader appends: what comes before the flush has happened, and nothing of it is on the disk."""
    server, records, left = board.slots.server[one], board.slots.left["records"], board.slots.left["power_losses"]

    def outcome(leader: VoterServer, number: int) -> Outcomes | None:
        if leader.halted is not None or leader.replica.role != VoterRole.LEADER or number == 0:
            return None
        step = append(board.servers[one], leader.replica, _records(board, leader, number), NOW)
        before_flush = step.effects[: step.effects.index(LogFlushed())]
        committed = tuple(effect for effect in before_flush if isinstance(effect, LogCommitted))
        told = board.taken(one, leader, Step(step.state, committed))
        return (_again(board, one, leader, leader.flushed)._replace(committed=told.committed),)

    arguments, more = {"server": one}, [_spending(left)]
    after = board.outcomes("LosePowerWhileAppending", arguments, outcome, server, records)
    what = "loses power before it flushes what it appends, and starts again"
    board.add("LosePowerWhileAppending", arguments, after, (one,), [Note(one, what)], more, spends="records")


def _spending(left: Slot) -> Effect:
    return then(left, lambda number: number - 1 if number else REFUSED, left)


def _add_power_loss_after_answer(board: Board, one: BrokerId, other: BrokerId) -> None:
    """Power fails while a leader appends, after a fetch that waited for the record is answered, and before it flushes."""
    servers, left = board.slots.server, board.slots.left

    def outcome(leader: VoterServer, follower: VoterServer, number: int) -> Outcomes | None:
        request = request_to(board, other, follower, one)
        leads = leader.halted is None and leader.replica.role == VoterRole.LEADER
        if not leads or number == 0 or request is None or kind_of(request) != "Fetch":
            return None
        step = append(board.servers[one], leader.replica, _records(board, leader, number), NOW)
        told = handled(board, one, leader._replace(replica=step.state), request)
        if told.answer is None:
            return None
        fetched = answered(board, other, follower, Send(one, request), told.answer, True)
        return (_again(board, one, leader, leader.flushed), fetched)

    arguments, more, name = {"server": one, "asked": other}, [_spending(left["power_losses"])], "LosePowerAfterAnswer"
    after = board.outcomes(name, arguments, outcome, servers[one], servers[other], left["records"])
    events: list[Event] = [Arrow(one, other, "a record"), Note(one, "loses power before it flushes that, and starts again")]
    board.add(name, arguments, after, (one, other), events, more, spends="records")


def _add_wipe(board: Board, one: BrokerId) -> None:
    def wipe(server: VoterServer) -> StepOutcome:
        life = server.replica.directory[0] + 1
        started = board.started(one, EMPTY_LOG, directory_of(life), NO_ELECTION, Offset(0), board.voter_sets)
        return started._replace(forgets=True)

    _add(board, "LoseDisk", one, "starts again with an empty disk", wipe, spends="wipes")
