"""A voter that is reached elsewhere than the log says, and tells its leader (KIP-853). Kafka: `UpdateRaftVoter`."""

from collections.abc import Callable

from kspec.impl.broker.calls import Ask, ChannelKey, Effect
from kspec.impl.broker.timers import Timer, Timers
from kspec.impl.controller.quorum.handlers import StepTaker
from kspec.impl.metadata.voters import Endpoint
from kspec.impl.wire.quorum import error_of
from kspec.impl.wire.values import Message
from kspec.spec.quorum.reconfiguration import handle_update_voter_response
from kspec.spec.values import BrokerId, Epoch, Instant


def is_elsewhere(own: tuple[Endpoint, ...], told: tuple[Endpoint, ...] | None) -> bool:
    """Whether a voter is reached elsewhere than its record says; who is no voter, or listens everywhere, cannot tell."""
    return told is not None and bool(own) and bool(own[0].host) and told != own


class OwnMoves:
    """The teller of where this controller is reached: again and again, until the log says so."""

    def __init__(self, take: StepTaker) -> None:
        self._take = take
        self._timer: Timer[Effect] | None = None

    def tell_later(
        self, timers: Timers[Effect], now: Instant, after_ms: int, tell: Callable[[Instant], list[Effect]]
    ) -> None:
        """Tell it after a while, unless that is under way."""
        if self._timer is not None:
            return

        def go(now: Instant) -> list[Effect]:
            self._timer = None
            return tell(now)

        self._timer = timers.at(now.after(after_ms), go)

    def ask(self, leader: BrokerId, message: Message, timeout_ms: int, is_expected: Callable[[], bool]) -> Ask:
        """The request to the leader; its answer counts if the voter has not forgotten the request by then."""

        def take(answer: Message | None, now: Instant) -> list[Effect]:
            if answer is None or answer.current_leader is None or not is_expected():
                return []
            said = (Epoch(answer.current_leader.leader_epoch), BrokerId(answer.current_leader.leader_id))
            return self._take(handle_update_voter_response, now, error_of(answer.error_code), *said, now.monotonic)

        return Ask(ChannelKey(leader, "update"), "UpdateRaftVoter", message, take, timeout_ms)
