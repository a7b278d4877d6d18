"""Requests of other voters: their questions before and in elections, and who leads. Kafka: `KafkaRaftClient`."""

from collections.abc import Callable

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.quorum.messages import as_answered, begin_asked, end_asked, only_partition, vote_asked
from kspec.impl.wire.values import Message
from kspec.spec.quorum.effects import QuorumAnswer
from kspec.spec.quorum.refusals import check_quorum_request
from kspec.spec.quorum.requests import QuorumRequest
from kspec.spec.values import Error, Instant

Translation = Callable[[Message, Message, int], QuorumRequest]


def vote(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """Another voter asks for a vote, or whether it would get one. **Kafka:** `handleVoteRequest`."""
    return _asked(core, call, now, vote_asked)


def begin_quorum_epoch(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """Another voter says that it leads. **Kafka:** `handleBeginQuorumEpochRequest`."""
    return _asked(core, call, now, begin_asked)


def end_quorum_epoch(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """The leader resigns. **Kafka:** `handleEndQuorumEpochRequest`."""
    return _asked(core, call, now, end_asked)


def _asked(core: ControllerCore, call: Call, now: Instant, in_words: Translation) -> list[Effect]:
    part = only_partition(call.message)
    same_cluster = call.message.cluster_id in (None, core.cluster_id)
    error = check_quorum_request(same_cluster, part is not None)
    if part is None or error != Error.NONE:
        return [call.respond(error_code=error.value, topics=[])]

    def answer(told: QuorumAnswer) -> list[Effect]:
        return [call.respond(**as_answered(told))]

    return core.voter.asked(in_words(call.message, part, call.version), now, answer)
