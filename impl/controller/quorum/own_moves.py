"""Requests of a controller to its leader for itself (KIP-853): to write where it is reached, and to let it vote.

Kafka: `KafkaRaftClient.pollFollowerAsVoter`, `pollFollowerAsObserver`.
"""

from collections.abc import Callable, Iterable

from kspec.impl.broker.calls import Ask, ChannelKey, Effect
from kspec.impl.broker.timers import Timer, Timers
from kspec.impl.controller.quorum.handlers import StepTaker
from kspec.impl.controller.quorum.messages import listeners_of
from kspec.impl.metadata.voters import Endpoint
from kspec.impl.wire.quorum import error_of
from kspec.impl.wire.values import Message
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, RemoveVoterRequest
from kspec.spec.quorum.reconfiguration import handle_update_voter_response
from kspec.spec.step import Send
from kspec.spec.values import BrokerId, Epoch, Instant


def is_elsewhere(own: tuple[Endpoint, ...], told: tuple[Endpoint, ...] | None) -> bool:
    """Whether a voter is reached elsewhere than its record says; who is no voter, or listens everywhere, cannot tell."""
    return told is not None and bool(own) and bool(own[0].host) and told != own


class OwnMoves:
    """The requests of this controller for itself: again and again, until the log says what it wants."""

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

    def join(
        self, wanted: Send[AddVoterRequest] | Send[RemoveVoterRequest], cluster_id: str, own: Iterable[Endpoint], ms: int
    ) -> Ask:
        """The request for a vote, or to remove the voter of this server's earlier disk; the log says what comes of it."""
        voter = wanted.message.voter
        named = {"cluster_id": cluster_id, "voter_id": voter.id, "voter_directory_id": voter.directory}
        channel = ChannelKey(wanted.to, "update")
        if isinstance(wanted.message, RemoveVoterRequest):
            return Ask(channel, "RemoveRaftVoter", Message(**named), _nothing, ms)
        more = {"timeout_ms": ms, "listeners": listeners_of(own), "ack_when_committed": wanted.message.waits}
        return Ask(channel, "AddRaftVoter", Message(**named, **more), _nothing, ms)


def _nothing(answer: Message | None, now: Instant) -> list[Effect]:
    return []
