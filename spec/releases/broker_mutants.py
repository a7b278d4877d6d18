"""Mutants of the broker: one of its rules weakened, to show that the rule is needed.

Many restore the rule of an older release; the others were never in a release.
"""

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
)
from kspec.spec.broker.rules.fetcher import FetchState, is_fetching
from kspec.spec.broker.rules.followers import FollowerFetch, FollowerState
from kspec.spec.broker.rules.isr import announcement, errors, membership, proposal
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle
from kspec.spec.log import local_log, producers
from kspec.spec.messages.broker_registration import BrokerRegistrationResponse
from kspec.spec.mutation import Mutant
from kspec.spec.values import UNKNOWN_OFFSET, Epoch, Offset, PartitionEpoch


def takes_any_registration(incarnation: BrokerLifecycle, response: BrokerRegistrationResponse) -> bool:
    """Take every answer to a registration, even another incarnation's. **Kafka:** no release."""
    return True


def takes_any_announcement(leader_epoch: Epoch, leader: LeaderIsr, epoch: Epoch, partition_epoch: PartitionEpoch) -> bool:
    """Take every announcement of the partition, even an older one than the last. **Kafka:** no release."""
    return True


def takes_any_offset(fetcher: FetchState, offset: Offset, asked_in: Epoch) -> bool:
    """Take every answer to a fetch from any offset. **Kafka:** no release."""
    return is_fetching(fetcher)


def has_fetched(end_offset: Offset, high_watermark: Offset, epoch_start: Offset) -> bool:
    """A follower may join as soon as it has fetched. **Kafka:** no release."""
    return end_offset != UNKNOWN_OFFSET


def count_what_is_sent(follower: FollowerState, fetch: FollowerFetch) -> FollowerState:
    """As `after_fetch`, but the follower counts as having what the answer brings it. **Kafka:** no release."""
    return followers.after_fetch(follower, fetch._replace(end_offset=fetch.leader_end))


def one_is_enough(min_isr: int, replicas: int) -> int:
    """One in-sync replica is enough for acks=all. **Kafka:** the default of `min.insync.replicas`."""
    return 1


BROKER_MUTANTS = (
    Mutant(
        "take-registration-of-earlier-incarnation",
        "takes_registration",
        takes_any_registration,
        "a starting broker takes the answer to an earlier incarnation as its own",
    ),
    Mutant(
        "act-on-old-metadata",
        "acts_on_metadata",
        lifecycle.acts_on_any_metadata,
        "a starting broker acts on old metadata",
        traits=(("acts_on_old_metadata", True),),
    ),
    Mutant(
        "act-before-registration",
        "acts_on_metadata",
        lifecycle.acts_once_caught_up,
        "a starting broker fetches before it is registered, and so without a broker epoch",
    ),
    Mutant(
        "open-ports-at-once",
        "opens_ports",
        lifecycle.opens_ports_at_once,
        "a starting broker answers before it is unfenced",
    ),
    Mutant("take-old-announcement", "takes_announcement", takes_any_announcement, "older announcements are taken"),
    Mutant(
        "forget-proposal-on-old-news",
        "announced_isr",
        announcement.apply_partition,
        "an announcement that is not new drops a proposal made after it",
    ),
    Mutant(
        "no-epoch-entry", "start_leading", leadership.start_leading, "a new leader does not record its epoch (KAFKA-7415)"
    ),
    Mutant(
        "keep-followers-over-missed-epochs",
        "knows_followers",
        followers.knows_followers_if_it_led,
        "a leader counts fetches made before epochs that it has missed",
    ),
    Mutant(
        "do-not-restart-fetcher",
        "restarts_fetching",
        fetcher.restarts_with_leader,
        "a follower keeps its fetcher in a new epoch (KAFKA-7164)",
    ),
    Mutant(
        "truncate-to-high-watermark",
        "start_following",
        fetcher.start_at_high_watermark,
        "a follower truncates to its high watermark",
        traits=(("truncates_at_once", True),),
    ),
    Mutant(
        "no-sequence-check",
        "check_sequences",
        producers.append_unchecked,
        "an idempotent producer's batches are not checked",
    ),
    Mutant("min-isr-of-one", "min_isr", one_is_enough, "acks=all requires too few in-sync replicas"),
    Mutant("unfenced-requests", "serves", fencing.check_serves_unfenced, "requests of any epoch are answered"),
    Mutant(
        "epoch-lookup-as-designed",
        "epoch_lookup",
        epoch_lookup.look_up_as_designed,
        "the epoch lookup of KIP-279's first design",
    ),
    Mutant(
        "epoch-lookup-by-end", "epoch_lookup", epoch_lookup.look_up_end_only, "the answer does not name the epoch that ends"
    ),
    Mutant("no-divergence-check", "divergence", divergence.no_divergence_check, "a leader does not say where logs diverge"),
    Mutant(
        "diverging-before-start",
        "divergence",
        divergence.diverges,
        "a leader answers with offsets before its log (KAFKA-12996)",
    ),
    Mutant(
        "count-what-is-sent",
        "notes_fetch",
        count_what_is_sent,
        "a fetch counts for the records that its answer brings",
    ),
    Mutant(
        "count-diverging-fetch",
        "counts_fetch",
        divergence.count_every_fetch,
        "a fetch counts whose log is about to be truncated (KAFKA-13141)",
    ),
    Mutant(
        "count-fetch-of-earlier-incarnation",
        "check_replica_epoch",
        fencing.accept_any_replica_epoch,
        "a fetch of an earlier incarnation counts (KIP-903)",
    ),
    Mutant(
        "await-isr-only",
        "awaits",
        high_watermark.awaited_if_in_isr,
        "the high watermark overtakes a replica that is about to join",
    ),
    Mutant(
        "await-ineligible",
        "awaits",
        high_watermark.awaited_if_caught_up,
        "the high watermark waits for a replica that may not join (KAFKA-15021)",
    ),
    Mutant(
        "advance-below-min-isr",
        "may_advance",
        high_watermark.advance_at_any_isr_size,
        "the high watermark moves below min ISR (KIP-966)",
    ),
    Mutant(
        "latest-offset-goes-back",
        "latest_offset_lags",
        offsets.never_lags,
        "a new leader shows a lower latest offset (KIP-207)",
    ),
    Mutant(
        "admit-anybody",
        "is_eligible",
        membership.any_replica_is_eligible,
        "replicas that are fenced or shutting down join (KIP-841)",
    ),
    Mutant(
        "admit-earlier-incarnation",
        "is_eligible",
        membership.eligible_while_active,
        "a replica joins by a fetch of an earlier incarnation (KIP-903)",
    ),
    Mutant(
        "join-before-epoch-start",
        "has_reached",
        membership.has_reached_high_watermark,
        "a follower joins too early (KAFKA-7128)",
    ),
    Mutant("join-before-high-watermark", "has_reached", has_fetched, "a follower joins without all committed records"),
    Mutant(
        "join-under-min-isr", "joins", membership.joins_at_any_isr_size, "a slow follower joins and leaves (KAFKA-19996)"
    ),
    Mutant("shrink-before-confirmation", "propose", proposal.propose_as_if_granted, "a proposal counts as granted"),
    Mutant(
        "high-watermark-over-committed-isr",
        "counted_isr",
        proposal.committed_isr,
        "a pending admission does not count (KIP-497)",
    ),
    Mutant(
        "roll-back-on-any-error", "on_isr_error", errors.roll_back_always, "a proposal is dropped that may have been applied"
    ),
    Mutant(
        "truncate-only-if-longer",
        "truncate",
        local_log.truncate_if_longer,
        "an opened epoch without records stays (KAFKA-10706)",
    ),
    Mutant(
        "take-answer-of-other-epoch",
        "takes_answer",
        fetcher.takes_same_offset_when_ready,
        "a late answer counts (KAFKA-18991)",
    ),
    Mutant("take-answer-of-other-offset", "takes_answer", takes_any_offset, "an answer to another fetch counts"),
    Mutant("take-later-epochs", "takes_records", fetcher.take_all, "records of a later epoch are appended (KAFKA-18723)"),
    Mutant(
        "forget-last-epoch",
        "last_epoch",
        fetcher.forget_last_epoch_if_first_is_empty,
        "the next fetch names no epoch (KAFKA-15510)",
        traits=(("last_epoch_needs_answer", True),),
    ),
    Mutant(
        "high-watermark-before-truncation",
        "high_watermark_when_diverging",
        fetcher.take_high_watermark_first,
        "the leader's high watermark is taken over records that are not the leader's (KAFKA-14704)",
    ),
)
