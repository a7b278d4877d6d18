"""The core of a controller: what it knows, decides and waits for. Requests and the time go in, effects come out."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from kspec.impl.broker.administered import MetadataObserver, Quorum, first_records
from kspec.impl.broker.calls import AppendMetadata, DelayedOperation, Effect, Respond, Then
from kspec.impl.broker.timers import Timers
from kspec.impl.broker.topic_settings import topic_settings
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.config.controller import ControllerConfig
from kspec.impl.config.voters import Place
from kspec.impl.controller.directories import directories_completed
from kspec.impl.controller.quorum.voting import MetadataVoter
from kspec.impl.controller.settings import controller_settings, partitions_with_other_min_isr
from kspec.impl.metadata.active import ActiveController
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.log import MetadataLog, batch_of
from kspec.impl.metadata.records import LogRecord
from kspec.impl.metadata.voters import Endpoint
from kspec.impl.wire.values import Message
from kspec.spec.controller.partitions import on_min_isr_change
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.rules.features import ELIGIBLE_LEADER_REPLICAS, KRAFT_VERSION, FeatureLevel, FeatureRange
from kspec.spec.controller.state import ControllerState, ControllerStep
from kspec.spec.controller.topics.description import topic_values
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.reconfiguration import check_upgrade
from kspec.spec.quorum.replica import QuorumServer, QuorumSettings, voters_of
from kspec.spec.quorum.rules.replication import may_be_answered
from kspec.spec.quorum.rules.voters import ids_of
from kspec.spec.releases.features import features_at_start, features_supported, release_of
from kspec.spec.releases.names import quorum_of
from kspec.spec.values import NO_DIRECTORY, BrokerId, Error, Instant, MonotonicMs, Offset, ReplicaKey

LOG = logging.getLogger("kspec.controller")

CONCERN_SETTINGS = {"ConfigRecord", "FeatureLevelRecord", "PartitionRecord", "RemoveTopicRecord"}
"""Records after which a partition's settings may be others."""


class HeldAnswer(NamedTuple):
    """An answer that waits until the log is committed up to an offset."""

    offset: Offset
    answer: Respond


class ControllerCore:
    """A controller: a voter of the metadata log, and while it is active, the one who decides.

    All of its state is here, and in the metadata log that it is built from. `quorum`: its rules as a voter, if they are not
    those of its release.
    """

    def __init__(
        self,
        config: ControllerConfig | BrokerConfig,
        rules: Controller,
        log: MetadataLog,
        random: Random | None = None,
        quorum: QuorumProtocol | None = None,
    ) -> None:
        self.config = config
        self.log = log
        self.release = release_of(rules.protocol.name)
        self.deciding = ActiveController(rules, log.restored())
        """The controller of `spec` in it."""
        settings = QuorumSettings(
            config.number("controller.quorum.election.timeout.ms"),
            config.number("controller.quorum.fetch.timeout.ms"),
            config.number("controller.quorum.election.backoff.max.ms"),
        )
        told = config.advertised if isinstance(config, ControllerConfig) else config.listener
        self.listener, self.host, self.port = told
        configured = {BrokerId(node): Endpoint(self.listener, *place) for node, place in config.places.items()}
        self._bootstrap: Mapping[int, Place] = config.bootstrap
        bootstrap = tuple(map(BrokerId, self._bootstrap))
        own, joins = BrokerId(config.node_id), config.flag("controller.quorum.auto.join.enable")
        of_voter = quorum or quorum_of(self.release)
        server = QuorumServer(of_voter, settings, own, bootstrap=bootstrap, joins=joins)
        self.voter = MetadataVoter(server, configured, log, self, random or Random())
        self.voter.request_timeout_ms = config.number("controller.quorum.request.timeout.ms")
        self.voter.retry_ms = config.number("controller.quorum.retry.backoff.ms")
        self.use_timers(Timers())
        self.observers: dict[ReplicaKey, MetadataObserver] = {}
        self.topic_settings = topic_settings(config)
        self.heard_ms: MonotonicMs | None = None
        """The time at which brokers count as heard from when this controller is active for the first time; none: that."""
        self.after_commit: Callable[[], None] = lambda: None
        """Called when more is committed."""
        self._cluster_id = ""
        self._fetches: dict[DelayedOperation, None] = {}
        self._held: deque[HeldAnswer] = deque()
        self.configure_replicas()

    def use_timers(self, timers: Timers[Effect]) -> None:
        """Set timers here from now on."""
        self.timers = self.voter.timers = timers

    # ---- what it knows

    @property
    def cluster_id(self) -> str:
        """The id of the cluster."""
        return self._cluster_id

    @cluster_id.setter
    def cluster_id(self, cluster_id: str) -> None:
        self._cluster_id = self.voter.cluster_id = cluster_id

    @property
    def is_active(self) -> bool:
        """Whether this controller decides."""
        return self.voter.is_active

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
        """The levels that are in force; none in a new cluster, but for that of `kraft.version`."""
        levels = tuple(FeatureLevel(name, level) for name, level in sorted(self.image.features.items()))
        return (*levels, FeatureLevel(KRAFT_VERSION, self.kraft_version)) if self.kraft_version else levels

    def features_at_start(self) -> tuple[FeatureLevel, ...]:
        """The levels of a new cluster."""
        return features_at_start(self.release)

    @property
    def features_of_nodes(self) -> tuple[tuple[FeatureRange, ...], ...]:
        """The features that each node can work with: this controller, and each broker as it has registered."""
        return (self.supported_features, *(ranges_of(one.features) for one in self.image.registered.values()))

    @property
    def kraft_version(self) -> int:
        """The level of `kraft.version`, committed or not."""
        return self.voter.kraft_version

    def check_upgrade(self) -> Error:
        """Whether `kraft.version` may be raised to 1, so that voters can be added and removed."""
        return check_upgrade(self.voter.server, self.voter.state)

    def missing_reports(self) -> str:
        """The voters without which it may not be raised, in words."""
        if not self.voter.server.protocol.takes_reports:
            return "Kafka raises kraft.version since 4.1"
        missing = sorted(ids_of(voters_of(self.voter.state)) - ids_of(self.voter.state.reported))
        return f"voters {missing} have not reported to the leader that they support kraft.version 1; Kafka's do since 4.1"

    def upgrade_voters(self, now: Instant) -> list[Effect]:
        """Raise `kraft.version` to 1: the voters are written into the log."""
        return self.voter.upgrade(now)

    def quorum(self) -> Quorum:
        """The quorum, as its leader knows it; voters of settings have no directories."""
        voter = self.voter
        names = {one.id: one for one in voter.voters if one.directory == NO_DIRECTORY}
        fetched = {names.get(replica.id, replica): seen for replica, seen in self.observers.items()}
        known = (voter.state.high_watermark, self.log.log.end_offset, fetched)
        own = names.get(voter.key.id, voter.key)
        return Quorum(own, voter.leads, voter.epoch, *known, voter.voters)

    @property
    def endpoints(self) -> dict[int, Endpoint]:
        """The voters, and where each is reached; this controller where it listens."""
        own = {self.node_id: Endpoint(self.listener, self.host, self.port)}
        return {voter.id: at[0] for voter, at in self.voter.voters.items() if at} | own

    def endpoint_of(self, node: int) -> Endpoint | None:
        """The listener of a controller, if it is known: this one, a voter, or one that has led."""
        return self.endpoints.get(self.node_id) if node == self.node_id else self.voter.place_of(node)

    def place_of(self, node: int) -> Place | None:
        """The address of another controller; a negative id is that of a server by which this one begins."""
        at = self.voter.place_of(node)
        return self._bootstrap.get(node) if at is None else Place(at.host, at.port)

    def default_topic_settings(self) -> dict[str, str]:
        """The settings of a topic that sets none itself."""
        return topic_values(self.topic_settings, self.image.spec)

    def configure_replicas(self) -> None:
        """Take the topics' settings, and the features, as they are now."""
        eligible = self.image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0
        timeout_ms = self.config.number("broker.session.timeout.ms")
        settings = controller_settings(self.image, self.default_topic_settings(), eligible, timeout_ms)
        self.deciding.controller = replace(self.deciding.controller, settings=settings, topics=self.topic_settings)

    # ---- leading

    def start(self, now: Instant) -> list[Effect]:
        """Begin as a voter; the only one is active at once. Raises: `StorageError`, if its disk is damaged."""
        self.voter.own = (Endpoint(self.listener, self.host, self.port),)
        return self.voter.start(now)

    def grown(self, now: Instant) -> list[Effect]:
        """The log has changed, or who leads it: fetches that wait are answered."""
        waiting = list(self._fetches)  # they leave as they are answered
        return [effect for one in waiting if not one.done for effect in one.complete(now)]

    def committed(self, high_watermark: Offset, now: Instant) -> list[Effect]:
        """More is committed: answers that rest on it leave, and a controller that does not decide learns of it."""
        if not self.is_active:
            self._replay(high_watermark)
        effects: list[Effect] = []
        while self._held and may_be_answered(self._held[0].offset, high_watermark):
            effects.append(replace(self._held.popleft().answer, released=True))
        return [*effects, *self.grown(now), Then(self._after_commit)]

    def voters_written(self, end_offset: Offset) -> None:
        """The voters are in the log, up to an offset, which counts for what is decided from now on."""
        if self.is_active:
            self.deciding.pass_over(end_offset)
            self.image.kraft_version = self.kraft_version

    def _after_commit(self) -> list[Effect]:
        self.after_commit()
        return []

    def _replay(self, high_watermark: Offset) -> None:
        image, snapshot = self.image, self.log.snapshot
        if image.spec.end_offset < snapshot.end_offset:
            self.deciding.use_image(self.log.restored(image))
        self.deciding.replay(self.log.batches_between(self.image.spec.end_offset, high_watermark))

    def claim(self, now: Instant) -> list[Effect]:
        """Decide from now on; a new cluster gets its first records.

        **Kafka:** `QuorumController.claim`, `CompleteActivationEvent`.
        """
        LOG.info("controller %d is active in epoch %d", self.node_id, self.voter.epoch)
        heard_ms, self.heard_ms = self.heard_ms, None
        self.deciding.claim(self.voter.epoch, now.monotonic if heard_ms is None else heard_ms)
        self.observers = {}
        self.configure_replicas()
        return [] if self.image.features else self.change_metadata(first_records(self))

    def renounce(self, now: Instant) -> list[Effect]:
        """Decide no more: what was decided and is not committed is forgotten, and who waits for it is told so.

        **Kafka:** `QuorumController.renounce`.
        """
        LOG.info("controller %d is active no more", self.node_id)
        held, self._held = self._held, deque()
        self.deciding.use_image(self.log.restored(self.image))
        self._replay(self.voter.committed)
        return [one.answer for one in held]

    def hold(self, answer: Respond) -> None:
        """Keep an answer until all of the log is committed that it may rest on."""
        self._held.append(HeldAnswer(self.log.end_offset, answer))

    @property
    def all_committed(self) -> bool:
        """Whether all of the log is committed."""
        return may_be_answered(self.log.end_offset, self.voter.committed)

    # ---- deciding

    def on_event(
        self, handler: Callable[[Controller, ControllerState, MonotonicMs], ControllerStep], now: Instant
    ) -> list[Effect]:
        """Call a handler of the controller because the time has come, if it is active."""
        return self.change_metadata(self.deciding.decide_event(handler, now.monotonic)) if self.is_active else []

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

    def append(self, records: Sequence[LogRecord], now: Instant) -> list[Effect] | None:
        """Append records as one batch; none if another controller is active by now.

        Raises: `OSError`, `StorageError`.
        """
        return self.voter.append(len(records), batch_of(records, now), now)

    def stored(self, records: Sequence[LogRecord]) -> None:
        """Records are in the log: they count for what is decided from now on."""
        self.deciding.stored(records)
        if any(record.name in CONCERN_SETTINGS for record in records):
            self.configure_replicas()

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
