"""Topics and partitions that there are not: what each request is answered that names one."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Exchange, Fields, Hole, RequestEnding, RequestFields, equals
from kspec.conformance.wire.model.batches import batch
from kspec.conformance.wire.model.requests import (
    EVER,
    FETCHED,
    LISTED,
    NO_COORDINATOR,
    PRODUCED,
    TOPIC,
    TOPIC_ID,
    WAIT_MS,
    create_topic,
    fetch,
    list_offsets,
    look_up_topic,
    produce,
    since,
    wait_for_leader,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.clients.metadata_requests import check_missing_topic, check_named_topics
from kspec.spec.broker.clients.named_partitions import NO_TOPIC, check_isolation_level, check_named_partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.deletion import handle_delete_topics
from kspec.spec.controller.topics.names import wrong_with_name
from kspec.spec.values import Error

NO_OTHER = "a client that looks for a topic which there is not is told so, and gets no other topic's records"
MISSING, MISSING_ID, SLASHED = Hole("topic_dotted"), b"\x07" * 16, "a/b"
FAR, NEGATIVE = 7, -1
LAST_BY_NAME = {"Produce": 12, "Fetch": 12, "OffsetCommit": 9}
"""The last version of the request that names topics by name; later ones name them by id (KIP-516)."""


class AbsentState(NamedTuple):
    """Whether the topic is there, of one partition."""

    exists: bool = True


class AbsentName(NamedTuple):
    """The names in a request: the topic as sent, the partition, and whether it is the run's own topic."""

    name: str
    words: str
    topic: Any
    topic_id: Any
    partition: int
    own: bool

    def partitions(self, state: AbsentState) -> int:
        """The number of the topic's partitions."""
        return 1 if self.own and state.exists else NO_TOPIC


PLACES = (
    AbsentName("no-topic", "a topic that there is not", MISSING, MISSING_ID, 0, own=False),
    AbsentName("no-partition", "a partition that the topic has not", TOPIC, TOPIC_ID, FAR, own=True),
    AbsentName("negative-partition", "partition -1", TOPIC, TOPIC_ID, NEGATIVE, own=True),
    AbsentName("deleted", "a topic that was deleted", TOPIC, TOPIC_ID, 0, own=True),
)


class PartitionRequest(NamedTuple):
    """A request about one partition, and where its answer has the error of the partition."""

    name: str
    words: str
    api: str
    error_at: str
    make: Callable[[AbsentName], Fields]


def _renamed(request: RequestFields, topics: str, partitions: str, index: str) -> Callable[[AbsentName], Fields]:
    """A request of the model, about another topic and partition."""

    def make(named: AbsentName) -> Fields:
        (topic,) = request.fields[topics]
        (partition,) = topic[partitions]
        called = {"topic": named.topic} if "topic" in topic else {"name": named.topic}
        changed = {**topic, **called, partitions: [{**partition, index: named.partition}]}
        changed |= {"topic_id": named.topic_id} if "topic_id" in topic else {}
        return {**request.fields, topics: [changed]}

    return make


END_OF_EPOCH = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
COMMITTED = {"partition_index": 0, "committed_offset": 0, "committed_leader_epoch": -1, "committed_metadata": ""}
GROUP = {"group_id": Hole("group"), "generation_id_or_member_epoch": -1, "member_id": ""}


def _of_topic(api: str, partition: Fields, **more: Any) -> RequestFields:
    return RequestFields(api, {"topics": [{"name": TOPIC, "partitions": [partition]}], **more})


NOT_GONE_YET = (Error.NONE, Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION, *NO_COORDINATOR)
"""Errors for a topic whose deletion a broker has not heard of yet, or hears of while it handles the request.

A commit goes on to a coordinator then. A produce request by id that is appended and then finds no partition to wait for is
answered that there is no such partition.
"""


END = RequestFields("OffsetForLeaderEpoch", {"replica_id": -1, "topics": [{"topic": TOPIC, "partitions": [END_OF_EPOCH]}]})
COMMIT = RequestFields(
    "OffsetCommit", {**GROUP, "topics": [{"name": TOPIC, "topic_id": TOPIC_ID, "partitions": [COMMITTED]}]}
)
DELETION = _of_topic("DeleteRecords", {"partition_index": 0, "offset": 0}, timeout_ms=WAIT_MS)

REQUESTS = (
    PartitionRequest(
        "produce", "produce to", "Produce", PRODUCED, _renamed(produce(-1, batch()), "topic_data", "partition_data", "index")
    ),
    PartitionRequest("fetch", "fetch from", "Fetch", FETCHED, _renamed(fetch(0), "topics", "partitions", "partition")),
    PartitionRequest(
        "list-offsets",
        "ask for the offsets of",
        "ListOffsets",
        LISTED,
        _renamed(list_offsets(-1), "topics", "partitions", "partition_index"),
    ),
    PartitionRequest(
        "end-of-epoch",
        "ask where an epoch ends in",
        "OffsetForLeaderEpoch",
        LISTED,
        _renamed(END, "topics", "partitions", "partition"),
    ),
    PartitionRequest(
        "delete-records",
        "delete records of",
        "DeleteRecords",
        LISTED,
        _renamed(DELETION, "topics", "partitions", "partition_index"),
    ),
    PartitionRequest(
        "commit", "commit an offset of", "OffsetCommit", LISTED, _renamed(COMMIT, "topics", "partitions", "partition_index")
    ),
)


def _ask(asked: PartitionRequest, named: AbsentName, by_id: bool) -> Move:
    last = LAST_BY_NAME.get(asked.api)
    lowest = 1 if asked.api == "ListOffsets" else 0
    versions = since(lowest) if last is None else since(last + 1) if by_id else Versions(0, last)

    def take(protocol: BrokerProtocol, state: AbsentState) -> MoveResult | None:
        if (named.name == "deleted") == state.exists:
            return None
        error = check_named_partition(named.partitions(state), named.partition, by_id)
        constraints = (equals(f"{asked.error_at}.error_code", error.value),)
        request = RequestFields(asked.api, asked.make(named), versions)
        retried = NOT_GONE_YET if named.name == "deleted" else ()
        return MoveResult(state, Exchange(request, error.name, error, constraints=constraints, retried=retried))

    told = f"{asked.words} {named.words}" + (", named by its id" if by_id else "")
    name = f"{asked.name}.{named.name}" + (".by-id" if by_id else "")
    return Move(name, told, check_named_partition, NO_OTHER, take)


def _without_acks() -> Move:
    named = PLACES[0]

    def take(protocol: BrokerProtocol, state: AbsentState) -> MoveResult | None:
        error = check_named_partition(named.partitions(state), named.partition, by_id=False)
        fields = {**REQUESTS[0].make(named), "acks": 0}
        request = RequestFields("Produce", fields, Versions(0, LAST_BY_NAME["Produce"]))
        return MoveResult(state, Exchange(request, "closed", error, RequestEnding.CLOSED))

    words = "produce with acks=0 to a topic that there is not"
    return Move(
        "produce.no-topic.acks-0", words, check_named_partition, "a producer without acks learns of errors, too", take
    )


FIRST_WITH_ERROR = 7
"""The first version of Fetch whose answer has an error of its own; from 13 on no partition is named beside it."""


def _isolation() -> Move:
    def take(protocol: BrokerProtocol, state: AbsentState) -> MoveResult | None:
        if not state.exists:
            return None
        error = check_isolation_level(9)
        request = fetch(0, versions=since(FIRST_WITH_ERROR), isolation_level=9)
        constraints = (equals("error_code", error.value),)
        return MoveResult(state, Exchange(request, error.name, error, constraints=constraints))

    return Move(
        "fetch.isolation-9", "fetch with an isolation level that there is not", check_isolation_level, NO_OTHER, take
    )


# ---- Metadata


def _metadata(name: str, words: str, topic: Any, topic_id: Any, versions: Versions, named_wrongly: bool = False) -> Move:
    by_id = topic is None

    def take(protocol: BrokerProtocol, state: AbsentState) -> MoveResult | None:
        if topic == TOPIC and state.exists:
            return None
        error = Error.INVALID_REQUEST if named_wrongly else check_missing_topic(by_id, by_id or _is_valid(topic))
        if named_wrongly:
            error = check_named_topics(versions.last, ((topic is not None, True),))
        one = {"name": topic if topic is not None else None, "topic_id": topic_id}
        request = RequestFields("Metadata", {"topics": [one], "allow_auto_topic_creation": False}, versions)
        constraints = (equals("topics[0].error_code", error.value), equals("topics[0].partitions[#]", 0))
        retried = NOT_GONE_YET if topic == TOPIC else ()
        return MoveResult(state, Exchange(request, error.name, error, constraints=constraints, retried=retried))

    handler = check_named_topics if named_wrongly else check_missing_topic
    return Move(f"metadata.{name}", words, handler, NO_OTHER, take)


def _no_topics() -> Move:
    """From version 1 on null asks for all topics, and an empty list for none."""

    def take(protocol: BrokerProtocol, state: AbsentState) -> MoveResult | None:
        error = check_named_topics(FIRST_WITH_NONE, ())
        request = RequestFields("Metadata", {"topics": [], "allow_auto_topic_creation": False}, since(FIRST_WITH_NONE))
        return MoveResult(state, Exchange(request, "none", error, constraints=(equals("topics[#]", 0),)))

    return Move("metadata.none", "ask for no topics", check_named_topics, NO_OTHER, take)


def _is_valid(topic: Any) -> bool:
    return isinstance(topic, Hole) or wrong_with_name(topic) is None


NO_ID = bytes(16)
FIRST_WITH_NONE = 1


def _metadatas() -> Iterator[Move]:
    known = Versions(4, EVER.last)
    yield _metadata("no-topic", "ask for a topic that there is not", MISSING, NO_ID, known)
    yield _metadata("invalid-name", "ask for a topic whose name no topic can have", SLASHED, NO_ID, known)
    yield _metadata("empty-name", "ask for a topic without a name", "", NO_ID, known)
    yield _metadata("no-topic.by-id", "ask for a topic by an id that no topic has", None, MISSING_ID, since(12))
    yield _no_topics()
    yield _metadata("deleted", "ask for a topic that was deleted", TOPIC, NO_ID, known)
    words = "ask for a topic by its id, in a version that has the field and takes no ids"
    yield _metadata("by-id.too-old", words, "", MISSING_ID, Versions(10, 11), named_wrongly=True)


# ---- deleted


def _delete() -> Move:
    def take(protocol: BrokerProtocol, state: AbsentState) -> MoveResult | None:
        if not state.exists:
            return None
        names = {"topics": [{"name": TOPIC, "topic_id": NO_ID}], "topic_names": [TOPIC], "timeout_ms": WAIT_MS}
        constraints = (equals("responses[0].error_code", 0),)
        return MoveResult(
            AbsentState(False), Exchange(RequestFields("DeleteTopics", names, since(1)), "deleted", constraints=constraints)
        )

    return Move("delete", "delete the topic", handle_delete_topics, NO_OTHER, take)


def _setup(state: AbsentState, holes: frozenset[str]) -> tuple[Exchange, ...]:
    return (create_topic(TOPIC), look_up_topic(), wait_for_leader())


STILL_MISSING = _metadata("no-topic", "ask for the topic that there is not", MISSING, NO_ID, since(4))
ABSENT = Subject(
    "absent",
    "topics and partitions that there are not, or no longer",
    AbsentState(),
    (
        _delete(),
        *(_ask(asked, named, by_id=False) for asked in REQUESTS for named in PLACES),
        *(_ask(asked, named, by_id=True) for asked in REQUESTS if asked.api in LAST_BY_NAME for named in PLACES),
        _without_acks(),
        _isolation(),
        *_metadatas(),
    ),
    _setup,
    {"partitions": 1},
    looks=(STILL_MISSING,),
)
