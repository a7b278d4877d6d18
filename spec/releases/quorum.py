"""The history of Kafka's quorum of controllers: each release is the one before with some rules replaced.

Read were the sources of 2.8.0, 3.0.0, 3.7.0, 3.9.2, 4.0.0, 4.1.1, 4.2.0 and 4.3.1; what differs in 4.4 is known from its
class files, and is no rule here. In 2.8 the quorum was a preview, and in 3.3 it was ready for use.
"""

from dataclasses import replace

from kspec.spec.broker.rules.divergence import count_unless_diverging
from kspec.spec.broker.rules.fetcher import take_all, take_up_to_epoch
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.rules import epochs, replication, snapshots, voters, votes

QUORUM_2_8 = QuorumProtocol(
    name="2.8",
    role_after_timeout=epochs.stands_at_once,
    role_after_restart=epochs.resigned_if_it_led,
    epoch_after_resignation=epochs.epoch_after_resignation,
    is_up_to_date=votes.is_up_to_date,
    grants_vote=votes.grants_vote,
    grants_pre_vote=votes.never_grants_pre_vote,
    takes_epoch_of_vote=votes.takes_every_epoch,
    vote_as_unattached=votes.vote_in_same_epoch,
    vote_as_follower=votes.no_vote,
    vote_as_prospective=votes.vote_of_prospective,
    takes_answer=epochs.takes_expected_answer,
    follows_named=epochs.follows_if_it_knew_none,
    needs_begin=epochs.needs_begin_until_acknowledged,
    checks_quorum=epochs.never_checks_quorum,
    majority_offset=replication.majority_offset,
    commits=replication.commits_own_epoch,
    counts_leader=replication.is_counted_if_voter,
    first_high_watermark=replication.unknown_at_first,
    counts_fetch=count_unless_diverging,
    may_truncate=replication.may_truncate,
    may_take_snapshot=snapshots.may_take_snapshot,
    takes_records=take_all,
    flushes_fetched=replication.flushes_if_voter,
    may_change_voters=voters.may_change_voters,
    sets_after_cut=voters.sets_below,
    resigns_when_removed=voters.resigns_if_still_asked,
    stops_for_acknowledgement=voters.stops_for_acknowledgement,
    takes_reports=False,
    may_upgrade=voters.never_upgrades,
    joins=voters.never_joins,
    stands_until_removed=False,
    stops_if_said_to_lead=True,
    flushes_first=False,
)
"""2.8 to 3.6: a candidate at once, and a leader that nobody fetches from leads on."""

QUORUM_3_7 = replace(QUORUM_2_8, name="3.7", checks_quorum=epochs.checks_quorum)
"""3.7 and 3.8: a leader that hears of no majority resigns (KAFKA-15489)."""

QUORUM_3_9 = replace(QUORUM_3_7, name="3.9", needs_begin=epochs.needs_begin_always)
"""3.9: a leader says again and again that it leads (KAFKA-16536); replicas have directories (KIP-853)."""

QUORUM_4_0 = replace(
    QUORUM_3_9,
    name="4.0",
    role_after_timeout=epochs.asks_before_candidacy,
    grants_pre_vote=votes.grants_pre_vote,
    vote_as_follower=votes.vote_in_same_epoch,
)
"""4.0: a replica asks before it stands for election (KIP-996), and a follower remembers its vote."""

QUORUM_4_1 = replace(
    QUORUM_4_0,
    name="4.1",
    takes_records=take_up_to_epoch,
    takes_reports=True,
    may_upgrade=voters.upgrades_when_all_have_reported,
)
"""4.1: a follower appends nothing of a later epoch than its own (KAFKA-18723, also in 3.9.1 and 4.0.1), and `kraft.version`
may be raised from 0 to 1 (KAFKA-16538)."""

QUORUM_4_2 = replace(QUORUM_4_1, name="4.2", needs_begin=epochs.needs_begin_when_silent, joins=voters.joins_if_told)
"""4.2 to 4.4: a leader says that it leads to those that do not fetch, and a controller may ask for its vote itself."""

QUORUM_NEXT = replace(
    QUORUM_4_2,
    name="next",
    flushes_first=True,
    stands_until_removed=True,
    stops_if_said_to_lead=False,
    role_after_restart=epochs.follower_if_it_knew_who_led,
    follows_named=epochs.follows_if_it_waits,
    resigns_when_removed=voters.resigns_in_any_case,
    stops_for_acknowledgement=voters.takes_any_acknowledgement,
)
"""The newest with known defects repaired: a leader that is alone commits nothing that a power failure may take, a replica
that starts again follows the leader that it knew, though it had voted for itself, and a leader that is removed resigns. The
late word of a replica that does not vote any more stops nobody, and who has led, and lost its disk, waits until others have
elected another leader. Who knows its leader, and not where that is reached, follows it when it answers.
Who has written its own removal may be elected until that is committed: others may need its log."""

QUORUM_RELEASES: tuple[QuorumProtocol, ...] = tuple(
    release for name, release in vars().items() if name.startswith("QUORUM_")
)
"""The releases above, the oldest first."""
