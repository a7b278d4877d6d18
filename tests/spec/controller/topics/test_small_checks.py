"""Checks of what administrators ask, each at the value where its answer changes."""

import pytest

from kspec.spec.controller.topics.broker_configs import (
    check_altered_broker,
    check_altered_value,
    check_described_resource,
    check_listed_kinds,
    check_operations,
    listed_kinds,
)
from kspec.spec.controller.topics.configs import handle_alter_configs, handle_incremental_alter_configs
from kspec.spec.controller.topics.deletion import check_deletion_enabled
from kspec.spec.controller.topics.description import broker_synonyms
from kspec.spec.controller.topics.names import CLUSTER_METADATA, check_metadata_partition
from kspec.spec.coordinator.administration import (
    GROUP_KEY,
    TRANSACTION_KEY,
    check_coordinated,
    check_coordinator_key,
    check_listable,
)
from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.messages.topics.alter_configs import (
    AlterConfig,
    AlterConfigsRequest,
    AlteredResource,
    AlterOperation,
    IncrementalAlterConfigsRequest,
    ReplacedResource,
)
from kspec.spec.messages.topics.describe_configs import ConfigSource
from kspec.spec.quorum.refusals import check_quorum_request
from kspec.spec.quorum.rules.snapshots import check_snapshot, check_snapshot_position
from kspec.spec.releases.features import release_of
from kspec.spec.topics import ConfigResource, ResourceType
from kspec.spec.values import Epoch, Error, Offset
from tests.spec.controller.topics.places import SETTINGS, decided, of_topic, with_topic

BROKER, METRICS = ResourceType.BROKER, ResourceType.CLIENT_METRICS
SNAPSHOT = SnapshotId(Offset(5), Epoch(2))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (check_altered_broker("", {"1"}), Error.NONE),
        (check_altered_broker("1", {"1"}), Error.NONE),
        (check_altered_broker("2", {"1"}), Error.INVALID_REQUEST),
        (check_altered_value(True), Error.NONE),
        (check_altered_value(False), Error.INVALID_REQUEST),
        (check_operations((0, 1), {0, 1, 2, 3}), Error.NONE),
        (check_operations((0, 4), {0, 1, 2, 3}), Error.INVALID_REQUEST),
        (check_described_resource(ConfigResource(BROKER, "1"), "1"), Error.NONE),
        (check_described_resource(ConfigResource(BROKER, ""), "1"), Error.NONE),
        (check_described_resource(ConfigResource(BROKER, "2"), "1"), Error.INVALID_REQUEST),
        (check_described_resource(ConfigResource(ResourceType.BROKER_LOGGER, ""), "1"), Error.INVALID_REQUEST),
        (check_described_resource(ConfigResource(ResourceType.GROUP, "g"), "1"), Error.NONE),
        (check_described_resource(ConfigResource(ResourceType.GROUP, ""), "1"), Error.INVALID_REQUEST),
        (check_listed_kinds((METRICS,), 0), Error.NONE),
        (check_listed_kinds((BROKER,), 0), Error.UNSUPPORTED_VERSION),
        (check_listed_kinds((BROKER,), 1), Error.NONE),
        (check_deletion_enabled(True, 0), Error.NONE),
        (check_deletion_enabled(False, 2), Error.INVALID_REQUEST),
        (check_deletion_enabled(False, 3), Error.TOPIC_DELETION_DISABLED),
        (check_metadata_partition(CLUSTER_METADATA, 0), Error.NONE),
        (check_metadata_partition(CLUSTER_METADATA, 1), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (check_metadata_partition("t", 0), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (check_quorum_request(False, True), Error.INCONSISTENT_CLUSTER_ID),
        (check_quorum_request(True, False), Error.INVALID_REQUEST),
        (check_quorum_request(True, True), Error.NONE),
        (check_snapshot(SNAPSHOT, SNAPSHOT), Error.NONE),
        (check_snapshot(SNAPSHOT, SNAPSHOT._replace(end_offset=Offset(4))), Error.SNAPSHOT_NOT_FOUND),
        (check_snapshot_position(-1, 10), Error.POSITION_OUT_OF_RANGE),
        (check_snapshot_position(0, 10), Error.NONE),
        (check_snapshot_position(10, 10), Error.POSITION_OUT_OF_RANGE),
        (check_coordinator_key(GROUP_KEY), Error.NONE),
        (check_coordinator_key(TRANSACTION_KEY), Error.NONE),
        (check_coordinator_key(2), Error.INVALID_REQUEST),
        (check_listable(is_loading=False), Error.NONE),
        (check_listable(is_loading=True), Error.COORDINATOR_LOAD_IN_PROGRESS),
        (check_coordinated(Error.NONE, is_loading=False), Error.NOT_COORDINATOR),
        (check_coordinated(Error.NONE, is_loading=True), Error.COORDINATOR_LOAD_IN_PROGRESS),
        (check_coordinated(Error.INVALID_GROUP_ID, is_loading=True), Error.INVALID_GROUP_ID),
    ],
)
def test_an_answer_is_the_error_that_kafka_gives(answer: Error, error: Error) -> None:
    assert answer == error


def test_kinds_of_resources_that_are_listed() -> None:
    assert listed_kinds((), 0) == {METRICS}
    assert len(listed_kinds((), 1)) == 5
    assert listed_kinds((BROKER,), 1) == {BROKER}


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (ConfigResource(ResourceType.BROKER_LOGGER, str(SETTINGS.node_id)), Error.INVALID_CONFIG),
        (ConfigResource(ResourceType.BROKER_LOGGER, "nobody"), Error.INVALID_REQUEST),
        (ConfigResource(ResourceType.GROUP, "g"), Error.INVALID_CONFIG),
        (ConfigResource(ResourceType.GROUP, ""), Error.INVALID_REQUEST),
        (ConfigResource(METRICS, "m"), Error.INVALID_REQUEST),
    ],
)
def test_what_has_no_settings_is_refused_as_kafka_does(resource: ConfigResource, error: Error) -> None:
    change = AlterConfig("x", AlterOperation.SET, "1")
    request = IncrementalAlterConfigsRequest((AlteredResource(resource, (change,)),))
    decision = decided(handle_incremental_alter_configs, with_topic(), request)
    assert [one.error for one in decision.answer.resources] == [error]
    assert decision.records == ()


def test_a_setting_twice_in_a_request_that_replaces_all_is_refused() -> None:
    request = AlterConfigsRequest((ReplacedResource(of_topic(), (("retention.ms", "5"), ("retention.ms", "6"))),))
    decision = decided(handle_alter_configs, with_topic(), request)
    assert [one.error for one in decision.answer.resources] == [Error.INVALID_REQUEST]


def test_synonyms_of_a_brokers_setting_begin_with_the_first_by_its_own_name() -> None:
    own, default = {"log.retention.hours": "1", "log.retention.minutes": "2"}, {"log.retention.hours": "168"}
    layers = ((own, ConfigSource.STATIC_BROKER_CONFIG), (default, ConfigSource.DEFAULT_CONFIG))
    told = [(one.name, one.value) for one in broker_synonyms("log.retention.hours", layers)]
    assert told == [("log.retention.hours", "1"), ("log.retention.hours", "168")]
    assert [one.name for one in broker_synonyms("log.retention.minutes", layers)] == [
        "log.retention.minutes",
        "log.retention.hours",
        "log.retention.hours",
    ]
    assert broker_synonyms("log.retention.ms", layers) == ()


def test_the_release_of_rules_of_which_one_is_weakened() -> None:
    assert release_of("4.4 with min-isr-of-one") == release_of("4.4") == "4.4"
