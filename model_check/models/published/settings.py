"""The parameters of the published replication models: bounds, settings, quirks, and the names of their actions."""

from dataclasses import replace
from typing import Any, NamedTuple

from kspec.model_check.core.parameters import Parameter
from kspec.model_check.models.carriers import LOG
from kspec.spec.broker.rules.epoch_lookup import look_up_as_released
from kspec.spec.broker.rules.fencing import check_serves_unfenced
from kspec.spec.broker.rules.leadership import start_leading_with_epoch_entry
from kspec.spec.published.mutants import MUTANTS
from kspec.spec.published.truncation import answer_anyone
from kspec.spec.published.versions import Protocol
from kspec.spec.zookeeper.decisions import fail_broker

QUIRKS = {
    "leaderless-followers": "an announcement without a leader reaches the replicas (published: it never does)",
    "keep-last-isr": "the controller never removes the last in-sync replica (published: it may empty the ISR)",
    "clamp-truncation": "an answer beyond the follower's end truncates nothing (published: the step is disabled)",
    "truncate-against-leader": "only a replica that believes it leads answers OffsetForLeaderEpoch (published, up to"
    " KIP-279: any)",
    "kafka-epoch-lookup": "a replica answers OffsetForLeaderEpoch by its epoch history, as Kafka was released, and not above"
    " its latest epoch (published: KIP-101 looks into the records, since KIP-279 as designed)",
    "own-epoch-entry": "a new leader records the start of its epoch before any record (KAFKA-7415; published: not)",
}

PARAMETERS = (
    Parameter("replicas", 3, "replicas of the partition, ids 1 to N", minimum=1, maximum=12),
    Parameter("log_size", 2, "most records in a log", minimum=0),
    Parameter("max_records", 2, "most records ever written", minimum=0),
    Parameter("max_epoch", 2, "highest leader epoch (the first is 0)", minimum=0),
    Parameter("unclean", False, "the controller may elect an out-of-sync replica when there is no leader"),
    Parameter("restarts", 0, "how many times a broker other than the leader may restart", minimum=0),
    Parameter("power_losses", 0, "how many more times it may restart, without records that were not flushed", minimum=0),
    Parameter("acks", None, "track acknowledged records, with acks 1 or all", choices=("1", "all")),
    Parameter("min_isr", 1, "min.insync.replicas, for acks=all", minimum=1),
    Parameter("repair", (), "quirks of the published model to repair", choices=tuple(QUIRKS), many=True),
    LOG,
    Parameter("mutant", None, "weaken one rule", choices=tuple(mutant.name for mutant in MUTANTS)),
)


TRUNCATION = Parameter(
    "truncation",
    "exchange",
    "how the common end of two logs is found: by exchanging OffsetForLeaderEpoch messages, or at once, as published",
    choices=("exchange", "agreement"),
)
"""For the versions since KIP-279. The two differ where the epochs of a log are not in order; see `docs/models.md`."""


def repaired(rules: Protocol, repairs: tuple[str, ...]) -> Protocol:
    """The rules with some quirks repaired; the other quirks are repaired in the actions."""
    changes: dict[str, Any] = {}
    if "keep-last-isr" in repairs:
        changes["fail_broker"] = fail_broker
    if "own-epoch-entry" in repairs:
        changes["start_leading"] = start_leading_with_epoch_entry
    if "truncate-against-leader" in repairs and rules.truncation_fencing == answer_anyone:
        changes["truncation_fencing"] = check_serves_unfenced
    if "kafka-epoch-lookup" in repairs:
        changes["epoch_lookup"] = look_up_as_released
    return replace(rules, **changes)


class ActionNames(NamedTuple):
    """The published module's names for its variants of the actions."""

    expand_isr: str = "LeaderExpandIsr"
    shrink_isr: str = "LeaderShrinkIsr"
    advance_high_watermark: str = "LeaderIncHighWatermark"
    become_follower: str = "BecomeFollower"
    fetch: str = "FollowerReplicate"
    truncate: str = "FollowerTruncate"


NAMES = {
    "truncate-to-hw": ActionNames(become_follower="BecomeFollowerTruncateToHighWatermark"),
    "kip-101": ActionNames(become_follower="BecomeFollowerTruncateKip101"),
    "kip-279": ActionNames(become_follower="BecomeFollowerTruncateKip279"),
    "kip-320-first-try": ActionNames(
        expand_isr="LeaderExpandIsrBetterFencing",
        shrink_isr="LeaderShrinkIsrBetterFencing",
        advance_high_watermark="ImprovedLeaderIncHighWatermark",
        fetch="FollowerFetch",
    ),
    "kip-320": ActionNames(
        expand_isr="FencedLeaderExpandIsr",
        shrink_isr="FencedLeaderShrinkIsr",
        advance_high_watermark="FencedLeaderIncHighWatermark",
        become_follower="FencedBecomeFollowerAndTruncate",
        fetch="FencedFollowerFetch",
    ),
}
