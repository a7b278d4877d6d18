"""Changes of the ISR in a run: the real leader's proposals, which are compared, held, and answered."""

import asyncio
import time

from conformance.kafka.network import Arrived
from conformance.world.play.cast import FETCH_VERSION
from conformance.world.play.decisions import UnplayedError
from conformance.world.play.parts.performance import ARRIVAL_SECONDS, Act, DepartedError, Performance, Step, same
from conformance.world.play.players import Scene, proposed
from conformance.world.play.watching import in_words
from conformance.world.stage.world import ENDLESS_LAG_MS, POLL_SECONDS
from impl.wire.values import Message
from model_check.models.kafka.values import NO_EXCHANGE, Under
from spec.messages.alter_partition import AlterPartitionRequest
from spec.messages.fetch import FetchPosition, FetchRequest
from spec.values import UNKNOWN_OFFSET, BrokerId, Error, Offset

REACTION_SECONDS = 0.25
"""How long the broker may take to note an answer about the ISR in its log, if it does."""

PROPOSAL_LAGS = 6
"""A follower that is too slow is noticed within one and a half of `replica.lag.time.max.ms`; this many are waited for."""

DECIDED = ("GrantIsr", "RefuseIsr", "RefuseIsrForGood")
"""The controller's answers to a proposal, which it gives by the state before."""


class Proposals:
    """The real leader's proposal that has no answer yet, if there is one."""

    def __init__(self, performance: Performance) -> None:
        self._performance = performance
        self._real = performance.real
        self._world, self._cast = performance.world, performance.cast
        self._proposal: Arrived | None = None
        self.acts: dict[str, Act] = {
            "ProposeShrink": self._propose_shrink,
            "TakeIsrAnswer": self._take_answer,
            "GrantIsrUnanswered": self._send_again,
            "SendProposalAgain": self._send_again,
        }

    # ---- time

    async def let_lag_pass(self, step: Step) -> None:
        """Where the clock runs, a follower counts as caught up for a while: wait before the high watermark passes one."""
        before, after, real = step.before, step.after, self._real
        rises = after.log(real).high_watermark > before.log(real).high_watermark
        if self._world.lag_ms != ENDLESS_LAG_MS and rises and after.role(real).leader == real:
            isr = after.role(real).isr
            counted = isr.isr | isr.pending_isr | {real}
            if frozenset(entry.broker for entry in after.cluster.brokers) - counted:
                await asyncio.sleep(self._world.lag_ms / 1000 + 0.05)

    async def _propose_shrink(self, step: Step) -> None:
        """Time passes until the real leader finds these followers too slow; the others fetch at its end meanwhile."""
        if not step.is_of("leader", self._real):
            return
        if self._world.lag_ms == ENDLESS_LAG_MS:
            raise UnplayedError("a shrink of the ISR where no lag is too long")
        isr, slow = step.before.role(self._real).isr.isr, step.args["slow"]
        kept = [one for one in isr if one != self._real and one not in slow]
        repeated = [self._cast.fetch_on_wire(self._fetch_in_time(step.before, one)) for one in kept]
        deadline = time.monotonic() + PROPOSAL_LAGS * self._world.lag_ms / 1000
        while not self._has_proposal() and time.monotonic() < deadline:
            for request in repeated:
                await self._world.ask("Fetch", FETCH_VERSION, request)
            await asyncio.sleep(0.02)

    def _fetch_in_time(self, scene: Scene, follower: int) -> FetchRequest:
        """The fetch that a follower repeats so that it is not too slow: of what the leader knows of it, no more.

        One that has not fetched yet says the same by a fetch of an empty log without a broker epoch.
        """
        end = scene.log(self._real).log.end_offset
        known = {one.broker: one.state for one in scene.memory(self._real).followers}
        state = known[BrokerId(follower)]
        offset = Offset(0) if state.end_offset == UNKNOWN_OFFSET else state.end_offset
        if offset != end:
            raise UnplayedError("a follower that is in time, although it has not fetched all that the leader has")
        last = scene.log(self._real).log.epoch_at(Offset(offset - 1))
        position = FetchPosition(scene.role(self._real).leader_epoch, offset, last)
        return FetchRequest(BrokerId(follower), position, state.broker_epoch)

    # ---- the answer

    async def _take_answer(self, step: Step) -> None:
        if step.is_of("leader", self._real):
            await self._answer(self._cast.isr_answer_on_wire(step.before.exchange(self._real).response))

    async def _send_again(self, step: Step) -> None:
        """The connection of the real leader's proposal is lost; it sends the same again on another."""
        if not step.is_of("leader", self._real) or self._proposal is None:
            return
        expected = self._cast.seen_proposal(self._proposal.message)
        self._proposal.close()
        self._proposal = await self._next_proposal()
        seen = None if self._proposal is None else self._cast.seen_proposal(self._proposal.message)
        same("the repeated proposal", expected, seen)

    async def close_exchange(self, step: Step) -> None:
        """Answer a proposal that the model has closed without an action of its own; compare a new one."""
        asked, now = step.before.exchange(self._real), step.after.exchange(self._real)
        if self._proposal is not None and now != asked and (now == NO_EXCHANGE or now.state == Under.SENT):
            if asked.state == Under.ANSWERED:
                answer = asked.response
            else:
                decided = (step.before if step.name in DECIDED else step.after).cluster
                answer = self._performance.players.isr_answer(decided, asked.request)
            await self._answer(self._cast.isr_answer_on_wire(answer))
        request = proposed(now)
        if request is not None and request != proposed(asked):
            await self._take_proposal(request)

    async def _answer(self, answer: Message) -> None:
        """Answer the real leader's proposal, and wait until it has noted that, if it does."""
        if self._proposal is None:
            return
        noted = len(self._notes())
        self._proposal.answer(answer)
        self._proposal = None
        deadline = time.monotonic() + REACTION_SECONDS
        while len(self._notes()) == noted and time.monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)

    def _notes(self) -> list[str]:
        """Lines of the broker's own log about the ISR of this partition."""
        words = ("ISR updated", "Failed to alter", "Failed to enqueue", "Ignoring")
        lines = self._world.process.log_text().splitlines()
        return [line for line in lines if f"{self._cast.topic}-0" in line and any(word in line for word in words)]

    # ---- the proposal

    async def _take_proposal(self, request: AlterPartitionRequest) -> None:
        expected = self._cast.expected_proposal(request)
        self._proposal = await self._next_proposal()
        seen = None if self._proposal is None else self._cast.seen_proposal(self._proposal.message)
        same("the leader's proposal", expected, seen)

    async def _next_proposal(self) -> Arrived | None:
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while time.monotonic() < deadline:
            if self._has_proposal():
                return self._world.controller.proposals.get_nowait()
            self._world.check()
            await asyncio.sleep(POLL_SECONDS)
        return None

    def _has_proposal(self) -> bool:
        """Whether a proposal for this partition has arrived. One for another is of an earlier run, and is refused."""
        queue = self._world.controller.proposals
        while not queue.empty():
            arrived = queue.get_nowait()
            if self._cast.seen_proposal(arrived.message) is not None:
                queue.put_nowait(arrived)
                return True
            arrived.answer(_refusal(arrived.message))
        return False

    def compare(self) -> None:
        """The real leader has proposed nothing that the model does not know. Raises: `DepartedError`."""
        if self._has_proposal():
            self._proposal = self._world.controller.proposals.get_nowait()
            seen = self._cast.seen_proposal(self._proposal.message)
            raise DepartedError("the leader's proposal", "none", in_words(seen))

    # ---- afterwards

    def forget(self) -> None:
        """The broker has stopped: nobody hears an answer."""
        self._proposal = None

    def refuse_what_waits(self) -> None:
        """Refuse all proposals that have no answer yet: the partition is no more."""
        proposals = [] if self._proposal is None else [self._proposal]
        while not self._world.controller.proposals.empty():
            proposals.append(self._world.controller.proposals.get_nowait())
        for arrived in proposals:
            arrived.answer(_refusal(arrived.message))


_GONE = Error.UNKNOWN_TOPIC_OR_PARTITION.value


def _refusal(asked: Message) -> Message:
    """The answer to a proposal for a partition that is there no more."""
    gone = [Message(partition_index=0, error_code=_GONE)]
    return Message(error_code=0, topics=[Message(topic_id=one.topic_id, partitions=gone) for one in asked.topics])
