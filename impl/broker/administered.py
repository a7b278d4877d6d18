"""The node that handles a request of an administrator: a controller, and where settings are described any node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kspec.impl.broker.calls import Effect
from kspec.impl.config.settings import SettingValues
from kspec.impl.metadata.active import ActiveController
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord
from kspec.impl.metadata.voters import KnownVoters
from kspec.spec.controller.protocol import TopicSettings
from kspec.spec.controller.rules.features import FeatureLevel, FeatureRange
from kspec.spec.controller.topics.configs import MIN_INSYNC_REPLICAS, records_of_level
from kspec.spec.metadata import MetadataRecord
from kspec.spec.values import NO_TIMESTAMP, UNKNOWN_OFFSET, Epoch, Error, Instant, Offset, ReplicaKey, TimestampMs


@dataclass(slots=True)
class MetadataObserver:
    """A node that fetches the metadata log: how far it is, when it fetched last, and when it had everything (ms since 1970).

    `leader_end`: the end of the leader's log at that fetch.

    Kafka: `LeaderState.ReplicaState`.
    """

    end_offset: int
    fetched_ms: TimestampMs
    caught_up_ms: TimestampMs
    leader_end: Offset = UNKNOWN_OFFSET


NOT_SEEN = MetadataObserver(UNKNOWN_OFFSET, NO_TIMESTAMP, NO_TIMESTAMP)
"""A voter that has not fetched."""


class Quorum(NamedTuple):
    """The quorum of controllers, as one of them knows it. Kafka: `QuorumInfo`.

    `leads`: whether that one, `node`, leads; only then it knows the rest. `end_offset`: of its log. `fetched`: who has
    fetched the log of it since it leads, voters and others.
    """

    node: ReplicaKey
    leads: bool
    epoch: Epoch
    high_watermark: Offset
    end_offset: Offset
    fetched: Mapping[ReplicaKey, MetadataObserver]
    voters: KnownVoters


class DescribedNode(Protocol):
    """A node whose settings are described, and those of topics as it knows them."""

    topic_settings: TopicSettings

    @property
    def image(self) -> ClusterImage:
        """The image of the metadata log."""

    @property
    def node_id(self) -> int:
        """The id of the node."""

    @property
    def config(self) -> SettingValues:
        """The settings of the node."""


class AdministeredNode(DescribedNode, Protocol):
    """A node that decides on topics, settings, partitions and features."""

    @property
    def deciding(self) -> ActiveController:
        """The controller of `spec` in it."""

    @property
    def supported_features(self) -> tuple[FeatureRange, ...]:
        """The features that the controller can work with."""

    @property
    def features_of_nodes(self) -> tuple[tuple[FeatureRange, ...], ...]:
        """The features that each node of the cluster can work with, the controller first."""

    def features_at_start(self) -> tuple[FeatureLevel, ...]:
        """The levels of a new cluster."""

    @property
    def kraft_version(self) -> int:
        """The level of `kraft.version`."""

    def check_upgrade(self) -> Error:
        """Whether `kraft.version` may be raised."""

    def missing_reports(self) -> str:
        """The voters without which it may not be raised, in words."""

    def upgrade_voters(self, now: Instant) -> list[Effect]:
        """Raise `kraft.version`."""

    def quorum(self) -> Quorum:
        """The quorum that the controller belongs to."""

    def change_metadata(self, records: list[LogRecord]) -> list[Effect]:
        """Write records to the metadata log, and then act on them."""

    def default_topic_settings(self) -> dict[str, str]:
        """The settings of a topic that sets none itself."""


def feature_records(node: AdministeredNode, levels: Iterable[FeatureLevel]) -> tuple[MetadataRecord, ...]:
    """The records by which features have these levels."""
    min_isr = node.default_topic_settings()[MIN_INSYNC_REPLICAS]
    return tuple(record for level in levels for record in records_of_level(node.image.spec, level, min_isr))


def first_records(node: AdministeredNode) -> list[LogRecord]:
    """The records with which a new cluster begins: `metadata.version` first.

    **Kafka:** `ActivationRecordsGenerator.recordsForEmptyLog`, which puts them into a metadata transaction; here they are
    one batch.
    """
    return node.deciding.add(feature_records(node, node.features_at_start()))
