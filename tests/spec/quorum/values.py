"""A value of every class of the quorum, for `test_purity`."""

from typing import Any

from kspec.spec.messages.fetch import NO_FETCH
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, RemoveVoterRequest, VoterChangeResponse
from kspec.spec.quorum.answers import AnswerTaken
from kspec.spec.quorum.effects import (
    FailWaiting,
    ForgetRequests,
    Halt,
    IllegalState,
    LeaderChangeAppended,
    LogAppended,
    LogCommitted,
    LogCut,
    LogFlushed,
    LogReplaced,
    PersistElection,
    QuorumTimer,
    SnapshotWanted,
    StartTimer,
    VersionsWanted,
    VoterChangeEnded,
    VotersAppended,
)
from kspec.spec.quorum.replica import NO_CHANGE, NO_ELECTION, QuorumSettings, ReplicaProgress
from kspec.spec.quorum.rules.snapshots import IN_PLACE
from kspec.spec.quorum.rules.voters import fixed_voters
from kspec.spec.quorum.rules.votes import NO_TALLY
from kspec.spec.step import Step
from kspec.spec.values import NO_REPLICA, Epoch, Error, Offset
from tests.spec.quorum.driver import NEWEST, ONE, VOTERS, server_of, started

START, FIRST = Offset(0), Epoch(1)

QUORUM_VALUES: tuple[Any, ...] = (
    NO_REPLICA,
    VoteRequest(FIRST, NO_REPLICA, FIRST, START),
    VoteResponse(Error.NONE, FIRST),
    BeginQuorumEpochRequest(FIRST, ONE),
    BeginQuorumEpochResponse(Error.NONE, FIRST),
    EndQuorumEpochRequest(FIRST, ONE),
    EndQuorumEpochResponse(Error.NONE, FIRST),
    QuorumFetchRequest(NO_REPLICA, NO_FETCH),
    QuorumFetchResponse(Error.NONE, FIRST),
    NEWEST,
    QuorumSettings(),
    server_of(ONE),
    NO_ELECTION,
    NO_TALLY,
    ReplicaProgress(NO_REPLICA),
    *fixed_voters(VOTERS),
    started(ONE),
    AnswerTaken(Step(started(ONE))),
    PersistElection(NO_ELECTION),
    LogAppended(START, ()),
    LeaderChangeAppended(START, FIRST, frozenset(), frozenset()),
    VotersAppended(START, FIRST, VOTERS),
    VersionsWanted(NO_REPLICA),
    VoterChangeResponse(Error.NONE),
    VoterChangeEnded(VoterChangeResponse(Error.NONE)),
    AddVoterRequest(NO_REPLICA),
    RemoveVoterRequest(NO_REPLICA),
    NO_CHANGE,
    LogFlushed(),
    LogCut(START),
    SnapshotId(START, FIRST),
    SnapshotWanted(SnapshotId(START, FIRST)),
    LogReplaced(SnapshotId(START, FIRST)),
    IN_PLACE,
    ForgetRequests(),
    FailWaiting(),
    StartTimer(QuorumTimer.ROLE, 0),
    LogCommitted(START),
    Halt(IllegalState.TWO_LEADERS),
)
