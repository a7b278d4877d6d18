"""The history of Kafka's broker: each release is the one before with some rules replaced.

A release is Kafka's x.y.0 as it came out, its bugs included. Each broker has its own record, so a cluster in the middle of
an upgrade has brokers of different releases. Up to 2.8 the controller keeps the state in ZooKeeper, from 3.0 in KRaft.
"""

from dataclasses import replace

from spec.broker.protocol import BrokerProtocol
from spec.broker.rules.divergence import (
    count_every_fetch,
    count_unless_diverging,
    diverges,
    diverges_within_log,
    no_divergence_check,
)
from spec.broker.rules.epoch_lookup import look_up_as_released, look_up_end_only, look_up_within_history
from spec.broker.rules.fencing import (
    accept_any_replica_epoch,
    check_replica_epoch,
    check_serves,
    check_serves_unfenced,
    name_broker_epoch,
    name_no_broker_epoch,
)
from spec.broker.rules.fetcher import (
    forget_last_epoch_if_first_is_empty,
    keep_high_watermark,
    keep_last_epoch_if_empty,
    name_both_epochs,
    name_leader_epoch,
    name_no_epoch,
    restarts_with_epoch,
    restarts_with_leader,
    start_at_high_watermark,
    start_by_asking,
    start_by_fetching,
    take_all,
    take_high_watermark_first,
    take_up_to_epoch,
    takes_same_epoch,
    takes_same_offset,
    takes_same_offset_when_ready,
    truncation_and_fetch,
    truncation_by_answer,
)
from spec.broker.rules.followers import knows_followers_if_it_led, knows_followers_if_no_epoch_was_missed
from spec.broker.rules.high_watermark import (
    advance_at_any_isr_size,
    advance_at_min_isr,
    awaited_if_about_to_join,
    awaited_if_caught_up,
    awaited_if_in_isr,
)
from spec.broker.rules.isr.announcement import (
    apply_news,
    apply_partition,
    takes_later_leader_epoch,
    takes_no_older_partition_epoch,
)
from spec.broker.rules.isr.errors import (
    give_up_if_invalid,
    never_roll_back,
    roll_back_always,
    roll_back_if_ineligible,
    roll_back_if_not_attempted,
)
from spec.broker.rules.isr.membership import (
    any_replica_is_eligible,
    eligible_in_its_broker_epoch,
    eligible_while_active,
    has_reached_epoch_start,
    has_reached_high_watermark,
    joins_at_any_isr_size,
    joins_under_min_isr_if_caught_up,
)
from spec.broker.rules.isr.proposal import maximal_isr, propose
from spec.broker.rules.isr.request import (
    IsrWriter,
    ask_for_eligible_isr,
    ask_for_isr,
    ask_for_isr_by_broker_epoch,
    write_isr,
)
from spec.broker.rules.leadership import has_caught_up, start_leading, start_leading_with_epoch_entry
from spec.broker.rules.lifecycle import answers_this_incarnation
from spec.broker.rules.offsets import lags_behind_epoch_start, never_lags
from spec.broker.rules.produce import min_isr_as_configured, min_isr_within_replicas
from spec.log.local_log import truncate, truncate_if_longer
from spec.log.producers import append_unchecked, check_batch

BROKER_0_10 = BrokerProtocol(
    name="0.10",
    takes_registration=answers_this_incarnation,
    acts_on_metadata=has_caught_up,
    takes_announcement=takes_later_leader_epoch,
    announced_isr=apply_partition,
    start_leading=start_leading,
    knows_followers=knows_followers_if_it_led,
    restarts_fetching=restarts_with_leader,
    start_following=start_at_high_watermark,
    check_sequences=append_unchecked,
    min_isr=min_isr_as_configured,
    serves=check_serves_unfenced,
    epoch_lookup=look_up_end_only,
    divergence=no_divergence_check,
    counts_fetch=count_unless_diverging,
    check_replica_epoch=accept_any_replica_epoch,
    awaits=awaited_if_in_isr,
    may_advance=advance_at_any_isr_size,
    latest_offset_lags=never_lags,
    is_eligible=any_replica_is_eligible,
    has_reached=has_reached_high_watermark,
    joins=joins_at_any_isr_size,
    propose=propose,
    counted_isr=maximal_isr,
    asks_for_isr=write_isr,
    on_isr_error=roll_back_always,
    names_broker_epoch=name_no_broker_epoch,
    names_epochs=name_no_epoch,
    truncate=truncate_if_longer,
    truncation=truncation_by_answer,
    takes_answer=takes_same_offset,
    takes_records=take_all,
    last_epoch=keep_last_epoch_if_empty,
    high_watermark_when_diverging=keep_high_watermark,
    isr_writer=IsrWriter.LEADER,
    acts_on_old_metadata=False,
    truncates_at_once=True,
    last_epoch_needs_answer=False,
    promises_latest_offset=False,
)
"""0.10.0: a new follower truncates to its high watermark."""

BROKER_0_11 = replace(
    BROKER_0_10,
    name="0.11",
    start_following=start_by_asking,
    truncates_at_once=False,
    check_sequences=check_batch,
    awaits=awaited_if_caught_up,
)
"""KIP-101: a new follower asks where its last epoch ends. KIP-98: idempotent producers. KAFKA-4485 (0.10.2)."""

BROKER_1_0 = replace(BROKER_0_11, name="1.0")
"""Nothing here changed."""

BROKER_1_1 = replace(BROKER_1_0, name="1.1", takes_answer=takes_same_offset_when_ready)
"""A follower that is truncating takes no records."""

BROKER_2_0 = replace(BROKER_1_1, name="2.0", epoch_lookup=look_up_within_history)
"""KIP-279: the answer names the largest epoch up to the one asked, and the follower asks until both know one."""

BROKER_2_1 = replace(
    BROKER_2_0,
    name="2.1",
    start_leading=start_leading_with_epoch_entry,
    restarts_fetching=restarts_with_epoch,
    serves=check_serves,
    epoch_lookup=look_up_as_released,
    has_reached=has_reached_epoch_start,
    names_epochs=name_leader_epoch,
)
"""KIP-320: requests carry the leader epoch. KAFKA-7415: a new leader records its epoch. KAFKA-7128: no early joining."""

BROKER_2_2 = replace(BROKER_2_1, name="2.2", latest_offset_lags=lags_behind_epoch_start, promises_latest_offset=True)
"""KIP-207: a new leader does not show a latest offset that goes back."""

BROKER_2_3 = replace(BROKER_2_2, name="2.3")
BROKER_2_4 = replace(BROKER_2_3, name="2.4")
BROKER_2_5 = replace(BROKER_2_4, name="2.5")
BROKER_2_6 = replace(BROKER_2_5, name="2.6")
"""2.3 to 2.6: nothing here changed."""

BROKER_2_7 = replace(
    BROKER_2_6,
    name="2.7",
    asks_for_isr=ask_for_isr,
    isr_writer=IsrWriter.CONTROLLER,
    on_isr_error=never_roll_back,
    divergence=diverges,
    counts_fetch=count_every_fetch,
    truncate=truncate,
)
"""KIP-497: ISR changes are requests. KIP-595: a leader reports divergence. KAFKA-10706: truncation to the end."""

BROKER_2_8 = replace(
    BROKER_2_7,
    name="2.8",
    start_following=start_by_fetching,
    names_epochs=name_both_epochs,
    truncation=truncation_and_fetch,
    high_watermark_when_diverging=take_high_watermark_first,
)
"""KIP-595 in the follower: it truncates by the answer to a fetch. With two bugs, KAFKA-13141 and KAFKA-14704."""

BROKER_3_0 = replace(BROKER_2_8, name="3.0", divergence=diverges_within_log, counts_fetch=count_unless_diverging)
"""KAFKA-13141 and KAFKA-12996 repaired."""

BROKER_3_1 = replace(BROKER_3_0, name="3.1", on_isr_error=roll_back_if_not_attempted)
BROKER_3_2 = replace(BROKER_3_1, name="3.2", on_isr_error=give_up_if_invalid)
"""A proposal that the controller refused unchecked is rolled back; an invalid one is not repeated."""

BROKER_3_3 = replace(
    BROKER_3_2,
    name="3.3",
    takes_announcement=takes_no_older_partition_epoch,
    is_eligible=eligible_while_active,
    asks_for_isr=ask_for_eligible_isr,
    on_isr_error=roll_back_if_ineligible,
)
"""KIP-841: replicas that are fenced or shutting down do not join. Announcements count by partition epoch."""

BROKER_3_4 = replace(BROKER_3_3, name="3.4")
"""Nothing here changed."""

BROKER_3_5 = replace(
    BROKER_3_4,
    name="3.5",
    check_replica_epoch=check_replica_epoch,
    is_eligible=eligible_in_its_broker_epoch,
    asks_for_isr=ask_for_isr_by_broker_epoch,
    names_broker_epoch=name_broker_epoch,
    high_watermark_when_diverging=keep_high_watermark,
)
"""KIP-903: broker epochs in Fetch and AlterPartition. KAFKA-14704 repaired."""

BROKER_3_6 = replace(
    BROKER_3_5,
    name="3.6",
    awaits=awaited_if_about_to_join,
    last_epoch=forget_last_epoch_if_first_is_empty,
    last_epoch_needs_answer=True,
)
"""KAFKA-15021: the high watermark does not wait for a replica that may not join. With a bug, KAFKA-15510."""

BROKER_3_7 = replace(
    BROKER_3_6,
    name="3.7",
    min_isr=min_isr_within_replicas,
    may_advance=advance_at_min_isr,
    last_epoch=keep_last_epoch_if_empty,
    last_epoch_needs_answer=False,
)
"""KIP-966, first part: no high watermark below min ISR. KAFKA-15510 repaired."""

BROKER_3_8 = replace(BROKER_3_7, name="3.8")
BROKER_3_9 = replace(BROKER_3_8, name="3.9")
"""3.8 and 3.9: nothing here changed."""

BROKER_4_0 = replace(BROKER_3_9, name="4.0", takes_records=take_up_to_epoch)
"""KAFKA-18723: a follower appends no records of an epoch later than its own."""

BROKER_NEXT = replace(
    BROKER_4_0,
    name="next",
    announced_isr=apply_news,
    knows_followers=knows_followers_if_no_epoch_was_missed,
    takes_answer=takes_same_epoch,
    joins=joins_under_min_isr_if_caught_up,
)
"""4.0 with its known defects repaired.

Follower states kept over missed epochs; proposals dropped for metadata that are not new; KAFKA-18991; KAFKA-19996.
"""

BROKER_RELEASES = (
    BROKER_0_10,
    BROKER_0_11,
    BROKER_1_0,
    BROKER_1_1,
    BROKER_2_0,
    BROKER_2_1,
    BROKER_2_2,
    BROKER_2_3,
    BROKER_2_4,
    BROKER_2_5,
    BROKER_2_6,
    BROKER_2_7,
    BROKER_2_8,
    BROKER_3_0,
    BROKER_3_1,
    BROKER_3_2,
    BROKER_3_3,
    BROKER_3_4,
    BROKER_3_5,
    BROKER_3_6,
    BROKER_3_7,
    BROKER_3_8,
    BROKER_3_9,
    BROKER_4_0,
    BROKER_NEXT,
)
"""All releases, the oldest first."""
