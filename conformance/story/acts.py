"""What makes each step of a run of model `kafka` happen to real processes.

Nothing is told to a process that it would not meet in a cluster: requests and answers arrive late, or not at all; heartbeats
are lost; an administrator elects and reorders; a producer sends.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from conformance.story.gates import until
from conformance.story.stage import APIS, Stage
from conformance.story.words import StoryError
from conformance.world.play.players import Scene
from impl.cluster.plan import CONTROLLER
from impl.faults.parcels import Parcel
from model_check.core.model import Action
from model_check.models.kafka.values import Under
from spec.broker.rules.fetcher import is_fetching

DECISION_S = 60.0
"""An emergency stop: what takes a session or a lag to happen."""


class Step(NamedTuple):
    """A step of a run, with the model's states before and after it."""

    action: Action
    before: Scene
    after: Scene

    @property
    def args(self) -> Mapping[str, Any]:
        """The action's arguments."""
        return self.action.args


Act = Callable[[Stage, Step], Awaitable[None]]


# ---- the controller, and what it is asked


async def _create(stage: Stage, step: Step) -> None:
    parameters, leader = step.before.model.parameters, step.args["leader"]
    settings = {
        "min.insync.replicas": str(parameters["min_isr"]),
        "unclean.leader.election.enable": str(bool(parameters["unclean"])).lower(),
    }
    await stage.create_topic([leader, *(one for one in stage.brokers if one != leader)], settings)


async def _elect(stage: Stage, step: Step) -> None:
    await stage.prefer(step.args["leader"])
    await stage.elect_preferred()


async def _fence(stage: Stage, step: Step) -> None:
    """The preferred replica is elected if the fenced broker led."""
    successor, broker = step.after.cluster.topic.leader, step.args["broker"]
    if successor != step.before.cluster.topic.leader and successor > 0:
        await stage.prefer(successor)
    stage.silenced.add(broker)
    await until(lambda: stage.is_fenced(broker), f"broker {broker} is fenced", DECISION_S)


async def _unfence(stage: Stage, step: Step) -> None:
    broker = step.args["broker"]
    stage.silenced.discard(broker)
    await until(lambda: not stage.is_fenced(broker), f"broker {broker} is unfenced", DECISION_S)


# ---- replication


async def _fetch(stage: Stage, step: Step) -> None:
    await _exchange(stage, step, "Fetch")


async def _fetch_unanswered(stage: Stage, step: Step) -> None:
    pair = step.args["follower"], step.args["leader"]
    stage.unheard.add(pair)
    try:
        await _exchange(stage, step, "Fetch")
    finally:
        stage.unheard.discard(pair)


async def _ask_leader(stage: Stage, step: Step) -> None:
    await _exchange(stage, step, "OffsetForLeaderEpoch", "ListOffsets")


async def _exchange(stage: Stage, step: Step, *apis: str) -> None:
    """Let one request of a follower arrive at its leader, and the answer come back: it then asks again, or gives up.

    What it has asked before is lost, so that it asks as it is now.
    """
    follower, leader = step.args["follower"], step.args["leader"]
    asks = stage.asks(follower, leader)
    stage.gates.lose(asks)
    await until(lambda: not stage.gates.waiting(asks), "old requests are lost")
    request = await stage.gates.until_held(asks, f"broker {follower} asks broker {leader}")
    if APIS[request.key] not in apis:
        raise StoryError(f"broker {follower} asks broker {leader} by {APIS[request.key]}, not by {' or '.join(apis)}")
    await _until_nobody_may_join(stage, step)
    answers = stage.answers[follower, leader]
    request.release()
    await until(lambda: stage.answers[follower, leader] > answers, f"broker {leader} answers")
    if is_fetching(step.after.fetcher(follower)):
        await stage.gates.until_held(asks, f"broker {follower} asks broker {leader} again")


async def _until_nobody_may_join(stage: Stage, step: Step) -> None:
    """Before it moves its high watermark a leader waits for who may join its ISR, until that one's lag is too long.

    In the model it always is.
    """
    leader = step.args["leader"]
    if stage.lag_s is None or step.after.log(leader).high_watermark <= step.before.log(leader).high_watermark:
        return
    outside = set(stage.brokers) - step.before.role(leader).isr.isr
    last = max((stage.answered_at.get((one, leader), 0.0) for one in outside), default=0.0)
    await asyncio.sleep(last + stage.lag_s - time.monotonic())


async def _produce(stage: Stage, step: Step) -> None:
    await _until_nobody_may_join(stage, step)
    acks = 1 if step.before.model.parameters["acks"] == "1" else -1
    stage.produce(step.args["leader"], step.after.produced, acks)


# ---- the ISR


def _of_isr(leader: int, *, answer: bool) -> Callable[[Parcel], bool]:
    def matches(parcel: Parcel) -> bool:
        asked = parcel.source == str(leader) and parcel.target == CONTROLLER and parcel.is_answer == answer
        return asked and APIS.get(parcel.key) == "AlterPartition"

    return matches


async def _shrink(stage: Stage, step: Step) -> None:
    """Time passes until the leader asks for a smaller ISR; the followers that are not too slow fetch meanwhile."""
    leader, slow = step.args["leader"], step.args["slow"]
    wanted = step.before.role(leader).isr.isr - set(slow)
    fetches = [stage.asks(one, leader) for one in sorted(wanted) if one != leader]

    def asked() -> bool:
        for asks in fetches:
            for parcel in stage.gates.waiting(asks):
                parcel.release()
        return any(_proposed(stage, one) == wanted for one in stage.gates.waiting(_of_isr(leader, answer=False)))

    await until(asked, f"broker {leader} asks for ISR {sorted(wanted)}", DECISION_S)


def _proposed(stage: Stage, parcel: Parcel) -> frozenset[int]:
    """The ISR that a held request asks for."""
    part = stage.request_of(parcel).topics[0].partitions[0]
    return frozenset(one.broker_id for one in part.new_isr_with_epochs) or frozenset(part.new_isr)


async def _decide_isr(stage: Stage, step: Step) -> None:
    """The leader's request arrives at the controller; the answer is held, unless nobody waits for it any more."""
    leader = step.args["leader"]
    wanted = frozenset(int(member.broker) for member in step.before.exchange(leader).request.isr)
    requests, answers = _of_isr(leader, answer=False), _of_isr(leader, answer=True)

    def is_asked() -> bool:
        """What the leader has asked before, and the answers to it, are lost."""
        stage.gates.lose(answers)
        for parcel in stage.gates.waiting(requests):
            if _proposed(stage, parcel) == wanted:
                return True
            parcel.lose()
        return False

    await until(is_asked, f"broker {leader} asks for ISR {sorted(wanted)}")
    stage.gates.waiting(requests)[0].release()
    answer = await stage.gates.until_held(answers, "the controller answers")
    if step.after.exchange(leader).state != Under.ANSWERED:
        answer.lose()
        await until(lambda: answer not in stage.gates.held, "an answer is lost")


async def _take_isr_answer(stage: Stage, step: Step) -> None:
    (answer,) = stage.gates.waiting(_of_isr(step.args["leader"], answer=True))
    answer.release()


async def drop_old_answers(stage: Stage, step: Step) -> None:
    """Let the controller's answers arrive that tell their leaders nothing any more, by the news that these have read.

    The model has no such answers. A leader that waits for one asks for no other ISR.
    """
    for leader in stage.brokers:
        states = step.before.exchange(leader).state, step.after.exchange(leader).state
        if states != (Under.ANSWERED, Under.NOTHING):
            continue
        for answer in stage.gates.waiting(_of_isr(leader, answer=True)):
            answer.release()
            await until(partial(_has_arrived, stage, answer), "an answer arrives that is old by now")


def _has_arrived(stage: Stage, parcel: Parcel) -> bool:
    return parcel not in stage.gates.held


async def _nothing(stage: Stage, step: Step) -> None:
    """What the metadata log, or a process by itself, brings about."""


ACTS: Mapping[str, Act] = {
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
"""The actions that processes can be made to take."""

CLOCKS = ("ProposeShrink",)
"""Actions that need a follower to be too slow."""

SESSIONS = ("Fence", "Unfence")
"""Actions that need a session to end."""
