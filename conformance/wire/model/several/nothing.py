"""Requests that name nothing: an empty list is answered by an empty list, and null asks for all."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import AtLeast, Constraint, Exchange, Fields, Hole, NotEmpty, RequestFields, equals
from kspec.conformance.wire.model.groups.group import GROUP_HOLE, group_ready
from kspec.conformance.wire.model.requests import (
    EVER,
    MAY_WAIT_MS,
    MOST_BYTES,
    NO_COORDINATOR,
    TOPIC,
    TOPIC_ID,
    WAIT_MS,
    create_topic,
    look_up_topic,
    since,
    wait_for_leader,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.clients.metadata_requests import check_endpoint_type, check_named_topics
from kspec.spec.broker.clients.versions import VersionVerdict, judge_version
from kspec.spec.broker.leader.deletion import handle_delete_records
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.creation import handle_create_partitions, handle_create_topics
from kspec.spec.controller.topics.deletion import handle_delete_topics
from kspec.spec.controller.topics.description import describe_topic_configs
from kspec.spec.coordinator.administration import handle_delete_groups
from kspec.spec.coordinator.offsets import handle_offset_commit, handle_offset_fetch
from kspec.spec.values import Error

NOTHING_ASKED = "who asks for nothing is told nothing, and nothing is done"
ALL_ASKED = "who asks for all is told of all"
ABSENT = Hole("topic_dotted")
API_VERSIONS = 18
MOST_SETTINGS = 20
TOPIC_RESOURCE = 2


ANSWERED_SINCE = {"offset-fetch.none": "4.0", "list-offsets.no-partition": "4.0"}
"""The first releases that answer so: 3.9.2 does not answer the one, and names the topic in its answer to the other."""


class OneTopic(NamedTuple):
    """A topic of one partition, and nothing else: nothing that is asked here changes anything."""

    partitions: int = 1


def _ask(
    name: str,
    words: str,
    handler: Callable[..., Any],
    request: RequestFields,
    *constraints: Constraint,
    error: Error = Error.NONE,
    promise: str = NOTHING_ASKED,
    since_release: str | None = None,
) -> Move:
    def take(protocol: BrokerProtocol, state: OneTopic) -> MoveResult | None:
        outcome = error.name if error != Error.NONE else "answered"
        exchange = Exchange(request, outcome, error, constraints=constraints, retried=NO_COORDINATOR)
        return MoveResult(state, exchange._replace(since=since_release))

    return Move(name, words, handler, promise, take)


def _none(api: str, handler: Callable[..., Any], asked: str, told: str, versions: Versions = EVER, **more: Any) -> Move:
    """An empty list is asked for, and an empty list is told."""
    name = "".join(f"-{one.lower()}" if one.isupper() else one for one in api).strip("-")
    request = RequestFields(api, {asked: [], **more}, versions)
    since_release = ANSWERED_SINCE.get(f"{name}.none")
    words = f"send {api} with an empty list"
    return _ask(f"{name}.none", words, handler, request, equals(f"{told}[#]", 0), since_release=since_release)


def _of_no_partition(name: str, api: str, handler: Callable[..., Any], fields: Fields, told: str) -> Move:
    """The topic is named, and none of its partitions."""
    words = f"send {api} with the topic and none of its partitions"
    request, since_release = RequestFields(api, fields), ANSWERED_SINCE.get(f"{name}.no-partition")
    return _ask(f"{name}.no-partition", words, handler, request, equals(f"{told}[#]", 0), since_release=since_release)


def _metadata(name: str, words: str, topics: Any, versions: Versions) -> Move:
    """All topics: those of other cases, too."""
    assert check_named_topics(versions.first, ()) == Error.NONE
    request = RequestFields("Metadata", {"topics": topics, "allow_auto_topic_creation": False}, versions)
    constraints = (
        equals(f"topics[#name=@{TOPIC.name}]", 1),
        equals(f"topics[#name=@{ABSENT.name}]", 0),
        equals(f"topics[name=@{TOPIC.name}].error_code", 0),
        equals(f"topics[name=@{TOPIC.name}].partitions[#]", 1),
        equals(f"topics[name=@{TOPIC.name}].partitions[0].leader_id", Hole("broker_id")),
        equals(f"topics[name=@{TOPIC.name}].partitions[0].replica_nodes[0]", Hole("broker_id")),
        equals(f"topics[name=@{TOPIC.name}].partitions[0].isr_nodes[0]", Hole("broker_id")),
        equals("brokers[#]", 1),
        equals("controller_id", Hole("broker_id")),
        equals("cluster_id", Hole("cluster_id")),
        NotEmpty("brokers[node_id=@broker_id].host"),
        NotEmpty("brokers[node_id=@broker_id].port"),
    )
    return _ask(f"metadata.{name}", words, check_named_topics, request, *constraints, promise=ALL_ASKED)


def _settings(name: str, words: str, keys: list[str] | None) -> Move:
    """Null and no names ask for all settings."""
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": TOPIC, "configuration_keys": keys}
    request = RequestFields("DescribeConfigs", {"resources": [resource]}, since(1))
    reason = "a topic has so many settings in any release"
    constraints = (
        equals("results[0].error_code", 0),
        AtLeast("results[0].configs[#]", MOST_SETTINGS, reason),
        equals("results[0].configs[#name='cleanup.policy']", 1),
        equals("results[0].configs[name='cleanup.policy'].value", "delete"),
    )
    return _ask(f"settings.{name}", words, describe_topic_configs, request, *constraints, promise=ALL_ASKED)


def _cluster(name: str, words: str, endpoint_type: int, error: Error, versions: Versions) -> Move:
    assert check_endpoint_type(1, endpoint_type) == error
    request = RequestFields("DescribeCluster", {"endpoint_type": endpoint_type}, versions)
    constraints: tuple[Constraint, ...] = (equals("error_code", error.value),)
    if error == Error.NONE:
        own = "brokers[broker_id=@broker_id]"
        constraints += (
            equals("endpoint_type", endpoint_type),
            equals("cluster_id", Hole("cluster_id")),
            equals("controller_id", Hole("broker_id")),
            equals("brokers[#]", 1),
            NotEmpty(f"{own}.host"),
            NotEmpty(f"{own}.port"),
            equals(f"{own}.is_fenced", False),
        )
    return _ask(f"cluster.{name}", words, check_endpoint_type, request, *constraints, error=error, promise=ALL_ASKED)


def _versions() -> Move:
    """The versions that there are; the name of the client's software has no effect."""
    assert judge_version(True, True, 0, 0, 0) == VersionVerdict.ANSWER
    fields = {"client_software_name": "kspec", "client_software_version": "1.0"}
    constraints = (
        equals("error_code", 0),
        equals(f"api_keys[#api_key={API_VERSIONS}]", 1),
        equals(f"api_keys[api_key={API_VERSIONS}].min_version", 0),
        equals("throttle_time_ms", 0),
    )
    request = RequestFields("ApiVersions", fields, Versions(0, 4))
    return _ask("api-versions", "ask for the versions of requests", judge_version, request, *constraints, promise=ALL_ASKED)


NAMED = {"name": TOPIC, "topic_id": TOPIC_ID}
FETCH: Fields = {"max_wait_ms": MAY_WAIT_MS, "min_bytes": 0, "max_bytes": MOST_BYTES}
COMMIT: Fields = {"group_id": GROUP_HOLE, "generation_id_or_member_epoch": -1, "member_id": ""}
NOTHING = Subject(
    "nothing",
    "requests that name nothing, and requests for all there is",
    OneTopic(),
    (
        _none("Produce", handle_produce, "topic_data", "responses", acks=-1, timeout_ms=WAIT_MS),
        _none("Fetch", handle_fetch, "topics", "responses", **FETCH),
        _none("ListOffsets", handle_list_offsets, "topics", "topics", replica_id=-1),
        _none("OffsetForLeaderEpoch", handle_offset_for_leader_epoch, "topics", "topics", replica_id=-1),
        _none("DeleteRecords", handle_delete_records, "topics", "topics", timeout_ms=WAIT_MS),
        _none("CreateTopics", handle_create_topics, "topics", "topics", timeout_ms=WAIT_MS),
        _none("DeleteTopics", handle_delete_topics, "topics", "responses", since(6), timeout_ms=WAIT_MS),
        _none("CreatePartitions", handle_create_partitions, "topics", "results", timeout_ms=WAIT_MS),
        _none("DescribeConfigs", describe_topic_configs, "resources", "results"),
        _none("OffsetCommit", handle_offset_commit, "topics", "topics", **COMMIT),
        _none("OffsetFetch", handle_offset_fetch, "groups", "groups", since(8)),
        _none("DeleteGroups", handle_delete_groups, "groups_names", "results"),
        _of_no_partition(
            "list-offsets",
            "ListOffsets",
            handle_list_offsets,
            {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": []}]},
            "topics",
        ),
        _of_no_partition(
            "commit", "OffsetCommit", handle_offset_commit, {**COMMIT, "topics": [{**NAMED, "partitions": []}]}, "topics"
        ),
        _metadata("all", "ask for all topics", None, since(1)),
        _metadata("all.old", "ask for all topics, in a version in which no topic stands for all", [], Versions(0, 0)),
        _settings("all", "ask for all settings of the topic", None),
        _settings("no-names", "ask for the topic's settings, and name none", []),
        _cluster("brokers", "ask for the brokers of the cluster", 1, Error.NONE, EVER),
        _cluster("controllers", "ask a broker for the controllers", 2, Error.MISMATCHED_ENDPOINT_TYPE, since(1)),
        _cluster("neither", "ask for nodes of a kind that there is not", 9, Error.UNSUPPORTED_ENDPOINT_TYPE, since(1)),
        _versions(),
    ),
    lambda state, holes: _setup(holes),
    {"partitions": 1},
)


def _setup(holes: frozenset[str]) -> tuple[Exchange, ...]:
    nodes = RequestFields("Metadata", {"topics": [], "allow_auto_topic_creation": False}, since(2))
    kept = (("broker_id", "brokers[0].node_id"), ("cluster_id", "cluster_id"))
    known = (Exchange(nodes, "known", kept=kept),) if {"broker_id", "cluster_id"} & holes else ()
    topic = (create_topic(TOPIC), look_up_topic(), wait_for_leader()) if TOPIC.name in holes else ()
    return (*known, *topic, *(group_ready() if GROUP_HOLE.name in holes else ()))
