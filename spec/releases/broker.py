"""The history of Kafka's broker: each release is the one before with some rules replaced.

A release is Kafka's x.y.0 as it came out, its bugs included. From 3.9.1 on, x.y.z is listed where a rule changed in it;
before, a repair that came with x.y.z counts from the next x.y.0 on. Which rule was read in which release is in
`docs/rules-by-release.md`. Each broker has its own record, so a cluster in the middle of an upgrade has brokers of different
releases. Up to 2.8 the controller keeps the state in ZooKeeper, from 3.0 in KRaft.
"""

from dataclasses import replace

from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules import (
    divergence,
    epoch_lookup,
    fencing,
    fetcher,
    followers,
    high_watermark,
    leadership,
    lifecycle,
    offsets,
    produce,
    reading,
)
from kspec.spec.broker.rules.isr import announcement, errors, membership, proposal, request
from kspec.spec.broker.rules.isr.request import IsrWriter
from kspec.spec.log import epoch_history, local_log, producers
from kspec.spec.releases.transactions import history

BROKER_0_10 = BrokerProtocol(
    name="0.10",
    transactions=history.TRANSACTIONS_0_11,
    believes_epochs=epoch_history.describes_any,
    takes_registration=lifecycle.answers_this_incarnation,
    acts_on_metadata=lifecycle.acts_once_registered,
    opens_ports=lifecycle.opens_ports_at_once,
    takes_announcement=announcement.takes_later_leader_epoch,
    announced_isr=announcement.apply_partition,
    begins_epoch=announcement.begins_epoch_once,
    hears_of_leader=announcement.ignores_lost_leader,
    stops_fetching=announcement.fetches_until_it_stops,
    start_leading=leadership.start_leading,
    knows_followers=followers.knows_followers_if_it_led,
    keeps_of_followers=followers.keep_everything,
    restarts_fetching=fetcher.restarts_with_leader,
    start_following=fetcher.start_at_high_watermark,
    check_sequences=producers.append_unchecked,
    finds_duplicate=producers.duplicate_of_none,
    producers_after_deletion=producers.forget_deleted,
    min_isr=produce.min_isr_as_configured,
    serves=fencing.check_serves_unfenced,
    epoch_lookup=epoch_lookup.look_up_end_only,
    needs_leader=reading.always_needs_leader,
    read_replicas=reading.leader_alone,
    answers_unassigned=fencing.fail_unassigned,
    divergence=divergence.no_divergence_check,
    notes_fetch=followers.after_fetch_from_end,
    notes_failed_fetch=followers.end_unknown_after_failed_fetch,
    counts_fetch=divergence.count_unless_diverging,
    check_replica_epoch=fencing.accept_any_replica_epoch,
    awaits=high_watermark.awaited_if_in_isr,
    may_advance=high_watermark.advance_at_any_isr_size,
    advances_after_fetch=high_watermark.advances_after_every_fetch,
    advances_when_granted=high_watermark.advances_when_granted,
    answered_high_watermark=high_watermark.answered_before_fetch,
    latest_offset_lags=offsets.never_lags,
    answers_offset=offsets.tells_no_leader_epoch,
    may_delete=offsets.may_delete_by_policy,
    check_deletion=offsets.check_deletion_by_offset_first,
    deletes=offsets.deletes_before_asking,
    is_eligible=membership.any_replica_is_eligible,
    has_reached=membership.has_reached_high_watermark,
    joins=membership.joins_at_any_isr_size,
    drops=membership.out_of_sync_by_time,
    propose=proposal.propose,
    counted_isr=proposal.maximal_isr,
    asks_for_isr=request.write_isr,
    may_ask=request.asks_at_any_time,
    takes_granted=announcement.takes_later_grant,
    on_isr_error=errors.roll_back_always,
    names_broker_epoch=fencing.name_no_broker_epoch,
    names_epochs=fetcher.name_no_epoch,
    truncate=local_log.truncate_if_longer,
    restart=local_log.restart_below_start,
    appends=local_log.append_in_order,
    needs_no_answer=fetcher.always_needs_answer,
    may_truncate_by=fetcher.may_truncate_by_any,
    truncation=fetcher.truncation_by_answer,
    takes_answer=fetcher.takes_same_offset,
    takes_records=fetcher.take_all,
    last_epoch=fetcher.keep_last_epoch_if_empty,
    high_watermark_when_diverging=fetcher.keep_high_watermark,
    isr_writer=IsrWriter.LEADER,
    acts_on_old_metadata=False,
    truncates_at_once=True,
    last_epoch_needs_answer=False,
    answers_after_fetch=False,
    promises_latest_offset=False,
)
"""0.10.0: a new follower truncates to its high watermark."""

BROKER_0_11 = replace(
    BROKER_0_10,
    name="0.11",
    start_following=fetcher.start_by_asking,
    truncates_at_once=False,
    keeps_of_followers=followers.keep_offsets_as_if_fetched_now,
    check_sequences=producers.check_first_sequence,
    finds_duplicate=producers.duplicate_of_last,
    notes_fetch=followers.after_fetch_at_its_end,
    awaits=high_watermark.awaited_if_caught_up,
)
"""KIP-101: a new follower asks where its last epoch ends. KIP-98: idempotent producers. KAFKA-4485 (0.10.2): when a
follower counts as caught up. KIP-107: records are deleted by request, even where the policy forbids it."""
# It leaves out that up to 2.0 the epoch history ignores an epoch that is smaller than its latest (read from kafka_2.12
# 0.11.0.0 and 2.0.0). Here it takes it and drops the larger ones, as Kafka does since 2.1 (read from 2.1.0). The two differ
# only where the epochs of a log go back.

BROKER_1_0 = replace(
    BROKER_0_11,
    name="1.0",
    check_sequences=producers.check_not_older,
    finds_duplicate=producers.duplicate_of,
    answers_unassigned=fencing.answer_unassigned_without_records,
    answered_high_watermark=high_watermark.answered_after_fetch,
    answers_after_fetch=True,
)
"""KAFKA-5494: five batches of a producer are remembered. KAFKA-5758: a fetch by a broker that is no replica does not
fail. The answer to a fetch has the high watermark after it."""

BROKER_1_1 = replace(
    BROKER_1_0,
    name="1.1",
    check_sequences=producers.check_known_producer,
    takes_answer=fetcher.takes_same_offset_when_ready,
    check_deletion=offsets.check_deletion,
    deletes=offsets.deletes_if_allowed,
)
"""A follower that is truncating takes no records. Records are deleted only where the policy allows it. A batch that is older
than the last five of its producer is out of order, as other gaps are."""

BROKER_2_0 = replace(
    BROKER_1_1,
    name="2.0",
    epoch_lookup=epoch_lookup.look_up_within_history,
    answered_high_watermark=high_watermark.answered_before_fetch,
    answers_after_fetch=False,
    appends=local_log.append_fetched,
)
"""KIP-279: the answer names the largest epoch up to the one asked, and the follower asks until both know one.
KAFKA-6975: an empty log takes a batch that begins before it."""

BROKER_2_1 = replace(
    BROKER_2_0,
    name="2.1",
    start_leading=leadership.start_leading_with_epoch_entry,
    restarts_fetching=fetcher.restarts_with_epoch,
    serves=fencing.check_serves,
    epoch_lookup=epoch_lookup.look_up_as_released,
    has_reached=membership.has_reached_epoch_start,
    drops=membership.out_of_sync,
    names_epochs=fetcher.name_leader_epoch,
    needs_no_answer=fetcher.needs_no_answer,
)
"""KIP-320: requests carry the leader epoch. KAFKA-7415: a new leader records its epoch. KAFKA-7128: no early joining.
KAFKA-7152: who has all records stays in the ISR. KAFKA-6859: nobody asks about no epoch."""

BROKER_2_2 = replace(
    BROKER_2_1,
    name="2.2",
    latest_offset_lags=offsets.lags_behind_epoch_start,
    answers_offset=offsets.tells_leader_epoch,
    may_truncate_by=fetcher.may_truncate_by,
    promises_latest_offset=True,
)
"""KIP-207: a new leader does not show a latest offset that goes back. KAFKA-7786: an answer about an epoch counts only
in the epoch in which it was asked for."""

BROKER_2_3 = replace(BROKER_2_2, name="2.3")
"""Nothing here changed."""

BROKER_2_4 = replace(
    BROKER_2_3,
    name="2.4",
    producers_after_deletion=producers.keep_deleted,
    needs_leader=reading.needs_leader,
    read_replicas=reading.replicas_with_offset,
    notes_failed_fetch=followers.after_failed_fetch,
    advances_after_fetch=high_watermark.advances_if_end_moved,
    drops=membership.out_of_sync_if_all_are_assigned,
)
"""KIP-392: consumers may read from followers. KAFKA-8400: a refused fetch changes nothing. KAFKA-7190: producers are
remembered longer than their records. With a bug, KAFKA-9672."""

BROKER_2_5 = replace(
    BROKER_2_4,
    name="2.5",
    transactions=history.TRANSACTIONS_2_5,
    check_sequences=producers.check_batch,
    restart=local_log.restart,
)
"""KIP-360: an unknown producer may begin anywhere. KAFKA-9491: the high watermark of a log that is emptied is its start."""

BROKER_2_6 = replace(BROKER_2_5, name="2.6", transactions=history.TRANSACTIONS_2_6)
"""Nothing here changed."""

BROKER_2_7 = replace(
    BROKER_2_6,
    name="2.7",
    asks_for_isr=request.ask_for_isr,
    isr_writer=IsrWriter.CONTROLLER,
    on_isr_error=errors.never_roll_back,
    divergence=divergence.diverges,
    counts_fetch=divergence.count_every_fetch,
    advances_when_granted=high_watermark.stays_when_granted,
    truncate=local_log.truncate,
)
"""KIP-497: ISR changes are requests. KIP-595: a leader reports divergence. KAFKA-10706: truncation to the end. With two
bugs, KAFKA-12751 and KAFKA-13091."""

BROKER_2_8 = replace(
    BROKER_2_7,
    name="2.8",
    start_following=fetcher.start_by_fetching,
    names_epochs=fetcher.name_both_epochs,
    truncation=fetcher.truncation_and_fetch,
    high_watermark_when_diverging=fetcher.take_high_watermark_first,
)
"""KIP-595 in the follower: it truncates by the answer to a fetch. With two bugs, KAFKA-13141 and KAFKA-14704."""

BROKER_3_0 = replace(
    BROKER_2_8,
    name="3.0",
    divergence=divergence.diverges_within_log,
    counts_fetch=divergence.count_unless_diverging,
    takes_announcement=announcement.takes_every_announcement,
    begins_epoch=announcement.begins_epoch_again,
    drops=membership.out_of_sync,
    may_ask=request.asks_once_answered,
    takes_granted=announcement.may_take_granted,
)
"""KAFKA-13141, KAFKA-12996, KAFKA-12751 and KAFKA-9672 repaired. A leader has one request for an ISR in flight. With
KRaft a leader takes every change of the partition for a new epoch (KAFKA-13790)."""

BROKER_3_1 = replace(
    BROKER_3_0,
    name="3.1",
    advances_when_granted=high_watermark.advances_when_granted,
    on_isr_error=errors.roll_back_instead_of_retry,
)
BROKER_3_2 = replace(BROKER_3_1, name="3.2", on_isr_error=errors.give_up_if_invalid_or_roll_back)
"""A proposal that the controller refused unchecked is rolled back; an invalid one is not repeated. KAFKA-13091
repaired. With a bug, KAFKA-14010: no other is repeated either."""

BROKER_3_3 = replace(
    BROKER_3_2,
    name="3.3",
    takes_announcement=announcement.takes_no_older_partition_epoch,
    begins_epoch=announcement.begins_epoch_once,
    hears_of_leader=announcement.hears_of_lost_leader,
    stops_fetching=announcement.stops_fetching_to_stop,
    keeps_of_followers=followers.keep_offsets,
    answers_unassigned=fencing.refuse_unassigned,
    notes_fetch=followers.after_fetch,
    is_eligible=membership.eligible_while_active,
    asks_for_isr=request.ask_for_eligible_isr,
    on_isr_error=errors.roll_back_if_ineligible,
)
"""KIP-841: replicas that are fenced or shutting down do not join. KAFKA-13790: announcements count by partition epoch,
and by leader epoch. KAFKA-13837: a broker that is no replica is told so. KAFKA-14010 repaired."""

BROKER_3_4 = replace(BROKER_3_3, name="3.4", read_replicas=reading.readable_replicas)
"""KAFKA-14379 (3.3.2): consumers are sent to members of the ISR only."""

BROKER_3_5 = replace(
    BROKER_3_4,
    name="3.5",
    acts_on_metadata=lifecycle.acts_once_caught_up,
    opens_ports=lifecycle.opens_ports_once_unfenced,
    is_eligible=membership.eligible_in_its_broker_epoch,
    asks_for_isr=request.ask_for_isr_by_broker_epoch,
    names_broker_epoch=fencing.name_broker_epoch,
    high_watermark_when_diverging=fetcher.keep_high_watermark,
)
"""KIP-903: broker epochs in Fetch and AlterPartition. KAFKA-14704 repaired. A starting broker acts on metadata before
it is registered, and opens its ports when it is unfenced."""

BROKER_3_6 = replace(
    BROKER_3_5,
    name="3.6",
    transactions=history.TRANSACTIONS_3_6,
    awaits=high_watermark.awaited_if_about_to_join,
    last_epoch=fetcher.forget_last_epoch_if_first_is_empty,
    last_epoch_needs_answer=True,
)
"""KAFKA-15021: the high watermark does not wait for a replica that may not join. With a bug, KAFKA-15510."""

BROKER_3_7 = replace(
    BROKER_3_6,
    name="3.7",
    min_isr=produce.min_isr_within_replicas,
    check_replica_epoch=fencing.check_replica_epoch,
    may_advance=high_watermark.advance_at_min_isr,
    last_epoch=fetcher.keep_last_epoch_if_empty,
    last_epoch_needs_answer=False,
)
"""KIP-966, first part: no high watermark below min ISR. KAFKA-15221: a leader takes no fetch of an earlier incarnation.
KAFKA-15510 repaired."""

BROKER_3_8 = replace(BROKER_3_7, name="3.8", transactions=history.TRANSACTIONS_3_8)
BROKER_3_9 = replace(BROKER_3_8, name="3.9")
"""3.8 and 3.9: nothing here changed."""

BROKER_3_9_1 = replace(
    BROKER_3_9, name="3.9.1", takes_answer=fetcher.takes_same_epoch, takes_records=fetcher.take_up_to_epoch
)
"""KAFKA-18991: an answer counts only in the epoch in which it was asked for. KAFKA-18723: a follower appends no records
of an epoch later than its own. It came out after 4.0.0."""

BROKER_4_0 = replace(BROKER_3_9, name="4.0", transactions=history.TRANSACTIONS_4_0)
"""Nothing here changed since 3.9.0: 4.0.0 has neither of the repairs of 3.9.1."""

BROKER_4_0_1 = replace(
    BROKER_4_0, name="4.0.1", takes_answer=fetcher.takes_same_epoch, takes_records=fetcher.take_up_to_epoch
)
"""KAFKA-18991 and KAFKA-18723, as in 3.9.1."""

BROKER_4_1 = replace(BROKER_4_0_1, name="4.1", transactions=history.TRANSACTIONS_4_1)
BROKER_4_1_1 = replace(BROKER_4_1, name="4.1.1")
"""4.1 and 4.1.1: nothing here changed."""

BROKER_4_2 = replace(
    BROKER_4_1_1, name="4.2", transactions=history.TRANSACTIONS_4_2, may_delete=offsets.may_delete_unless_compacted
)
"""Records may be deleted by request where `cleanup.policy` is empty."""

BROKER_4_3 = replace(BROKER_4_2, name="4.3", transactions=history.TRANSACTIONS_4_3)
BROKER_4_4 = replace(BROKER_4_3, name="4.4")
"""4.3 and 4.4: nothing here changed."""

NEWEST = BROKER_4_4
"""The newest release."""

BROKER_NEXT = replace(
    NEWEST,
    name="next",
    transactions=history.TRANSACTIONS_NEXT,
    believes_epochs=epoch_history.describes,
    acts_on_metadata=lifecycle.acts_once_registered,
    announced_isr=announcement.apply_news,
    knows_followers=followers.knows_followers_if_no_epoch_was_missed,
    joins=membership.joins_under_min_isr_if_caught_up,
)
"""The newest release with its known defects repaired.

Follower states kept over missed epochs; proposals dropped for metadata that are not new; fetches before the registration;
KAFKA-19996; epoch files that are believed though they are behind the log (KAFKA-16541, KAFKA-20961).
"""

BROKER_RELEASES: tuple[BrokerProtocol, ...] = tuple(
    release for name, release in vars().items() if name.startswith("BROKER_")
)
"""The releases above, the oldest first."""
