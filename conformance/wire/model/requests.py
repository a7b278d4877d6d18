"""The requests of clients as fields, and where their answers have what."""

from typing import Any

from kspec.conformance.wire.exchange import Exchange, Fields, Hole, RecordParts, RequestFields, equals
from kspec.impl.wire.schema import FOREVER, Versions
from kspec.spec.values import Error

EVER = Versions(0, FOREVER)
TOPIC, TOPIC_ID = Hole("topic"), Hole("topic_id")
WAIT_MS = 10_000
MOST_BYTES = 1 << 20
MAY_WAIT_MS = 500
"""For a fetch. Some brokers answer a fetch that may not wait before they have looked for records."""

NOT_READY = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.LEADER_NOT_AVAILABLE, Error.NOT_LEADER_OR_FOLLOWER)
"""Errors after which clients ask again: a topic that has just been created may not be known everywhere."""

NO_COORDINATOR = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
"""Errors after which clients ask again: a coordinator begins its work when it is needed."""

FETCHED, LISTED = "responses[0].partitions[0]", "topics[0].partitions[0]"
PRODUCED = "responses[0].partition_responses[0]"


def since(version: int) -> Versions:
    """All versions from this one on."""
    return Versions(version, FOREVER)


def produce(acks: int, records: RecordParts, versions: Versions = EVER, partition: int = 0, **more: Any) -> RequestFields:
    """One batch, or what stands for one, to a partition."""
    data = {"index": partition, "records": records}
    topic = {"name": TOPIC, "topic_id": TOPIC_ID, "partition_data": [data]}
    return RequestFields("Produce", {"acks": acks, "timeout_ms": WAIT_MS, "topic_data": [topic], **more}, versions)


def fetch(offset: int, *, epoch: Any = -1, last_epoch: Any = -1, versions: Versions = EVER, **more: Any) -> RequestFields:
    """A fetch of the partition that need not wait: it wants no bytes at least."""
    partition = {
        "partition": 0,
        "current_leader_epoch": epoch,
        "fetch_offset": offset,
        "last_fetched_epoch": last_epoch,
        "partition_max_bytes": MOST_BYTES,
    }
    topics = [{"topic": TOPIC, "topic_id": TOPIC_ID, "partitions": [partition]}]
    fields = {"max_wait_ms": MAY_WAIT_MS, "min_bytes": 0, "max_bytes": MOST_BYTES, "topics": topics, **more}
    return RequestFields("Fetch", fields, versions)


def list_offsets(
    timestamp: Any,
    *,
    epoch: Any = -1,
    versions: Versions = EVER,
    partition: int = 0,
    topic: Hole = TOPIC,
    **more: Any,
) -> RequestFields:
    """The offset of a timestamp."""
    asked = {"partition_index": partition, "current_leader_epoch": epoch, "timestamp": timestamp}
    fields: Fields = {"replica_id": -1, "topics": [{"name": topic, "partitions": [asked]}], **more}
    return RequestFields("ListOffsets", fields, versions)


OF_ITSELF = frozenset({("cleanup.policy", "delete")})
"""Settings that every topic has of itself."""


def create_topic(name: Any, configs: tuple[tuple[str, str], ...] = (), partitions: int = 1) -> Exchange:
    """A topic is created; where nobody can ask for that, by asking for the metadata of a topic.

    A topic made by metadata has the settings that all topics have, and no others can be given.
    """
    given = [{"name": key, "value": value} for key, value in configs]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": given}
    request = RequestFields("CreateTopics", {"topics": [topic], "timeout_ms": WAIT_MS})
    made = (equals("topics[0].error_code", Error.NONE.value),)
    asked = RequestFields("Metadata", {"topics": [{"name": name}], "allow_auto_topic_creation": True}, since(4))
    by_metadata = Exchange(asked, "created", constraints=made, retried=NOT_READY, words="create a topic by Metadata")
    otherwise = by_metadata if OF_ITSELF.issuperset(configs) and partitions == 1 else None
    return Exchange(request, "created", constraints=made, otherwise=otherwise)


def look_up_topic(topic: Hole = TOPIC, topic_id: str = "topic_id") -> Exchange:
    """The topic's id and leader epoch, once the broker knows it."""
    request = RequestFields("Metadata", {"topics": [{"name": topic}], "allow_auto_topic_creation": False})
    return Exchange(
        request,
        "known",
        constraints=(equals("topics[0].error_code", 0), equals("topics[0].partitions[0].error_code", 0)),
        kept=((topic_id, "topics[0].topic_id"), ("epoch_0", "topics[0].partitions[0].leader_epoch")),
        retried=NOT_READY,
    )


def wait_for_leader(partition: int = 0, topic: Hole = TOPIC) -> Exchange:
    """The broker leads the partition."""
    constraints = (equals(f"{LISTED}.error_code", 0),)
    return Exchange(list_offsets(-2, partition=partition, topic=topic), "led", constraints=constraints, retried=NOT_READY)


def restarted(epoch: str, offset: int = 0) -> Exchange:
    """The broker is restarted, and leads the partition again in a new leader epoch, with all of its records."""
    constraints = (equals(f"{LISTED}.error_code", 0), equals(f"{LISTED}.offset", offset))
    kept = ((epoch, f"{LISTED}.leader_epoch"),)
    request = list_offsets(-1, versions=since(4))
    return Exchange(request, "led again", constraints=constraints, kept=kept, retried=NOT_READY, restarts=True)


def init_producer(kept: str = "producer_id") -> Exchange:
    """An id for an idempotent producer."""
    request = RequestFields("InitProducerId", {"transactional_id": None, "transaction_timeout_ms": 60_000})
    constraints = (equals("error_code", 0), equals("producer_epoch", 0))
    return Exchange(request, "an id", constraints=constraints, kept=((kept, "producer_id"),), retried=NO_COORDINATOR)
