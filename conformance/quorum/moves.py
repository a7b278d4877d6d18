"""Steps of a run of three voters: those of model `quorum`, and requests that nobody of the three would send."""

from enum import Enum
from typing import NamedTuple, TypeAlias

from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import BrokerId


class VoterRequestKind(Enum):
    """The kinds of requests, which are those of Kafka's APIs."""

    PRE_VOTE = "PreVote"
    VOTE = "Vote"
    BEGIN_QUORUM_EPOCH = "BeginQuorumEpoch"
    END_QUORUM_EPOCH = "EndQuorumEpoch"
    FETCH = "Fetch"


class TimeOut(NamedTuple):
    """The time of a voter's role is over; that of a leader, in which it has to hear of a majority."""

    server: BrokerId


class Silence(NamedTuple):
    """A replica that waits for no time does nothing, for longer than any voter would wait."""

    server: BrokerId


class VoterExchange(NamedTuple):
    """A voter asks another, which answers; `lost`: nobody hears the answer; `late`: it is heard in a later step, by
    `AnswerArrival`. `unknown`: the asked one is of a release that does not know the request.
    """

    kind: VoterRequestKind
    server: BrokerId
    asked: BrokerId
    lost: bool = False
    unknown: bool = False
    late: bool = False


class AnswerArrival(NamedTuple):
    """The oldest answer of another voter that is on its way to a voter arrives."""

    server: BrokerId
    asked: BrokerId


class AddVoter(NamedTuple):
    """An operator asks a leader to add a voter (KIP-853); the voter tells its versions at once."""

    asked: BrokerId
    voter: BrokerId


class RemoveVoter(NamedTuple):
    """An operator asks a leader to remove a voter (KIP-853)."""

    asked: BrokerId
    voter: BrokerId


class VoterChangeTimesOut(NamedTuple):
    """The operator's request has waited for too long: a leader answers it, though the change is under way."""

    server: BrokerId


class Restart(NamedTuple):
    """A voter is killed, and starts again from its disk."""

    server: BrokerId


class LoseDisk(NamedTuple):
    """A voter is killed, and starts again with an empty disk."""

    server: BrokerId


class Append(NamedTuple):
    """A leader that is played appends a record."""

    server: BrokerId


class TakeSnapshot(NamedTuple):
    """A voter that is played takes a snapshot of all that it knows to be committed, and keeps no records before its end."""

    server: BrokerId


class SnapshotTransfer(NamedTuple):
    """A voter fetches the snapshot that its leader has told it of, in one piece."""

    server: BrokerId
    asked: BrokerId


class Tell(NamedTuple):
    """Somebody sends a request to a voter, whoever he says he is."""

    asked: BrokerId
    request: QuorumRequest
    who: str = "a stranger"


QuorumMove: TypeAlias = (
    TimeOut
    | Silence
    | VoterExchange
    | AnswerArrival
    | AddVoter
    | RemoveVoter
    | VoterChangeTimesOut
    | Restart
    | LoseDisk
    | Append
    | TakeSnapshot
    | SnapshotTransfer
    | Tell
)
"""A step of a run."""
