"""The levels of the features that a new cluster of a release begins with, and those that its nodes can work with."""

from typing import NamedTuple

from kspec.spec.controller.rules.features import (
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    TRANSACTION_VERSION,
    FeatureLevel,
    FeatureRange,
)


class ReleaseFeatures(NamedTuple):
    """A release's newest `metadata.version`, the eligible leader replicas: the highest level, and that of a new cluster; and
    the highest version of transactions, with which a new cluster begins; the highest `kraft.version`.

    Kafka: `MetadataVersion`, `EligibleLeaderReplicasVersion`, `TransactionVersion`, `KRaftVersion`.
    """

    name: str
    metadata_version: int
    highest_eligible: int = 0
    eligible_at_start: int = 0
    transactions: int = 0
    kraft: int = 0


FEATURES_OF_RELEASES = (
    ReleaseFeatures("3.0", 1),
    ReleaseFeatures("3.2", 4),
    ReleaseFeatures("3.3", 7),
    ReleaseFeatures("3.4", 8),
    ReleaseFeatures("3.5", 11),
    ReleaseFeatures("3.6", 14),
    ReleaseFeatures("3.8", 20),
    ReleaseFeatures("3.9", 21, kraft=1),
    ReleaseFeatures("4.0", 25, 1, 0, 2, 1),
    ReleaseFeatures("4.1", 27, 1, 1, 2, 1),
    ReleaseFeatures("4.1.1", 27, 1, 1, 2, 1),
    ReleaseFeatures("4.3", 30, 1, 1, 2, 1),
    ReleaseFeatures("next", 33, 1, 1, 2, 1),
)
"""By the names of the releases in `spec.releases.kraft`; 33 is 4.4's newest."""

OLDEST = 7
"""The oldest `metadata.version` that 4.x works with: 3.3-IV3. **Kafka:** `MetadataVersion.MINIMUM_VERSION`."""


def features_supported(name: str) -> tuple[FeatureRange, ...]:
    """The features that a node of a release supports, of all that are stated here.

    **Kafka:** `QuorumFeatures.defaultSupportedFeatureMap`.
    """
    own = _of(name)
    version = FeatureRange(METADATA_VERSION, min(own.metadata_version, OLDEST), own.metadata_version)
    others = (
        FeatureRange(ELIGIBLE_LEADER_REPLICAS, 0, own.highest_eligible),
        FeatureRange(TRANSACTION_VERSION, 0, own.transactions),
        kraft_versions(name),
    )
    return (version, *(one for one in others if one.highest))


def kraft_versions(name: str) -> FeatureRange:
    """The levels of `kraft.version` that a node of a release works with: with 1 the voters are in the log (KIP-853).

    **Kafka:** `KRaftVersion`, since 3.9.
    """
    return FeatureRange(KRAFT_VERSION, 0, _of(name).kraft)


def features_at_start(name: str) -> tuple[FeatureLevel, ...]:
    """The levels of a new cluster, `metadata.version` first. **Kafka:** `Formatter`, `Feature.defaultLevel`."""
    own = _of(name)
    others = (
        FeatureLevel(ELIGIBLE_LEADER_REPLICAS, own.eligible_at_start),
        FeatureLevel(TRANSACTION_VERSION, own.transactions),
    )
    return (FeatureLevel(METADATA_VERSION, own.metadata_version), *(one for one in others if one.level))


def _of(name: str) -> ReleaseFeatures:
    return next(one for one in FEATURES_OF_RELEASES if one.name == name)


def release_of(protocol_name: str) -> str:
    """The release whose features a node has that follows rules of this name: also with one of them weakened."""
    return protocol_name.partition(" with ")[0]
