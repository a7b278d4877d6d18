"""Offsets of a topic that is deleted, and made again: a group has read nothing of the new one."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Exchange, NoneOf, RequestFields, equals
from kspec.conformance.wire.model.groups.group import COORDINATOR, START, GroupAndClients, group_ready
from kspec.conformance.wire.model.groups.offsets import COMMIT_ALONE, OFFSETS_OF_ALL, OFFSETS_OF_PARTITION
from kspec.conformance.wire.model.partition import topic_ready
from kspec.conformance.wire.model.requests import NOT_READY, TOPIC, TOPIC_ID, WAIT_MS, create_topic, since
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.controller.topics.deletion import handle_delete_topics
from kspec.spec.coordinator.offsets import on_topic_deleted
from kspec.spec.values import NO_TOPIC_ID, Error

GONE = "what a group has read of a topic goes with the topic"
BY_NAME = Versions(2, 9)
NOT_GONE_YET = (Error.NONE,)
"""Kafka: the offsets go when the coordinator hears of the deletion, some time after the answer."""


class TopicAndGroup(NamedTuple):
    """The group, whether its topic is there, and whether it is there for the second time."""

    inner: GroupAndClients = GroupAndClients()
    exists: bool = True
    again: bool = False


def _delete() -> Move:
    def take(protocol: BrokerProtocol, state: TopicAndGroup) -> MoveResult | None:
        if not state.exists:
            return None
        step = on_topic_deleted(COORDINATOR, state.inner.group, "topic", NO_TOPIC_ID, START)
        names = {"topics": [{"name": TOPIC, "topic_id": NO_TOPIC_ID}], "topic_names": [TOPIC], "timeout_ms": WAIT_MS}
        request = RequestFields("DeleteTopics", names, since(1))
        exchange = Exchange(request, "deleted", constraints=(equals("responses[0].error_code", 0),))
        return MoveResult(state._replace(inner=state.inner._replace(group=step.state), exists=False), exchange)

    return Move("delete", "delete the topic", handle_delete_topics, GONE, take)


def _create() -> Move:
    def take(protocol: BrokerProtocol, state: TopicAndGroup) -> MoveResult | None:
        if state.exists:
            return None
        made = create_topic(TOPIC)
        other = NoneOf("topics[0].topic_id", (TOPIC_ID,))
        exchange = made._replace(constraints=(*made.constraints, other), kept=(("topic_id", "topics[0].topic_id"),))
        return MoveResult(state._replace(exists=True, again=True), exchange._replace(otherwise=None))

    return Move("create", "create the topic again", handle_create_topics, GONE, take)


def _of_group(move: Move, versions: Versions | None = None, needs_topic: bool = False) -> Move:
    """A move of the subject of offsets. Offsets that are gone may be there for a moment yet."""

    def take(protocol: BrokerProtocol, state: TopicAndGroup) -> MoveResult | None:
        taken: Any = move.take(protocol, state.inner) if state.exists or not needs_topic else None
        if taken is None:
            return None
        exchange = taken.exchange
        if versions is not None:
            exchange = exchange._replace(request=exchange.request._replace(versions=versions))
        if not state.exists or state.again:
            exchange = exchange._replace(retried=(*NOT_GONE_YET, *NOT_READY, Error.UNKNOWN_TOPIC_ID))
            exchange = exchange._replace(
                outcome=exchange.outcome + (", of a topic made anew" if state.again else ", of a topic that is gone")
            )
        return MoveResult(state._replace(inner=taken.state), exchange)

    return move._replace(take=take)


BY_NAME_OF_PARTITION = _of_group(OFFSETS_OF_PARTITION, BY_NAME)
ALL_OF_GROUP = _of_group(OFFSETS_OF_ALL)
OFFSETS_OF_DELETED = Subject(
    "offsets-of-deleted",
    "offsets of a topic that is deleted, and made again",
    TopicAndGroup(),
    (
        _of_group(COMMIT_ALONE, needs_topic=True),
        _delete(),
        _create(),
        BY_NAME_OF_PARTITION._replace(name="offsets.by-name"),
        _of_group(OFFSETS_OF_PARTITION, since(10), needs_topic=True),
        ALL_OF_GROUP,
    ),
    lambda state, holes: (*topic_ready((), holes), *group_ready()),
    {"topics": 2},
)
