"""A broker that is a member of a cluster: what it does beside answering requests, and how its parts hang together.

No socket, no clock and no file is here: requests to others are effects (`Ask`), and the time is given.
"""

from collections.abc import Callable

from impl.broker.calls import CONTROLLER, Ask, Channel, Effect, Serve, Then
from impl.broker.core import Core
from impl.broker.replica import Replica
from impl.broker.replicas import Replicas
from impl.replica.fetchers import Fetchers
from impl.replica.forwarding import RemoteController
from impl.replica.membership import Introduction, Membership
from impl.replica.metadata_copy import MetadataCopy
from impl.replica.metadata_follower import MetadataFollower
from impl.wire.apis import MEMBER_APIS
from impl.wire.values import Message
from spec.broker.leader.isr import consider_shrinking
from spec.broker.partition import leads
from spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from spec.releases.features import features_supported

RETRY_MS = 100


class Member:
    """The parts of a broker that talk to the controller and to other brokers."""

    def __init__(
        self, core: Core, replicas: Replicas, copy: MetadataCopy, lifecycle: BrokerLifecycle, introduction: Introduction
    ) -> None:
        self._core = core
        self._replicas = replicas
        self._introduction = introduction
        self.remote = core.elsewhere = RemoteController(core)
        core.apis = MEMBER_APIS
        self.metadata = MetadataFollower(core, copy, self._on_metadata)
        self.membership = Membership(core, lifecycle, introduction, self._on_state)
        self._fetchers = Fetchers(core)
        self._ready = False
        self._serves = False
        self.on_serving: list[Callable[[int], list[Effect]]] = []
        """Called once the broker serves."""
        core.role_changed.append(self._fetchers.follow)

    def start(self, now: int) -> list[Effect]:
        """Begin: ask the controller what a broker must support, then register; meanwhile read the metadata log."""
        half_lag = max(1, self._core.config["replica.lag.time.max.ms"] // 2)
        self._core.timers.at(now + half_lag, lambda now: self._shrink_isrs(half_lag, now))
        return [*self._ask_features(now), *self.metadata.fetch(now)]

    def _ask_features(self, now: int) -> list[Effect]:
        message = Message(client_software_name="kspec", client_software_version="1")
        return [Ask(Channel(CONTROLLER, "lifecycle"), "ApiVersions", message, self._take_features)]

    def _take_features(self, answer: Message | None, now: int) -> list[Effect]:
        """This broker reads all metadata records, also of releases before 3.3; of other features it supports what the
        controller does, and looks at none of it.
        """
        if answer is None or answer.error_code:
            self._core.timers.at(now + RETRY_MS, self._ask_features)
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

    def stop(self, now: int) -> list[Effect]:
        """Stop in order. **Kafka:** `BrokerServer.shutdown`."""
        self._core.begin_shutdown()
        if not self._core.config["controlled.shutdown.enable"]:
            return self.membership.stop_anyway(now)
        return self.membership.begin_stop(now)

    # ---- what happens

    def _on_metadata(self, now: int) -> list[Effect]:
        """More metadata are known: act on them, if the release lets this incarnation act already."""
        lifecycle, metadata = self.membership.lifecycle, self.metadata
        if metadata.end_at_start is None:
            return []
        if not self._core.protocol.acts_on_metadata(lifecycle, metadata.end_offset, metadata.end_at_start):
            return []
        self._core.configure_replicas()
        return [*self._replicas.apply(now), Then(lambda: self._be_ready(now))]

    def _be_ready(self, now: int) -> list[Effect]:
        """The logs are recovered: once the controller says that the broker has caught up, it may be unfenced."""
        if self._ready or self.membership.lifecycle.state != BrokerState.RECOVERY:
            return []
        self._ready = True
        return self.membership.ready(now)

    def _on_state(self, state: BrokerState, now: int) -> list[Effect]:
        effects = self._on_metadata(now) if state == BrokerState.RECOVERY else []
        if not self._serves and self._core.protocol.opens_ports(self.membership.lifecycle):
            self._serves = True
            effects = [*effects, Serve(), *(effect for told in self.on_serving for effect in told(now))]
        return effects

    def _shrink_isrs(self, interval_ms: int, now: int) -> list[Effect]:
        """Drop followers that are too slow. **Kafka:** `ReplicaManager.maybeShrinkIsr`."""
        core = self._core
        core.timers.at(now + interval_ms, lambda now: self._shrink_isrs(interval_ms, now))
        return [
            effect
            for replica in list(core.replicas.values())
            if self._leads(replica)
            for effect in core.run(consider_shrinking, replica, now, now=now).effects
        ]

    def _leads(self, replica: Replica) -> bool:
        return not replica.offline and leads(self._core.broker(replica), replica.partition)
