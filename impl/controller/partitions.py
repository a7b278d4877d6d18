"""Partitions change: ISR proposals of leaders, each looked at by itself."""

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.controller.core import ControllerCore
from kspec.impl.metadata.records import LogRecord
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.metadata_requests import check_missing_topic
from kspec.spec.controller.partitions import handle_alter_partition
from kspec.spec.controller.rules.brokers import check_broker_epoch
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from kspec.spec.metadata import LeaderRecoveryState, broker_of
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Error, Instant, PartitionEpoch, PartitionId, TopicId

FIRST_WITH_EPOCHS = 3
"""The version of AlterPartition from which members are named with their broker epochs."""

NO_PARTITION = PartitionId(-1)
"""A partition that there is not."""


def alter_partition(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """Leaders propose ISRs. **Kafka:** `ControllerApis.handleAlterPartitionRequest`."""
    asked = call.message
    broker, epoch = BrokerId(asked.broker_id), BrokerEpoch(asked.broker_epoch)
    registration = broker_of(core.image.spec.brokers, broker)
    error = check_broker_epoch(registration, epoch) if asked.topics else Error.NONE
    if error != Error.NONE:
        return [call.respond(error_code=error.value, topics=[])]
    records: list[LogRecord] = []
    topics = []
    for topic in asked.topics:
        answers = []
        for one in topic.partitions:
            key = TopicIdPartition(TopicId(bytes(topic.topic_id)), one.partition_index)
            if key.topic_id not in core.image.topics_by_id:
                answers.append(
                    Message(
                        partition_index=one.partition_index,
                        error_code=check_missing_topic(by_id=True, has_valid_name=True).value,
                    )
                )
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
            answer, decided = core.deciding.decide(handle_alter_partition, request, now, AlterPartitionResponse)
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


def _number(core: ControllerCore, key: TopicIdPartition) -> PartitionId:
    found = core.image.partition_id(key)
    return NO_PARTITION if found is None else found


def _members(one: Message, version: int) -> frozenset[IsrMember] | tuple[IsrMember, ...]:
    if version < FIRST_WITH_EPOCHS:
        named = tuple(IsrMember(BrokerId(member)) for member in one.new_isr)
    else:
        named = tuple(IsrMember(BrokerId(m.broker_id), BrokerEpoch(m.broker_epoch)) for m in one.new_isr_with_epochs)
    members = frozenset(named)
    return members if len(members) == len(named) else named
