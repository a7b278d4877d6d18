"""Committed offsets of groups, by the responses to their clients: the committed offset of a partition is a register.

Each commit of a partition has another offset, so a reading of the register identifies the commit. The order of events is the
order in which they were noted; no verdict depends on times.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from kspec.trials.history.events import (
    ACKNOWLEDGED,
    REFUSED,
    CommitEvent,
    CommitOutcome,
    CommitStart,
    OffsetFetchOutcome,
    OffsetFetchStart,
)

NO_OFFSET = -1
"""The committed offset of a partition without commits."""


@dataclass(eq=False, slots=True)
class Commit:
    """A commit of one partition: its offset, and the numbers of the events at which it was sent and known to be in place.

    `last_read`: the beginning of the last reading that has returned it. `is_fenced`: whether its sender had been replaced
    before it was sent, by a later generation or a later static member.
    """

    partition: int
    offset: int
    sent: int
    is_fenced: bool = False
    in_place: int | None = None
    last_read: int = 0
    is_refused: bool = False


class CommittedOffset:
    """The committed offset of one partition of a group: its commits, and the offsets that a reading may return."""

    def __init__(self, partition: int = 0) -> None:
        self._partition = partition
        nothing = Commit(partition, NO_OFFSET, 0, in_place=0)
        self._commits = {NO_OFFSET: nothing}
        self._events = 0
        self._placed: list[int] = []
        """The moments at which commits were known to be in place, in this order."""
        self._latest_sent: list[int] = []
        """Beside each of these: the moment at which the latest of the commits up to there was sent."""
        self.acknowledged = 0
        """The number of acknowledged commits."""

    def _now(self) -> int:
        self._events += 1
        return self._events

    def send(self, offset: int, is_fenced: bool = False) -> Commit:
        """Note the beginning of a commit, of an offset that no client has committed before."""
        assert offset not in self._commits, f"offset {offset} is committed twice"
        commit = self._commits[offset] = Commit(self._partition, offset, self._now(), is_fenced)
        return commit

    def acknowledge(self, commit: Commit) -> str | None:
        """Note an acknowledgement of a commit; the violation in it, if there is one."""
        self._place(commit)
        self.acknowledged += 1
        return f"the commit of {commit.offset} by a fenced member is acknowledged" if commit.is_fenced else None

    def refuse(self, commit: Commit) -> None:
        """Note a refusal of a commit, which is not stored."""
        commit.is_refused = True

    def _place(self, commit: Commit) -> None:
        if commit.in_place is None:
            commit.in_place = self._now()
            self._placed.append(commit.in_place)
            latest = max(commit.sent, self._latest_sent[-1]) if self._latest_sent else commit.sent
            self._latest_sent.append(latest)

    def begin_to_read(self) -> int:
        """Note the beginning of a reading; the number for `read`."""
        return self._now()

    def read(self, began: int, offset: int) -> str | None:
        """Note the result of a reading; the violation in it, if there is one.

        A commit may be read from the moment at which it was sent until a later one, sent after this one was in place, is in
        place itself.
        """
        place = bisect_left(self._placed, began)
        latest_sent = self._latest_sent[place - 1] if place else None
        commit = self._commits.get(offset)
        if commit is None:
            return f"offset {offset} is committed, and nobody has sent it"
        if commit.is_refused:
            return f"offset {offset} is committed, and its commit was refused"
        if commit.in_place is not None and latest_sent is not None and commit.in_place < latest_sent:
            return f"{_named(offset)} is committed, although a later commit was acknowledged or read before"
        self._place(commit)
        commit.last_read = max(commit.last_read, began)
        return None

    def look_at_all(self) -> str | None:
        """The violation in the whole history, if no order of all commits and readings explains all responses.

        `read` finds what contradicts one acknowledgement or reading; this finds also offsets that come back in turns. Each
        commit with its readings lies around a stretch of time. If it was in place before it was last read, the register
        had it throughout, and no other commit may have been throughout then, or wholly within (Gibbons and Korach, 1997).
        """
        placed = [one for one in self._commits.values() if one.in_place is not None]
        held = sorted((one.in_place or 0, max(one.sent, one.last_read), one.offset) for one in placed if _is_held(one))
        for (_, end, offset), (start, _, other) in pairwise(held):
            if start < end:
                return f"{_named(offset)} is read again after {_named(other)}"
        starts = [start for start, _, _ in held]
        for one in placed:
            if _is_held(one):
                continue
            first, last = max(one.sent, one.last_read), one.in_place or 0
            place = bisect_left(starts, first) - 1
            if place >= 0 and last < held[place][1]:
                return f"{_named(held[place][2])} is read again after {_named(one.offset)}"
        return None


def _is_held(commit: Commit) -> bool:
    """Whether a commit was in place before its last reading began: the register had it in between."""
    return commit.in_place is not None and commit.in_place < max(commit.sent, commit.last_read)


def _named(offset: int) -> str:
    return "no offset" if offset == NO_OFFSET else f"offset {offset}"


def wrong_with_commits(events: Iterable[CommitEvent]) -> str | None:
    """Violations in a history of one partition's commits and readings. A response without its request is ignored."""
    register, sent, began = CommittedOffset(), {}, {}
    for event in events:
        wrong: str | None = None
        match event:
            case CommitStart():
                sent[event.offset] = register.send(event.offset)
            case CommitOutcome() if event.offset in sent and event.kind == ACKNOWLEDGED:
                wrong = register.acknowledge(sent[event.offset])
            case CommitOutcome() if event.offset in sent and event.kind == REFUSED:
                register.refuse(sent[event.offset])
            case OffsetFetchStart():
                began[event.client] = register.begin_to_read()
            case OffsetFetchOutcome() if event.client in began:
                wrong = register.read(began.pop(event.client), event.offset)
        if wrong is not None:
            return wrong
    return register.look_at_all()


class GroupHistory:
    """A group's history by its clients' responses: committed offsets, generations, and replaced members."""

    def __init__(self, group_id: str, partitions: int) -> None:
        self.group_id = group_id
        self.offsets = {index: CommittedOffset(index) for index in range(partitions)}
        self._latest_generation = -1
        """The latest generation of which any member has its assignment: it is stored then."""
        self._leaders: dict[int, str] = {}
        """By generation: the mark of the leader whose assignment its members have."""
        self._replaced: set[str] = set()
        self._owners: dict[int, tuple[int, str]] = {}
        """By partition: the latest epoch in which a member of a consumer group has been given it, and who that was."""
        self._last_offset = 0

    def next_offset(self) -> int:
        """An offset that no client has committed."""
        self._last_offset += 1
        return self._last_offset

    def send(self, partition: int, member_id: str = "", generation: int = -1) -> Commit:
        """Note the beginning of a commit of a partition's next offset; without a member id it is a simple consumer's."""
        is_fenced = member_id != "" and (generation < self._latest_generation or member_id in self._replaced)
        epoch, owner = self._owners.get(partition, (-1, member_id))
        is_fenced = is_fenced or (member_id != owner and generation < epoch)
        return self.offsets[partition].send(self.next_offset(), is_fenced)

    def offsets_of(self, commit: Commit) -> CommittedOffset:
        """The register that a commit writes."""
        return self.offsets[commit.partition]

    def assign(self, generation: int, mark: str) -> str | None:
        """Note a member's assignment, with the mark of the leader that made it; the violation in it, if there is one."""
        self._latest_generation = max(self._latest_generation, generation)
        known = self._leaders.setdefault(generation, mark)
        return None if known == mark else f"members of generation {generation} have assignments of {known} and of {mark}"

    def own(self, partitions: Iterable[int], member_id: str, epoch: int) -> None:
        """Note that a member of a consumer group (KIP-848) has been given partitions in an epoch: others have lost them."""
        for partition in partitions:
            self._owners[partition] = max(self._owners.get(partition, (-1, "")), (epoch, member_id))

    def replace(self, member_id: str) -> None:
        """Note that a static member has taken the place of its earlier self."""
        self._replaced.add(member_id)

    def look_at_all(self) -> str | None:
        """Observations that no order of commits and readings explains, if there are any."""
        found = ((index, one.look_at_all()) for index, one in self.offsets.items())
        return next((f"partition {index}: {wrong}" for index, wrong in found if wrong), None)

    @property
    def acknowledged(self) -> int:
        """The number of acknowledged commits."""
        return sum(one.acknowledged for one in self.offsets.values())
