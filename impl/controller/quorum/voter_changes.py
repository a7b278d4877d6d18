"""Changes of the voters that somebody waits for (KIP-853). Kafka: `AddVoterHandlerState`, `RemoveVoterHandlerState`."""

from collections.abc import Callable
from typing import TypeVar

from kspec.impl.broker.calls import Ask, ChannelKey, Effect
from kspec.impl.broker.timers import Timer, Timers
from kspec.impl.controller.quorum.handlers import StepTaker, VoterHandler
from kspec.impl.wire.quorum import error_of
from kspec.impl.wire.values import Message
from kspec.spec.controller.rules.features import KRAFT_VERSION, FeatureLevel, FeatureRange, supports
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.quorum.reconfiguration import on_versions, on_voter_change_timeout
from kspec.spec.quorum.replica import NO_CHANGE, QuorumReplica
from kspec.spec.values import Error, Instant, MonotonicMs, ReplicaKey

ChangeEnded = Callable[[Error], list[Effect]]
"""Takes the error of a change of the voters, or none, when that is done."""

ChangeRequest = TypeVar("ChangeRequest")


class VoterChanges:
    """The change of the voters that is being handled, and that which is under way: one of each at most."""

    def __init__(self, take: StepTaker) -> None:
        self.timeout_ms = 2_000
        """The longest wait for a change. Kafka: `controller.quorum.request.timeout.ms`."""
        self._take = take
        self._asking: ChangeEnded | None = None
        """The one who asks for the change that is being handled."""
        self._waiting: ChangeEnded | None = None
        """The one who waits for the change that is under way."""
        self._timer: Timer[Effect] | None = None

    def ask(
        self,
        handler: VoterHandler[ChangeRequest, MonotonicMs],
        request: ChangeRequest,
        now: Instant,
        ended: ChangeEnded,
        timeout_ms: int,
    ) -> tuple[list[Effect], bool]:
        """Ask for a change; `ended` gets the error, or none, at once or later. Whether it waits, at most for so long."""
        self._asking, self.timeout_ms = ended, timeout_ms
        effects = self._take(handler, now, request, now.monotonic)
        asking, self._asking = self._asking, None
        if asking is not None:
            self._waiting = asking
        return effects, asking is not None

    def start_timer(self, timers: Timers[Effect], now: Instant) -> None:
        """Let a change that waits end by itself after a while."""

        def go(now: Instant) -> list[Effect]:
            self._timer = None
            return self._take(on_voter_change_timeout, now, now.monotonic)

        self._timer = timers.at(now.after(self.timeout_ms), go)

    def end(self, error: Error) -> list[Effect]:
        """Tell the one who has asked: for the change that is being handled, or else for that which is under way."""
        if self._asking is not None:
            asking, self._asking = self._asking, None
            return asking(error)
        waiting, self._waiting = self._waiting, None
        return [] if waiting is None else waiting(error)

    def forget(self, state: QuorumReplica[EpochLog], timers: Timers[Effect], not_done: Error) -> list[Effect]:
        """Tell whoever still waits, if a replica knows of no change any more: it leads no more."""
        if state.change != NO_CHANGE:
            return []
        if self._timer is not None:
            timers.cancel(self._timer)
            self._timer = None
        return self.end(not_done) if self._waiting is not None else []

    def ask_for_versions(
        self, replica: Callable[[], QuorumReplica[EpochLog]], voter: ReplicaKey, level: FeatureLevel
    ) -> Ask:
        """Ask a replica that is to vote for its versions. Kafka: `AddVoterHandler.buildApiVersionsRequest`."""

        def take(answer: Message | None, now: Instant) -> list[Effect]:
            if replica().change.voter != voter:
                return []
            ranges = () if answer is None else answer.supported_features or ()
            known = tuple(FeatureRange(one.name, one.min_version, one.max_version) for one in ranges)
            return self._take(on_versions, now, _error_in(answer), supports(known, level), now.monotonic)

        message = Message(client_software_name="kspec", client_software_version="1")
        return Ask(ChannelKey(voter.id, "versions"), "ApiVersions", message, take, self.timeout_ms)


def _error_in(answer: Message | None) -> Error:
    """The error of an answer with versions, or of a connection that is lost. **Kafka:** `RaftUtil.errorResponse`."""
    return Error.NETWORK_EXCEPTION if answer is None else error_of(answer.error_code)


def level_of(kraft_version: int) -> FeatureLevel:
    """The level of `kraft.version` that a new voter must be able to work with."""
    return FeatureLevel(KRAFT_VERSION, kraft_version)
