"""DeleteTopics: what the controller decides."""

from collections import Counter

from spec.controller.topics.cluster import Cluster, Decision, RemoveTopicRecord, Topic
from spec.controller.topics.settings import TopicSettings
from spec.messages.topics.delete_topics import DeletedTopic, DeleteTopicsRequest, DeleteTopicsResponse, TopicName
from spec.values import NO_TOPIC_ID, Error


def handle_delete_topics(
    settings: TopicSettings, cluster: Cluster, request: DeleteTopicsRequest, now: int
) -> Decision[DeleteTopicsResponse]:
    """Delete topics, each named by its name or by its id, and each once.

    Errors, the first that applies: `INVALID_REQUEST` (neither name nor id, both, or the same topic twice),
    `UNKNOWN_TOPIC_OR_PARTITION` for a name, `UNKNOWN_TOPIC_ID` for an id.

    **Kafka:** `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`. **Leaves out:**
    `TOPIC_DELETION_DISABLED`, quotas, authorization.
    """
    times = Counter(request.topics)
    found = {wanted: _found(cluster, wanted) for wanted in request.topics}
    by_id = {topic.topic_id for wanted, topic in found.items() if topic is not None and wanted.name is None}
    records, results = [], []
    for wanted, topic in found.items():
        error, message = _refusal(wanted, topic, times[wanted] > 1)
        if wanted.name is not None and topic is not None and topic.topic_id in by_id:
            error, message = Error.INVALID_REQUEST, f"the id of topic {wanted.name} is in the request as well"
        if error == Error.NONE and topic is not None:
            records.append(RemoveTopicRecord(topic.topic_id))
            results.append(DeletedTopic(topic.name, topic.topic_id, Error.NONE))
        else:
            results.append(DeletedTopic(wanted.name, wanted.topic_id, error, message))
    return Decision(tuple(records), DeleteTopicsResponse(tuple(results)))


def _found(cluster: Cluster, wanted: TopicName) -> Topic | None:
    return cluster.topic_by_id(wanted.topic_id) if wanted.name is None else cluster.topic(wanted.name)


def _refusal(wanted: TopicName, topic: Topic | None, twice: bool) -> tuple[Error, str | None]:
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
