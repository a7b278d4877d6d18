"""Partitions change: ISR proposals of leaders, elections and reassignments by request."""

from impl.broker.calls import Call, Effect
from impl.controller.core import ControllerCore
from impl.metadata.records import LogRecord, PartitionKey
from impl.wire.apis import UNCLEAN_ELECTION
from impl.wire.values import Message
from spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
    handle_elect_leaders,
)
from spec.controller.rules.brokers import check_broker_epoch
from spec.controller.rules.partition_change import is_reassigning
from spec.controller.rules.reassignment import check_replication_factor
from spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from spec.messages.administration.elect_leaders import ElectLeadersRequest
from spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from spec.metadata import LeaderRecoveryState, broker_of, partition_of
from spec.values import BrokerEpoch, BrokerId, Epoch, Error, PartitionEpoch, PartitionId

FIRST_WITH_EPOCHS = 3
"""The version of AlterPartition from which members are named with their broker epochs."""

NO_PARTITION = PartitionId(-1)
"""A partition that there is not."""


def alter_partition(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """Leaders propose ISRs. **Kafka:** `ControllerApis.handleAlterPartitionRequest`."""
    asked = call.message
    broker, epoch = BrokerId(asked.broker_id), BrokerEpoch(asked.broker_epoch)
    error = check_broker_epoch(broker_of(core.image.spec.brokers, broker), epoch)
    if error != Error.NONE:
        return [call.respond(error_code=error.value, topics=[])]
    records: list[LogRecord] = []
    topics = []
    for topic in asked.topics:
        answers = []
        for one in topic.partitions:
            key = PartitionKey(bytes(topic.topic_id), one.partition_index)
            if key.topic_id not in core.image.topics_by_id:
                answers.append(Message(partition_index=one.partition_index, error_code=Error.UNKNOWN_TOPIC_ID.value))
                continue
            request = AlterPartitionRequest(
                broker,
                epoch,
                _number(core, key),
                Epoch(one.leader_epoch),
                PartitionEpoch(one.partition_epoch),
                _members(one, call.version),
                LeaderRecoveryState(one.leader_recovery_state),
            )
            answer, decided = core.decide(handle_alter_partition, request, now)
            records += decided
            answers.append(
                Message(
                    partition_index=one.partition_index,
                    error_code=answer.error.value,
                    leader_id=answer.leader,
                    leader_epoch=answer.leader_epoch,
                    isr=sorted(answer.isr),
                    leader_recovery_state=answer.recovery.value,
                    partition_epoch=answer.partition_epoch,
                )
            )
        topics.append(Message(topic_id=topic.topic_id, partitions=answers))
    return [*core.change_metadata(records), call.respond(error_code=0, topics=topics)]


def _number(core: ControllerCore, key: PartitionKey) -> PartitionId:
    found = core.image.partition_id(key)
    return NO_PARTITION if found is None else found


def _members(one: Message, version: int) -> frozenset[IsrMember]:
    if version < FIRST_WITH_EPOCHS:
        return frozenset(IsrMember(BrokerId(member)) for member in one.new_isr)
    return frozenset(IsrMember(BrokerId(m.broker_id), BrokerEpoch(m.broker_epoch)) for m in one.new_isr_with_epochs)


# ---- elections


def elect_leaders(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """Elect leaders, of some partitions or of all. **Kafka:** `ControllerApis.handleElectLeaders`.

    Of all partitions, those that need no election are not told.
    """
    asked = call.message
    unclean = call.version >= 1 and asked.election_type == UNCLEAN_ELECTION
    if asked.topic_partitions is None:
        wanted = [(topic.name, list(range(len(topic.partitions)))) for topic in core.image.topics.values()]
    else:
        wanted = [(topic.topic, topic.partitions) for topic in asked.topic_partitions]
    records: list[LogRecord] = []
    results = []
    for name, partitions in wanted:
        topic = core.image.topics.get(name)
        answers = []
        for index in partitions:
            there = topic is not None and index in range(len(topic.partitions))
            partition_id = topic.partitions[index] if topic is not None and there else NO_PARTITION
            answer, decided = core.decide(handle_elect_leaders, ElectLeadersRequest(partition_id, unclean), now)
            records += decided
            if asked.topic_partitions is not None or answer.error != Error.ELECTION_NOT_NEEDED:
                answers.append(Message(partition_id=index, error_code=answer.error.value, error_message=_said(answer.error)))
        if answers:
            results.append(Message(topic=name, partition_result=answers))
    return [*core.change_metadata(records), call.respond(error_code=0, replica_election_results=results)]


def _said(error: Error) -> str | None:
    return None if error == Error.NONE else error.name


# ---- reassignments


def alter_partition_reassignments(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """Move partitions, or cancel moves. **Kafka:** `ControllerApis.handleAlterPartitionReassignments`."""
    asked = call.message
    records: list[LogRecord] = []
    responses = []
    for wanted in asked.topics:
        topic = core.image.topics.get(wanted.name)
        answers = []
        for one in wanted.partitions:
            there = topic is not None and one.partition_index in range(len(topic.partitions))
            partition_id = topic.partitions[one.partition_index] if topic is not None and there else NO_PARTITION
            replicas = None if one.replicas is None else tuple(map(BrokerId, one.replicas))
            known = partition_of(core.state.image, partition_id)
            error = check_replication_factor(asked.allow_replication_factor_change, known, replicas)
            if error == Error.NONE:
                request = AlterPartitionReassignmentsRequest(partition_id, replicas)
                answer, decided = core.decide(handle_alter_partition_reassignments, request, now)
                records += decided
                error = answer.error
            index = one.partition_index
            answers.append(Message(partition_index=index, error_code=error.value, error_message=_said(error)))
        responses.append(Message(name=wanted.name, partitions=answers))
    answered = call.respond(error_code=0, error_message=None, responses=responses)
    return [*core.change_metadata(records), answered]


def list_partition_reassignments(core: ControllerCore, call: Call, now: int) -> list[Effect]:
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
            known = partition_of(image.spec, topic.partitions[index]) if topic and index < len(topic.partitions) else None
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
