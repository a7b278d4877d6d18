"""A value of every class of the rules for topics, for `test_purity`."""

from typing import Any

from spec.controller.topics.chance import chance_of
from spec.controller.topics.cluster import (
    ConfigRecord,
    Decision,
    ProducerIdsRecord,
    RemoveTopicRecord,
    Topic,
    TopicPartitionRecord,
    TopicRecord,
    TopicsImage,
)
from spec.controller.topics.placement import Rack, Striped, UsableBroker
from spec.controller.topics.producer_ids import ProducerIds
from spec.controller.topics.settings import TopicSettings
from spec.controller.topics.topic_configs import TOPIC_CONFIGS
from spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from spec.messages.topics.alter_configs import (
    AlterConfig,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlterOperation,
    ConfigOutcome,
    ConfigResource,
    IncrementalAlterConfigsRequest,
    ReplacedResource,
    ResourceType,
)
from spec.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    MorePartitions,
    PartitionsCreated,
)
from spec.messages.topics.create_topics import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
    ReplicaAssignment,
)
from spec.messages.topics.delete_topics import DeletedTopic, DeleteTopicsRequest, DeleteTopicsResponse, TopicName
from spec.messages.topics.describe_configs import (
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
)
from spec.metadata import PartitionRegistration
from spec.values import NO_TOPIC_ID, BrokerEpoch, BrokerId, Epoch, Error, PartitionEpoch, ProducerId

B, OK = BrokerId(1), Error.NONE
RESOURCE = ConfigResource(ResourceType.TOPIC, "t")
REGISTRATION = PartitionRegistration((B,), frozenset({B}), B, Epoch(0), PartitionEpoch(0))

TOPIC_VALUES: tuple[Any, ...] = (
    AllocateProducerIdsRequest(B, BrokerEpoch(1)),
    AllocateProducerIdsResponse(OK),
    AlterConfig("a", AlterOperation.SET, "1"),
    AlterConfigsRequest(()),
    AlterConfigsResponse(()),
    AlteredResource(RESOURCE, ()),
    ConfigOutcome(RESOURCE, OK),
    ConfigRecord(RESOURCE, "a", None),
    ConfigSynonym("a", "1", ConfigSource.DEFAULT_CONFIG),
    CreatePartitionsRequest(()),
    CreatePartitionsResponse(()),
    CreateTopicsRequest(()),
    CreateTopicsResponse(()),
    CreatedTopic("t", OK),
    Decision((), None),
    DeleteTopicsRequest(()),
    DeleteTopicsResponse(()),
    DeletedTopic("t", NO_TOPIC_ID, OK),
    DescribeConfigsRequest(RESOURCE),
    DescribeConfigsResponse(RESOURCE, OK),
    DescribedConfig("a", "1", ConfigSource.DEFAULT_CONFIG, ConfigType.INT),
    IncrementalAlterConfigsRequest(()),
    InitProducerIdRequest(),
    InitProducerIdResponse(OK),
    MorePartitions("t", 2),
    NewTopic("t", NO_TOPIC_ID),
    PartitionsCreated("t", OK),
    ProducerIds(),
    ProducerIdsRecord(B, BrokerEpoch(1), ProducerId(1)),
    RESOURCE,
    Rack(Striped(), Striped()),
    RemoveTopicRecord(NO_TOPIC_ID),
    ReplacedResource(RESOURCE, ()),
    ReplicaAssignment(0, (B,)),
    Striped(),
    TOPIC_CONFIGS[0],
    Topic("t", NO_TOPIC_ID, 1, 1),
    TopicName("t"),
    TopicPartitionRecord(NO_TOPIC_ID, 0, REGISTRATION),
    TopicRecord("t", NO_TOPIC_ID),
    TopicSettings(),
    TopicsImage(),
    UsableBroker(B, None, False),
    chance_of(1),
)
