"""The voters with their addresses, of which `spec` knows nothing: those of settings, and those of the log (KIP-853)."""

import logging
from collections.abc import Iterable, Mapping

from kspec.impl.metadata.voters import Endpoint, KnownVoters, VotersFound
from kspec.impl.wire.quorum import error_of
from kspec.impl.wire.values import Message
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.quorum.voters import VoterSetEntry, VoterSets
from kspec.spec.quorum.replica import QuorumReplica
from kspec.spec.quorum.rules.voters import fixed_voters, sets_after_snapshot
from kspec.spec.values import UNKNOWN_OFFSET, BrokerId, Error, Offset, ReplicaKey

LOG = logging.getLogger("kspec.controller")


class KnownVoterSets:
    """The voters of each record in the log, or those of settings, while the log and its first snapshot tell none.

    `configured`: those of settings, and where each is reached.
    """

    def __init__(self, configured: Mapping[BrokerId, Endpoint]) -> None:
        self.configured = configured
        self.added: KnownVoters = {}
        """The voter that is to be added, or is reached elsewhere, and where."""
        self._reported: dict[BrokerId, tuple[ReplicaKey, tuple[Endpoint, ...]]] = {}
        """The last reports of voters, before the log has them."""
        self._told: dict[Offset, KnownVoters] = {}
        """The voters of each record, by its offset."""
        self._leaders: dict[int, Endpoint] = {}
        """The addresses of leaders, as they were told last."""
        self._refusals: dict[int, Error] = {}
        """The last errors of nodes that are about no partition, as far as they have been logged."""

    def begin(self, found: Iterable[VotersFound], snapshot_end: Offset) -> tuple[VoterSets, bool]:
        """The voter sets of a log that has these records, and whether they are those of the log.

        Before the first record of voters in a log, unless that is in a snapshot, are those of settings: it may be cut.
        """
        self._told = {one.offset: one.voters for one in found}
        if not self._told and not self.configured:
            self._told = {UNKNOWN_OFFSET: {}}
        sets = tuple(VoterSetEntry(offset, frozenset(voters)) for offset, voters in self._told.items())
        if self.configured and UNKNOWN_OFFSET not in self._told:
            sets = sets_after_snapshot((*fixed_voters(frozenset(map(ReplicaKey, self.configured))), *sets), snapshot_end)
        return sets, bool(self._told)

    def of(self, state: QuorumReplica[EpochLog]) -> KnownVoters:
        """The voters of a replica, by the last record of them in its log, and where each is reached."""
        if not state.voters_in_log:
            return {ReplicaKey(node): (at,) for node, at in self.configured.items()}
        return self._told.get(state.voter_sets[-1].offset, {})

    def place_of(self, state: QuorumReplica[EpochLog], node: int) -> Endpoint | None:
        """The address of a controller: a leader as it says itself, a voter, one that is to become one."""
        if node == state.election.leader and node in self._leaders:
            return self._leaders[node]
        known = (*self.of(state).items(), *self.added.items())
        return next((at[0] for voter, at in known if voter.id == node and at), self._leaders.get(node))

    def report(self, voter: ReplicaKey, endpoints: tuple[Endpoint, ...]) -> None:
        """A voter of the settings says which directory it has, and where it is reached."""
        self._reported[voter.id] = voter, endpoints

    def hear_of(self, leader: int, at: Endpoint) -> None:
        """Somebody says where a leader is reached: a replica that is no voter may not know it from its log."""
        self._leaders[leader] = at

    def hear_from(self, node: int, answer: Message | None) -> None:
        """Note what an answer of a node says beside its subject: where leaders are reached, or that it refuses all.

        So does a node of another cluster. That is logged once, until the node says something else.
        """
        if answer is None:
            return
        refusal = error_of(answer.error_code)
        if refusal not in (self._refusals.get(node, Error.NONE), Error.UNSUPPORTED_VERSION):
            self._refusals[node] = refusal
            if refusal != Error.NONE:
                LOG.warning("node %d refuses what this controller asks: %s", node, refusal.name)
        for one in answer.node_endpoints or () if refusal == Error.NONE else ():
            self.hear_of(one.node_id, Endpoint("", one.host, one.port))

    def note(self, found: Iterable[VotersFound]) -> None:
        """The log has these records now, or a snapshot in their place."""
        self._told |= {one.offset: one.voters for one in found}

    def write(self, state: QuorumReplica[EpochLog]) -> KnownVoters:
        """The voters of the record that a leader has just written, with their addresses."""
        before, written = state.voter_sets[-2:]
        known = {**self._told.get(before.offset, {}), **dict(self._reported.values()), **self.added}
        self._told[written.offset] = {voter: known[voter] for voter in written.voters}
        return self._told[written.offset]
