"""DeleteTopics: what the controller decides."""

from collections import Counter

from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.state import ControllerState, ControllerStep, decide
from kspec.spec.messages.topics.delete_topics import DeletedTopic, DeleteTopicsRequest, DeleteTopicsResponse, TopicName
from kspec.spec.metadata import RemoveTopicRecord
from kspec.spec.topics import TopicImage, TopicsImage, topic_named, topic_with_id
from kspec.spec.values import NO_TOPIC_ID, Error, MonotonicMs


def handle_delete_topics(
    controller: Controller, state: ControllerState, request: DeleteTopicsRequest, now: MonotonicMs
) -> ControllerStep:
    """Delete topics, each named by its name or by its id, and each once.

    A topic that is named more than once is answered once, and stays, also if it is named by its name and by its id.

    Errors, the first that applies: `INVALID_REQUEST` (neither name nor id, both, or the same topic twice),
    `UNKNOWN_TOPIC_OR_PARTITION` for a name, `UNKNOWN_TOPIC_ID` for an id.

    **Kafka:** `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`. **Leaves out:**
    quotas, authorization; `check_deletion_enabled` comes before.
    """
    times = Counter(request.topics)
    found = {wanted: _found(state.image.topics, wanted) for wanted in request.topics}
    by_id = {topic.topic_id for wanted, topic in found.items() if topic is not None and wanted.name is None}
    by_name = {topic.topic_id for wanted, topic in found.items() if topic is not None and wanted.name is not None}
    records = []
    results = [_nameless()] * (times[TopicName(None, NO_TOPIC_ID)] - 1)
    for wanted, topic in found.items():
        if wanted.name is None and wanted.topic_id in by_name:
            continue
        error, message = _refusal(wanted, topic, times[wanted] > 1)
        if wanted.name is not None and topic is not None and topic.topic_id in by_id:
            error, message = Error.INVALID_REQUEST, f"the id of topic {wanted.name} is in the request as well"
        if error == Error.NONE and topic is not None:
            records.append(RemoveTopicRecord(topic.topic_id))
            results.append(DeletedTopic(topic.name, topic.topic_id, Error.NONE))
        else:
            results.append(DeletedTopic(wanted.name, wanted.topic_id, error, message))
    return decide(state, tuple(records), DeleteTopicsResponse(tuple(results)))


def _nameless() -> DeletedTopic:
    return DeletedTopic(None, NO_TOPIC_ID, Error.INVALID_REQUEST, "a topic has neither name nor id")


def _found(topics: TopicsImage, wanted: TopicName) -> TopicImage | None:
    return topic_with_id(topics, wanted.topic_id) if wanted.name is None else topic_named(topics, wanted.name)


def _refusal(wanted: TopicName, topic: TopicImage | None, twice: bool) -> tuple[Error, str | None]:
    if wanted.name is None and wanted.topic_id == NO_TOPIC_ID:
        return Error.INVALID_REQUEST, "a topic has neither name nor id"
    if wanted.name is not None and wanted.topic_id != NO_TOPIC_ID:
        return Error.INVALID_REQUEST, "a topic has both name and id"
    if twice:
        return Error.INVALID_REQUEST, "the request has a topic more than once"
    if topic is None:
        return (
            Error.UNKNOWN_TOPIC_ID if wanted.name is None else Error.UNKNOWN_TOPIC_OR_PARTITION
        ), "there is no such topic"
    return Error.NONE, None


FIRST_WITH_DELETION_ERROR = 3
"""The version of DeleteTopics from which there is an error for topics that may not be deleted."""


def check_deletion_enabled(enabled: bool, version_number: int) -> Error:
    """Whether topics may be deleted at all (`delete.topic.enable`).

    Errors, for each topic: `TOPIC_DELETION_DISABLED`, which older clients do not know: `INVALID_REQUEST`.

    **Kafka:** `ControllerApis.deleteTopics`.
    """
    if enabled:
        return Error.NONE
    return Error.TOPIC_DELETION_DISABLED if version_number >= FIRST_WITH_DELETION_ERROR else Error.INVALID_REQUEST
