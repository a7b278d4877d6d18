"""A voter that is played: a port at which the real one's requests are held until the run answers them."""

import asyncio
import time
from collections.abc import Callable

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.network import ArrivedRequest, NodeStandIn, api_versions
from kspec.conformance.quorum.moves import VoterRequestKind
from kspec.conformance.quorum.translation import SINCE_PRE_VOTE, as_told, request_in_words_of_spec
from kspec.conformance.quorum.voters import kind_of
from kspec.impl.wire.quorum import by_ids
from kspec.impl.wire.values import Message
from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import Epoch, Error, Offset

POLL_SECONDS = 0.01


class NothingAskedError(Exception):
    """The real voter has not sent the request that the run expects: what it sent in its place."""


class PlayedVoter:
    """The end of a played voter.

    `is_old`: it knows no pre-vote, as releases before 4.0. `knows_directories`: voters know each other's directories.
    """

    def __init__(self, codec: Codec, node: int, *, is_old: bool = False, knows_directories: bool = False) -> None:
        self.node = node
        self.listener = NodeStandIn(codec, node, self._answer)
        self._codec = codec
        self._is_old = is_old
        self._knows_directories = knows_directories
        self._held: list[ArrivedRequest] = []

    async def _answer(self, arrived: ArrivedRequest) -> Message | None:
        if arrived.api == "ApiVersions":
            return self._versions()
        is_of_quorum = request_in_words_of_spec(arrived.api, arrived.version, arrived.message) is not None
        if not is_of_quorum and arrived.api != "FetchSnapshot":
            return _refused(arrived)
        self._held.append(arrived)
        return None

    def _versions(self) -> Message:
        told = api_versions(self._codec)
        if self._is_old:
            for one in told.api_keys:
                if one.api_key == self._codec.apis["Vote"]:
                    one.max_version = min(one.max_version, SINCE_PRE_VOTE - 1)
        return told

    async def asked(
        self, expected: QuorumRequest, seconds: float, is_over: Callable[[], bool], *others: "PlayedVoter"
    ) -> ArrivedRequest:
        """Wait for a request. What else arrives is lost with its connection, so that the next request may come.

        Raises: `NothingAskedError`, also once it `is_over`.
        """
        end, last = time.monotonic() + seconds, "nothing"
        while time.monotonic() < end and not is_over():
            for arrived in self._pending():
                request = self._in_words_of_spec(arrived)
                if request == as_told(expected, arrived.version):
                    self._held.remove(arrived)
                    return arrived
                last = str(request)
                self._lose(arrived)
            if kind_of(expected) == VoterRequestKind.FETCH:
                for other in others:  # who waits asks any voter, one at a time
                    other.lose_all()
            await asyncio.sleep(POLL_SECONDS)
        raise NothingAskedError(last)

    async def asked_for_snapshot(self, snapshot: SnapshotId, seconds: float) -> ArrivedRequest:
        """Wait for the request for the first piece of a snapshot. Raises: `NothingAskedError`."""
        end, last = time.monotonic() + seconds, "nothing"
        while time.monotonic() < end:
            for arrived in self._pending():
                if arrived.api == "FetchSnapshot":
                    part = arrived.message.topics[0].partitions[0]
                    wanted = SnapshotId(Offset(part.snapshot_id.end_offset), Epoch(part.snapshot_id.epoch))
                    if (wanted, part.position) == (snapshot, 0):
                        self._held.remove(arrived)
                        return arrived
                    last = f"{wanted} from {part.position} on"
                self._lose(arrived)
            await asyncio.sleep(POLL_SECONDS)
        raise NothingAskedError(last)

    def _in_words_of_spec(self, arrived: ArrivedRequest) -> QuorumRequest | None:
        request = request_in_words_of_spec(arrived.api, arrived.version, arrived.message)
        return request if request is None or self._knows_directories else by_ids(request)

    def lose_all(self) -> None:
        """Lose the requests that are held."""
        for arrived in self._pending():
            self._lose(arrived)

    def _pending(self) -> list[ArrivedRequest]:
        self._held = [arrived for arrived in self._held if not arrived.lost]
        return list(self._held)

    def _lose(self, arrived: ArrivedRequest) -> None:
        self._held.remove(arrived)
        arrived.close()


def _refused(arrived: ArrivedRequest) -> Message:
    """The answer to a request of another part of the controller, which has no leader to turn to."""
    if arrived.api == "ControllerRegistration":
        return Message(error_code=Error.NOT_CONTROLLER.value)
    arrived.close()
    return Message(error_code=Error.NOT_CONTROLLER.value)
