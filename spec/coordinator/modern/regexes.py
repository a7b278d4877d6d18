"""Regular expressions of a consumer group: when they are to be resolved, and what becomes of the topics (KIP-848).

What an expression matches is found outside, by a library for RE2 and with the rights of the member. Rules say when, and what
follows.
"""

from kspec.spec.coordinator.group import Group, GroupStep
from kspec.spec.coordinator.modern.group_steps import after_records, in_next_epoch, modern
from kspec.spec.coordinator.modern.records import RegularExpressionRecord
from kspec.spec.coordinator.modern.state import (
    ConsumerGroup,
    ResolvedRegularExpression,
    metadata_hash,
    resolved,
    topics_of_group,
)
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rebalance import then
from kspec.spec.step import Step
from kspec.spec.values import Instant

MIN_REFRESH_INTERVAL_MS = 10_000
"""The shortest time (ms) between two resolutions of a group. Kafka: `REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`."""

MAX_REFRESH_INTERVAL_MS = 600_000
"""The longest time (ms). Kafka: `group.consumer.regex.refresh.interval.ms`."""


def regexes_of(group: ConsumerGroup) -> frozenset[str]:
    """The expressions that any member subscribes to. **Kafka:** `ConsumerGroup.subscribedRegularExpressions`."""
    return frozenset(member.regex for member in group.members if member.regex)


def regexes_due(group: ConsumerGroup, newest_topic: int, now: Instant) -> frozenset[str]:
    """The expressions to be resolved now: all, if one is not, or topics have come since, or the last time is long ago.

    `newest_topic`: the offset of the metadata at which the newest topic came.

    **Kafka:** `GroupMetadataManager.maybeUpdateRegularExpressions`. **Leaves out:** that one resolution at a time is under
    way, which is the caller's matter.
    """
    wanted = regexes_of(group)
    last = max((one.resolved_at_ms for one in group.regexes), default=None)
    if last is not None and now.timestamp <= last + MIN_REFRESH_INTERVAL_MS:
        return frozenset()
    missing = wanted != {one.regex for one in group.regexes}
    is_old = any(one.metadata_offset < newest_topic for one in group.regexes)
    late = last is not None and now.timestamp > last + MAX_REFRESH_INTERVAL_MS
    return wanted if missing or is_old or late else frozenset()


def on_regexes_resolved(
    coordinator: Coordinator, group: Group, found: tuple[ResolvedRegularExpression, ...], now: Instant
) -> GroupStep:
    """Expressions are resolved. Those that nobody has any more are passed over; other topics than before are a change.

    **Kafka:** `GroupMetadataManager.handleRegularExpressionsResult`.
    """
    if group.consumer is None:
        return Step(group)
    wanted = tuple(one for one in found if one.regex in regexes_of(group.consumer))
    step = after_records(
        group,
        *(
            RegularExpressionRecord(group.group_id, one.regex, one.topics, one.metadata_offset, one.resolved_at_ms)
            for one in wanted
        ),
    )
    changed = any(_topics_before(group.consumer, one.regex) != one.topics for one in wanted)
    known = metadata_hash(coordinator.topics, topics_of_group(modern(step.state)))
    if not changed and known == group.consumer.metadata_hash:
        return step
    return then(step, lambda after: in_next_epoch(coordinator, after))


def _topics_before(group: ConsumerGroup, regex: str) -> frozenset[str]:
    before = resolved(group, regex)
    return frozenset() if before is None else before.topics
