"""Refusals of whole requests, each in the form of its API. Kafka: `AbstractRequest.getErrorResponse`."""

from collections.abc import Callable

from kspec.impl.broker.calls import Call
from kspec.impl.wire.values import Message
from kspec.spec.values import Error

Fields = dict[str, object]


def refusal(call: Call, error: Error) -> Fields:
    """The fields of an answer that says nothing but this error."""
    assert call.header.api is not None
    found = OF_EACH.get(call.header.api.name)
    return {"error_code": error.value} if found is None else found(call.message, _told(error))


def _told(error: Error) -> Fields:
    return {"error_code": error.value, "error_message": error.name}


def _topics(message: Message, told: Fields) -> Fields:
    return {"topics": [Message(name=topic.name, **told) for topic in message.topics]}


def _deleted(message: Message, told: Fields) -> Fields:
    names = [Message(name=name, **told) for name in message.topic_names or ()]
    by_id = [Message(name=one.name, topic_id=one.topic_id, **told) for one in message.topics or ()]
    return {"responses": names or by_id}


def _partitions(message: Message, told: Fields) -> Fields:
    return {"results": [Message(name=topic.name, **told) for topic in message.topics]}


def _configs(message: Message, told: Fields) -> Fields:
    named = ((one.resource_type, one.resource_name) for one in message.resources)
    return {"responses": [Message(resource_type=kind, resource_name=name, **told) for kind, name in named]}


OF_EACH: dict[str, Callable[[Message, Fields], Fields]] = {
    "CreateTopics": _topics,
    "DeleteTopics": _deleted,
    "CreatePartitions": _partitions,
    "AlterConfigs": _configs,
    "IncrementalAlterConfigs": _configs,
}
"""The APIs whose answers have no error for the whole request."""
