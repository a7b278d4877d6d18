"""The rules in which releases of the quorum differ, or that a mutant weakens."""

from collections.abc import Callable
from dataclasses import dataclass

from kspec.spec.log.batch import Batches
from kspec.spec.messages.quorum.voters import VoterSet, VoterSets
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.values import BrokerId, Epoch, Offset, ReplicaKey


@dataclass(frozen=True, slots=True)
class QuorumProtocol:
    """The rules of a replica of the metadata log in one release. `spec.releases.quorum` has the releases."""

    name: str

    role_after_timeout: Callable[[VoterRole], VoterRole]
    """The role of a voter when its time is over."""

    role_after_restart: Callable[[BrokerId, ReplicaKey, ReplicaKey], VoterRole]
    """The role of a replica that starts: by the leader and the vote that it has stored, and its own key."""

    epoch_after_resignation: Callable[[Epoch], Epoch]
    """The epoch in which a replica waits that has resigned."""

    is_up_to_date: Callable[[Epoch, Offset, Epoch, Offset], bool]
    """Whether a log is no worse than one's own: the epoch of its last record, and its end; one's own."""

    grants_vote: Callable[[BrokerId, ReplicaKey, ReplicaKey, bool], bool]
    """Whether a replica without a leader votes for another: the leader and the vote that it knows, who asks, whether its log
    is up to date."""

    grants_pre_vote: Callable[[bool, bool, bool, bool], bool]
    """Whether a replica would vote for another: if it leads, follows, has fetched from its leader, and if that log is up to
    date."""

    takes_epoch_of_vote: Callable[[bool, bool], bool]
    """Whether a later epoch in a Vote counts, before it is known who asks: if the replica leads, or has fetched from its
    leader."""

    vote_as_unattached: Callable[[ReplicaKey, bool], ReplicaKey]
    """The vote that a replica remembers which waits: of the one that it gave, and whether that was in the same epoch."""

    vote_as_follower: Callable[[ReplicaKey, bool], ReplicaKey]
    """The vote that a follower remembers: of the one that it gave, and whether that was in the same epoch."""

    vote_as_prospective: Callable[[ReplicaKey, ReplicaKey], ReplicaKey]
    """The vote of a replica that asks whether it would be elected: of the one that it gave, and its own key."""

    takes_answer: Callable[[bool], bool]
    """Whether an answer is taken: if the replica's state is that in which it asked, or not."""

    follows_named: Callable[[VoterRole, bool], bool]
    """Whether a replica follows the leader that an answer of its epoch names: by its role, and if it knows a leader."""

    needs_begin: Callable[[bool, int, int], bool]
    """Whether a leader tells a voter that it leads: if that knows it, how long it has not fetched, and half of the time that
    a follower waits (milliseconds)."""

    checks_quorum: Callable[[int], bool]
    """Whether a leader of so many voters resigns if a majority does not fetch."""

    majority_offset: Callable[[tuple[Offset, ...]], Offset]
    """The offset up to which enough voters have the log, by the end of each voter's log."""

    commits: Callable[[Offset, Offset], bool]
    """Whether a leader commits up to an offset that a majority has, by the offset at which its epoch starts."""

    counts_leader: Callable[[bool], bool]
    """Whether a leader counts its own log: if it is a voter or not."""

    first_high_watermark: Callable[[Offset], Offset]
    """The high watermark of a new leader, of that which it had before."""

    counts_fetch: Callable[[bool], bool]
    """Whether the offset of a fetch counts as the follower's end: if the logs part before it or not."""

    may_truncate: Callable[[Offset, Offset], bool]
    """Whether a follower truncates to an offset, by its high watermark."""

    may_take_snapshot: Callable[[Offset, Offset], bool]
    """Whether a replica takes a snapshot up to an offset, by what it knows to be committed."""

    takes_records: Callable[[Batches, Epoch], Batches]
    """The batches of an answer that a follower appends, in its epoch."""

    flushes_fetched: Callable[[bool], bool]
    """Whether a follower flushes what it has fetched: if it is a voter, or may become one."""

    may_change_voters: Callable[[bool, bool], bool]
    """Whether a leader may change the voters: if a record of its epoch is committed, and if the last change is."""

    sets_after_cut: Callable[[VoterSets, Offset], VoterSets]
    """The voter sets of a log that has been cut: those before, and its end."""

    resigns_when_removed: Callable[[bool], bool]
    """Whether a leader resigns when its removal is committed: if somebody still waits for that or not."""

    stops_for_acknowledgement: Callable[[bool], bool]
    """Whether a leader stops when a replica says that it knows its leader: if that is a voter or not."""

    takes_reports: bool
    """Whether voters report their directories to their leader, and it remembers them, with `kraft.version` 0."""

    may_upgrade: Callable[[VoterSet, VoterSet], bool]
    """Whether a leader may write the voters of `kraft.version` 0 into the log: by these, and those that have reported."""

    joins: Callable[[bool], bool]
    """Whether a controller that does not vote asks for its vote itself: if its settings say so or not."""

    stands_until_removed: bool
    """Whether a replica stands for election whose removal from the voters is in its log, and may not be committed."""

    stops_if_said_to_lead: bool
    """Whether a replica stops that is said to lead, and does not: it has led, and lost its disk."""

    flushes_first: bool
    """Whether a leader flushes its log before it counts itself, and so before it commits if it is alone."""
