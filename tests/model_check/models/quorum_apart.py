"""The voters of the metadata log once more, to compare: a search of its own, which knows nothing of this project.

Written from the source of `KafkaRaftClient`, `QuorumState`, `LeaderState` and `KafkaMetadataLog` of October 2024, before
4.0, and from KIP-996 for the question before an election. It shares with the model `quorum` the kinds of steps, and the
facts that a state keeps; not one function. Errors have Kafka's numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

NONE, NOT_LEADER, INVALID, FENCED, UNKNOWN_EPOCH = 0, 6, 42, 74, 75
NOBODY = -1
UNKNOWN = -1
QUESTION = 0
"""The value of a record that says who leads."""

DEEPEST = 100
"""More steps than a search ever has."""

Entry = tuple[int, int]
"""A record: the epoch in which it was appended, and its value."""


class Raft(NamedTuple):
    """One voter. `granted`, `rejected`: answers to its question; `ends`: what a leader knows of the others' logs."""

    state: str = "Unattached"
    epoch: int = 0
    leader: int = NOBODY
    voted: int = NOBODY
    log: tuple[Entry, ...] = ()
    high_watermark: int = UNKNOWN
    log_high_watermark: int = 0
    fetched: bool = False
    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()
    epoch_start: int = UNKNOWN
    ends: tuple[tuple[int, int], ...] = ()
    broken: bool = False


class Electorate(NamedTuple):
    """All voters, and the past: last votes, who has led, the longest log that was committed, whether two logs were."""

    voters: tuple[Raft, ...]
    votes: tuple[Entry, ...]
    elected: frozenset[tuple[int, int]] = frozenset()
    committed: tuple[Entry, ...] = ()
    torn: bool = False
    voted_twice: bool = False
    records: int = 0


@dataclass(frozen=True)
class Bounds:
    """Bounds of a search; `pre_vote`: since 4.0; `weakened`: the rule that is planted wrong, by the name of its mutant."""

    servers: int = 3
    max_epoch: int = 1
    records: int = 0
    pre_vote: bool = False
    weakened: str = ""


class LevelSizes(NamedTuple):
    """The states that are new after each number of steps, and the number of steps after which one of them is not safe."""

    levels: tuple[int, ...]
    violated_after: int | None


@dataclass(frozen=True)
class ApartAnswer:
    """An answer of a voter. `diverging`: epoch and end offset."""

    error: int
    epoch: int
    leader: int
    granted: bool = False
    entries: tuple[Entry, ...] = ()
    high_watermark: int = UNKNOWN
    diverging: Entry | None = None


class VoterThrowsError(Exception):
    """Kafka throws, and the process ends."""


@dataclass
class Apart:
    """The search."""

    bounds: Bounds

    # ---- logs

    @staticmethod
    def last_epoch(log: tuple[Entry, ...]) -> int:
        return log[-1][0] if log else 0

    def end_offset_for_epoch(self, log: tuple[Entry, ...], epoch: int) -> Entry:
        """`KafkaMetadataLog.endOffsetForEpoch` over `LeaderEpochFileCache.endOffsetFor`."""
        last = self.last_epoch(log)
        if not log or epoch > last:
            return last, len(log)
        if epoch == last:
            return epoch, len(log)
        higher = next(offset for offset, entry in enumerate(log) if entry[0] > epoch)
        return (log[higher - 1][0] if higher else epoch), higher

    def majority(self) -> int:
        return self.bounds.servers // 2 + 1

    # ---- transitions

    def unattached(self, raft: Raft, epoch: int) -> Raft:
        voted = raft.voted if self.bounds.pre_vote and epoch == raft.epoch else NOBODY
        leader = raft.leader if epoch == raft.epoch else NOBODY
        return self.plain(raft, "Unattached", epoch, leader, voted)

    def follower(self, raft: Raft, epoch: int, leader: int) -> Raft:
        voted = raft.voted if self.bounds.pre_vote and epoch == raft.epoch else NOBODY
        return self.plain(raft, "Follower", epoch, leader, voted)

    @staticmethod
    def plain(raft: Raft, state: str, epoch: int, leader: int, voted: int) -> Raft:
        return Raft(state, epoch, leader, voted, raft.log, raft.high_watermark, raft.log_high_watermark, broken=raft.broken)

    def prospective(self, me: int, raft: Raft) -> Raft:
        asking = self.plain(raft, "Prospective", raft.epoch, raft.leader, raft.voted)
        return self.forward(me, asking._replace(granted=frozenset({me})))

    def candidate(self, me: int, raft: Raft) -> Raft:
        standing = self.plain(raft, "Candidate", raft.epoch + 1, NOBODY, me)
        return self.forward(me, standing._replace(granted=frozenset({me})))

    def forward(self, me: int, raft: Raft) -> Raft:
        if len(raft.granted) < self.majority():
            return raft
        return self.candidate(me, raft) if raft.state == "Prospective" else self.lead(me, raft)

    def lead(self, me: int, raft: Raft) -> Raft:
        start = len(raft.log)
        leading = self.plain(raft, "Leader", raft.epoch, me, NOBODY)
        others = tuple((other, UNKNOWN) for other in range(self.bounds.servers) if other != me)
        log = (*raft.log, (raft.epoch, QUESTION))
        return self.commit(leading._replace(log=log, high_watermark=UNKNOWN, epoch_start=start, ends=others))

    def commit(self, raft: Raft) -> Raft:
        """`LeaderState.maybeUpdateHighWatermark`."""
        ends = sorted([len(raft.log), *(end for _, end in raft.ends)], reverse=True)
        offset = ends[len(ends) // 2]
        if offset > raft.epoch_start and offset > raft.high_watermark:
            return raft._replace(high_watermark=offset, log_high_watermark=max(offset, raft.log_high_watermark))
        return raft

    def maybe_transition(self, me: int, raft: Raft, leader: int, epoch: int) -> Raft:
        if leader == me:
            consistent = raft.state == "Leader"
        else:
            consistent = epoch != raft.epoch or NOBODY in (leader, raft.leader) or leader == raft.leader
        if not consistent:
            raise VoterThrowsError
        if epoch > raft.epoch:
            return self.unattached(raft, epoch) if leader == NOBODY else self.follower(raft, epoch, leader)
        if leader != NOBODY and raft.leader == NOBODY:
            return self.follower(raft, epoch, leader)
        return raft

    def common(self, me: int, raft: Raft, answer: ApartAnswer) -> tuple[Raft, bool]:
        """`maybeHandleCommonResponse`: the voter, and whether the rest of the answer is looked at."""
        if answer.epoch < raft.epoch or answer.error == UNKNOWN_EPOCH:
            return raft, False
        if answer.epoch > raft.epoch or answer.error in (FENCED, NOT_LEADER):
            return self.maybe_transition(me, raft, answer.leader, answer.epoch), False
        if answer.leader != NOBODY and raft.leader == NOBODY:
            if answer.leader == me:
                raise VoterThrowsError
            return self.follower(raft, answer.epoch, answer.leader), answer.error == NONE
        if answer.error == INVALID:
            raise VoterThrowsError
        return raft, answer.error == NONE

    # ---- Vote

    def asked_for_vote(self, raft: Raft, candidate: int, asking: Raft, pre_vote: bool) -> tuple[Raft, ApartAnswer]:
        last = self.last_epoch(asking.log)
        if last > asking.epoch or (last == asking.epoch and not pre_vote):
            return raft, ApartAnswer(INVALID, raft.epoch, raft.leader)
        if asking.epoch < raft.epoch:
            return raft, ApartAnswer(FENCED, raft.epoch, raft.leader)
        if asking.epoch > raft.epoch:
            raft = self.unattached(raft, asking.epoch)
        up_to_date = (last, len(asking.log)) >= (self.last_epoch(raft.log), len(raft.log))
        if self.bounds.weakened == "longest-log-wins":
            up_to_date = len(asking.log) >= len(raft.log)
        if pre_vote:
            granted = up_to_date and raft.state != "Leader" and not (raft.state == "Follower" and raft.fetched)
            return raft, ApartAnswer(NONE, raft.epoch, raft.leader, granted)
        granted = raft.state in ("Unattached", "Prospective") and (
            raft.voted == candidate
            if raft.voted != NOBODY and self.bounds.weakened != "votes-again"
            else raft.leader == NOBODY and up_to_date
        )
        if granted:
            raft = raft._replace(voted=candidate)
        return raft, ApartAnswer(NONE, raft.epoch, raft.leader, granted)

    def told_vote(self, me: int, raft: Raft, other: int, answer: ApartAnswer) -> Raft:
        raft, goes_on = self.common(me, raft, answer)
        if not goes_on or raft.state not in ("Candidate", "Prospective"):
            return raft
        if answer.granted:
            tallied = raft._replace(granted=raft.granted | {other}, rejected=raft.rejected - {other})
            return self.forward(me, tallied)
        tallied = raft._replace(granted=raft.granted - {other}, rejected=raft.rejected | {other})
        return self.after_loss(tallied) if raft.state == "Prospective" and self.has_lost(tallied) else tallied

    def has_lost(self, raft: Raft) -> bool:
        return self.bounds.servers - len(raft.rejected) < self.majority()

    def after_loss(self, raft: Raft) -> Raft:
        """`prospectiveTransitionAfterElectionLoss`."""
        if raft.leader != NOBODY:
            return self.follower(raft, raft.epoch, raft.leader)
        return self.unattached(raft, raft.epoch)

    # ---- BeginQuorumEpoch

    def told_to_begin(self, me: int, raft: Raft, leader: int, epoch: int) -> tuple[Raft, ApartAnswer]:
        if epoch < raft.epoch:
            return raft, ApartAnswer(FENCED, raft.epoch, raft.leader)
        raft = self.maybe_transition(me, raft, leader, epoch)
        return raft, ApartAnswer(NONE, raft.epoch, raft.leader)

    # ---- Fetch

    def fetched_from(self, raft: Raft, replica: int, asking: Raft) -> tuple[Raft, ApartAnswer]:
        offset, last = len(asking.log), self.last_epoch(asking.log)
        if last > asking.epoch:
            return raft, ApartAnswer(INVALID, raft.epoch, raft.leader)
        if asking.epoch != raft.epoch:
            return raft, ApartAnswer(FENCED if asking.epoch < raft.epoch else UNKNOWN_EPOCH, raft.epoch, raft.leader)
        if raft.state != "Leader":
            return raft, ApartAnswer(NOT_LEADER, raft.epoch, raft.leader)
        epoch, end = self.end_offset_for_epoch(raft.log, last)
        if offset and (epoch != last or end < offset):
            return raft, ApartAnswer(NONE, raft.epoch, raft.leader, False, (), raft.high_watermark, (epoch, end))
        ends = tuple((other, offset if other == replica else known) for other, known in raft.ends)
        raft = self.commit(raft._replace(ends=ends))
        return raft, ApartAnswer(NONE, raft.epoch, raft.leader, False, raft.log[offset:], raft.high_watermark)

    def told_records(self, me: int, raft: Raft, answer: ApartAnswer) -> Raft:
        raft, goes_on = self.common(me, raft, answer)
        if not goes_on:
            return raft
        if raft.state != "Follower":
            raise VoterThrowsError
        if answer.diverging is not None:
            return self.truncate(raft, answer.diverging)._replace(fetched=True)
        raft = raft._replace(log=(*raft.log, *answer.entries), fetched=True)
        if answer.high_watermark == UNKNOWN:
            return raft
        known = min(len(raft.log), answer.high_watermark)
        if known < raft.high_watermark:
            raise VoterThrowsError
        return raft._replace(high_watermark=known, log_high_watermark=max(known, raft.log_high_watermark))

    def truncate(self, raft: Raft, diverging: Entry) -> Raft:
        """`ReplicatedLog.truncateToEndOffset`."""
        epoch, end = diverging
        own_epoch, own_end = self.end_offset_for_epoch(raft.log, epoch)
        offset = min(len(raft.log), end) if epoch == 0 else min(own_end, end) if own_epoch == epoch else own_end
        if end < raft.high_watermark or offset < raft.log_high_watermark:
            raise VoterThrowsError
        return raft._replace(log=raft.log[:offset])

    # ---- steps

    def time_out(self, me: int, raft: Raft) -> Raft | None:
        if raft.state in ("Leader", "Broken"):
            return None
        if not self.bounds.pre_vote:
            return self.candidate(me, raft)
        return self.after_loss(raft) if raft.state == "Prospective" else self.prospective(me, raft)

    def ask(self, me: int, one: Raft, it: int, other: Raft) -> Iterator[tuple[Raft, Raft]]:
        """All that a voter would ask another one, with its answer: one request at most."""
        asks_for_vote = one.state in ("Candidate", "Prospective") and not self.has_lost(one)
        if asks_for_vote and it not in one.granted | one.rejected:
            taken, answer = self.asked_for_vote(other, me, one, one.state == "Prospective")
            yield self.guarded(one, lambda: self.told_vote(me, one, it, answer)), taken
        elif one.state == "Leader":
            try:
                taken, answer = self.told_to_begin(it, other, me, one.epoch)
            except VoterThrowsError:
                yield one, other._replace(broken=True)
                return
            yield self.guarded(one, lambda: self.common(me, one, answer)[0]), taken
        elif one.state == "Unattached" or (one.state == "Follower" and it == one.leader):
            taken, answer = self.fetched_from(other, me, one)
            yield self.guarded(one, lambda: self.told_records(me, one, answer)), taken

    @staticmethod
    def guarded(before: Raft, handle: Callable[[], Raft]) -> Raft:
        try:
            return handle()
        except VoterThrowsError:
            return before._replace(broken=True)

    def following(self, world: Electorate) -> Iterator[Electorate]:
        """The states after one step."""
        up = [me for me, raft in enumerate(world.voters) if not raft.broken]
        for me in up:
            raft = world.voters[me]
            after = self.time_out(me, raft)
            if after is not None:
                yield self.noted(world, {me: after})
            if raft.state == "Leader" and world.records < self.bounds.records:
                log = (*raft.log, (raft.epoch, world.records + 1))
                yield self.noted(world, {me: self.commit(raft._replace(log=log))})._replace(records=world.records + 1)
        for me, it in permutations(up, 2):
            for one, other in self.ask(me, world.voters[me], it, world.voters[it]):
                yield self.noted(world, {me: one, it: other})

    def noted(self, world: Electorate, after: dict[int, Raft]) -> Electorate:
        """The world with these voters, and what they add to the past."""
        for me, raft in after.items():
            before = world.voters[me]
            voters = (*world.voters[:me], raft, *world.voters[me + 1 :])
            world = world._replace(voters=voters)
            # a candidate has voted for itself, also if the same step makes it a leader, which stores no vote
            stood = raft.state == "Leader" and before.state != "Leader" and before.epoch < raft.epoch
            vote = me if stood else raft.voted
            if vote != NOBODY and (vote, raft.epoch) != (before.voted, before.epoch):
                epoch, candidate = world.votes[me]
                twice = world.voted_twice or (epoch == raft.epoch and candidate != vote)
                votes = (*world.votes[:me], (raft.epoch, vote), *world.votes[me + 1 :])
                world = world._replace(votes=votes, voted_twice=twice)
            if raft.state == "Leader" and (before.state, before.epoch) != ("Leader", raft.epoch):
                world = world._replace(elected=world.elected | {(raft.epoch, me)})
            if raft.high_watermark > max(before.high_watermark, 0):
                world = self.with_committed(world, raft.log[: raft.high_watermark])
        return world

    @staticmethod
    def with_committed(world: Electorate, log: tuple[Entry, ...]) -> Electorate:
        common = min(len(log), len(world.committed))
        torn = world.torn or log[:common] != world.committed[:common]
        longest = log if len(log) > len(world.committed) and not torn else world.committed
        return world._replace(committed=longest, torn=torn)

    def explore(self) -> LevelSizes:
        """Search level by level, up to the end, or to a state that is not safe."""
        first = Electorate((Raft(),) * self.bounds.servers, ((0, NOBODY),) * self.bounds.servers)
        known, level, counts = {first}, [first], []
        for _ in range(DEEPEST):
            if not level:
                break
            counts.append(len(level))
            if not all(map(self.is_safe, level)):
                return LevelSizes(tuple(counts), len(counts) - 1)
            new = []
            for world in level:
                for after in self.following(world):
                    if after not in known and max(raft.epoch for raft in after.voters) <= self.bounds.max_epoch:
                        known.add(after)
                        new.append(after)
            level = new
        return LevelSizes(tuple(counts), None)

    @staticmethod
    def is_safe(world: Electorate) -> bool:
        """Whether each epoch has one leader, nobody votes twice, nothing breaks, and the newest leader has all."""
        one_each = len({epoch for epoch, _ in world.elected}) == len(world.elected)
        newest = max((epoch for epoch, _ in world.elected), default=0)
        leaders = [raft for raft in world.voters if raft.state == "Leader" and raft.epoch == newest]
        has_all = all(raft.log[: len(world.committed)] == world.committed for raft in leaders)
        broken = any(raft.broken for raft in world.voters)
        return one_each and has_all and not world.voted_twice and not world.torn and not broken
