"""Features: which levels a broker must be able to work with, and when they change."""

import pytest

from kspec.spec.controller.rules.features import (
    ELIGIBLE_LEADER_REPLICAS,
    METADATA_VERSION,
    FeatureChange,
    FeatureLevel,
    FeatureRange,
    check_feature_change,
    check_introduction,
    check_supported_features,
)
from kspec.spec.releases.features import FEATURES_OF_RELEASES, features_at_start, features_supported, kraft_versions
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.values import Error

IN_FORCE = features_at_start("4.1")
NODE = features_supported("next")


def test_a_broker_supports_what_is_in_force() -> None:
    assert check_supported_features(IN_FORCE, NODE) == Error.NONE
    assert check_supported_features(IN_FORCE, features_supported("4.0")) == Error.UNSUPPORTED_VERSION
    assert check_supported_features(IN_FORCE, NODE[:1]) == Error.UNSUPPORTED_VERSION
    assert check_supported_features((*IN_FORCE[:1], FeatureLevel(ELIGIBLE_LEADER_REPLICAS, 0)), NODE[:1]) == Error.NONE
    assert check_supported_features((), ()) == Error.NONE


def test_a_broker_belongs_to_its_cluster() -> None:
    assert check_introduction(True, IN_FORCE, NODE) == Error.NONE
    assert check_introduction(False, IN_FORCE, NODE) == Error.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize(
    ("name", "level", "change", "error"),
    [
        (METADATA_VERSION, 30, FeatureChange.UPGRADE, Error.NONE),
        (METADATA_VERSION, 27, FeatureChange.UPGRADE, Error.NONE),
        (METADATA_VERSION, 34, FeatureChange.UPGRADE, Error.INVALID_UPDATE_VERSION),
        (METADATA_VERSION, 26, FeatureChange.SAFE_DOWNGRADE, Error.INVALID_UPDATE_VERSION),
        (METADATA_VERSION, 30, FeatureChange.SAFE_DOWNGRADE, Error.INVALID_UPDATE_VERSION),
        (ELIGIBLE_LEADER_REPLICAS, 0, FeatureChange.SAFE_DOWNGRADE, Error.NONE),
        (ELIGIBLE_LEADER_REPLICAS, 0, FeatureChange.UPGRADE, Error.INVALID_UPDATE_VERSION),
        (ELIGIBLE_LEADER_REPLICAS, 1, FeatureChange.UPGRADE, Error.NONE),
        (ELIGIBLE_LEADER_REPLICAS, 2, FeatureChange.UPGRADE, Error.INVALID_UPDATE_VERSION),
        ("no.such.feature", 0, FeatureChange.UPGRADE, Error.INVALID_UPDATE_VERSION),
    ],
)
def test_changes(name: str, level: int, change: FeatureChange, error: Error) -> None:
    assert check_feature_change(IN_FORCE, (NODE,), FeatureLevel(name, level), change) == error


def test_every_node_must_be_able() -> None:
    older = (FeatureRange(METADATA_VERSION, 7, 29), *NODE[1:])
    wanted = FeatureLevel(METADATA_VERSION, 30)
    assert check_feature_change(IN_FORCE, (NODE, older), wanted, FeatureChange.UPGRADE) == Error.INVALID_UPDATE_VERSION


def test_every_release_has_features() -> None:
    assert {release.name for release in KRAFT_RELEASES} == {one.name for one in FEATURES_OF_RELEASES}
    for release in (one.name for one in FEATURES_OF_RELEASES):
        assert check_supported_features(features_at_start(release), features_supported(release)) == Error.NONE


def test_voters_are_in_the_log_since_3_9() -> None:
    assert [kraft_versions(name).highest for name in ("3.8", "3.9", "next")] == [0, 1, 1]
