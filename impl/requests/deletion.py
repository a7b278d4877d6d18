"""DeleteRecords: the leader deletes at once, and the client waits until no live replica has the records any more."""

from dataclasses import dataclass

from kspec.impl.broker.calls import (
    TURN_SIZE,
    Call,
    DelayedOperation,
    Effect,
    InTurns,
    Respond,
    Steps,
    StoredPartition,
    StoreTogether,
    ends_turn,
    not_again,
    nothing,
    stores_among,
)
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.named_partitions import check_deletion_from
from kspec.spec.broker.leader.deletion import answer_deletion, handle_delete_records
from kspec.spec.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kspec.spec.values import Error, Instant, Offset


@dataclass(slots=True)
class Deletion:
    """One partition of a request: what has been done, and what the client would be told now."""

    index: int
    replica: Replica | None
    done: DeleteRecordsResponse
    answer: DeleteRecordsResponse

    @property
    def waits(self) -> bool:
        """Whether live followers still have the records."""
        return self.answer.error == Error.REQUEST_TIMED_OUT


DELETED_AT_ONCE = 16
"""Partitions of which records are deleted before others are served: each has files to be written, and synced."""


def delete_records(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Delete records from the start of logs. **Kafka:** `ReplicaManager.deleteRecords`, `DelayedDeleteRecords`."""
    return [InTurns(call, _delete_all(core, call, now))]


def _delete_all(core: BrokerCore, call: Call, now: Instant) -> Steps:
    by_topic: list[tuple[str, list[Deletion]]] = []
    asked: dict[str, dict[int, Message]] = {}
    for topic in call.message.topics:
        for one in topic.partitions:  # of a partition that is named twice, the last offset counts
            asked.setdefault(topic.name, {})[one.partition_index] = one
    effects: list[Effect] = []
    number = 0
    for name, partitions in asked.items():
        deletions: list[Deletion] = []
        by_topic.append((name, deletions))
        for one in partitions.values():
            deletion, stored = _delete(core, name, one, now)
            effects += stored
            deletions.append(deletion)
            if ends_turn(number, DELETED_AT_ONCE):
                yield _together(effects)
                effects = []
            number += 1
    if _still_waits(core, by_topic):
        _wait(core, call, by_topic, now)
        return _together(effects)
    return [*_together(effects), _answer(call, by_topic).long_if(number > TURN_SIZE)]


def _together(effects: list[Effect]) -> list[Effect]:
    """Files of different partitions are written at the same time, before anything else is done."""
    stores, others = stores_among(effects)
    return [StoreTogether(stores), *others] if stores else others


def _still_waits(core: BrokerCore, by_topic: list[tuple[str, list[Deletion]]]) -> bool:
    """Whether followers have records yet. Since the first steps they may have gone on, and nobody was told of that."""
    waited = [one for _, deletions in by_topic for one in deletions if one.waits]
    for one in waited:
        if one.replica is not None:
            one.answer = core.ask(answer_deletion, one.replica, one.done)
    return any(one.waits for one in waited)


def _delete(core: BrokerCore, topic: str, one: Message, now: Instant) -> tuple[Deletion, list[Effect]]:
    replica, error = core.find(topic, b"", one.partition_index, by_id=False)
    error = check_deletion_from(core.is_internal(topic), error)
    if replica is None or error != Error.NONE:
        refused = DeleteRecordsResponse(error)
        return Deletion(one.partition_index, None, refused, refused), []
    ran = core.run(handle_delete_records, replica, DeleteRecordsRequest(Offset(one.offset)), now.monotonic, now=now)
    done = ran.reply
    assert isinstance(done, DeleteRecordsResponse)
    answer = core.ask(answer_deletion, replica, done) if done.error == Error.NONE else done
    return Deletion(one.partition_index, replica, done, answer), ran.effects


def _wait(core: BrokerCore, call: Call, by_topic: list[tuple[str, list[Deletion]]], now: Instant) -> None:
    """Answer once nothing is waited for any more, or when the time is over."""
    waited = [deletion for _, deletions in by_topic for deletion in deletions if deletion.waits]
    replicas = list(dict.fromkeys(one.replica for one in waited if one.replica is not None))
    waiting = DelayedOperation(now.after(call.message.timeout_ms), not_again, nothing)

    def complete(now: Instant) -> list[Effect]:
        core.stop_waiting(waiting)
        return [_answer(call, by_topic)]

    def look_again(partition: StoredPartition, now: Instant) -> list[Effect]:
        for one in waited:
            if one.replica is not None and one.replica is partition and one.waits:
                one.answer = core.ask(answer_deletion, one.replica, one.done)
        return [] if any(one.waits for one in waited) else complete(now)

    waiting.look_again, waiting.complete = look_again, complete
    core.wait(waiting, [one.watching for one in replicas])
    call.waiting = waiting


def _answer(call: Call, by_topic: list[tuple[str, list[Deletion]]]) -> Respond:
    topics = [
        Message(
            name=name,
            partitions=[
                Message(partition_index=one.index, low_watermark=one.answer.low_watermark, error_code=one.answer.error.value)
                for one in deletions
            ],
        )
        for name, deletions in by_topic
    ]
    return call.respond(topics=topics)
