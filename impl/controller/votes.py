"""Requests of other voters: their questions before and in elections, and who leads. Kafka: `KafkaRaftClient`."""

from collections.abc import Callable

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.quorum.messages import as_answered, endpoints_in, only_partition
from kspec.impl.wire.quorum import begin_asked, end_asked, vote_asked
from kspec.impl.wire.values import Message
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.refusals import check_quorum_request, check_voters_request
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import Epoch, Error, Instant

Translation = Callable[[Message, Message, int], QuorumRequest]


def vote(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """Another voter asks for a vote, or whether it would get one. **Kafka:** `handleVoteRequest`."""
    return _asked(core, call, now, vote_asked)


def begin_quorum_epoch(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """Another voter says that it leads, and where it is reached. **Kafka:** `handleBeginQuorumEpochRequest`."""
    part = only_partition(call.message)
    if part is not None and _is_same_cluster(core, call) and _is_present(core, part):
        for at in endpoints_in(call.message.leader_endpoints or ())[:1]:
            core.voter.known.hear_of(part.leader_id, at)
    return _asked(core, call, now, begin_asked)


def end_quorum_epoch(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """The leader resigns. **Kafka:** `handleEndQuorumEpochRequest`."""
    return _asked(core, call, now, end_asked)


def _asked(core: ControllerCore, call: Call, now: Instant, in_words: Translation) -> list[Effect]:
    part = only_partition(call.message)
    error = check_quorum_request(_is_same_cluster(core, call), part is not None)
    if part is None or error != Error.NONE:
        return [call.respond(error_code=error.value, topics=[])]

    def answer(told: QuorumAnswer) -> list[Effect]:
        return [call.respond(**as_answered(told, core.endpoint_of(told.leader)))]

    return core.voter.asked(in_words(call.message, part, call.version), now, answer)


def _is_same_cluster(core: ControllerCore, call: Call) -> bool:
    return call.message.cluster_id in (None, core.cluster_id)


def _is_present(core: ControllerCore, part: Message) -> bool:
    """Whether a leader that says so leads in an epoch that is not over."""
    return check_voters_request(core.voter.state, Epoch(part.leader_epoch)) == Error.NONE
