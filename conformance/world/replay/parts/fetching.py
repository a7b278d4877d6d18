"""Fetches of a run: those to the real leader, and those of the real follower; also late ones."""

import asyncio
import time

from kspec.conformance.kafka.network import ArrivedRequest
from kspec.conformance.world.environment.world import POLL_SECONDS
from kspec.conformance.world.replay.decisions import NotReplayedError
from kspec.conformance.world.replay.model_state import ModelState
from kspec.conformance.world.replay.observed_replica import in_words
from kspec.conformance.world.replay.parties import FETCH_VERSION, SeenAnswer, SeenFetch
from kspec.conformance.world.replay.parts.context import (
    ARRIVAL_SECONDS,
    DepartedError,
    ReplayContext,
    StepFunction,
    WorldStep,
    same,
)
from kspec.impl.wire.values import Message
from kspec.model_check.models.kafka.values import NO_TOPIC, NOTHING_LATE
from kspec.spec.broker.rules.reading import leaving_now
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.values import Error


class FetchPart:
    """The fetches of a run. `waiting`: the real follower's next fetch at each node; `late`: the one that the run delays."""

    def __init__(self, context: ReplayContext) -> None:
        self._context = context
        self._real = context.real
        self._world, self._parties = context.world, context.parties
        self._waiting: dict[int, ArrivedRequest] = {}
        self._late: ArrivedRequest | None = None
        self.functions: dict[str, StepFunction] = {
            "Fetch": self._fetch,
            "FetchUnanswered": self._fetch_unanswered,
            "AskLeader": self._ask_leader,
            "SendFetch": self._send_late,
            "LoseConnection": self._lose_connection,
            "HandleLateFetch": self._handle_late,
            "TakeLateAnswer": self._take_late_answer,
            "TakeAnswerReadLate": self._take_answer_read_late,
        }

    # ---- fetches that are answered at once

    async def _fetch(self, step: WorldStep) -> None:
        if step.is_of("leader", self._real):
            await self._ask_real(step.before, self._next_fetch(step.before, step.args["follower"]))
        elif step.is_of("follower", self._real):
            leader = step.args["leader"]
            arrived = await self._real_fetch(step.before, leader)
            request = self._next_fetch(step.before, self._real)
            self._answer(arrived, self._context.spec_parties.fetch_answer(step.before, leader, request))
            await self._await_next_fetch(step.after, leader)

    async def _fetch_unanswered(self, step: WorldStep) -> None:
        if step.is_of("leader", self._real):
            await self._ask_real(step.before, self._next_fetch(step.before, step.args["follower"]))
        elif step.is_of("follower", self._real):
            arrived = await self._real_fetch(step.before, step.args["leader"])
            arrived.close()
            await self._await_next_fetch(step.after, step.args["leader"])

    async def _ask_leader(self, step: WorldStep) -> None:
        """Refuse the step: no release under test asks, unless its fetch was out of range; only a weakened model has it."""
        if step.is_of("follower", self._real):
            raise NotReplayedError("a follower's question where its leader's log ends")

    def _next_fetch(self, state: ModelState, follower: int) -> FetchRequest:
        found = self._context.spec_parties.next_fetch(state, follower)
        assert found is not None, "the model says that this broker fetches"
        return found[1]

    # ---- the real leader

    async def _ask_real(self, state: ModelState, request: FetchRequest) -> None:
        """Send a stand-in's fetch to the real leader, and compare the response.

        Kafka looks up the replica before any handler runs. The model has neither topics nor hosts: a broker that has not
        read of the partition's creation, or has no replica any more, knows no such epoch.
        """
        expected = self._parties.expected_answer(self._context.spec_parties.fetch_answer(state, self._real, request))
        if state.reading(self._real)[0].topic == NO_TOPIC:
            expected = SeenAnswer(Error.UNKNOWN_TOPIC_ID.value, None, None, ())
        elif not state.has_replica(self._real):
            expected = SeenAnswer(Error.NOT_LEADER_OR_FOLLOWER.value, None, None, ())
        answer = await self._world.ask("Fetch", FETCH_VERSION, self._parties.fetch_on_wire(request))
        same("the answer to a fetch", expected, self._parties.seen_answer(answer))

    # ---- the real follower

    async def _real_fetch(self, state: ModelState, leader: int) -> ArrivedRequest:
        """The fetch that the real follower has sent this leader in its present state; older ones get an empty response."""
        request = self._next_fetch(state, self._real)
        expected, node = self._parties.expected_fetch(request), self._parties.node(leader)
        arrived = await self._arrival(node, expected)
        if arrived is None:
            raise DepartedError("the follower's fetch", in_words(expected), "none")
        self._waiting[node] = arrived
        same("the follower's fetch", expected, self._parties.seen_fetch(arrived.message))
        return self._waiting.pop(node)

    async def _arrival(self, node: int, expected: SeenFetch) -> ArrivedRequest | None:
        """The next fetch at a node that is about this partition in the expected epoch; `None` if none comes in time."""
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while True:
            arrived = self._waiting.pop(node, None)
            while arrived is None or arrived.lost:
                if time.monotonic() > deadline:
                    return None
                arrived = await self._next_arrived(node)
            seen = self._parties.seen_fetch(arrived.message)
            if seen is not None and seen.current_leader_epoch >= expected.current_leader_epoch:
                return arrived
            arrived.answer(_empty_answer(arrived.message))

    def answer_older(self, step: WorldStep) -> None:
        """Answer the real follower's older requests, if it has read of a new leader epoch in the step.

        Kafka's follower drops such a response, and fetches again.
        """
        epochs = [
            [image.topic.leader_epoch for image in state.reading(self._real)[:1]] for state in (step.before, step.after)
        ]
        if epochs[0] == epochs[1] or not epochs[1]:
            return
        (epoch,) = epochs[1]
        for node, queue in self._world.fetches.items():
            arrived = [queue.get_nowait() for _ in range(queue.qsize())]
            if node in self._waiting:
                arrived.insert(0, self._waiting.pop(node))
            for one in arrived:
                seen = self._parties.seen_fetch(one.message)
                if seen is None or seen.current_leader_epoch < epoch:
                    one.answer(_empty_answer(one.message))
                else:
                    queue.put_nowait(one)

    async def _next_arrived(self, node: int) -> ArrivedRequest | None:
        queue = self._world.fetches[node]
        if queue.empty():
            self._world.check()
            await asyncio.sleep(POLL_SECONDS)
            return None
        return queue.get_nowait()

    async def _await_next_fetch(self, after: ModelState, leader: int) -> None:
        """Wait for the barrier after a response to the real follower: its next fetch from this leader, if it sends one."""
        found = self._context.spec_parties.next_fetch(after, self._real)
        if found is None or found[0] != leader:
            return
        arrived = await self._arrival(self._parties.node(leader), self._parties.expected_fetch(found[1]))
        if arrived is not None:
            self._waiting[self._parties.node(leader)] = arrived

    def _answer(self, arrived: ArrivedRequest, answer: FetchResponse) -> None:
        arrived.answer(self._parties.answer_on_wire(answer, idempotent=self._context.idempotent))

    # ---- late fetches

    async def _send_late(self, step: WorldStep) -> None:
        if step.is_of("follower", self._real):
            self._late = await self._real_fetch(step.before, step.args["leader"])

    async def _lose_connection(self, step: WorldStep) -> None:
        if step.is_of("follower", self._real):
            self._close_late()

    async def _handle_late(self, step: WorldStep) -> None:
        if step.is_of("leader", self._real):
            await self._ask_real(step.before, step.before.late(step.args["follower"]).request)

    async def _take_late_answer(self, step: WorldStep) -> None:
        if step.is_of("follower", self._real):
            await self._answer_late(step, step.before.late(self._real).answer)

    async def _take_answer_read_late(self, step: WorldStep) -> None:
        """Answer with the records that the stand-in leader's log has now: it has changed since the fetch was handled."""
        if step.is_of("follower", self._real):
            answer = leaving_now(step.before.late(self._real).answer, step.before.log(step.args["leader"]).log)
            assert answer is not None, "the model says that there is one"
            await self._answer_late(step, answer)

    async def _answer_late(self, step: WorldStep, answer: FetchResponse) -> None:
        if self._late is not None:
            late, self._late = self._late, None
            self._answer(late, answer)
            await self._await_next_fetch(step.after, step.args["leader"])

    def drop_late(self, step: WorldStep) -> None:
        """Close the connection of a response that the model has dropped."""
        if not self._context.run.model.parameters["late_fetches"]:
            return
        if step.after.late(self._real) == NOTHING_LATE and step.before.late(self._real) != NOTHING_LATE:
            self._close_late()

    def _close_late(self) -> None:
        if self._late is not None:
            self._late.close()
            self._late = None

    # ---- afterwards

    def close(self) -> None:
        """Close the connection of the delayed fetch."""
        self._close_late()

    def answer_what_waits(self) -> None:
        """Answer all fetches that are left over."""
        self._world.unexpected.clear()
        for arrived in self._waiting.values():
            arrived.answer(_empty_answer(arrived.message))
        for queue in self._world.fetches.values():
            while not queue.empty():
                arrived = queue.get_nowait()
                arrived.answer(_empty_answer(arrived.message))


def _empty_answer(asked: Message) -> Message:
    """A response to a fetch that is left over: no error, no records."""
    topics = [
        Message(
            topic_id=topic.topic_id,
            partitions=[
                Message(partition_index=part.partition, high_watermark=-1, log_start_offset=0, records=b"")
                for part in topic.partitions
            ],
        )
        for topic in asked.topics
    ]
    return Message(error_code=0, session_id=0, responses=topics)
