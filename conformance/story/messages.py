"""Messages of a story that wait for a step of its run."""

from collections.abc import Callable
from typing import Protocol

from kspec.impl.wire.requests import sent
from kspec.trials.faults.links import MessageHold
from kspec.trials.faults.parcels import Parcel

ASKED_OF_LEADERS = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch")
ASKED_OF_CONTROLLER = ("BrokerHeartbeat", "AlterPartition")
APIS = {sent(api).key: api for api in (*ASKED_OF_LEADERS, *ASKED_OF_CONTROLLER)}


class StoryMessage(Protocol):
    """A request from one node to another, or a response on its way back: a parcel of a proxy, or a frame in virtual time."""

    @property
    def source(self) -> str:
        """The node that has opened the connection."""

    @property
    def target(self) -> str:
        """The node to which it is."""

    @property
    def key(self) -> int | None:
        """The API."""

    @property
    def is_answer(self) -> bool:
        """Whether it is a response."""

    def release(self) -> None:
        """Let it arrive."""

    def lose(self) -> None:
        """Lose it, and its connection."""


Wanted = Callable[[StoryMessage], bool]
"""A condition on messages."""


class ParcelHold(MessageHold):
    """The parcels of a story between processes. One for which `passes` is true arrives at once; others are held.

    `passes` may change the frame of a parcel.
    """

    arrive_late = False

    def __init__(self, passes: Callable[[Parcel], bool]) -> None:
        super().__init__()
        self._passes = passes

    def is_wanted(self, parcel: Parcel) -> bool:
        """Whether a parcel waits for a step."""
        return not self._passes(parcel)
