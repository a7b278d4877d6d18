"""The core of a controller: what it knows, decides and waits for. Requests and the time go in, effects come out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from impl.broker.calls import AppendMetadata, Effect
from impl.broker.cluster import Cluster
from impl.broker.replica import Waiting
from impl.broker.timers import Timers, nothing
from impl.broker.topic_settings import topic_settings
from impl.config.controller import CONTROLLER_SETTINGS, ControllerConfig
from impl.controller.directories import directories_completed
from impl.controller.settings import controller_settings, partitions_with_other_min_isr
from impl.metadata.image import ClusterImage
from impl.metadata.records import LogRecord
from spec.controller.partitions import on_min_isr_change
from spec.controller.protocol import Controller
from spec.controller.rules.features import ELIGIBLE_LEADER_REPLICAS, FeatureLevel, FeatureRange
from spec.controller.rules.metadata_log import SnapshotId
from spec.controller.state import ControllerState, activate
from spec.controller.topics.description import topic_values
from spec.log.epoch_log import EpochLog
from spec.releases.features import features_at_start, features_supported
from spec.values import Epoch, Offset, TopicId

CONCERN_SETTINGS = {"ConfigRecord", "FeatureLevelRecord", "PartitionRecord", "RemoveTopicRecord"}
"""Records after which a partition's settings may be others."""


class LedLog(Protocol):
    """The metadata log, as far as the core reads it. Kafka: `RaftClient`, `RaftLog`."""

    @property
    def epoch(self) -> Epoch:
        """The controller epoch."""

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


@dataclass(slots=True)
class Observer:
    """Who fetches the metadata log: how far it is, when it fetched last, and when it had everything (ms).

    Kafka: `LeaderState.ReplicaState`.
    """

    end_offset: int
    fetched_ms: int
    caught_up_ms: int


class ControllerCore:
    """The active controller. All of its state is here, and in the metadata log that it is built from."""

    def __init__(self, config: ControllerConfig, rules: Controller, log: LedLog, image: ClusterImage, now: int) -> None:
        self.config = config
        self.log = log
        self.release = rules.protocol.name.partition(" with ")[0]
        self.cluster = Cluster(rules, log.epoch, image, config.node_id, now)
        self.cluster.state = activate(log.epoch, image.spec, now)
        self.cluster_id = ""
        self.host, self.port = config.listener.host, config.listener.port
        self.timers: Timers[Effect] = Timers()
        self.topic_deleted: list[Callable[[str, TopicId, int], list[Effect]]] = []
        self.observers: dict[int, Observer] = {}
        self.topic_settings = topic_settings(config, CONTROLLER_SETTINGS, config.node_id)
        self._fetches: dict[int, Waiting] = {}
        self.configure_replicas()

    # ---- what it knows

    @property
    def deciding(self) -> Cluster:
        """The controller in this process."""
        return self.cluster

    @property
    def image(self) -> ClusterImage:
        """What the metadata log says."""
        return self.cluster.image

    @property
    def state(self) -> ControllerState:
        """The controller's state as the handlers of `spec` have it."""
        return self.cluster.state

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

    def default_topic_settings(self) -> dict[str, str]:
        """The settings of a topic that sets none itself."""
        return topic_values(self.topic_settings, self.cluster.view)

    def configure_replicas(self) -> None:
        """Take the topics' settings, and the features, as they are now."""
        eligible = self.image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0
        self.topic_settings = replace(self.topic_settings, eligible_leader_replicas=eligible)
        timeout_ms = self.config["broker.session.timeout.ms"]
        settings = controller_settings(self.image, self.default_topic_settings(), eligible, timeout_ms)
        self.cluster.controller = replace(self.cluster.controller, settings=settings)

    # ---- deciding

    def decide(self, handler: Callable[..., Any], request: Any, now: int) -> tuple[Any, list[LogRecord]]:
        """Call a handler of the controller: its answer, and the records that it wants in the metadata log."""
        return self.cluster.decide(handler, request, now)

    def decide_topics(self, handler: Callable[..., Any], request: Any, now: int) -> tuple[Any, list[LogRecord]]:
        """Call a handler of the controller for topics."""
        return self.cluster.decide_topics(handler, self.topic_settings, request, now)

    def on_event(self, handler: Callable[..., Any], now: int) -> list[Effect]:
        """Call a handler of the controller because the time has come."""
        return self.change_metadata(self.cluster.decide_event(handler, now)[1])

    def change_metadata(self, records: list[LogRecord]) -> list[Effect]:
        """Write records to the metadata log, with what belongs to them, and then act on them."""
        completed = directories_completed(self.image, records)
        if self.topic_settings.eligible_leader_replicas:
            completed += self._eligible_no_more(records)
        return [AppendMetadata(tuple(completed))] if completed else []

    def _eligible_no_more(self, records: list[LogRecord]) -> list[LogRecord]:
        """What follows from another `min.insync.replicas`.

        **Kafka:** `ConfigurationControlManager.maybeTriggerMinIsrConfigUpdate`.
        """
        partitions = partitions_with_other_min_isr(self.image, records)
        if partitions == frozenset():
            return []
        return self.cluster.decide_event(on_min_isr_change, 0, partitions)[1]

    def stored(self, records: Iterable[LogRecord], now: int) -> list[Effect]:
        """Records are on the disk: they count from now on, and those who wait for them are answered."""
        listed = list(records)
        self.cluster.stored(listed)
        if any(record.name in CONCERN_SETTINGS for record in listed):
            self.configure_replicas()
        waiting, self._fetches = self._fetches, {}
        return [effect for one in waiting.values() if not one.done for effect in one.complete(now)]

    def not_stored(self) -> None:
        """The metadata log took nothing: what was decided is forgotten."""
        self.cluster.not_stored()

    # ---- fetches that wait

    def wait(self, waiting: Waiting) -> None:
        """Keep a fetch until something is written or its time is over."""
        self._fetches[id(waiting)] = waiting
        waiting.timer = self.timers.at(waiting.deadline, lambda now: [] if waiting.done else waiting.complete(now))

    def stop_waiting(self, waiting: Waiting) -> None:
        """Forget a fetch that has been answered, or whose client has gone."""
        waiting.done = True
        if waiting.timer is not None:
            self.timers.cancel(waiting.timer)
            waiting.timer = None
        self._fetches.pop(id(waiting), None)
        waiting.complete = nothing  # no circle is left, so its memory is free at once
