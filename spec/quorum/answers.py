"""Answers: what all of them say of epoch and leader, before what each is about."""

from typing import Generic, NamedTuple

from kspec.spec.log.algebra import LogT
from kspec.spec.quorum.effects import Halt, IllegalState
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer
from kspec.spec.quorum.transitions import QuorumStep, follow_or_wait, is_halted, leader_told
from kspec.spec.step import Step
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, Error

STALE_ERRORS = (Error.FENCED_LEADER_EPOCH, Error.NOT_LEADER_OR_FOLLOWER)
"""Errors that say that the request was sent in an earlier epoch, or to somebody who does not lead."""

LEFT_ALONE = (Error.BROKER_NOT_AVAILABLE, Error.INVALID_VOTER_KEY)
"""Errors that say nothing about leader and epoch."""


class AnswerTaken(NamedTuple, Generic[LogT]):
    """The step that an answer's epoch and leader are a reason for, and whether what else it says still counts."""

    step: QuorumStep[LogT]
    goes_on: bool = False


def take_epoch_and_leader(
    server: QuorumServer, state: QuorumReplica[LogT], error: Error, epoch: Epoch, leader: BrokerId
) -> AnswerTaken[LogT]:
    """The replica after what an answer says of epoch and leader.

    An answer of an earlier epoch is dropped. One of a later epoch, or with an error of that kind, says no more than who
    leads. In the same epoch a replica that follows nobody may follow the one that is named, and then looks at the rest.

    **Kafka:** `KafkaRaftClient.maybeHandleCommonResponse`.
    """
    own, leader = state.election.epoch, leader_told(server, state, leader)
    if epoch < own or error == Error.UNKNOWN_LEADER_EPOCH:
        return AnswerTaken(Step(state))
    if epoch > own or error in STALE_ERRORS:
        return AnswerTaken(follow_or_wait(server, state, leader, epoch))
    if leader != NO_LEADER and server.protocol.follows_named(state.role, state.election.leader != NO_LEADER):
        step = follow_or_wait(server, state, leader, epoch)
        return AnswerTaken(step, error == Error.NONE and not is_halted(step))
    if error in LEFT_ALONE:
        return AnswerTaken(Step(state))
    if error == Error.INVALID_REQUEST:
        return AnswerTaken(Step(state, (Halt(IllegalState.INVALID_REQUEST),)))
    return AnswerTaken(Step(state), error == Error.NONE)
