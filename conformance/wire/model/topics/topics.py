"""Topics: created, given more partitions, deleted. What the controller answers through the broker."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import AtLeast, Constraint, Exchange, NoneOf, NotEmpty, RequestFields, equals
from kspec.conformance.wire.model.requests import WAIT_MS, since
from kspec.conformance.wire.model.restarts import after_restart
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.conformance.wire.model.topics.looks import (
    BY_FORMER_ID,
    BY_ID,
    LOOK,
    LOOK_AT_ALL,
    RESTARTED_LOOK,
    SETTINGS,
)
from kspec.conformance.wire.model.topics.state import (
    DOTTED,
    HOLES,
    ID_HOLES,
    IDS,
    MOST,
    MOST_MADE,
    NO_SUCH,
    PLAIN,
    SELF,
    SINCE_REFUSED,
    STRANGER,
    UNDERSCORED,
    WHOLE,
    Decision,
    TopicsState,
    decide,
    registered,
)
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.creation import MOST_PARTITIONS, handle_create_partitions, handle_create_topics
from kspec.spec.controller.topics.deletion import handle_delete_topics
from kspec.spec.controller.topics.names import CLUSTER_METADATA, LONGEST
from kspec.spec.messages.topics.create_partitions import CreatePartitionsRequest, MorePartitions
from kspec.spec.messages.topics.create_topics import DEFAULT, CreateTopicsRequest, NewTopic, ReplicaAssignment
from kspec.spec.messages.topics.delete_topics import DeleteTopicsRequest, TopicName
from kspec.spec.messages.topics.describe_configs import ConfigSource
from kspec.spec.metadata import (
    MetadataImage,
)
from kspec.spec.topics import topic_named, topic_with_id
from kspec.spec.values import (
    NO_TOPIC_ID,
    BrokerId,
    Error,
)


def _on_wire(value: Any) -> Any:
    return HOLES.get(value, value)


# ---- creation


class RequestedTopic(NamedTuple):
    """A topic that a client wants, as CreateTopics says it."""

    name: str = PLAIN
    partitions: int = 1
    factor: int = 1
    assignments: tuple[tuple[int, tuple[BrokerId, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()
    twice: bool = False
    validate_only: bool = False


def _create(name: str, words: str, asked: RequestedTopic) -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        topic = NewTopic(
            asked.name,
            IDS.get(asked.name, NO_SUCH),
            asked.partitions,
            asked.factor,
            tuple(ReplicaAssignment(*one) for one in asked.assignments),
            asked.configs,
        )
        topics = (topic,) * (2 if asked.twice else 1)
        decision = decide(handle_create_topics, state, CreateTopicsRequest(topics, asked.validate_only))
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
            if asked.name == PLAIN and state.made:
                constraints.append(NoneOf("topics[0].topic_id", ID_HOLES[: state.made]))
            constraints += _told_settings(dict(asked.configs))
        taken = _decided(decision, RequestFields("CreateTopics", fields), made.error, "would do", tuple(constraints))
        if decision.writes and asked.name == PLAIN:
            if state.made >= MOST_MADE:
                return None
            kept = ((ID_HOLES[state.made].name, "topics[0].topic_id"),)
            return MoveResult(decision.after._replace(made=state.made + 1), taken.exchange._replace(kept=kept))
        return taken

    return Move(f"create.{name}", words, handle_create_topics, WHOLE, take)


SHOWN = ("retention.ms", "cleanup.policy")


def _told_settings(given: Mapping[str, str | None]) -> Iterator[Constraint]:
    """The settings that the topic has of its own say so, and the others that they come from elsewhere."""
    reason = "a client that may see the settings gets all of them, and not null"
    yield AtLeast("topics[0].configs[#]", max(len(given), len(SHOWN)), reason)
    for key in SHOWN:
        where = f"topics[0].configs[name='{key}']"
        if given.get(key) is not None:
            yield equals(f"{where}.value", given[key])
            yield equals(f"{where}.config_source", ConfigSource.TOPIC_CONFIG.value)
        else:
            yield NotEmpty(f"{where}.value")
            yield NoneOf(f"{where}.config_source", (ConfigSource.TOPIC_CONFIG.value,))
        yield equals(f"{where}.read_only", False)
        yield equals(f"{where}.is_sensitive", False)


def _decided(
    decision: Decision,
    request: RequestFields,
    error: Error,
    otherwise: str,
    constraints: tuple[Constraint, ...],
) -> MoveResult:
    outcome = error.name if error != Error.NONE else "done" if decision.writes else otherwise
    return MoveResult(decision.after, Exchange(request, outcome, error, constraints=constraints))


TOO_LONG = "n" * (LONGEST + 1)
CREATED: tuple[tuple[str, str, RequestedTopic], ...] = (
    ("plain", "create a topic", RequestedTopic()),
    ("three-partitions", "create a topic of three partitions", RequestedTopic(partitions=MOST)),
    ("dotted", "create a topic with dots in its name", RequestedTopic(DOTTED)),
    ("underscored", "create a topic with underscores in its name", RequestedTopic(UNDERSCORED)),
    ("twice", "create a topic twice in one request", RequestedTopic(twice=True)),
    ("validate-only", "ask whether a topic could be created", RequestedTopic(validate_only=True)),
    ("empty-name", "create a topic without a name", RequestedTopic("")),
    ("dot", "create a topic named '.'", RequestedTopic(".")),
    ("two-dots", "create a topic named '..'", RequestedTopic("..")),
    ("slash", "create a topic with a slash in its name", RequestedTopic("a/b")),
    ("long-name", "create a topic with a name of 250 characters", RequestedTopic(TOO_LONG)),
    (
        "longest-name",
        "ask whether a topic with a name of 249 characters could be created",
        RequestedTopic(TOO_LONG[1:], validate_only=True),
    ),
    (
        "all-letters",
        "ask whether a topic with a name of all kinds of letters could be created",
        RequestedTopic("aZ09_-", validate_only=True),
    ),
    ("metadata", "create the metadata's own topic", RequestedTopic(CLUSTER_METADATA)),
    ("no-partitions", "create a topic of 0 partitions", RequestedTopic(partitions=0)),
    ("negative-partitions", "create a topic of -2 partitions", RequestedTopic(partitions=-2)),
    (
        "too-many-partitions",
        "create a topic of more partitions than one request may have",
        RequestedTopic(partitions=MOST_PARTITIONS + 1),
    ),
    ("no-replicas", "create a topic of replication factor 0", RequestedTopic(factor=0)),
    ("negative-replicas", "create a topic of replication factor -2", RequestedTopic(factor=-2)),
    ("too-many-replicas", "create a topic of more replicas than there are brokers", RequestedTopic(factor=999)),
    (
        "given",
        "create a topic with its replicas given",
        RequestedTopic(partitions=DEFAULT, factor=DEFAULT, assignments=((0, (SELF,)),)),
    ),
    (
        "given-and-counted",
        "create a topic with replicas given, and a number of partitions",
        RequestedTopic(assignments=((0, (SELF,)),)),
    ),
    (
        "given-twice",
        "create a topic with one broker twice among the replicas",
        RequestedTopic(partitions=DEFAULT, factor=DEFAULT, assignments=((0, (SELF, SELF)),)),
    ),
    (
        "given-stranger",
        "create a topic on a broker that there is not",
        RequestedTopic(partitions=DEFAULT, factor=DEFAULT, assignments=((0, (STRANGER,)),)),
    ),
    (
        "given-nobody",
        "create a topic with no replicas for a partition",
        RequestedTopic(partitions=DEFAULT, factor=DEFAULT, assignments=((0, ()),)),
    ),
    (
        "given-gap",
        "create a topic that lacks its partition 0",
        RequestedTopic(partitions=DEFAULT, factor=DEFAULT, assignments=((1, (SELF,)),)),
    ),
    (
        "unknown-config",
        "create a topic with a setting that there is not",
        RequestedTopic(configs=(("no.such.setting", "1"),)),
    ),
    ("wrong-config", "create a topic with a setting of no sense", RequestedTopic(configs=(("retention.ms", "soon"),))),
    ("null-config", "create a topic with a setting of no value", RequestedTopic(configs=(("retention.ms", None),))),
    ("config", "create a topic with a setting", RequestedTopic(configs=(("retention.ms", "86400000"),))),
)


# ---- two topics in one request


def _entry_of(asked: RequestedTopic) -> tuple[NewTopic, dict[str, Any]]:
    topic = NewTopic(asked.name, IDS[asked.name], asked.partitions, asked.factor, (), asked.configs)
    configs = [{"name": key, "value": value} for key, value in asked.configs]
    counts = {"num_partitions": asked.partitions, "replication_factor": asked.factor}
    return topic, {"name": _on_wire(asked.name), **counts, "assignments": [], "configs": configs}


def _create_two(name: str, words: str, *asked: RequestedTopic, validate_only: bool = False) -> Move:
    """Topics in one request: each is created or refused for itself."""

    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        entries = [_entry_of(one) for one in asked]
        request = CreateTopicsRequest(tuple(topic for topic, _ in entries), validate_only)
        decision = decide(handle_create_topics, state, request)
        errors = {one.name: one.error for one in decision.answer.topics}
        constraints: list[Constraint] = [equals("topics[#]", len(asked))]
        constraints += [
            equals(f"topics[name=@{_on_wire(one.name).name}].error_code", errors[one.name].value) for one in asked
        ]
        fields = {"topics": [sent for _, sent in entries], "timeout_ms": WAIT_MS, "validate_only": validate_only}
        taken = _decided_of_two(
            decision, RequestFields("CreateTopics", fields), [errors[one.name] for one in asked], constraints
        )
        if state.plain is not None or decision.after.plain is None:
            return taken
        if state.made >= MOST_MADE:
            return None
        kept = ((ID_HOLES[state.made].name, f"topics[name=@{_on_wire(PLAIN).name}].topic_id"),)
        return MoveResult(decision.after._replace(made=state.made + 1), taken.exchange._replace(kept=kept))

    return Move(f"create.{name}", words, handle_create_topics, WHOLE, take)


def _decided_of_two(
    decision: Decision, request: RequestFields, errors: list[Error], constraints: list[Constraint]
) -> MoveResult:
    outcome = ", ".join("done" if one == Error.NONE else one.name for one in errors)
    first = next((one for one in errors if one != Error.NONE), Error.NONE)
    return MoveResult(decision.after, Exchange(request, outcome, first, constraints=tuple(constraints)))


WRONG_CONFIG = (("retention.ms", "soon"),)


def _creates_two() -> Iterator[Move]:
    plain, dotted = RequestedTopic(), RequestedTopic(DOTTED)
    yield _create_two("two", "create two topics in one request", plain, dotted)
    wrong = RequestedTopic(configs=WRONG_CONFIG)
    yield _create_two("two.first-wrong", "create two topics, the first with a setting of no sense", wrong, dotted)
    wrong = RequestedTopic(DOTTED, partitions=0)
    yield _create_two("two.last-wrong", "create two topics, the last of 0 partitions", plain, wrong)
    yield _create_two("two.validate-only", "ask whether two topics could be created", plain, dotted, validate_only=True)


def _grow_two() -> Move:
    """One more partition for each of two topics."""

    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        topics = []
        for name in (DOTTED, PLAIN):
            before = topic_named(state.image.topics, name)
            topics.append(MorePartitions(name, 1 + (len(before.partitions) if before is not None else 1)))
        if topics[0].count > MOST - 1 or topics[1].count > MOST:
            return None
        decision = decide(handle_create_partitions, state, CreatePartitionsRequest(tuple(topics), False))
        errors = {one.name: one.error for one in decision.answer.topics}
        sent = [{"name": _on_wire(one.name), "count": one.count, "assignments": None} for one in topics]
        request = RequestFields("CreatePartitions", {"topics": sent, "timeout_ms": WAIT_MS, "validate_only": False})
        constraints: list[Constraint] = [equals("results[#]", len(topics))]
        for one in topics:
            constraints.append(equals(f"results[name=@{_on_wire(one.name).name}].error_code", errors[one.name].value))
        return _decided_of_two(decision, request, [errors[one.name] for one in topics], constraints)

    words = "give each of two topics one more partition"
    return Move("grow.two", words, handle_create_partitions, WHOLE, take)


def _delete_two() -> Move:
    """Two topics are deleted by their names."""

    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        wanted = (TopicName(DOTTED), TopicName(PLAIN))
        decision = decide(handle_delete_topics, state, DeleteTopicsRequest(wanted))
        errors = {one.name: one.error for one in decision.answer.topics}
        topics = [{"name": _on_wire(one.name), "topic_id": bytes(NO_TOPIC_ID)} for one in wanted]
        fields = {"topics": topics, "topic_names": [_on_wire(one.name) for one in wanted], "timeout_ms": WAIT_MS}
        constraints: list[Constraint] = [equals("responses[#]", len(wanted))]
        for one in wanted:
            constraints.append(equals(f"responses[name=@{_on_wire(one.name).name}].error_code", errors[one.name].value))
        request = RequestFields("DeleteTopics", fields, since(1))
        return _decided_of_two(decision, request, [errors[one.name] for one in wanted], constraints)

    return Move("delete.two", "delete two topics in one request", handle_delete_topics, WHOLE, take)


# ---- more partitions


def _grow(name: str, words: str, more: Callable[[int], MorePartitions], times: int = 1, validate_only: bool = False) -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        before = topic_named(state.image.topics, PLAIN)
        asked = more(len(before.partitions) if before is not None else 1)
        if MOST < asked.count <= MOST_PARTITIONS:
            return None
        request = CreatePartitionsRequest((asked,) * times, validate_only)
        decision = decide(handle_create_partitions, state, request)
        (grown,) = decision.answer.topics
        given = None
        if asked.assignments is not None:
            given = [{"broker_ids": list(map(_on_wire, replicas))} for replicas in asked.assignments]
        topic = {"name": _on_wire(asked.name), "count": asked.count, "assignments": given}
        fields = {"topics": [topic] * times, "timeout_ms": WAIT_MS, "validate_only": validate_only}
        constraints = (equals("results[#]", 1), equals("results[0].error_code", grown.error.value))
        taken = _decided(decision, RequestFields("CreatePartitions", fields), grown.error, "would do", constraints)
        if grown.error == Error.POLICY_VIOLATION:
            return MoveResult(taken.state, taken.exchange._replace(since=SINCE_REFUSED))
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
    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        ids = {one.topic_id for one in wanted} - {NO_TOPIC_ID, NO_SUCH}
        if any(topic_with_id(state.image.topics, one) is None for one in ids):
            return None
        decision = decide(handle_delete_topics, state, DeleteTopicsRequest(wanted))
        topics = [
            {"name": _on_wire(one.name), "topic_id": state.id_hole if one.topic_id == IDS[PLAIN] else bytes(one.topic_id)}
            for one in wanted
        ]
        fields = {"topics": topics, "topic_names": [_on_wire(one.name) for one in wanted], "timeout_ms": WAIT_MS}
        answers = decision.answer.topics
        constraints = (
            equals("responses[#]", len(answers)),
            *(equals(f"responses[{number}].error_code", one.error.value) for number, one in enumerate(answers)),
            *(_deleted_alone(state) if answers[0].error == Error.NONE and len(wanted) == 1 else ()),
        )
        return _decided(decision, RequestFields("DeleteTopics", fields, versions), answers[0].error, "nothing", constraints)

    return Move(f"delete.{name}", words, handle_delete_topics, WHOLE, take)


def _deleted_alone(state: TopicsState) -> tuple[Constraint, ...]:
    """The topic that is deleted is told by its name and its id, however it was asked for."""
    return equals("responses[0].name", HOLES[PLAIN]), equals("responses[0].topic_id", state.id_hole)


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
    request = RequestFields("Metadata", {"topics": [], "allow_auto_topic_creation": False}, since(1))
    return (Exchange(request, "known", kept=(("broker_id", "brokers[0].node_id"),)),) if "broker_id" in holes else ()


TOPICS = Subject(
    "topics",
    "topics that are created, given more partitions and deleted",
    TopicsState(MetadataImage(brokers=(registered(),))),
    (
        *(_create(*one) for one in CREATED),
        *_creates_two(),
        *_grows(),
        _grow_two(),
        *_deletes(),
        _delete_two(),
        LOOK,
        BY_ID,
        BY_FORMER_ID,
        SETTINGS,
        LOOK_AT_ALL,
    ),
    _setup,
    {"partitions": MOST, "creations": MOST_MADE},
    looks=(LOOK, LOOK_AT_ALL, SETTINGS),
)
TOPICS_AGAIN = after_restart(
    TOPICS,
    RESTARTED_LOOK,
    before=("create.plain", "create.three-partitions", "create.config", "grow.one-more", "delete.by-name"),
    after=(LOOK.name, BY_ID.name, SETTINGS.name),
)
