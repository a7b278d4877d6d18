"""Members of a consumer group (KIP-848) in the simulated cluster.

A member sends heartbeats with all that it owns, and takes the partitions in the answers.
"""

from collections.abc import Callable, Sequence

from kspec.impl.wire.values import Message
from kspec.spec.messages.groups.consumer_group_heartbeat import JOIN_EPOCH, LEAVE_EPOCH
from kspec.spec.values import Error
from kspec.trials.history.commits import GroupHistory
from kspec.trials.simulated.clients.client import ClientEnvironment
from kspec.trials.simulated.clients.members import REBALANCE_MS, SimulatedMember

LOSES_MEMBERSHIP = frozenset({Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND})
"""Errors after which a consumer drops its partitions, and joins again."""

AFTER_STALE_EPOCH = frozenset({Error.STALE_MEMBER_EPOCH, Error.ILLEGAL_GENERATION})
"""Errors of a commit in an epoch that is over: the next heartbeat tells the new one. Kafka: it is tried again then."""


class ConsumerClient(SimulatedMember):
    """A member of a consumer group. Its generation is its member epoch."""

    no_generation = int(JOIN_EPOCH)

    def __init__(self, client_id: int, environment: ClientEnvironment, history: GroupHistory) -> None:
        super().__init__(client_id, environment, history)
        self._lives = 1

    @property
    def member_id(self) -> str:
        """Its id, which it makes up (KIP-1082), and keeps until it starts anew."""
        return f"consumer-{self.node_id}-{self._lives}"

    def join(self) -> None:
        """Join by a heartbeat."""
        self.beat()

    def beat(self) -> None:
        """Send a heartbeat with all that it owns."""
        owned = [Message(topic_id=self.topic_id, partitions=list(self.owned))] if self.owned else []
        message = Message(
            group_id=self.history.group_id,
            member_id=self.member_id,
            member_epoch=max(self.generation, self.no_generation),
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=[self.topic],
            topic_partitions=owned,
        )
        self.ask_coordinator("ConsumerGroupHeartbeat", message, self._told)

    def _told(self, answer: Message) -> None:
        error = Error(answer.error_code)
        if error == Error.NONE and answer.member_id == self.member_id:
            self._take(answer)
        self.after(error)

    def _take(self, answer: Message) -> None:
        """Take an epoch and its partitions. Giving up and taking over are done at once; the next heartbeat says so."""
        self.generation = answer.member_epoch
        if answer.assignment is None:
            return
        now = tuple(sorted(index for one in answer.assignment.topic_partitions for index in one.partitions))
        self.begins_to_own(now)
        self.history.own(now, self.member_id, self.generation)

    def leave(self) -> None:
        """Leave, whatever the answer, and come back later as another member: a late leave must not meet it."""
        message = Message(group_id=self.history.group_id, member_id=self.member_id, member_epoch=int(LEAVE_EPOCH))
        self.drop_out()
        self.ask_coordinator("ConsumerGroupHeartbeat", message, lambda answer: self.go_on())
        self._lives += 1

    def start_anew(self) -> None:
        """As a process that was killed: it is another member."""
        self._lives += 1
        self.drop_out()

    def after(self, error: Error) -> None:
        """Go on after a response; some errors end the membership, and some an epoch."""
        if error in LOSES_MEMBERSHIP:
            self.drop_out()
        if error in AFTER_STALE_EPOCH:
            self.beat()
        else:
            super().after(error)

    def commit_as_member(self, partitions: Sequence[int], take: Callable[[Error], None]) -> None:
        """Commit the next offset of each of these partitions in the present epoch."""
        self.commit(partitions, take, self.member_id, self.generation)
