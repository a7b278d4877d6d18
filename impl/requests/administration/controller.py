"""Requests of administrators to the controller: elections, reassignments, features, the quorum, brokers that are gone."""

from collections.abc import Callable, Iterable

from kspec.impl.broker.administered import NOT_SEEN, AdministeredNode, MetadataObserver, Quorum, feature_records
from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, ends_turn
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord
from kspec.impl.wire.apis import UNCLEAN_ELECTION
from kspec.impl.wire.values import Message
from kspec.spec.controller.brokers import handle_unregister_broker
from kspec.spec.controller.partitions import handle_alter_partition_reassignments, handle_elect_leaders
from kspec.spec.controller.rules.features import (
    KRAFT_VERSION,
    FeatureChange,
    FeatureLevel,
    FeatureRange,
    check_feature_change,
)
from kspec.spec.controller.rules.partition_change import is_reassigning
from kspec.spec.controller.rules.reassignment import check_replication_factor
from kspec.spec.controller.topics.names import check_metadata_partition
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from kspec.spec.metadata import MetadataRecord, partition_of
from kspec.spec.quorum.refusals import check_described_quorum
from kspec.spec.quorum.rules.voters import is_forgotten
from kspec.spec.values import BrokerId, Error, Instant, PartitionId, ReplicaKey

FIRST_WITH_KINDS = 1
"""The version of UpdateFeatures from which the kind of change is named."""

LAST_WITH_RESULTS = 1
"""The version of UpdateFeatures up to which each feature has an answer of its own."""

CHANGES = {change.value: change for change in FeatureChange}

NO_PARTITION = PartitionId(-1)
"""A partition that there is not."""

FIRST_WITH_ZERO = 4
"""The version of ApiVersions from which a feature may begin at level 0. Kafka: KAFKA-17011."""


# ---- elections


def elect_leaders(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """Elect leaders, of some partitions or of all. **Kafka:** `ControllerApis.handleElectLeaders`.

    Of all partitions, those that need no election are not told.
    """
    return [InTurns(call, _elect(core, call, now))]


def _elect(core: AdministeredNode, call: Call, now: Instant) -> Steps:
    """Decide in steps: all that one decides is stored before others decide."""
    asked = call.message
    unclean = call.version >= 1 and asked.election_type == UNCLEAN_ELECTION
    if asked.topic_partitions is None:
        wanted = [(topic.name, list(range(len(topic.partitions)))) for topic in core.image.topics.values()]
    else:
        wanted = [(topic.topic, topic.partitions) for topic in asked.topic_partitions]
    records: list[LogRecord] = []
    results = []
    number = 0
    for name, partitions in wanted:
        answers = []
        for index in partitions:
            if ends_turn(number):
                yield core.change_metadata(records)
                records = []
            number += 1
            topic = core.image.topics.get(name)
            there = topic is not None and index in range(len(topic.partitions))
            partition_id = topic.partitions[index] if topic is not None and there else NO_PARTITION
            answer, decided = core.deciding.decide(
                handle_elect_leaders, ElectLeadersRequest(partition_id, unclean), now, ErrorResponse
            )
            records += decided
            if asked.topic_partitions is not None or answer.error != Error.ELECTION_NOT_NEEDED:
                answers.append(Message(partition_id=index, error_code=answer.error.value, error_message=_said(answer.error)))
        results.append(Message(topic=name, partition_result=answers))
    answered = call.respond(error_code=0, replica_election_results=results).long_if(number > TURN_SIZE)
    return [*core.change_metadata(records), answered]


def _said(error: Error) -> str | None:
    return None if error == Error.NONE else error.name


# ---- reassignments


def alter_partition_reassignments(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """Move partitions, or cancel moves. **Kafka:** `ControllerApis.handleAlterPartitionReassignments`."""
    return [InTurns(call, _reassign(core, call, now))]


def _reassign(core: AdministeredNode, call: Call, now: Instant) -> Steps:
    """Decide in steps: all that one decides is stored before others decide."""
    asked = call.message
    records: list[LogRecord] = []
    responses = []
    number = 0
    for wanted in asked.topics:
        answers = []
        for one in wanted.partitions:
            if ends_turn(number):
                yield core.change_metadata(records)
                records = []
            number += 1
            topic = core.image.topics.get(wanted.name)
            there = topic is not None and one.partition_index in range(len(topic.partitions))
            partition_id = topic.partitions[one.partition_index] if topic is not None and there else NO_PARTITION
            replicas = None if one.replicas is None else tuple(map(BrokerId, one.replicas))
            known = partition_of(core.deciding.state.image, partition_id)
            error = check_replication_factor(asked.allow_replication_factor_change, known, replicas)
            if error == Error.NONE:
                request = AlterPartitionReassignmentsRequest(partition_id, replicas)
                answer, decided = core.deciding.decide(handle_alter_partition_reassignments, request, now, ErrorResponse)
                records += decided
                error = answer.error
            index = one.partition_index
            answers.append(Message(partition_index=index, error_code=error.value, error_message=_said(error)))
        responses.append(Message(name=wanted.name, partitions=answers))
    answered = call.respond(error_code=0, error_message=None, responses=responses).long_if(number > TURN_SIZE)
    return [*core.change_metadata(records), answered]


def list_partition_reassignments(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """The moves that are under way. **Kafka:** `ReplicationControlManager.listPartitionReassignments`."""
    asked, image = call.message, core.image
    if asked.topics is None:
        wanted = [(topic.name, list(range(len(topic.partitions)))) for topic in image.topics.values()]
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in asked.topics]
    topics = []
    for name, indexes in wanted:
        topic = image.topics.get(name)
        moving = []
        for index in indexes if topic is not None else ():
            there = topic is not None and 0 <= index < len(topic.partitions)
            known = partition_of(image.spec, topic.partitions[index]) if topic is not None and there else None
            if known is not None and is_reassigning(known.adding, known.removing):
                moving.append(
                    Message(
                        partition_index=index,
                        replicas=list(known.replicas),
                        adding_replicas=sorted(known.adding),
                        removing_replicas=sorted(known.removing),
                    )
                )
        if moving:
            topics.append(Message(name=name, partitions=moving))
    return [call.respond(error_code=0, error_message=None, topics=topics)]


# ---- features


def feature_fields(
    supported: Iterable[FeatureRange], image: ClusterImage, version: int, kraft_version: int
) -> dict[str, object]:
    """The fields of an answer to ApiVersions. **Kafka:** `ApiVersionsResponse.Builder`, `KRaftMetadataCache.features`."""
    levels = [*image.features.items(), *([(KRAFT_VERSION, kraft_version)] if kraft_version else [])]
    return {
        "supported_features": [
            Message(name=one.name, min_version=one.lowest, max_version=one.highest)
            for one in supported
            if one.lowest or version >= FIRST_WITH_ZERO
        ],
        "finalized_features_epoch": image.spec.end_offset - 1,
        "finalized_features": [
            Message(name=name, max_version_level=level, min_version_level=level) for name, level in sorted(levels)
        ],
    }


def update_features(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """Change levels of features: all that are asked for, or none. **Kafka:** `FeatureControlManager.updateFeatures`, which
    has raised `kraft.version` by the time that a feature named after it is refused.
    """
    asked = call.message
    known = core.image.features | {KRAFT_VERSION: core.kraft_version}
    finalized = tuple(FeatureLevel(name, level) for name, level in sorted(known.items()))
    records: list[MetadataRecord] = []
    upgrades = False
    for one in asked.feature_updates:
        level = FeatureLevel(one.feature, one.max_version_level)
        error = check_feature_change(finalized, core.features_of_nodes, level, _change(one, call.version))
        is_new = error == Error.NONE and known.get(level.name, 0) != level.level
        said = f"not every node supports {level.name}={level.level}, or it would go the wrong way"
        if is_new and level.name == KRAFT_VERSION:
            upgrades, error = True, core.check_upgrade()
            said = core.missing_reports()
        elif is_new:
            records += feature_records(core, [level])
        if error != Error.NONE:
            return [call.respond(error_code=error.value, error_message=f"{error.name}: no feature is changed: {said}")]
    fields: dict[str, object] = {"error_code": 0, "error_message": None}
    if call.version <= LAST_WITH_RESULTS:
        names = [one.feature for one in asked.feature_updates]
        fields["results"] = [Message(feature=name, error_code=0, error_message=None) for name in names]
    if asked.validate_only:
        return [call.respond(**fields)]
    upgraded = core.upgrade_voters(now) if upgrades else []
    return [*upgraded, *core.change_metadata(core.deciding.add(tuple(records))), call.respond(**fields)]


def _change(one: Message, version: int) -> FeatureChange:
    if version < FIRST_WITH_KINDS:
        return FeatureChange.SAFE_DOWNGRADE if one.allow_downgrade else FeatureChange.UPGRADE
    return CHANGES.get(one.upgrade_type, FeatureChange.UPGRADE)


# ---- the quorum, and the brokers


def describe_quorum(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """The quorum, and who else reads the metadata log. **Kafka:** `KafkaRaftClient.handleDescribeQuorumRequest`."""
    quorum = core.quorum()
    topics = [
        Message(
            topic_name=topic.topic_name,
            partitions=[_quorum(quorum, topic.topic_name, one.partition_index, now) for one in topic.partitions],
        )
        for topic in call.message.topics
    ]
    told = any(one.error_code == Error.NONE.value for topic in topics for one in topic.partitions)
    nodes = [
        Message(node_id=voter.id, listeners=[Message(name=one.listener, host=one.host, port=one.port) for one in at])
        for voter, at in sorted(quorum.voters.items())
    ]
    return [call.respond(error_code=0, error_message=None, topics=topics, nodes=nodes if told else [])]


def _quorum(quorum: Quorum, topic: str, index: int, now: Instant) -> Message:
    error = check_metadata_partition(topic, index)
    if error == Error.NONE:
        error = check_described_quorum(quorum.leads)
    if error != Error.NONE:
        return Message(partition_index=index, error_code=error.value, error_message=None)
    voters = quorum.voters.keys()
    own = MetadataObserver(quorum.end_offset, now.timestamp, now.timestamp)
    known = {**quorum.fetched, quorum.node: own}
    return Message(
        partition_index=0,
        error_code=0,
        error_message=None,
        leader_id=quorum.node.id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[_replica_of_quorum(one, known.get(one, NOT_SEEN)) for one in sorted(voters)],
        observers=[
            _replica_of_quorum(one, at)
            for one, at in sorted(known.items())
            if one not in voters and not is_forgotten(now.timestamp - at.fetched_ms)
        ],
    )


def _replica_of_quorum(replica: ReplicaKey, observer: MetadataObserver) -> Message:
    return Message(
        replica_id=replica.id,
        replica_directory_id=replica.directory,
        log_end_offset=observer.end_offset,
        last_fetch_timestamp=observer.fetched_ms,
        last_caught_up_timestamp=observer.caught_up_ms,
    )


def unregister_broker(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """Remove a broker's registration. **Kafka:** `ControllerApis.handleUnregisterBroker`."""
    broker = BrokerId(call.message.broker_id)
    answer, records = core.deciding.decide(handle_unregister_broker, UnregisterBrokerRequest(broker), now, ErrorResponse)
    said = _said(answer.error)
    return [*core.change_metadata(records), call.respond(error_code=answer.error.value, error_message=said)]


ADMINISTRATION: dict[str, Callable[[AdministeredNode, Call, Instant], list[Effect]]] = {
    "ElectLeaders": elect_leaders,
    "AlterPartitionReassignments": alter_partition_reassignments,
    "ListPartitionReassignments": list_partition_reassignments,
    "UpdateFeatures": update_features,
    "DescribeQuorum": describe_quorum,
    "UnregisterBroker": unregister_broker,
}
"""By the names of the APIs."""
