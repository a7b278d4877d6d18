"""Creating and deleting topics."""

import re
import uuid
from typing import TYPE_CHECKING

from impl.broker.calls import Call, Effect, Then
from impl.metadata.records import LogRecord, PartitionKey
from impl.wire.values import Message
from spec.controller.partitions import handle_create_topics
from spec.messages.administration.create_topics import CreateTopicsRequest
from spec.values import BrokerId, Error

if TYPE_CHECKING:
    from impl.broker.core import Core


def check_topic_name(name: str) -> Error:
    ok = re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) and name not in (".", "..")
    return Error.NONE if ok else Error.INVALID_TOPIC_EXCEPTION


def plan(core: "Core", name: str, partitions: int, configs: dict[str, str], now: int) -> list[LogRecord]:
    topic_id = uuid.uuid4().bytes
    records = [LogRecord("TopicRecord", Message(name=name, topic_id=topic_id))]
    keys = [PartitionKey(topic_id, index) for index in range(partitions)]
    for number in core.cluster.name_new_partitions(keys):
        request = CreateTopicsRequest(number, (BrokerId(core.cluster.self_id),))
        _, found = core.cluster.decide(handle_create_topics, request, now)
        records += found
    records += [
        LogRecord("ConfigRecord", Message(resource_type=2, resource_name=name, name=key, value=value))
        for key, value in configs.items()
    ]
    return records


def create_topics(core: "Core", call: Call, now: int) -> list[Effect]:
    answers, effects = [], []
    for topic in call.message.topics:
        error = check_topic_name(topic.name)
        if topic.name in core.cluster.image.topics:
            error = Error.TOPIC_ALREADY_EXISTS
        partitions = topic.num_partitions if topic.num_partitions > 0 else core.config["num.partitions"]
        if error == Error.NONE and not call.message.validate_only:
            records = plan(core, topic.name, partitions, {one.name: one.value for one in topic.configs}, now)
            effects += core.change_metadata(records)
        answers.append(
            Message(name=topic.name, error_code=error.value, num_partitions=partitions, replication_factor=1, configs=[])
        )

    def answer() -> list[Effect]:
        for one in answers:
            known = core.cluster.image.topics.get(one.name)
            one.__dict__["topic_id"] = known.topic_id if known else bytes(16)
        return [call.respond(topics=answers)]

    return [*effects, Then(answer)]


def delete_topics(core: "Core", call: Call, now: int) -> list[Effect]:
    answers, effects = [], []
    names = call.message.topic_names if call.version < 6 else [topic.name for topic in call.message.topics]
    for name in names:
        known = core.cluster.image.topics.get(name)
        error = Error.NONE if known else Error.UNKNOWN_TOPIC_OR_PARTITION
        if known:
            effects += core.change_metadata([LogRecord("RemoveTopicRecord", Message(topic_id=known.topic_id))])
        answers.append(
            Message(name=name, topic_id=known.topic_id if known else bytes(16), error_code=error.value)
        )
    return [*effects, call.respond(responses=answers)]
