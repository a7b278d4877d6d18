"""Changes of the ISR in a run: the real leader's proposals, which are compared, held, and answered."""

import asyncio
import time

from kspec.conformance.kafka.network import ArrivedRequest
from kspec.conformance.world.environment.world import ENDLESS_LAG_MS, POLL_SECONDS
from kspec.conformance.world.replay.decisions import NotReplayedError
from kspec.conformance.world.replay.model_state import ModelState
from kspec.conformance.world.replay.observed_replica import in_words
from kspec.conformance.world.replay.parties import FETCH_VERSION
from kspec.conformance.world.replay.parts.context import (
    ARRIVAL_SECONDS,
    DepartedError,
    ReplayContext,
    StepFunction,
    WorldStep,
    same,
)
from kspec.conformance.world.replay.spec_parties import proposed
from kspec.impl.wire.values import Message
from kspec.model_check.models.kafka.values import NO_EXCHANGE, RequestState
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.messages.fetch import FetchPosition, FetchRequest
from kspec.spec.values import UNKNOWN_OFFSET, BrokerId, Error, Offset

REACTION_SECONDS = 0.25
"""The longest time (s) for the broker to log a response about the ISR, if it does."""

PROPOSAL_LAGS = 6
"""The wait for a proposal in lags. A leader notices a lagging follower within one and a half `replica.lag.time.max.ms`."""

DECIDED = ("GrantIsr", "RefuseIsr", "RefuseIsrForGood")
"""The controller's responses to a proposal by its state before the step."""


class Proposals:
    """The real leader's proposal that has no answer yet, if there is one."""

    def __init__(self, context: ReplayContext) -> None:
        self._context = context
        self._real = context.real
        self._world, self._parties = context.world, context.parties
        self._proposal: ArrivedRequest | None = None
        self.functions: dict[str, StepFunction] = {
            "ProposeShrink": self._propose_shrink,
            "TakeIsrAnswer": self._take_answer,
            "GrantIsrUnanswered": self._send_again,
            "SendProposalAgain": self._send_again,
        }

    # ---- time

    async def let_lag_pass(self, step: WorldStep) -> None:
        """Wait, before a step that moves the high watermark, until no follower outside the ISR is within the lag."""
        before, after, real = step.before, step.after, self._real
        rises = after.log(real).high_watermark > before.log(real).high_watermark
        if self._world.lag_ms != ENDLESS_LAG_MS and rises and after.role(real).leader == real:
            isr = after.role(real).isr
            counted = isr.isr | isr.pending_isr | {real}
            if frozenset(entry.broker for entry in after.cluster.brokers) - counted:
                await asyncio.sleep(self._world.lag_ms / 1000 + 0.05)

    async def _propose_shrink(self, step: WorldStep) -> None:
        """Wait until these followers exceed the real leader's lag; the others fetch at its log's end meanwhile."""
        if not step.is_of("leader", self._real):
            return
        if self._world.lag_ms == ENDLESS_LAG_MS:
            raise NotReplayedError("a shrink of the ISR where the lag is endless")
        isr, slow = step.before.role(self._real).isr.isr, step.args["slow"]
        kept = [one for one in isr if one != self._real and one not in slow]
        repeated = [self._parties.fetch_on_wire(self._fetch_in_time(step.before, one)) for one in kept]
        deadline = time.monotonic() + PROPOSAL_LAGS * self._world.lag_ms / 1000
        while not self._has_proposal() and time.monotonic() < deadline:
            for request in repeated:
                await self._world.ask("Fetch", FETCH_VERSION, request)
            await asyncio.sleep(0.02)

    def _fetch_in_time(self, state: ModelState, follower: int) -> FetchRequest:
        """The fetch that a follower repeats to stay within the lag: it has the state that the leader knows of it.

        A follower that has not fetched yet repeats a fetch of an empty log without a broker epoch.
        """
        end = state.log(self._real).log.end_offset
        states = {known.broker: known.state for known in state.memory(self._real).followers}
        remembered = states[BrokerId(follower)]
        offset = Offset(0) if remembered.end_offset == UNKNOWN_OFFSET else remembered.end_offset
        if offset != end:
            raise NotReplayedError("a follower that is in time, although it has not fetched all that the leader has")
        last = state.log(self._real).log.epoch_at(Offset(offset - 1))
        position = FetchPosition(state.role(self._real).leader_epoch, offset, last)
        return FetchRequest(BrokerId(follower), position, remembered.broker_epoch)

    # ---- the answer

    async def _take_answer(self, step: WorldStep) -> None:
        if step.is_of("leader", self._real):
            await self._answer(self._parties.isr_answer_on_wire(step.before.exchange(self._real).response))

    async def _send_again(self, step: WorldStep) -> None:
        """Lose the connection of the real leader's proposal; the leader sends the same again on another."""
        if not step.is_of("leader", self._real) or self._proposal is None:
            return
        expected = self._parties.seen_proposal(self._proposal.message)
        self._proposal.close()
        self._proposal = await self._next_proposal()
        seen = None if self._proposal is None else self._parties.seen_proposal(self._proposal.message)
        same("the repeated proposal", expected, seen)

    async def close_exchange(self, step: WorldStep) -> None:
        """Answer a proposal that the model has closed without an action of its own; compare a new one."""
        asked, now = step.before.exchange(self._real), step.after.exchange(self._real)
        if self._proposal is not None and now != asked and (now == NO_EXCHANGE or now.state == RequestState.SENT):
            if asked.state == RequestState.ANSWERED:
                answer = asked.response
            else:
                decided = (step.before if step.name in DECIDED else step.after).cluster
                answer = self._context.spec_parties.isr_answer(decided, asked.request)
            await self._answer(self._parties.isr_answer_on_wire(answer))
        request = proposed(now)
        if request is not None and request != proposed(asked):
            await self._take_proposal(request)

    async def _answer(self, answer: Message) -> None:
        """Answer the real leader's proposal, and wait until it has logged that, if it does."""
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
        return [line for line in lines if f"{self._parties.topic}-0" in line and any(word in line for word in words)]

    # ---- the proposal

    async def _take_proposal(self, request: AlterPartitionRequest) -> None:
        expected = self._parties.expected_proposal(request)
        self._proposal = await self._next_proposal()
        seen = None if self._proposal is None else self._parties.seen_proposal(self._proposal.message)
        same("the leader's proposal", expected, seen)

    async def _next_proposal(self) -> ArrivedRequest | None:
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
            if self._parties.seen_proposal(arrived.message) is not None:
                queue.put_nowait(arrived)
                return True
            arrived.answer(_refusal(arrived.message))
        return False

    def compare(self) -> None:
        """Check that the real leader has made no proposal that the model does not have. Raises: `DepartedError`."""
        if self._has_proposal():
            self._proposal = self._world.controller.proposals.get_nowait()
            seen = self._parties.seen_proposal(self._proposal.message)
            raise DepartedError("the leader's proposal", "none", in_words(seen))

    # ---- afterwards

    def forget(self) -> None:
        """Drop the proposal: the broker has stopped, and gets no response."""
        self._proposal = None

    def refuse_what_waits(self) -> None:
        """Refuse all proposals that have no response yet: the partition is deleted."""
        proposals = [] if self._proposal is None else [self._proposal]
        while not self._world.controller.proposals.empty():
            proposals.append(self._world.controller.proposals.get_nowait())
        for arrived in proposals:
            arrived.answer(_refusal(arrived.message))


_GONE = Error.UNKNOWN_TOPIC_OR_PARTITION.value


def _refusal(asked: Message) -> Message:
    """The response to a proposal for a deleted partition."""
    gone = [Message(partition_index=0, error_code=_GONE)]
    return Message(error_code=0, topics=[Message(topic_id=one.topic_id, partitions=gone) for one in asked.topics])
