"""The rules of a consumer in a consumer group, which a model may weaken, and its settings."""

from collections.abc import Callable
from dataclasses import dataclass

from kspec.spec.consumer.modern import rules
from kspec.spec.values import NO_TOPIC_ID, GroupId, MemberId, TopicId


@dataclass(frozen=True, slots=True)
class HeartbeatProtocol:
    """The rules of a consumer that lives by ConsumerGroupHeartbeat. Kafka: `group.protocol=consumer`."""

    name: str = "consumer"

    says_it_owns: Callable[[frozenset[int], frozenset[int]], frozenset[int]] = rules.what_is_reconciled
    """The partitions that a consumer says it owns: of those that it has come to in full, and those that are to come."""

    keeps_when_fenced: Callable[[frozenset[int]], frozenset[int]] = rules.nothing_when_fenced
    """The partitions that a consumer reads on when the coordinator does not know it, or not its epoch."""

    joins_as: Callable[[MemberId], MemberId] = rules.own_id
    """The id of a consumer that joins for the first time: of the one that it has made up."""

    tells_all_again: Callable[[bool], bool] = rules.whenever_an_answer_is_missing
    """Whether a heartbeat without a good answer is followed by a full one: if it was refused, or not answered at all."""


HEARTBEATS = HeartbeatProtocol()
"""The consumer of Kafka's clients."""

HEARTBEATS_NEXT = HeartbeatProtocol("consumer-next", says_it_owns=rules.what_is_reconciled_or_to_come)
"""The same, with a defect repaired: a full heartbeat that is sent while the consumer reconciles names what it may soon own.

Else the coordinator gives to another what the consumer is still about to take up.
"""

HEARTBEAT_PROTOCOLS = (HEARTBEATS, HEARTBEATS_NEXT)


@dataclass(frozen=True, slots=True)
class HeartbeatingConsumer:
    """A consumer of one topic: its rules, its group, its settings (milliseconds). Kafka: `GroupRebalanceConfig`.

    **Leaves out:** several topics; a partition is its index.
    """

    protocol: HeartbeatProtocol
    group_id: GroupId
    topic: str
    topic_id: TopicId = NO_TOPIC_ID
    instance_id: str | None = None
    rebalance_timeout_ms: int = 300_000
    """`max.poll.interval.ms`."""
