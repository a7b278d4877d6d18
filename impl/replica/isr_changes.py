"""Requests of leaders on this broker to the controller: other ISRs. One request is under way at a time, for many partitions.

Kafka: `DefaultAlterPartitionManager`. What a leader asks, and what it makes of the answer, is `spec.broker.leader.isr`.
"""

from kspec.impl.broker.calls import CONTROLLER, Ask, ChannelKey, Effect
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.wire.values import Message
from kspec.spec.broker.leader.isr import handle_alter_partition_response
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.metadata import LeaderRecoveryState
from kspec.spec.values import BrokerId, Epoch, Error, Instant, PartitionEpoch

RETRY_MS = 50
"""The pause before a request without a response, or with a top-level error, is retried. Kafka: `AlterPartitionManager`."""

CHANNEL = ChannelKey(CONTROLLER, "isr")


class IsrChanges:
    """The proposals that wait to be sent, and those that are under way: one for a partition."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._waiting: dict[Replica, AlterPartitionRequest] = {}
        self._under_way: dict[Replica, AlterPartitionRequest] = {}
        self._asking = False

    def submit(self, replica: Replica, request: AlterPartitionRequest, now: Instant) -> list[Effect]:
        """A leader wants another ISR."""
        self._waiting[replica] = request
        return self._send(now)

    def _send(self, now: Instant) -> list[Effect]:
        if self._asking or not self._waiting:
            return []
        self._asking = True
        self._under_way, self._waiting = self._waiting, {}
        return [Ask(CHANNEL, "AlterPartition", self._message(), self._take)]

    def _message(self) -> Message:
        by_topic: dict[bytes, list[Replica]] = {}
        for replica in self._under_way:
            by_topic.setdefault(replica.topic_id, []).append(replica)
        topics = [
            Message(
                topic_id=topic_id,
                partitions=[_proposal(one.place.partition, self._under_way[one]) for one in replicas],
            )
            for topic_id, replicas in by_topic.items()
        ]
        core = self._core
        return Message(broker_id=core.cluster.self_id, broker_epoch=core.broker_epoch, topics=topics)

    def _take(self, answer: Message | None, now: Instant) -> list[Effect]:
        if answer is None or answer.error_code:
            self._core.timers.at(now.after(RETRY_MS), self._again)
            return []
        self._asking = False
        asked, self._under_way = self._under_way, {}
        by_key = {(replica.topic_id, replica.place.partition): replica for replica in asked}
        effects: list[Effect] = []
        for topic in answer.topics:
            for part in topic.partitions:
                replica = by_key.get((bytes(topic.topic_id), part.partition_index))
                if replica is not None:
                    request = asked.pop(replica)
                    if replica.offline:  # it commits nothing any more
                        continue
                    response = _answer(request, part)
                    handled = self._core.run(
                        handle_alter_partition_response, replica, request, response, now.monotonic, now=now
                    )
                    effects += handled.effects
        for replica, request in asked.items():
            self._waiting.setdefault(replica, request)
        return [*effects, *self._send(now)]

    def _again(self, now: Instant) -> list[Effect]:
        self._asking = False
        for replica, request in self._under_way.items():
            self._waiting.setdefault(replica, request)
        return self._send(now)


def _proposal(index: int, request: AlterPartitionRequest) -> Message:
    members = sorted(request.isr)
    return Message(
        partition_index=index,
        leader_epoch=request.leader_epoch,
        new_isr=[member.broker for member in members],
        new_isr_with_epochs=[Message(broker_id=member.broker, broker_epoch=member.broker_epoch) for member in members],
        leader_recovery_state=request.recovery.value,
        partition_epoch=request.partition_epoch,
    )


def _answer(request: AlterPartitionRequest, part: Message) -> AlterPartitionResponse:
    error = Error(part.error_code)
    if error != Error.NONE:
        return AlterPartitionResponse(error, request.partition_id)
    return AlterPartitionResponse(
        error,
        request.partition_id,
        BrokerId(part.leader_id),
        Epoch(part.leader_epoch),
        frozenset(map(BrokerId, part.isr)),
        PartitionEpoch(part.partition_epoch),
        LeaderRecoveryState(part.leader_recovery_state),
    )
