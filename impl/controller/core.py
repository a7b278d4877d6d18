"""The core of a controller: what it knows, decides and waits for. Requests and the time go in, effects come out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from kspec.impl.broker.administered import MetadataObserver, Quorum, first_records
from kspec.impl.broker.calls import AppendMetadata, DelayedOperation, Effect
from kspec.impl.broker.timers import Timers
from kspec.impl.broker.topic_settings import topic_settings
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.config.controller import ControllerConfig
from kspec.impl.controller.directories import directories_completed
from kspec.impl.controller.settings import controller_settings, partitions_with_other_min_isr
from kspec.impl.metadata.active import ActiveController
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord
from kspec.impl.wire.values import Message
from kspec.spec.controller.partitions import on_min_isr_change
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.rules.features import ELIGIBLE_LEADER_REPLICAS, FeatureLevel, FeatureRange
from kspec.spec.controller.rules.metadata_log import SnapshotId
from kspec.spec.controller.state import ControllerState, ControllerStep
from kspec.spec.controller.topics.description import topic_values
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.releases.features import features_at_start, features_supported, release_of
from kspec.spec.values import Epoch, Instant, MonotonicMs, Offset

CONCERN_SETTINGS = {"ConfigRecord", "FeatureLevelRecord", "PartitionRecord", "RemoveTopicRecord"}
"""Records after which a partition's settings may be others."""


class LedLog(Protocol):
    """The metadata log, as far as the core reads it. Kafka: `RaftClient`, `RaftLog`."""

    @property
    def epoch(self) -> Epoch:
        """The controller epoch."""

    def begin_epoch(self, node: int, now: Instant) -> Offset:
        """Say that this node leads the log in the present epoch, through to the disk; the offset of the next record."""

    @property
    def log(self) -> EpochLog:
        """Its epochs and offsets."""

    @property
    def snapshot(self) -> SnapshotId:
        """The snapshot with which it begins."""

    def batches_from(self, offset: Offset, most_bytes: int) -> bytes:
        """Whole batches from an offset on."""

    def snapshot_size(self) -> int:
        """The bytes of the snapshot."""

    def snapshot_bytes(self, position: int, most_bytes: int) -> bytes:
        """A piece of the snapshot."""


class ControllerCore:
    """The active controller. All of its state is here, and in the metadata log that it is built from."""

    def __init__(
        self, config: ControllerConfig | BrokerConfig, rules: Controller, log: LedLog, image: ClusterImage, now: Instant
    ) -> None:
        self.config = config
        self.log = log
        self.release = release_of(rules.protocol.name)
        self.deciding = ActiveController(rules, log.epoch, image, now.monotonic)
        """The controller of `spec` in it."""
        self.cluster_id = ""
        self.listener, self.host, self.port = config.listener
        self.timers: Timers[Effect] = Timers()
        self.observers: dict[int, MetadataObserver] = {}
        self.topic_settings = topic_settings(config)
        self._fetches: dict[DelayedOperation, None] = {}
        self.configure_replicas()

    # ---- what it knows

    @property
    def node_id(self) -> int:
        """The controller's id."""
        return self.config.node_id

    @property
    def image(self) -> ClusterImage:
        """The image of the metadata log."""
        return self.deciding.image

    @property
    def state(self) -> ControllerState:
        """The controller's state as the handlers of `spec` have it."""
        return self.deciding.state

    @property
    def supported_features(self) -> tuple[FeatureRange, ...]:
        """The features that this controller can work with."""
        return features_supported(self.release)

    @property
    def finalized_features(self) -> tuple[FeatureLevel, ...]:
        """The levels that are in force."""
        return tuple(FeatureLevel(name, level) for name, level in sorted(self.image.features.items()))

    def features_at_start(self) -> tuple[FeatureLevel, ...]:
        """The levels of a new cluster."""
        return features_at_start(self.release)

    @property
    def features_of_nodes(self) -> tuple[tuple[FeatureRange, ...], ...]:
        """The features that each node can work with: this controller, and each broker as it has registered."""
        return (self.supported_features, *(ranges_of(one.features) for one in self.image.registered.values()))

    def quorum(self) -> Quorum:
        """The quorum that this controller leads."""
        node, end = self.config.node_id, self.log.log.end_offset
        return Quorum(node, self.listener, self.host, self.port, self.log.epoch, end, self.observers)

    def default_topic_settings(self) -> dict[str, str]:
        """The settings of a topic that sets none itself."""
        return topic_values(self.topic_settings, self.image.spec)

    def configure_replicas(self) -> None:
        """Take the topics' settings, and the features, as they are now."""
        eligible = self.image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0
        timeout_ms = self.config.number("broker.session.timeout.ms")
        settings = controller_settings(self.image, self.default_topic_settings(), eligible, timeout_ms)
        self.deciding.controller = replace(self.deciding.controller, settings=settings, topics=self.topic_settings)

    # ---- deciding

    def lead(self, now: Instant) -> list[Effect]:
        """Lead the metadata log in a new epoch; a new cluster gets its first records.

        **Kafka:** `QuorumController.claim`, `CompleteActivationEvent`.
        """
        self.deciding.go_to(self.log.begin_epoch(self.node_id, now))
        return [] if self.finalized_features else self.change_metadata(first_records(self))

    def on_event(
        self, handler: Callable[[Controller, ControllerState, MonotonicMs], ControllerStep], now: Instant
    ) -> list[Effect]:
        """Call a handler of the controller because the time has come."""
        return self.change_metadata(self.deciding.decide_event(handler, now.monotonic))

    def change_metadata(self, records: list[LogRecord]) -> list[Effect]:
        """Write records to the metadata log, with what belongs to them, and then act on them."""
        completed = directories_completed(self.image, records)
        if self.deciding.controller.settings.eligible_leader_replicas:
            completed += self._eligible_no_more(records)
        return [AppendMetadata(tuple(completed))] if completed else []

    def _eligible_no_more(self, records: list[LogRecord]) -> list[LogRecord]:
        """Consequences of another `min.insync.replicas`.

        **Kafka:** `ConfigurationControlManager.maybeTriggerMinIsrConfigUpdate`.
        """
        partitions = partitions_with_other_min_isr(self.image, records)
        if partitions == frozenset():
            return []
        return self.deciding.decide_event(on_min_isr_change, MonotonicMs(0), partitions)

    def stored(self, records: Sequence[LogRecord], now: Instant) -> list[Effect]:
        """Records are on the disk: they count from now on, and those who wait for them are answered."""
        self.deciding.stored(records)
        if any(record.name in CONCERN_SETTINGS for record in records):
            self.configure_replicas()
        waiting = list(self._fetches)  # they leave as they are answered
        return [effect for one in waiting if not one.done for effect in one.complete(now)]

    def not_stored(self) -> None:
        """The metadata log took nothing: what was decided is forgotten."""
        self.deciding.not_stored()

    # ---- fetches that wait

    def wait(self, waiting: DelayedOperation) -> None:
        """Keep a fetch until something is written or its time is over."""
        waiting.wait_in([self._fetches])
        waiting.timer = self.timers.at(waiting.deadline, lambda now: [] if waiting.done else waiting.complete(now))

    def stop_waiting(self, waiting: DelayedOperation) -> None:
        """Forget a fetch that has been answered, or whose client has gone."""
        if waiting.timer is not None:
            self.timers.cancel(waiting.timer)
            waiting.timer = None
        waiting.leave()


def ranges_of(features: Iterable[Message]) -> tuple[FeatureRange, ...]:
    """The feature ranges that a node says that it can work with."""
    return tuple(FeatureRange(one.name, one.min_supported_version, one.max_supported_version) for one in features)
