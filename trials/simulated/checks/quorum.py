"""Properties of several controllers: one leader in an epoch, one vote, one log that is committed, one change of the voters.

What is committed is what some controller believes to be. A log holds it if it has the same epochs at the same offsets, as
with partitions.
"""

from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.quorum.voters import VoterSet
from kspec.spec.quorum.effects import Halt
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer, own_key, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.step import Step
from kspec.spec.values import NO_REPLICA, Epoch, Offset, ReplicaKey
from kspec.trials.simulated.checks.epochs import CommittedPrefix, in_words, stretches
from kspec.trials.simulated.history import BrokenPromiseError


class QuorumChecks:
    """A checker of all steps of controllers as voters."""

    def __init__(self) -> None:
        self.voter_sets: dict[Offset, VoterSet] = {}
        """The voters that are committed, by the offsets of their records."""
        self._wrong: BrokenPromiseError | None = None
        """The first step that was wrong: raised after the event, since a process may end with an error of its own."""
        self._leaders: dict[Epoch, int] = {}
        self._votes: dict[tuple[ReplicaKey, Epoch], ReplicaKey] = {}
        """The replica that each has voted for, by the epoch."""
        self._committed = CommittedPrefix()

    def note(self, handler: object, party: object, state: object, given: tuple[object, ...], outcome: object) -> None:
        """A controller has taken a step as a voter: what is wrong in it is raised after the event."""
        assert isinstance(party, QuorumServer)
        assert isinstance(outcome, Step)
        if self._wrong is None:
            try:
                self._look_at(party, outcome)
            except BrokenPromiseError as wrong:
                self._wrong = wrong

    def look(self) -> None:
        """Raises: `BrokenPromiseError`, if a step was wrong."""
        if self._wrong is not None:
            raise self._wrong

    def _look_at(self, server: QuorumServer, step: "Step[QuorumReplica[EpochLog], object]") -> None:
        state = step.state
        for effect in step.effects:
            if isinstance(effect, Halt):
                raise BrokenPromiseError("NoIllegalState", f"controller {server.self_id} has met {effect.reason.value}")
        self._look_at_election(server, state)
        self._look_at_log(server, state)
        self._look_at_voters(server, state)
        if state.role == VoterRole.LEADER:
            self._look_at_leader(server, state)

    def _look_at_election(self, server: QuorumServer, state: QuorumReplica[EpochLog]) -> None:
        node, (epoch, _, voted) = server.self_id, state.election
        if state.role == VoterRole.LEADER and self._leaders.setdefault(epoch, node) != node:
            raise BrokenPromiseError("ElectionSafety", f"{node} leads in epoch {epoch}, and {self._leaders[epoch]} has")
        if voted != NO_REPLICA:
            first = self._votes.setdefault((own_key(server, state), epoch), voted)
            if first != voted:
                what = f"{node} has voted for {voted.id} in epoch {epoch}, and for {first.id} before"
                raise BrokenPromiseError("VotesOnce", what)

    def _look_at_log(self, server: QuorumServer, state: QuorumReplica[EpochLog]) -> None:
        log, known = state.local.log, self._committed
        start, end = log.start_offset, state.local.high_watermark
        common = Offset(min(end, known.end_offset))
        if start < common and stretches(log, common) != known.between(start, common):
            what = f"{in_words(stretches(log, common))} below {common}, and it was {in_words(known.stretches)}"
            raise BrokenPromiseError("CommittedIsFinal", f"controller {server.self_id} takes for committed {what}")
        if end > known.end_offset:
            self._committed = known.grown(start, end, stretches(log, end))

    def _look_at_voters(self, server: QuorumServer, state: QuorumReplica[EpochLog]) -> None:
        for entry in state.voter_sets if state.voters_in_log else ():
            is_committed = 0 <= entry.offset < state.local.high_watermark
            if is_committed and self.voter_sets.setdefault(entry.offset, entry.voters) != entry.voters:
                what = f"controller {server.self_id} has other voters at {entry.offset} than were committed there"
                raise BrokenPromiseError("CommittedIsFinal", what)

    def _look_at_leader(self, server: QuorumServer, state: QuorumReplica[EpochLog]) -> None:
        log, known, epoch = state.local.log, self._committed, state.election.epoch
        if epoch >= max(self._leaders):
            end = known.end_offset
            start = min(log.start_offset, end)
            if log.end_offset < end or (start < end and stretches(log, end) != known.between(start, end)):
                what = f"up to {log.end_offset}; committed are {in_words(known.stretches)} up to {end}"
                held = in_words(stretches(log, log.end_offset))
                what = f"controller {server.self_id} leads in epoch {epoch} with {held} {what}"
                raise BrokenPromiseError("CommittedOnNewestLeader", what)
        if not votes(server, state) and state.high_watermark > state.voter_sets[-1].offset:
            what = f"controller {server.self_id} leads, and is no voter by what is committed"
            raise BrokenPromiseError("RemovedLeaderResigns", what)
