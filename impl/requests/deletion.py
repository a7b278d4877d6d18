"""DeleteRecords: the leader deletes at once, and the client waits until no live replica has the records any more."""

from dataclasses import dataclass

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.broker.replica import Replica, Waiting, not_again
from impl.broker.timers import nothing
from impl.wire.values import Message
from spec.broker.leader.deletion import answer_deletion, handle_delete_records
from spec.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from spec.values import Error, Offset


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


def delete_records(core: Core, call: Call, now: int) -> list[Effect]:
    """Delete records from the start of logs. **Kafka:** `ReplicaManager.deleteRecords`, `DelayedDeleteRecords`."""
    effects: list[Effect] = []
    by_topic: list[tuple[str, list[Deletion]]] = []
    for topic in call.message.topics:
        if not topic.partitions:
            continue
        deletions = []
        for one in topic.partitions:
            deletion, stored = _delete(core, topic.name, one, now)
            effects += stored
            deletions.append(deletion)
        by_topic.append((topic.name, deletions))
    if any(deletion.waits for _, deletions in by_topic for deletion in deletions):
        _wait(core, call, by_topic, now)
        return effects
    return [*effects, _answer(call, by_topic)]


def _delete(core: Core, topic: str, one: Message, now: int) -> tuple[Deletion, list[Effect]]:
    replica, error = core.find(topic, b"", one.partition_index, by_id=False)
    if replica is not None and core.is_internal(topic):
        error = Error.INVALID_TOPIC_EXCEPTION
    if replica is None or error != Error.NONE:
        refused = DeleteRecordsResponse(error)
        return Deletion(one.partition_index, None, refused, refused), []
    ran = core.run(handle_delete_records, replica, DeleteRecordsRequest(Offset(one.offset)), now, now=now)
    done: DeleteRecordsResponse = ran.reply
    answer = core.ask(answer_deletion, replica, done) if done.error == Error.NONE else done
    return Deletion(one.partition_index, replica, done, answer), ran.effects


def _wait(core: Core, call: Call, by_topic: list[tuple[str, list[Deletion]]], now: int) -> None:
    """Answer once nothing is waited for any more, or when the time is over."""
    waited = [deletion for _, deletions in by_topic for deletion in deletions if deletion.waits]
    replicas = list(dict.fromkeys(one.replica for one in waited if one.replica is not None))
    waiting = Waiting(replicas, now + call.message.timeout_ms, not_again, nothing, any_change=True)

    def complete(now: int) -> list[Effect]:
        core.stop_waiting(waiting)
        return [_answer(call, by_topic)]

    def look_again(replica: Replica, now: int) -> list[Effect]:
        for one in waited:
            if one.replica is replica and one.waits:
                one.answer = core.ask(answer_deletion, replica, one.done)
        return [] if any(one.waits for one in waited) else complete(now)

    waiting.look_again, waiting.complete = look_again, complete
    core.wait(waiting)
    call.waiting = waiting


def _answer(call: Call, by_topic: list[tuple[str, list[Deletion]]]) -> Effect:
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
