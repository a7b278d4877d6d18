"""Members of a consumer group (KIP-848) in the simulated cluster.

A member sends heartbeats with all that it owns, takes the partitions in the answers, commits offsets of them in its epoch,
and reads the committed offsets. Now and then it pauses for longer than its session, leaves, or starts anew as another.
"""

from collections.abc import Callable, Sequence

from kspec.impl.wire.values import Message
from kspec.spec.messages.groups.consumer_group_heartbeat import JOIN_EPOCH, LEAVE_EPOCH
from kspec.spec.values import Error
from kspec.trials.history.commits import GroupHistory
from kspec.trials.simulated.clients.client import ClientEnvironment
from kspec.trials.simulated.clients.groups import (
    COMMITS,
    JOIN_MS,
    LEAVES,
    LONGEST_STILL_MS,
    READS,
    REBALANCE_MS,
    SESSION_MS,
    STANDS_STILL,
    STARTS_ANEW,
    GroupClient,
)

LOSES_MEMBERSHIP = frozenset({Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND})
"""Errors after which a consumer drops its partitions, and joins again."""

AFTER_STALE_EPOCH = frozenset({Error.STALE_MEMBER_EPOCH, Error.ILLEGAL_GENERATION})
"""Errors of a commit in an epoch that is over: the next heartbeat tells the new one. Kafka: it is tried again then."""


class ConsumerClient(GroupClient):
    """A member of a consumer group."""

    def __init__(self, client_id: int, environment: ClientEnvironment, history: GroupHistory) -> None:
        super().__init__(client_id, environment, history)
        self._lives = 1
        self.epoch = int(JOIN_EPOCH)
        self.owned: tuple[int, ...] = ()
        self._has_committed = False

    @property
    def member_id(self) -> str:
        """Its id, which it makes up (KIP-1082), and keeps until it starts anew."""
        return f"consumer-{self.node_id}-{self._lives}"

    def go(self) -> None:
        """Join, or take a member's next turn."""
        if self.epoch <= JOIN_EPOCH:
            self._beat()
        elif self.stopped:
            self._settle_down()
        else:
            self._act()

    def _act(self) -> None:
        drawn = self.random.random()
        if drawn < STANDS_STILL:
            self.later(self.go, self.random.randint(SESSION_MS // 2, LONGEST_STILL_MS))
        elif drawn < STANDS_STILL + LEAVES:
            self._leave()
        elif drawn < STANDS_STILL + LEAVES + STARTS_ANEW:
            self._lives += 1
            self._drop_out()
            self.go_on()
        elif drawn < 1 - COMMITS - READS or not self.owned:
            self._beat()
        elif drawn < 1 - COMMITS:
            self.read(self.owned, self.after)
        else:
            self._commit_owned(self.random.sample(self.owned, self.random.randint(1, len(self.owned))), self.after)

    # ---- at the end

    def settle(self) -> None:
        """Stop pausing and leaving; go on until all members have what they are to have, and have committed and read."""
        super().settle()
        self._has_committed = False

    def _settle_down(self) -> None:
        if self.has_settled or self.random.random() < READS:
            self._beat()
        elif self.owned and not self._has_committed:
            self._commit_owned(self.owned, self._after_commit)
        else:
            self.read(list(self.history.offsets), self._after_reading)

    def _after_commit(self, error: Error) -> None:
        self._has_committed = error == Error.NONE
        self.after(error)

    def _after_reading(self, error: Error) -> None:
        self.has_settled = error == Error.NONE
        self.after(error)

    # ---- membership

    def _beat(self) -> None:
        joins = self.epoch <= JOIN_EPOCH
        owned = [Message(topic_id=self.topic_id, partitions=list(self.owned))] if self.owned else []
        message = Message(
            group_id=self.history.group_id,
            member_id=self.member_id,
            member_epoch=int(JOIN_EPOCH) if joins else self.epoch,
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
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            return
        now = tuple(sorted(index for one in answer.assignment.topic_partitions for index in one.partitions))
        if now != self.owned:
            self.has_settled = self._has_committed = False
        self.owned = now
        self.history.own(now, self.member_id, self.epoch)

    def _leave(self) -> None:
        """Leave, whatever the answer, and come back later as another member: a late leave must not meet it."""
        message = Message(group_id=self.history.group_id, member_id=self.member_id, member_epoch=int(LEAVE_EPOCH))
        self._drop_out()
        self.ask_coordinator("ConsumerGroupHeartbeat", message, lambda answer: self.go_on(), JOIN_MS)
        self._lives += 1

    def _drop_out(self) -> None:
        self.epoch, self.owned = int(JOIN_EPOCH), ()
        self.has_settled = self._has_committed = False

    def after(self, error: Error) -> None:
        """Go on after a response; some errors end the membership, and some an epoch."""
        if error in LOSES_MEMBERSHIP:
            self._drop_out()
        if error in AFTER_STALE_EPOCH:
            self._beat()
        else:
            super().after(error)

    def _commit_owned(self, partitions: Sequence[int], take: Callable[[Error], None]) -> None:
        self.commit(partitions, take, self.member_id, self.epoch)
