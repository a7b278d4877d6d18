"""Answers about authentication, authorization and quotas where there are none."""

import pytest

from kspec.spec.broker.clients.absent_features import (
    check_acl_request,
    check_described_scram_user,
    check_directory_change,
    check_quota_change,
    check_quota_filter,
    check_sasl_request,
    check_scram_deletion,
    check_scram_upsertion,
    check_token_request,
)
from kspec.spec.broker.clients.leader_hints import tells_leader_to_consumer, tells_leader_to_producer
from kspec.spec.broker.clients.metadata_requests import OF_BROKERS, OF_CONTROLLERS, check_endpoint_type
from kspec.spec.broker.clients.named_partitions import (
    NO_TOPIC,
    check_deletion_from,
    check_hosted_partition,
    check_named_topic,
)
from kspec.spec.broker.clients.versions import check_forwarded
from kspec.spec.values import Error


def test_what_is_not_configured_is_refused_by_kafkas_errors() -> None:
    """34, 54, 64: as Apache Kafka 4.4.0 answers on a plain listener without an authorizer."""
    assert (check_sasl_request().value, check_acl_request().value, check_token_request().value) == (34, 54, 64)
    assert check_quota_change() == Error.INVALID_REQUEST


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ((), Error.NONE),
        ((("user", 0, True), ("client-id", 1, False)), Error.NONE),
        ((("ip", 2, False),), Error.NONE),
        ((("ip", 2, False), ("user", 2, False)), Error.INVALID_REQUEST),
        ((("user", 0, True), ("user", 1, False)), Error.INVALID_REQUEST),
        ((("", 0, True),), Error.INVALID_REQUEST),
        ((("user", 0, False),), Error.INVALID_REQUEST),
        ((("user", 1, True),), Error.INVALID_REQUEST),
        ((("user", 3, False),), Error.INVALID_REQUEST),
        ((("dog", 0, True),), Error.UNSUPPORTED_VERSION),
    ],
)
def test_quotas_are_looked_for_by_what_there_is(components: tuple[tuple[str, int, bool], ...], error: Error) -> None:
    assert check_quota_filter(components) == error


def test_nobody_has_a_scram_credential() -> None:
    assert check_described_scram_user(1) == Error.RESOURCE_NOT_FOUND
    assert check_described_scram_user(2) == Error.DUPLICATE_RESOURCE
    assert check_scram_deletion("a", 1) == Error.RESOURCE_NOT_FOUND
    assert check_scram_deletion("a", 0) == Error.UNSUPPORTED_SASL_MECHANISM
    assert check_scram_deletion("", 0) == Error.UNACCEPTABLE_CREDENTIAL
    assert check_scram_upsertion("a", 1, 4096) == Error.UNSUPPORTED_SASL_MECHANISM
    assert check_scram_upsertion("a", 9, 1) == Error.UNSUPPORTED_SASL_MECHANISM
    assert {check_scram_upsertion("a", 2, count) for count in (4095, 16385)} == {Error.UNACCEPTABLE_CREDENTIAL}
    assert check_scram_upsertion("", 1, 4096) == Error.UNACCEPTABLE_CREDENTIAL


def test_there_is_one_log_directory() -> None:
    assert check_directory_change({"/a"}, "/b", True) == Error.LOG_DIR_NOT_FOUND
    assert check_directory_change({"/a"}, "/a", False) == Error.REPLICA_NOT_AVAILABLE
    assert check_directory_change({"/a"}, "/a", True) == Error.NONE


def test_who_leads_is_told_from_the_version_on_that_has_a_field_for_it() -> None:
    wrong, fenced = Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH
    assert [tells_leader_to_producer(wrong, version) for version in (9, 10, 13)] == [False, True, True]
    assert not tells_leader_to_producer(fenced, 13)
    assert not tells_leader_to_producer(Error.NONE, 13)
    assert [tells_leader_to_consumer(wrong, version) for version in (15, 16)] == [False, True]
    assert tells_leader_to_consumer(fenced, 16)
    assert not tells_leader_to_consumer(Error.UNKNOWN_LEADER_EPOCH, 16)


def test_partitions_that_cannot_be_looked_at() -> None:
    assert check_hosted_partition(1, 0, False, offline=True) == Error.KAFKA_STORAGE_ERROR
    assert check_hosted_partition(1, 0, False, offline=False) == Error.NOT_LEADER_OR_FOLLOWER
    assert check_hosted_partition(1, 1, True, offline=False) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert check_hosted_partition(NO_TOPIC, 0, True, offline=False) == Error.UNKNOWN_TOPIC_ID
    assert check_named_topic(False, Error.NONE) == Error.INVALID_TOPIC_EXCEPTION
    assert check_named_topic(True, Error.NOT_LEADER_OR_FOLLOWER) == Error.NOT_LEADER_OR_FOLLOWER
    assert check_deletion_from(True, Error.NONE) == Error.INVALID_TOPIC_EXCEPTION
    assert check_deletion_from(True, Error.UNKNOWN_TOPIC_OR_PARTITION) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert check_deletion_from(False, Error.NONE) == Error.NONE


def test_a_listener_tells_of_its_own_kind_of_nodes() -> None:
    assert check_endpoint_type(OF_BROKERS, OF_BROKERS) == Error.NONE
    assert check_endpoint_type(OF_BROKERS, OF_CONTROLLERS) == Error.MISMATCHED_ENDPOINT_TYPE
    assert check_endpoint_type(OF_CONTROLLERS, OF_BROKERS) == Error.MISMATCHED_ENDPOINT_TYPE
    assert check_endpoint_type(OF_BROKERS, 9) == Error.UNSUPPORTED_ENDPOINT_TYPE


def test_what_an_envelope_may_hold() -> None:
    assert check_forwarded(False, True, True, True) == Error.PRINCIPAL_DESERIALIZATION_FAILURE
    assert check_forwarded(True, False, True, True) == Error.INVALID_REQUEST
    assert check_forwarded(True, True, False, True) == Error.INVALID_REQUEST
    assert check_forwarded(True, True, True, False) == Error.UNSUPPORTED_VERSION
    assert check_forwarded(True, True, True, True) == Error.NONE
