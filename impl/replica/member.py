"""A broker that is a member of a cluster: what it does beside answering requests, and how its parts hang together.

No socket, no clock and no file is here: requests to others are effects (`Ask`), and the time is given.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Protocol

from kspec.impl.broker.calls import CONTROLLER, Ask, ChannelKey, Effect, Serve, Then
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.broker.replicas import Replicas
from kspec.impl.replica.fetchers import Fetchers
from kspec.impl.replica.forwarding import RemoteController
from kspec.impl.replica.membership import Introduction, Membership
from kspec.impl.wire.values import Message
from kspec.spec.broker.leader.isr import consider_shrinking, may_fall_behind
from kspec.spec.broker.partition import leads
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState, has_lost_registration
from kspec.spec.releases.features import features_supported
from kspec.spec.values import Incarnation, Instant, Offset

RETRY_MS = 100


class MetadataReader(Protocol):
    """A reader of the metadata log. `acted` is called when the image has gone on, and may be acted on."""

    acted: Callable[[Instant], list[Effect]]
    end_at_start: Offset | None
    """The end of the committed log when this process began to read it."""

    @property
    def end_offset(self) -> Offset:
        """The end of what has been read and is committed."""

    def fetch(self, now: Instant) -> list[Effect]:
        """Begin to read."""


class ClusterMember:
    """The parts of a broker that talk to the controller and to other brokers."""

    def __init__(
        self,
        core: BrokerCore,
        replicas: Replicas,
        metadata: MetadataReader,
        lifecycle: BrokerLifecycle,
        introduction: Introduction,
    ) -> None:
        self._core = core
        self._replicas = replicas
        self._introduction = introduction
        core.controller = RemoteController(core)
        self.metadata = metadata
        metadata.acted = self._on_metadata
        self.membership = Membership(core, lifecycle, introduction, self._on_state)
        self._fetchers = Fetchers(core)
        self._changed = core.changes.reader()
        self._serves = False
        self.on_serving: list[Callable[[Instant], list[Effect]]] = []
        """Called once the broker serves."""
        core.role_changed.append(self._fetchers.follow)

    def start(self, now: Instant) -> list[Effect]:
        """Begin: ask the controller what a broker must support, then register; meanwhile read the metadata log."""
        half_lag = max(1, self._core.config.number("replica.lag.time.max.ms") // 2)
        self._core.timers.at(now.after(half_lag), lambda now: self._shrink_isrs(half_lag, now))
        self.membership.expect_registration(now)
        return [*self._ask_features(now), *self.metadata.fetch(now)]

    def _ask_features(self, now: Instant) -> list[Effect]:
        message = Message(client_software_name="kspec", client_software_version="1")
        return [Ask(ChannelKey(CONTROLLER, "lifecycle"), "ApiVersions", message, self._take_features)]

    def _take_features(self, answer: Message | None, now: Instant) -> list[Effect]:
        """This broker reads all metadata records, also of releases before 3.3; of other features it supports what the
        controller does, and looks at none of it.
        """
        if answer is None or answer.error_code:
            self._core.timers.at(now.after(RETRY_MS), self._ask_features)
            return []
        theirs = {one.name: (one.min_version, one.max_version) for one in answer.supported_features or ()}
        own = {one.name: (one.lowest, one.highest) for one in features_supported("next")}
        known = {
            name: (min(lowest, theirs.get(name, (lowest, highest))[0]), highest) for name, (lowest, highest) in own.items()
        }
        self._introduction.features[:] = [
            Message(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in {**theirs, **known}.items()
        ]
        return self.membership.start(now)

    def register_again(self, incarnation: Incarnation, now: Instant) -> list[Effect]:
        """Register as another incarnation, if the metadata no longer have the registration of this broker."""
        cluster = self._core.cluster
        is_registered, end = cluster.registration is not None, cluster.image.spec.end_offset
        lost = has_lost_registration(self.membership.lifecycle, is_registered, end)
        return self.membership.start_again(incarnation, now) if lost else []

    def stop(self, now: Instant) -> list[Effect]:
        """Stop in order. **Kafka:** `BrokerServer.shutdown`."""
        self._core.begin_shutdown()
        if not self._core.config.flag("controlled.shutdown.enable"):
            return self.membership.stop_anyway(now)
        return self.membership.begin_stop(now)

    # ---- what happens

    def _on_metadata(self, now: Instant) -> list[Effect]:
        """More metadata are known: act on them, if the release lets this incarnation act already."""
        lifecycle, metadata = self.membership.lifecycle, self.metadata
        if metadata.end_at_start is None:
            return []
        if not self._core.protocol.acts_on_metadata(lifecycle, metadata.end_offset, metadata.end_at_start):
            return []
        self._core.configure_replicas()
        return [*self._replicas.apply(now), Then(lambda: self._be_ready(now))]

    def _be_ready(self, now: Instant) -> list[Effect]:
        """The logs are recovered: once the controller says that the broker has caught up, it may be unfenced."""
        lifecycle = self.membership.lifecycle
        return [] if lifecycle.ready_to_unfence or lifecycle.state != BrokerState.RECOVERY else self.membership.ready(now)

    def _on_state(self, state: BrokerState, now: Instant) -> list[Effect]:
        effects = self._on_metadata(now) if state == BrokerState.RECOVERY else []
        ends = state == BrokerState.SHUTTING_DOWN  # one that has not served by now serves nobody
        if not self._serves and not ends and self._core.protocol.opens_ports(self.membership.lifecycle):
            self._serves = True
            effects = [*effects, Serve(), *(effect for told in self.on_serving for effect in told(now))]
        return effects

    def _shrink_isrs(self, interval_ms: int, now: Instant) -> list[Effect]:
        """Drop followers that are too slow, of partitions in which somebody may be: that have changed, or have had one.

        **Kafka:** `ReplicaManager.maybeShrinkIsr`.
        """
        core = self._core
        core.timers.at(now.after(interval_ms), lambda now: self._shrink_isrs(interval_ms, now))
        effects: list[Effect] = []
        for replica in sorted(self._changed.take(), key=attrgetter("partition_id")):
            if self._leads(replica):
                effects += core.run(consider_shrinking, replica, now.monotonic, now=now).effects
                if may_fall_behind(core.broker(replica), replica.partition):
                    self._changed.keep(replica)
        return effects

    def _leads(self, replica: Replica) -> bool:
        there = self._core.replicas.get(replica.place) is replica and not replica.offline
        return there and leads(self._core.broker(replica), replica.partition)
