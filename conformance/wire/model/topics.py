"""Topics: created, given more partitions, deleted. What the controller answers through the broker."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from conformance.wire.exchange import AtLeast, Constraint, Exchange, Hole, Request, equals
from conformance.wire.model.requests import WAIT_MS, since
from conformance.wire.model.subject import Move, Subject, Taken
from impl.wire.schema import Versions
from spec.broker.protocol import BrokerProtocol
from spec.controller.topics.cluster import Decision, TopicsImage, replay_all
from spec.controller.topics.creation import handle_create_partitions, handle_create_topics
from spec.controller.topics.deletion import handle_delete_topics
from spec.controller.topics.names import CLUSTER_METADATA, LONGEST
from spec.controller.topics.settings import MOST_PARTITIONS, TopicSettings
from spec.messages.topics.create_partitions import CreatePartitionsRequest, MorePartitions
from spec.messages.topics.create_topics import DEFAULT, CreateTopicsRequest, NewTopic, ReplicaAssignment
from spec.messages.topics.delete_topics import DeleteTopicsRequest, TopicName
from spec.metadata import BrokerRegistration
from spec.values import NO_TOPIC_ID, BrokerEpoch, BrokerId, Error, Incarnation, TopicId

WHOLE = "a topic is created, grown and deleted as a whole, or the client learns why not"
SETTINGS = TopicSettings()
SELF, STRANGER = BrokerId(1), BrokerId(2_000_000)
PLAIN, DOTTED, UNDERSCORED = "topic", "a.b", "a_b"
HOLES = {PLAIN: Hole("topic"), DOTTED: Hole("topic_dotted"), UNDERSCORED: Hole("topic_underscored"), SELF: Hole("broker_id")}
IDS = {name: TopicId(bytes([number]) * 16) for number, name in enumerate((PLAIN, DOTTED, UNDERSCORED), start=1)}
MOST = 3
SINCE_REFUSED = "4.4"
"""3.9.2 answers `UNKNOWN_SERVER_ERROR` to too many new partitions, and creates as many of them as one request may."""

NO_SUCH = TopicId(b"\x07" * 16)


class TopicsState(NamedTuple):
    """What the controller knows."""

    image: TopicsImage


def _registered() -> BrokerRegistration:
    """The one broker, unfenced. Kafka: `BrokerRegistration`."""
    return BrokerRegistration(SELF, BrokerEpoch(1), Incarnation(1), fenced=False)


def _on_wire(value: Any) -> Any:
    return HOLES.get(value, value)


# ---- creation


class Asked(NamedTuple):
    """A topic that a client wants, as CreateTopics says it."""

    name: str = PLAIN
    partitions: int = 1
    factor: int = 1
    assignments: tuple[tuple[int, tuple[BrokerId, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()
    twice: bool = False
    validate_only: bool = False


def _create(name: str, words: str, asked: Asked) -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> Taken | None:
        topic = NewTopic(
            asked.name,
            IDS.get(asked.name, NO_SUCH),
            asked.partitions,
            asked.factor,
            tuple(ReplicaAssignment(*one) for one in asked.assignments),
            asked.configs,
        )
        topics = (topic,) * (2 if asked.twice else 1)
        decision = handle_create_topics(SETTINGS, state.image, CreateTopicsRequest(topics, asked.validate_only), 0)
        (made,) = decision.answer.topics
        sent = {
            "name": _on_wire(asked.name),
            "num_partitions": asked.partitions,
            "replication_factor": asked.factor,
            "assignments": [
                {"partition_index": index, "broker_ids": list(map(_on_wire, replicas))}
                for index, replicas in asked.assignments
            ],
            "configs": [{"name": key, "value": value} for key, value in asked.configs],
        }
        fields = {"topics": [sent] * len(topics), "timeout_ms": WAIT_MS, "validate_only": asked.validate_only}
        constraints: list[Constraint] = [equals("topics[#]", 1), equals("topics[0].error_code", made.error.value)]
        if made.error == Error.NONE:
            constraints += [
                equals("topics[0].num_partitions", made.partitions),
                equals("topics[0].replication_factor", made.replication_factor),
            ]
            if asked.configs:
                reason = "a client that may see the settings gets all of them, and not null"
                constraints.append(AtLeast("topics[0].configs[#]", len(asked.configs), reason))
        taken = _decided(state, decision, Request("CreateTopics", fields), made.error, "would do", tuple(constraints))
        if decision.records and asked.name == PLAIN:
            return Taken(taken.state, taken.exchange._replace(kept=(("topic_id", "topics[0].topic_id"),)))
        return taken

    return Move(f"create.{name}", words, handle_create_topics, WHOLE, take)


def _decided(
    state: TopicsState,
    decision: Decision[Any],
    request: Request,
    error: Error,
    otherwise: str,
    constraints: tuple[Constraint, ...],
) -> Taken:
    outcome = error.name if error != Error.NONE else "done" if decision.records else otherwise
    image = replay_all(state.image, decision.records)
    return Taken(TopicsState(image), Exchange(request, outcome, error, constraints=constraints))


TOO_LONG = "n" * (LONGEST + 1)
CREATED: tuple[tuple[str, str, Asked], ...] = (
    ("plain", "create a topic", Asked()),
    ("three-partitions", "create a topic of three partitions", Asked(partitions=MOST)),
    ("dotted", "create a topic with dots in its name", Asked(DOTTED)),
    ("underscored", "create a topic with underscores in its name", Asked(UNDERSCORED)),
    ("twice", "create a topic twice in one request", Asked(twice=True)),
    ("validate-only", "ask whether a topic could be created", Asked(validate_only=True)),
    ("empty-name", "create a topic without a name", Asked("")),
    ("dot", "create a topic named '.'", Asked(".")),
    ("two-dots", "create a topic named '..'", Asked("..")),
    ("slash", "create a topic with a slash in its name", Asked("a/b")),
    ("long-name", "create a topic with a name of 250 characters", Asked(TOO_LONG)),
    ("metadata", "create the metadata's own topic", Asked(CLUSTER_METADATA)),
    ("no-partitions", "create a topic of 0 partitions", Asked(partitions=0)),
    ("negative-partitions", "create a topic of -2 partitions", Asked(partitions=-2)),
    (
        "too-many-partitions",
        "create a topic of more partitions than one request may have",
        Asked(partitions=MOST_PARTITIONS + 1),
    ),
    ("no-replicas", "create a topic of replication factor 0", Asked(factor=0)),
    ("negative-replicas", "create a topic of replication factor -2", Asked(factor=-2)),
    ("too-many-replicas", "create a topic of more replicas than there are brokers", Asked(factor=999)),
    (
        "given",
        "create a topic with its replicas given",
        Asked(partitions=DEFAULT, factor=DEFAULT, assignments=((0, (SELF,)),)),
    ),
    (
        "given-and-counted",
        "create a topic with replicas given, and a number of partitions",
        Asked(assignments=((0, (SELF,)),)),
    ),
    (
        "given-twice",
        "create a topic with one broker twice among the replicas",
        Asked(partitions=DEFAULT, factor=DEFAULT, assignments=((0, (SELF, SELF)),)),
    ),
    (
        "given-stranger",
        "create a topic on a broker that there is not",
        Asked(partitions=DEFAULT, factor=DEFAULT, assignments=((0, (STRANGER,)),)),
    ),
    (
        "given-nobody",
        "create a topic with no replicas for a partition",
        Asked(partitions=DEFAULT, factor=DEFAULT, assignments=((0, ()),)),
    ),
    (
        "given-gap",
        "create a topic that lacks its partition 0",
        Asked(partitions=DEFAULT, factor=DEFAULT, assignments=((1, (SELF,)),)),
    ),
    ("unknown-config", "create a topic with a setting that there is not", Asked(configs=(("no.such.setting", "1"),))),
    ("wrong-config", "create a topic with a setting of no sense", Asked(configs=(("retention.ms", "soon"),))),
    ("null-config", "create a topic with a setting of no value", Asked(configs=(("retention.ms", None),))),
    ("config", "create a topic with a setting", Asked(configs=(("retention.ms", "86400000"),))),
)


# ---- more partitions


def _grow(name: str, words: str, more: Callable[[int], MorePartitions], times: int = 1, validate_only: bool = False) -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> Taken | None:
        before = state.image.topic(PLAIN)
        asked = more(before.partitions if before is not None else 1)
        if MOST < asked.count <= MOST_PARTITIONS:
            return None
        request = CreatePartitionsRequest((asked,) * times, validate_only)
        decision = handle_create_partitions(SETTINGS, state.image, request, 0)
        (grown,) = decision.answer.topics
        given = None
        if asked.assignments is not None:
            given = [{"broker_ids": list(map(_on_wire, replicas))} for replicas in asked.assignments]
        topic = {"name": _on_wire(asked.name), "count": asked.count, "assignments": given}
        fields = {"topics": [topic] * times, "timeout_ms": WAIT_MS, "validate_only": validate_only}
        constraints = (equals("results[#]", 1), equals("results[0].error_code", grown.error.value))
        taken = _decided(state, decision, Request("CreatePartitions", fields), grown.error, "would do", constraints)
        if grown.error == Error.POLICY_VIOLATION:
            return Taken(taken.state, taken.exchange._replace(since=SINCE_REFUSED))
        return taken

    return Move(f"grow.{name}", words, handle_create_partitions, WHOLE, take)


def _grows() -> Iterator[Move]:
    yield _grow("one-more", "give a topic one more partition", lambda count: MorePartitions(PLAIN, count + 1))
    yield _grow("same", "give a topic as many partitions as it has", lambda count: MorePartitions(PLAIN, count))
    yield _grow("fewer", "give a topic no partitions", lambda count: MorePartitions(PLAIN, 0))
    yield _grow("negative", "give a topic -1 partitions", lambda count: MorePartitions(PLAIN, -1))
    yield _grow(
        "too-many",
        "give a topic more partitions than one request may add",
        lambda count: MorePartitions(PLAIN, MOST_PARTITIONS + MOST + 1),
    )
    yield _grow(
        "twice", "give a topic one more partition twice in one request", lambda count: MorePartitions(PLAIN, count + 1), 2
    )
    yield _grow(
        "validate-only",
        "ask whether a topic could have one more partition",
        lambda count: MorePartitions(PLAIN, count + 1),
        validate_only=True,
    )
    yield _grow(
        "given",
        "give a topic one more partition, its replicas given",
        lambda count: MorePartitions(PLAIN, count + 1, ((SELF,),)),
    )
    yield _grow(
        "given-too-many",
        "give a topic one more partition, and replicas for two",
        lambda count: MorePartitions(PLAIN, count + 1, ((SELF,), (SELF,))),
    )
    yield _grow(
        "given-stranger",
        "give a topic a partition on a broker that there is not",
        lambda count: MorePartitions(PLAIN, count + 1, ((STRANGER,),)),
    )
    yield _grow(
        "given-twice",
        "give a topic a partition with one broker twice",
        lambda count: MorePartitions(PLAIN, count + 1, ((SELF, SELF),)),
    )


# ---- deletion

BY_NAME_AND_ID = since(6)


def _delete(name: str, words: str, wanted: tuple[TopicName, ...], versions: Versions = BY_NAME_AND_ID) -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> Taken | None:
        ids = {one.topic_id for one in wanted} - {NO_TOPIC_ID, NO_SUCH}
        if any(state.image.topic_by_id(one) is None for one in ids):
            return None
        decision = handle_delete_topics(SETTINGS, state.image, DeleteTopicsRequest(wanted), 0)
        topics = [{"name": _on_wire(one.name), "topic_id": _id_on_wire(one.topic_id)} for one in wanted]
        fields = {"topics": topics, "topic_names": [_on_wire(one.name) for one in wanted], "timeout_ms": WAIT_MS}
        answers = decision.answer.topics
        constraints = (
            equals("responses[#]", len(answers)),
            *(equals(f"responses[{number}].error_code", one.error.value) for number, one in enumerate(answers)),
        )
        return _decided(state, decision, Request("DeleteTopics", fields, versions), answers[0].error, "nothing", constraints)

    return Move(f"delete.{name}", words, handle_delete_topics, WHOLE, take)


def _id_on_wire(topic_id: TopicId) -> Any:
    return Hole("topic_id") if topic_id == IDS[PLAIN] else bytes(topic_id)


def _deletes() -> Iterator[Move]:
    by_name, by_id = TopicName(PLAIN), TopicName(None, IDS[PLAIN])
    yield _delete("by-name", "delete a topic by its name", (by_name,), since(1))
    yield _delete("by-id", "delete a topic by its id", (by_id,))
    yield _delete("unknown-id", "delete a topic by an id that no topic has", (TopicName(None, NO_SUCH),))
    yield _delete("unnamed", "delete a topic by neither name nor id", (TopicName(None),))
    yield _delete("name-and-id", "delete a topic by name and id", (TopicName(PLAIN, IDS[PLAIN]),))
    yield _delete("twice", "delete a topic twice in one request", (by_name, by_name))
    yield _delete("twice-by-id", "delete a topic by its id twice in one request", (by_id, by_id))


def _setup(state: TopicsState, holes: frozenset[str]) -> tuple[Exchange, ...]:
    request = Request("Metadata", {"topics": [], "allow_auto_topic_creation": False}, since(1))
    return (Exchange(request, "known", kept=(("broker_id", "brokers[0].node_id"),)),) if "broker_id" in holes else ()


TOPICS = Subject(
    "topics",
    "topics that are created, given more partitions and deleted",
    TopicsState(TopicsImage((_registered(),))),
    (*(_create(*one) for one in CREATED), *_grows(), *_deletes()),
    _setup,
    {"partitions": MOST},
)
