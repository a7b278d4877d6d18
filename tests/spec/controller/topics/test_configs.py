"""Settings. What is legal was asked of Apache Kafka 4.4's `LogConfig`; facts from `ConfigurationControlManagerTest`."""

import pytest

from kspec.spec.controller.protocol import TopicSettings
from kspec.spec.controller.rules.features import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION, FeatureLevel
from kspec.spec.controller.topics.broker_configs import check_broker_config
from kspec.spec.controller.topics.config_types import wrong_with_value
from kspec.spec.controller.topics.configs import (
    effective_number,
    handle_alter_configs,
    handle_incremental_alter_configs,
    records_of_level,
    wrong_with_topic_configs,
)
from kspec.spec.controller.topics.description import describe_topic_configs, topic_values
from kspec.spec.controller.topics.topic_configs import TOPIC_CONFIGS, topic_config
from kspec.spec.messages.topics.alter_configs import (
    AlterConfig,
    AlterConfigsRequest,
    AlteredResource,
    AlterOperation,
    IncrementalAlterConfigsRequest,
    ReplacedResource,
)
from kspec.spec.messages.topics.describe_configs import ConfigSource, ConfigSynonym, DescribeConfigsRequest
from kspec.spec.metadata import EMPTY_IMAGE, ConfigRecord, FeatureLevelRecord, MetadataImage, replay, replay_all
from kspec.spec.topics import ConfigResource, ResourceType, configs_of
from kspec.spec.values import Error
from tests.spec.controller.topics.places import SETTINGS, cluster, decided, of_broker, of_topic, with_topic

SET, DELETE, APPEND, SUBTRACT = AlterOperation


@pytest.mark.parametrize(
    ("name", "value", "legal"),
    [
        ("segment.bytes", "1", False),
        ("segment.bytes", "1048576", True),
        ("segment.bytes", "abc", False),
        ("segment.bytes", "", False),
        ("segment.bytes", "99999999999", False),
        ("retention.ms", "-5", False),
        ("retention.ms", "-1", True),
        ("retention.bytes", "-3", True),
        ("cleanup.policy", "foo", False),
        ("cleanup.policy", "", True),
        ("cleanup.policy", "delete, compact", True),
        ("cleanup.policy", "delete,delete", True),
        ("compression.type", "foo", False),
        ("compression.type", "zstd", True),
        ("preallocate", "maybe", False),
        ("preallocate", "TRUE", True),
        ("min.cleanable.dirty.ratio", "2", False),
        ("min.cleanable.dirty.ratio", "x", False),
        ("min.cleanable.dirty.ratio", "1e-1", True),
        ("min.cleanable.dirty.ratio", "1e", False),
        ("min.cleanable.dirty.ratio", ".5", True),
        ("compression.gzip.level", "0", False),
        ("compression.gzip.level", "-1", True),
        ("compression.zstd.level", "100", False),
        ("leader.replication.throttled.replicas", "x", False),
        ("leader.replication.throttled.replicas", "1:2,*", False),
        ("leader.replication.throttled.replicas", "*", True),
        ("leader.replication.throttled.replicas", "1:2,3:4", True),
        ("nope", "1", False),
        ("flush.ms", " 5 ", True),
        ("flush.ms", "-+5", False),
        ("max.message.bytes", "+5", True),
        ("message.timestamp.type", "x", False),
        ("min.insync.replicas", "0", False),
        ("max.compaction.lag.ms", "0", False),
    ],
)
def test_what_a_topic_may_set(name: str, value: str, legal: bool) -> None:
    assert (wrong_with_topic_configs(SETTINGS, ((name, value),)) is None) == legal


def test_the_defaults_are_legal() -> None:
    for key in TOPIC_CONFIGS:
        assert wrong_with_value(key, key.default) is None, key.name
    assert [key.name for key in TOPIC_CONFIGS] == sorted(key.name for key in TOPIC_CONFIGS)


def test_lags_fit_each_other_and_the_brokers() -> None:
    assert wrong_with_topic_configs(SETTINGS, (("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "4"))) is not None
    assert wrong_with_topic_configs(SETTINGS, (("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "5"))) is None
    settings = TopicSettings(node=(("log.cleaner.max.compaction.lag.ms", "4"),))
    assert effective_number(settings, (), "max.compaction.lag.ms") == 4
    assert wrong_with_topic_configs(settings, (("min.compaction.lag.ms", "5"),)) is not None


def test_a_value_has_a_limit() -> None:
    long = ",".join(["1:2"] * 8192)
    assert wrong_with_topic_configs(SETTINGS, (("leader.replication.throttled.replicas", long),)) is None
    assert wrong_with_topic_configs(SETTINGS, (("leader.replication.throttled.replicas", f"{long},1:2"),)) is not None


# ---- IncrementalAlterConfigs


def alter(
    image: MetadataImage, resource: ConfigResource, *changes: AlterConfig, elr: bool = False
) -> tuple[MetadataImage, Error]:
    request = IncrementalAlterConfigsRequest((AlteredResource(resource, changes),))
    decision = decided(handle_incremental_alter_configs, image, request, elr=elr)
    return decision.image, decision.answer.resources[0].error


def test_a_setting_is_set_changed_and_taken_away() -> None:
    image, error = alter(with_topic(), of_topic(), AlterConfig("retention.ms", SET, "5"), AlterConfig("flush.ms", SET, "1"))
    assert (error, configs_of(image.configs, of_topic())) == (Error.NONE, (("flush.ms", "1"), ("retention.ms", "5")))
    image, _ = alter(image, of_topic(), AlterConfig("retention.ms", SET, "6"))
    assert configs_of(image.configs, of_topic()) == (("flush.ms", "1"), ("retention.ms", "6"))
    image, _ = alter(image, of_topic(), AlterConfig("retention.ms", DELETE, None))
    assert configs_of(image.configs, of_topic()) == (("flush.ms", "1"),)


def test_a_setting_that_stays_the_same_is_not_recorded() -> None:
    image, _ = alter(with_topic(), of_topic(), AlterConfig("flush.ms", SET, "1"))
    request = IncrementalAlterConfigsRequest((AlteredResource(of_topic(), (AlterConfig("flush.ms", SET, "1"),)),))
    assert decided(handle_incremental_alter_configs, image, request).records == ()
    request = IncrementalAlterConfigsRequest((AlteredResource(of_broker(), (AlterConfig("x", DELETE, None),)),))
    assert len(decided(handle_incremental_alter_configs, image, request).records) == 1


def test_lists_grow_and_shrink() -> None:
    image, error = alter(with_topic(), of_topic(), AlterConfig("cleanup.policy", APPEND, "compact"))
    assert (error, configs_of(image.configs, of_topic())) == (Error.NONE, (("cleanup.policy", "delete,compact"),))
    image, _ = alter(image, of_topic(), AlterConfig("cleanup.policy", SUBTRACT, "delete"))
    assert configs_of(image.configs, of_topic()) == (("cleanup.policy", "compact"),)
    image, _ = alter(image, of_topic(), AlterConfig("cleanup.policy", APPEND, "compact"))
    assert configs_of(image.configs, of_topic()) == (("cleanup.policy", "compact"),)


@pytest.mark.parametrize(
    ("resource", "changes", "error"),
    [
        (of_topic(), [AlterConfig("flush.ms", APPEND, "1")], Error.INVALID_CONFIG),
        (of_broker(), [AlterConfig("log.dirs", SUBTRACT, "1")], Error.INVALID_CONFIG),
        (of_topic(), [AlterConfig("flush.ms", SET, "x")], Error.INVALID_CONFIG),
        (of_topic(), [AlterConfig("flush.ms", SET, None)], Error.INVALID_REQUEST),
        (of_topic(), [AlterConfig("flush.ms", SET, "1")] * 2, Error.INVALID_REQUEST),
        (of_topic(""), [], Error.INVALID_REQUEST),
        (of_topic("bad name"), [], Error.INVALID_TOPIC_EXCEPTION),
        (of_topic("nowhere"), [], Error.UNKNOWN_TOPIC_OR_PARTITION),
        (of_topic("nowhere"), [AlterConfig("nonsense", SET, "1")], Error.INVALID_CONFIG),
        (of_broker(), [AlterConfig("log.cleanup.policy", APPEND, "compact")], Error.NONE),
        (of_broker("x"), [], Error.INVALID_REQUEST),
        (of_broker("9"), [], Error.BROKER_ID_NOT_REGISTERED),
        (of_broker("1"), [AlterConfig("log.cleaner.threads", SET, "2")], Error.NONE),
        (of_broker(), [AlterConfig("log.cleaner.threads", SET, "2")], Error.NONE),
        (ConfigResource(ResourceType.UNKNOWN, "x"), [], Error.INVALID_REQUEST),
    ],
)
def test_what_may_be_changed(resource: ConfigResource, changes: list[AlterConfig], error: Error) -> None:
    before = with_topic()
    after, found = alter(before, resource, *changes)
    assert found == error
    assert (after != before) == bool(error == Error.NONE and changes)


def test_a_resource_twice_or_only_to_look_changes_nothing() -> None:
    one = AlteredResource(of_topic(), (AlterConfig("flush.ms", SET, "1"),))
    decision = decided(handle_incremental_alter_configs, with_topic(), IncrementalAlterConfigsRequest((one, one)))
    assert (decision.records, [out.error for out in decision.answer.resources]) == ((), [Error.INVALID_REQUEST] * 2)
    decision = decided(
        handle_incremental_alter_configs, with_topic(), IncrementalAlterConfigsRequest((one,), validate_only=True)
    )
    assert (decision.records, [out.error for out in decision.answer.resources]) == ((), [Error.NONE])


def test_with_eligible_leader_replicas_the_cluster_has_one_minimum() -> None:
    name = "min.insync.replicas"
    for resource, change, error in (
        (of_broker("1"), AlterConfig(name, SET, "2"), Error.INVALID_CONFIG),
        (of_broker(), AlterConfig(name, DELETE, None), Error.INVALID_CONFIG),
        (of_broker(), AlterConfig(name, SET, "2"), Error.NONE),
        (of_topic(), AlterConfig(name, SET, "2"), Error.NONE),
    ):
        assert alter(with_topic(), resource, change, elr=True)[1] == error


# ---- AlterConfigs


def test_the_older_api_takes_away_what_it_does_not_name() -> None:
    image = replay(with_topic(), ConfigRecord(of_topic(), "flush.ms", "1"))
    request = AlterConfigsRequest((ReplacedResource(of_topic(), (("retention.ms", "5"),)),))
    decision = decided(handle_alter_configs, image, request)
    assert configs_of(decision.image.configs, of_topic()) == (("retention.ms", "5"),)
    only_looking = AlterConfigsRequest(request.resources, validate_only=True)
    assert decided(handle_alter_configs, image, only_looking).records == ()
    twice = AlterConfigsRequest(request.resources * 2)
    assert decided(handle_alter_configs, image, twice).answer.resources[0].error == Error.INVALID_REQUEST


# ---- settings of brokers


def test_a_running_broker_takes_what_topics_have_of_it_and_throttles() -> None:
    """As `kafka-configs --describe` of Apache Kafka 4.4.0 says by `read_only`."""
    may = ("log.retention.ms", "log.roll.ms", "log.segment.bytes", "min.insync.replicas", "message.max.bytes")
    may_not = ("log.retention.hours", "log.retention.minutes", "log.roll.hours", "node.id", "num.partitions", "no.such")
    assert [check_broker_config(name) for name in may] == [Error.NONE] * len(may)
    assert [check_broker_config(name) for name in may_not] == [Error.INVALID_REQUEST] * len(may_not)
    assert check_broker_config("leader.replication.throttled.rate") == Error.NONE


# ---- DescribeConfigs

NODE = TopicSettings(
    node=(("log.retention.hours", "2"), ("log.segment.bytes", "2097152")),
    node_defaults=(("log.segment.bytes", "1073741824"), ("log.retention.hours", "168"), ("log.cleanup.policy", "delete")),
    node_id=1,
)


def test_all_settings_of_a_topic_are_described() -> None:
    answer = describe_topic_configs(NODE, with_topic(), DescribeConfigsRequest(of_topic()))
    assert [config.name for config in answer.configs] == [key.name for key in TOPIC_CONFIGS]
    assert all(config.synonyms == () and not config.read_only for config in answer.configs)
    assert answer.error == Error.NONE


def test_where_a_setting_comes_from() -> None:
    image = replay_all(
        with_topic(),
        (
            ConfigRecord(of_topic(), "segment.bytes", "1048576"),
            ConfigRecord(of_broker("1"), "log.segment.bytes", "3145728"),
            ConfigRecord(of_broker(), "log.segment.bytes", "4194304"),
        ),
    )
    (config,) = describe_topic_configs(NODE, image, DescribeConfigsRequest(of_topic(), ("segment.bytes",), True)).configs
    assert (config.value, config.source) == ("1048576", ConfigSource.TOPIC_CONFIG)
    assert config.synonyms == (
        ConfigSynonym("segment.bytes", "1048576", ConfigSource.TOPIC_CONFIG),
        ConfigSynonym("log.segment.bytes", "3145728", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "4194304", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "2097152", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG),
    )
    image = replay(image, ConfigRecord(of_topic(), "segment.bytes", None))
    (config,) = describe_topic_configs(NODE, image, DescribeConfigsRequest(of_topic(), ("segment.bytes",))).configs
    assert (config.value, config.source, config.synonyms) == ("3145728", ConfigSource.DYNAMIC_BROKER_CONFIG, ())


def test_a_setting_in_another_unit_calls_itself_a_default() -> None:
    request = DescribeConfigsRequest(of_topic(), ("retention.ms", "preallocate", "remote.storage.enable"), True)
    configs = describe_topic_configs(NODE, with_topic(), request).configs
    assert [(one.name, one.value, one.source, one.synonyms) for one in configs] == [
        ("preallocate", "false", ConfigSource.DEFAULT_CONFIG, ()),
        ("remote.storage.enable", "false", ConfigSource.DEFAULT_CONFIG, ()),
        ("retention.ms", "7200000", ConfigSource.DEFAULT_CONFIG, ()),
    ]


def test_only_topics_that_exist_are_described() -> None:
    for name, error in (("nowhere", Error.UNKNOWN_TOPIC_OR_PARTITION), ("bad name", Error.INVALID_TOPIC_EXCEPTION)):
        assert describe_topic_configs(NODE, cluster(), DescribeConfigsRequest(of_topic(name))).error == error


def test_the_value_that_holds_for_a_topic() -> None:
    key = topic_config("retention.ms")
    assert key is not None
    assert topic_values(NODE, cluster())[key.name] == "7200000"
    assert topic_values(SETTINGS, cluster()) == {one.name: one.default for one in TOPIC_CONFIGS}


def test_all_values_are_those_that_are_described() -> None:
    described = describe_topic_configs(NODE, with_topic(), DescribeConfigsRequest(of_topic())).configs
    assert {one.name: one.value for one in described} == topic_values(NODE, with_topic())


def test_with_eligible_leader_replicas_the_cluster_has_a_min_isr_of_its_own() -> None:
    on, off = FeatureLevel(ELIGIBLE_LEADER_REPLICAS, 1), FeatureLevel(ELIGIBLE_LEADER_REPLICAS, 0)
    min_isr = ConfigRecord(ConfigResource(ResourceType.BROKER, ""), "min.insync.replicas", "2")
    assert records_of_level(EMPTY_IMAGE, on, "2") == (FeatureLevelRecord(*on), min_isr)
    assert records_of_level(EMPTY_IMAGE, off, "2") == (FeatureLevelRecord(*off),)
    assert records_of_level(replay(EMPTY_IMAGE, min_isr), on, "1") == (FeatureLevelRecord(*on),)
    version = FeatureLevel(METADATA_VERSION, 29)
    assert records_of_level(EMPTY_IMAGE, version, "2") == (FeatureLevelRecord(*version),)
