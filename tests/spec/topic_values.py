"""A value of every class of the rules for topics, for `test_purity`."""

from typing import Any

from kspec.spec.controller.protocol import TopicSettings
from kspec.spec.controller.topics.chance import chance_of
from kspec.spec.controller.topics.placement import Rack, StripedBrokers, UsableBroker
from kspec.spec.controller.topics.producer_ids import ProducerIds
from kspec.spec.controller.topics.topic_configs import TOPIC_CONFIGS
from kspec.spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.topics.alter_configs import (
    AlterConfig,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlterOperation,
    ConfigOutcome,
    IncrementalAlterConfigsRequest,
    ReplacedResource,
)
from kspec.spec.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    MorePartitions,
    PartitionsCreated,
)
from kspec.spec.messages.topics.create_topics import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
    ReplicaAssignment,
)
from kspec.spec.messages.topics.delete_topics import DeletedTopic, DeleteTopicsRequest, DeleteTopicsResponse, TopicName
from kspec.spec.messages.topics.describe_configs import (
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
)
from kspec.spec.metadata import ConfigRecord, FeatureLevelRecord, ProducerIdsRecord, RemoveTopicRecord, TopicRecord
from kspec.spec.topics import NO_PLACE, NO_TOPICS, ConfigResource, ConfigurationImage, ResourceType, TopicImage
from kspec.spec.values import NO_TOPIC_ID, BrokerEpoch, BrokerId, Error, ProducerId

B, OK = BrokerId(1), Error.NONE
RESOURCE = ConfigResource(ResourceType.TOPIC, "t")

TOPIC_VALUES: tuple[Any, ...] = (
    AllocateProducerIdsRequest(B, BrokerEpoch(1)),
    AllocateProducerIdsResponse(OK),
    AlterConfig("a", AlterOperation.SET, "1"),
    AlterConfigsRequest(()),
    AlterConfigsResponse(()),
    AlteredResource(RESOURCE, ()),
    ConfigOutcome(RESOURCE, OK),
    ConfigRecord(RESOURCE, "a", None),
    ConfigurationImage(RESOURCE, ()),
    ConfigSynonym("a", "1", ConfigSource.DEFAULT_CONFIG),
    CreatePartitionsRequest(()),
    CreatePartitionsResponse(()),
    CreateTopicsRequest(()),
    CreateTopicsResponse(()),
    CreatedTopic("t", OK),
    DeleteTopicsRequest(()),
    DeleteTopicsResponse(()),
    DeletedTopic("t", NO_TOPIC_ID, OK),
    DescribeConfigsRequest(RESOURCE),
    DescribeConfigsResponse(RESOURCE, OK),
    DescribedConfig("a", "1", ConfigSource.DEFAULT_CONFIG, ConfigType.INT),
    FeatureLevelRecord("f", 1),
    IncrementalAlterConfigsRequest(()),
    InitProducerIdRequest(),
    InitProducerIdResponse(OK),
    MorePartitions("t", 2),
    NewTopic("t", NO_TOPIC_ID),
    PartitionsCreated("t", OK),
    ProducerIds(),
    ProducerIdsRecord(B, BrokerEpoch(1), ProducerId(1)),
    RESOURCE,
    Rack(StripedBrokers(), StripedBrokers()),
    RemoveTopicRecord(NO_TOPIC_ID),
    ReplacedResource(RESOURCE, ()),
    ReplicaAssignment(0, (B,)),
    StripedBrokers(),
    TOPIC_CONFIGS[0],
    TopicImage("t", NO_TOPIC_ID),
    TopicName("t"),
    TopicRecord("t", NO_TOPIC_ID),
    TopicSettings(),
    NO_TOPICS,
    NO_PLACE,
    UsableBroker(B, None, False),
    chance_of(1),
)
