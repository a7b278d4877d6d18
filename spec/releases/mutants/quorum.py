"""Mutants of the quorum of controllers: one rule weakened, to show that the rule is needed."""

from kspec.spec.broker.rules.divergence import count_every_fetch
from kspec.spec.messages.quorum.voters import VoterSet, VoterSets
from kspec.spec.mutation import Mutant
from kspec.spec.quorum.rules import epochs, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.values import NO_LEADER, NO_REPLICA, BrokerId, Epoch, Offset, ReplicaKey


def leads_again(leader: BrokerId, voted: ReplicaKey, own: ReplicaKey) -> VoterRole:
    """A replica that led leads again in the same epoch when it starts."""
    return VoterRole.LEADER if leader == own.id else epochs.follower_if_it_knew_who_led(leader, voted, own)


def stands_without_majority(role: VoterRole) -> VoterRole:
    """A replica that has asked before an election, and got no majority in time, stands all the same."""
    return VoterRole.CANDIDATE if role == VoterRole.PROSPECTIVE else epochs.asks_before_candidacy(role)


def same_epoch(epoch: Epoch) -> Epoch:
    """A replica that has resigned waits in the epoch in which it led."""
    return epoch


def is_as_long(last_epoch: Epoch, end_offset: Offset, own_epoch: Epoch, own_end: Offset) -> bool:
    """A log is no worse than one's own if it is as long, whatever its last epoch is."""
    return end_offset >= own_end


def grants_vote_by_id(leader: BrokerId, voted: ReplicaKey, replica: ReplicaKey, up_to_date: bool) -> bool:
    """A replica votes again for a server that it has voted for, whatever directory it has by now."""
    return voted.id == replica.id if voted != NO_REPLICA else leader == NO_LEADER and up_to_date


def grants_vote_again(leader: BrokerId, voted: ReplicaKey, replica: ReplicaKey, up_to_date: bool) -> bool:
    """A replica votes for everybody whose log is no worse."""
    return leader == NO_LEADER and up_to_date


def promises_while_following(leads: bool, follows: bool, has_fetched: bool, up_to_date: bool) -> bool:
    """A follower says that it would vote for another while its leader answers."""
    return up_to_date and not leads


def votes_for_itself(voted: ReplicaKey, own: ReplicaKey) -> ReplicaKey:
    """A replica that asks before an election votes for itself."""
    return own


def takes_every_answer(is_expected: bool) -> bool:
    """An answer to a request of an earlier state counts."""
    return True


def commits_at_epoch_start(offset: Offset, epoch_start: Offset) -> bool:
    """A leader commits what a majority has of earlier epochs, without a record of its own."""
    return offset >= epoch_start


def counts_always(is_voter: bool) -> bool:
    """A leader counts its own log though it is no voter."""
    return True


def keeps_high_watermark(high_watermark: Offset) -> Offset:
    """A leader begins with the high watermark that it knew as a follower."""
    return high_watermark


def truncates_always(offset: Offset, high_watermark: Offset) -> bool:
    """A follower truncates what it knows to be committed."""
    return True


def snapshots_always(end_offset: Offset, high_watermark: Offset) -> bool:
    """A replica takes a snapshot of what may still be truncated."""
    return True


def never_flushes(may_be_voter: bool) -> bool:
    """A follower acknowledges what a power failure may take."""
    return False


def changes_while_changing(committed_in_epoch: bool, last_is_committed: bool) -> bool:
    """A leader changes the voters again before the last change is committed."""
    return committed_in_epoch


def changes_before_own_record(committed_in_epoch: bool, last_is_committed: bool) -> bool:
    """A leader changes the voters before anything of its own epoch is committed."""
    return last_is_committed or not committed_in_epoch


def keeps_cut_sets(voter_sets: VoterSets, end_offset: Offset) -> VoterSets:
    """A replica goes by voters whose record it has truncated."""
    return voter_sets


def upgrades_at_once(voters: VoterSet, reported: VoterSet) -> bool:
    """Of the voters of the settings those become voters of the log that have reported by now; the others are no voters."""
    return True


QUORUM_MUTANTS: tuple[Mutant, ...] = (
    Mutant("forgets-vote", "vote_as_unattached", votes.no_vote, "who has asked in vain forgets its vote of the same epoch"),
    Mutant("follower-forgets-vote", "vote_as_follower", votes.no_vote, "a follower forgets its vote of the same epoch"),
    Mutant("leads-again", "role_after_restart", leads_again, "a leader that starts again leads in its epoch (KAFKA-10527)"),
    Mutant(
        "commits-at-epoch-start", "commits", commits_at_epoch_start, "a leader commits only earlier epochs (KAFKA-12619)"
    ),
    Mutant("never-flushes", "flushes_fetched", never_flushes, "a follower fetches on before it flushes (KAFKA-13884)"),
    Mutant("no-check-quorum", "checks_quorum", epochs.never_checks_quorum, "a leader cut off leads on (KAFKA-15489)"),
    Mutant("counts-leader-always", "counts_leader", counts_always, "a leader that is no voter counts itself"),
    Mutant("promises-while-following", "grants_pre_vote", promises_while_following, "a follower says that it would vote"),
    Mutant("same-epoch-after-resignation", "epoch_after_resignation", same_epoch, "who has resigned waits in its epoch"),
    Mutant("truncates-committed", "may_truncate", truncates_always, "a follower truncates what is committed (KAFKA-12460)"),
    Mutant("snapshots-uncommitted", "may_take_snapshot", snapshots_always, "a snapshot has what is not committed"),
    Mutant("votes-by-id", "grants_vote", grants_vote_by_id, "a vote counts for a server with another disk, too"),
    Mutant("votes-again", "grants_vote", grants_vote_again, "a vote does not keep a replica from voting for others"),
    Mutant("votes-for-itself", "vote_as_prospective", votes_for_itself, "who asks before an election has voted for itself"),
    Mutant("stands-without-majority", "role_after_timeout", stands_without_majority, "who asks in vain stands for election"),
    Mutant("counts-parted", "counts_fetch", count_every_fetch, "a fetch from beyond where logs part counts"),
    Mutant("keeps-high-watermark", "first_high_watermark", keeps_high_watermark, "a leader knows what is committed at once"),
    Mutant("longest-log-wins", "is_up_to_date", is_as_long, "a vote asks for the length of a log, not for its last epoch"),
    Mutant(
        "changes-while-changing", "may_change_voters", changes_while_changing, "voters are changed twice before a commit"
    ),
    Mutant(
        "changes-before-own-record",
        "may_change_voters",
        changes_before_own_record,
        "voters are changed before a record of the leader's epoch is committed",
    ),
    Mutant("keeps-cut-voters", "sets_after_cut", keeps_cut_sets, "a truncation does not take back the voters"),
    Mutant(
        "upgrades-unreported",
        "may_upgrade",
        upgrades_at_once,
        "kraft.version is raised before all voters have reported",
    ),
    Mutant("late-answers-count", "takes_answer", takes_every_answer, "an answer to a request of an earlier state counts"),
)
