"""The rules in which consumers differ: by the rebalance protocol of their assignor."""

from collections.abc import Callable
from dataclasses import dataclass

from kspec.spec.assignors.subscribers import Assignment, Subscriber
from kspec.spec.values import GroupId


@dataclass(frozen=True, slots=True)
class ConsumerProtocol:
    """The rules of a consumer as a member of a group. Kafka: `ConsumerPartitionAssignor.RebalanceProtocol`."""

    name: str

    keeps_while_joining: Callable[[frozenset[int]], frozenset[int]]
    """The partitions that a member still owns when it asks to join again."""

    gives_up_by_assignment: Callable[[frozenset[int], frozenset[int]], frozenset[int]]
    """The partitions that a member has to revoke, of those that it owns, by its assignment; it joins again if any."""

    keeps_when_out: Callable[[frozenset[int]], frozenset[int]]
    """The partitions that a member still owns when it joins again and is in no generation any more."""

    is_answer_to_present: Callable[[bool], bool]
    """Whether an error counts that answers a request sent in the present generation, or in another one."""

    keeps_member_id: Callable[[bool], bool]
    """Whether a member joins again by its id when the coordinator knows its id and not its generation, or not its id."""

    hands_out: Callable[[tuple[Subscriber[str], ...], Assignment[str]], Assignment[str]]
    """The part of an assignment that a leader hands out, by what the members own."""


@dataclass(frozen=True, slots=True)
class GroupConsumer:
    """A consumer of one topic: its rules, its group, its settings (milliseconds). Kafka: `GroupRebalanceConfig`.

    **Leaves out:** several topics; a partition is its index.
    """

    protocol: ConsumerProtocol
    group_id: GroupId
    topic: str
    session_timeout_ms: int = 45_000
    """`session.timeout.ms`."""

    rebalance_timeout_ms: int = 300_000
    """`max.poll.interval.ms`."""

    instance_id: str | None = None
    """`group.instance.id`, of a static member (KIP-345)."""
