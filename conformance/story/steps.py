"""Functions that make each step of a run of model `kafka` happen on a cluster: on processes, or in virtual time.

A node meets nothing that it would not meet in production: requests and responses arrive late, or not at all; heartbeats
are lost; an administrator elects and reorders; a producer sends.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kspec.conformance.story.cluster import StoryCluster
from kspec.conformance.story.errors import StoryError
from kspec.conformance.story.messages import APIS, StoryMessage, Wanted
from kspec.conformance.world.replay.model_state import ModelState
from kspec.model_check.core.model import Action
from kspec.model_check.models.kafka.values import RequestState
from kspec.spec.broker.rules.fetcher import is_fetching
from kspec.trials.cluster.plan import CONTROLLER

DECISION_S = 60.0
"""The longest wait (s) for a decision that follows the end of a session or of a lag."""


class StoryStep(NamedTuple):
    """A step of a run, with the model's states before and after it."""

    action: Action
    before: ModelState
    after: ModelState

    @property
    def args(self) -> Mapping[str, Any]:
        """The action's arguments."""
        return self.action.args


StepFunction = Callable[[StoryCluster, StoryStep], Awaitable[None]]


# ---- decisions of the controller


async def _create(cluster: StoryCluster, step: StoryStep) -> None:
    parameters, leader = step.before.model.parameters, step.args["leader"]
    settings = {
        "min.insync.replicas": str(parameters["min_isr"]),
        "unclean.leader.election.enable": str(bool(parameters["unclean"])).lower(),
    }
    await cluster.create_topic([leader, *(one for one in cluster.brokers if one != leader)], settings)


async def _elect(cluster: StoryCluster, step: StoryStep) -> None:
    await cluster.prefer(step.args["leader"])
    await cluster.elect_preferred()


async def _fence(cluster: StoryCluster, step: StoryStep) -> None:
    """End the session of a broker. If it led, the preferred replica is elected: the one that leads next in the run."""
    successor, broker = step.after.cluster.topic.leader, step.args["broker"]
    if successor != step.before.cluster.topic.leader and successor > 0:
        await cluster.prefer(successor)
    cluster.silenced.add(broker)
    await cluster.until(lambda: cluster.is_fenced(broker), f"broker {broker} is fenced", DECISION_S)


async def _unfence(cluster: StoryCluster, step: StoryStep) -> None:
    broker = step.args["broker"]
    cluster.silenced.discard(broker)
    await cluster.until(lambda: not cluster.is_fenced(broker), f"broker {broker} is unfenced", DECISION_S)


# ---- replication


async def _fetch(cluster: StoryCluster, step: StoryStep) -> None:
    await _exchange(cluster, step, "Fetch")


async def _fetch_unanswered(cluster: StoryCluster, step: StoryStep) -> None:
    pair = step.args["follower"], step.args["leader"]
    cluster.unheard.add(pair)
    try:
        await _exchange(cluster, step, "Fetch")
    finally:
        cluster.unheard.discard(pair)


async def _ask_leader(cluster: StoryCluster, step: StoryStep) -> None:
    await _exchange(cluster, step, "OffsetForLeaderEpoch", "ListOffsets")


async def _exchange(cluster: StoryCluster, step: StoryStep, *apis: str) -> None:
    """Let one request of a follower arrive at its leader, and the response come back.

    Its older requests are lost, so that the request is of its present state. After the response it sends the next one, or
    none.
    """
    follower, leader = step.args["follower"], step.args["leader"]
    asks = cluster.asks(follower, leader)
    cluster.lose(asks)
    await cluster.until(lambda: not cluster.waiting(asks), "old requests are lost")
    request = await cluster.until_held(asks, f"broker {follower} asks broker {leader}")
    assert request.key is not None, "a request has an API"
    if APIS[request.key] not in apis:
        raise StoryError(f"broker {follower} asks broker {leader} by {APIS[request.key]}, not by {' or '.join(apis)}")
    await _until_lags_are_over(cluster, step)
    answers = cluster.answers[follower, leader]
    request.release()
    await cluster.until(lambda: cluster.answers[follower, leader] > answers, f"broker {leader} answers")
    if is_fetching(step.after.fetcher(follower)):
        await cluster.until_held(asks, f"broker {follower} asks broker {leader} again")


async def _until_lags_are_over(cluster: StoryCluster, step: StoryStep) -> None:
    """Wait, before a step that moves the high watermark, until all followers outside of the ISR exceed the lag.

    A leader counts a follower within the lag as about to join. In the model every follower outside exceeds the lag.
    """
    leader = step.args["leader"]
    if cluster.lag_s is None or step.after.log(leader).high_watermark <= step.before.log(leader).high_watermark:
        return
    outside = set(cluster.brokers) - step.before.role(leader).isr.isr
    last = max((cluster.answered_at.get((one, leader), 0.0) for one in outside), default=0.0)
    await cluster.pause(last + cluster.lag_s - cluster.now_s())


async def _produce(cluster: StoryCluster, step: StoryStep) -> None:
    await _until_lags_are_over(cluster, step)
    acks = 1 if step.before.model.parameters["acks"] == "1" else -1
    cluster.produce(step.args["leader"], step.after.produced, acks)


# ---- the ISR


def _of_isr(leader: int, *, answer: bool) -> Wanted:
    def matches(message: StoryMessage) -> bool:
        is_between = message.source == str(leader) and message.target == CONTROLLER and message.is_answer == answer
        return is_between and message.key is not None and APIS.get(message.key) == "AlterPartition"

    return matches


async def _shrink(cluster: StoryCluster, step: StoryStep) -> None:
    """Wait until the leader proposes the smaller ISR; the followers that stay in it fetch meanwhile."""
    leader, slow = step.args["leader"], step.args["slow"]
    isr = step.before.role(leader).isr.isr - set(slow)
    fetches = [cluster.asks(follower, leader) for follower in sorted(isr) if follower != leader]

    def is_proposed() -> bool:
        for asks in fetches:
            for message in cluster.waiting(asks):
                message.release()
        return any(_proposed(cluster, message) == isr for message in cluster.waiting(_of_isr(leader, answer=False)))

    await cluster.until(is_proposed, f"broker {leader} asks for ISR {sorted(isr)}", DECISION_S)


def _proposed(cluster: StoryCluster, message: StoryMessage) -> frozenset[int]:
    """The ISR that a held request proposes."""
    part = cluster.request_of(message).topics[0].partitions[0]
    return frozenset(member.broker_id for member in part.new_isr_with_epochs) or frozenset(part.new_isr)


async def _decide_isr(cluster: StoryCluster, step: StoryStep) -> None:
    """Let the leader's request arrive at the controller. The response is held, or lost if the leader waits no more."""
    leader = step.args["leader"]
    isr = frozenset(int(member.broker) for member in step.before.exchange(leader).request.isr)
    requests, answers = _of_isr(leader, answer=False), _of_isr(leader, answer=True)

    def is_proposed() -> bool:
        """Lose the leader's other requests, and the responses to them."""
        cluster.lose(answers)
        for message in cluster.waiting(requests):
            if _proposed(cluster, message) == isr:
                return True
            message.lose()
        return False

    await cluster.until(is_proposed, f"broker {leader} asks for ISR {sorted(isr)}")
    cluster.waiting(requests)[0].release()
    answer = await cluster.until_held(answers, "the controller answers")
    if step.after.exchange(leader).state != RequestState.ANSWERED:
        answer.lose()
        await cluster.until(lambda: answer not in cluster.held, "an answer is lost")


async def _take_isr_answer(cluster: StoryCluster, step: StoryStep) -> None:
    (answer,) = cluster.waiting(_of_isr(step.args["leader"], answer=True))
    answer.release()


async def drop_old_answers(cluster: StoryCluster, step: StoryStep) -> None:
    """Let the controller's responses arrive that are out of date by the metadata that their leaders have read.

    The model has no such responses. A leader that waits for one proposes no other ISR.
    """
    for leader in cluster.brokers:
        states = step.before.exchange(leader).state, step.after.exchange(leader).state
        if states != (RequestState.ANSWERED, RequestState.NOTHING):
            continue
        for answer in cluster.waiting(_of_isr(leader, answer=True)):
            answer.release()
            await cluster.until(partial(_has_arrived, cluster, answer), "an answer arrives that is old by now")


def _has_arrived(cluster: StoryCluster, message: StoryMessage) -> bool:
    return message not in cluster.held


async def _nothing(cluster: StoryCluster, step: StoryStep) -> None:
    """Do nothing: the metadata log, or a process by itself, brings the step about."""


STEP_FUNCTIONS: Mapping[str, StepFunction] = {
    "CreatePartition": _create,
    "ElectPreferred": _elect,
    "Fence": _fence,
    "Unfence": _unfence,
    "ReplayMetadata": _nothing,
    "Fetch": _fetch,
    "FetchUnanswered": _fetch_unanswered,
    "AskLeader": _ask_leader,
    "TruncateWithoutAsking": _nothing,
    "Produce": _produce,
    "ProposeShrink": _shrink,
    "GrantIsr": _decide_isr,
    "GrantIsrUnanswered": _decide_isr,
    "RefuseIsr": _decide_isr,
    "RefuseIsrForGood": _decide_isr,
    "TakeIsrAnswer": _take_isr_answer,
}
"""The actions that can be made to happen on processes, each with its function."""

CLOCKS = ("ProposeShrink",)
"""Actions that need a follower to exceed the lag."""

SESSIONS = ("Fence", "Unfence")
"""Actions that need a session to end."""
