"""Handlers of `spec` as a voter calls them, and the controller behind it, which hears what comes of that."""

from typing import Protocol, TypeVarTuple

from kspec.impl.broker.calls import Effect
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer
from kspec.spec.quorum.transitions import QuorumStep
from kspec.spec.values import Instant, Offset

Given = TypeVarTuple("Given")


class QuorumHaltError(Exception):
    """The voter has met what its protocol excludes, and stops for good."""


class VoterHandler(Protocol[*Given]):
    """A handler of `spec` that a voter calls."""

    def __call__(self, server: QuorumServer, state: QuorumReplica[EpochLog], /, *given: *Given) -> QuorumStep[EpochLog]:
        """Handle a request, an answer or an event."""


class StepTaker(Protocol):
    """A voter, which takes the step of a handler."""

    def __call__(self, handler: VoterHandler[*Given], now: Instant, *given: *Given) -> list[Effect]:
        """Call a handler, and carry out what it says."""


class QuorumListener(Protocol):
    """The controller behind a voter, which is told what is committed, and whether it is the active one."""

    def grown(self, now: Instant) -> list[Effect]:
        """The log has changed: fetches that wait for it are answered."""

    def committed(self, high_watermark: Offset, now: Instant) -> list[Effect]:
        """The log is committed up to an offset."""

    def voters_written(self, end_offset: Offset) -> None:
        """This controller has written the voters, and the log ends there: a record that says nothing of the metadata."""

    def claim(self, now: Instant) -> list[Effect]:
        """This controller is the active one from now on."""

    def renounce(self, now: Instant) -> list[Effect]:
        """This controller is no longer the active one: what it decided, and is not committed, is gone for it."""


def nobody_waits(answer: QuorumAnswer) -> list[Effect]:
    """Do nothing with an answer: nobody has asked."""
    return []
