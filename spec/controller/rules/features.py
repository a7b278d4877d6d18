"""Features: what all nodes of a cluster must be able to do, by levels that are written into the metadata (KIP-584)."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.values import Error

METADATA_VERSION = "metadata.version"
"""Kafka: `MetadataVersion.FEATURE_NAME`."""

ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
"""Kafka: `EligibleLeaderReplicasVersion.FEATURE_NAME`."""


TRANSACTION_VERSION = "transaction.version"
"""Kafka: `TransactionVersion.FEATURE_NAME`."""


KRAFT_VERSION = "kraft.version"
"""Kafka: `KRaftVersion.FEATURE_NAME`. Its level is no record of features: the quorum has it beside its voters."""


NEVER_DOWN = (METADATA_VERSION, KRAFT_VERSION)
"""Features whose level never goes down."""


class FeatureLevel(NamedTuple):
    """The level of a feature that is in force; 0, or no level, switches it off. Kafka: `FeatureLevelRecord`."""

    name: str
    level: int


class FeatureRange(NamedTuple):
    """The levels of a feature that a node can work with. Kafka: `BrokerRegistrationRequestData.Feature`."""

    name: str
    lowest: int
    highest: int


class FeatureChange(Enum):
    """The kind of change that a request asks for. Kafka: `FeatureUpdate.UpgradeType`."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def supports(ranges: tuple[FeatureRange, ...], wanted: FeatureLevel) -> bool:
    """Whether a node can work with a level; one that does not name a feature can work without it.

    **Kafka:** `VersionRange.contains`, `QuorumFeatures.reasonNotSupported`.
    """
    known = [one for one in ranges if one.name == wanted.name] or [FeatureRange(wanted.name, 0, 0)]
    return all(one.lowest <= wanted.level <= one.highest for one in known)


def check_supported_features(finalized: tuple[FeatureLevel, ...], supported: tuple[FeatureRange, ...]) -> Error:
    """Whether a broker that registers can work with all levels that are in force. Errors: `UNSUPPORTED_VERSION`.

    **Kafka:** `ClusterControlManager.registerBroker`, `processRegistrationFeature`.
    """
    return Error.NONE if all(supports(supported, level) for level in finalized) else Error.UNSUPPORTED_VERSION


def check_introduction(
    same_cluster: bool, finalized: tuple[FeatureLevel, ...], supported: tuple[FeatureRange, ...]
) -> Error:
    """Whether a broker that registers belongs to this cluster, and can work with all levels that are in force.

    Errors: `INCONSISTENT_CLUSTER_ID`, `UNSUPPORTED_VERSION`.

    **Kafka:** `ClusterControlManager.registerBroker`, which looks at the features after it has looked for another
    incarnation.
    """
    return check_supported_features(finalized, supported) if same_cluster else Error.INCONSISTENT_CLUSTER_ID


def check_feature_change(
    finalized: tuple[FeatureLevel, ...],
    nodes: tuple[tuple[FeatureRange, ...], ...],
    wanted: FeatureLevel,
    change: FeatureChange,
) -> Error:
    """Whether a level may be changed: every node can work with it, and going down is asked for as such.

    `nodes`: what each node of the cluster can work with, the controller first. `metadata.version` never goes down, nor does
    `kraft.version`; whether that may go up, the quorum says (`spec.quorum.reconfiguration.check_upgrade`).

    Errors: `INVALID_UPDATE_VERSION`.

    **Kafka:** `FeatureControlManager.updateFeature`, `updateMetadataVersion`. **Leaves out:** dependencies between features;
    that `metadata.version` may go down where no record is lost by it.
    """
    before = next((one.level for one in finalized if one.name == wanted.name), 0)
    down = wanted.level < before
    known = any(one.name == wanted.name for one in nodes[0])
    possible = known and all(supports(ranges, wanted) for ranges in nodes)
    goes_down = wanted.name not in NEVER_DOWN and change != FeatureChange.UPGRADE
    allowed = goes_down if down else change == FeatureChange.UPGRADE
    return Error.NONE if possible and (allowed or wanted.level == before) else Error.INVALID_UPDATE_VERSION
