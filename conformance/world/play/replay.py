"""A run of model `kafka` on the real broker: each step performed, waited for, and compared with the model's state after it.

The script, a run of the model, only says when. What the played parties send is what `spec`'s handlers say (`players`), what
the controller writes is what `spec`'s controller has decided (`decisions`). The real broker is asked, told, and looked at.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from conformance.kafka.network import Arrived, Connection
from conformance.world.play.cast import FETCH_VERSION, PRODUCE_VERSION, Cast, SeenAnswer, SeenFetch
from conformance.world.play.decisions import UnplayedError, records_of_decision
from conformance.world.play.players import Players, Scene, proposed
from conformance.world.play.restart import come_back, let_read, lose_power, start_again
from conformance.world.play.verdict import Departure, Verdict
from conformance.world.play.watching import Answer, difference, expected_replica, in_words, on_disk, settled_replica
from conformance.world.runs.run import Run
from conformance.world.stage.world import ENDLESS_LAG_MS, POLL_SECONDS, REAL_NODE, World
from impl.wire.values import Message
from model_check.models.kafka.values import NO_EXCHANGE, NO_TOPIC, NOTHING_LATE, Under
from spec.messages.fetch import FetchPosition, FetchRequest
from spec.messages.produce import ACKS_ALL, ACKS_LEADER
from spec.values import UNKNOWN_OFFSET, BrokerId, Error, Offset

ARRIVAL_SECONDS = 3.0
"""How long a request of the real broker may take that the model says it sends."""

REACTION_SECONDS = 0.25
"""How long the broker may take to note an answer about the ISR in its log, if it does."""

PROPOSAL_LAGS = 6
"""A follower that is too slow is noticed within one and a half of `replica.lag.time.max.ms`; this many are waited for."""

NOT_PLAYED = {
    "BeginShutdown": "controlled shutdown of the broker under test",
    "AskToStop": "controlled shutdown of the broker under test",
    "StopAtOnce": "controlled shutdown of the broker under test",
    "StopCleanly": "controlled shutdown of the broker under test",
    "StopUnheard": "a clean stop of the broker under test",
    "StopWithoutLeave": "a clean stop of the broker under test",
    "RegisterStarted": "a restart of the broker under test",
    "RegisterAgain": "a second registration of the broker under test",
    "Start": "a restart of the broker under test",
    "StartOnLateAnswer": "a restart of the broker under test",
}
"""Actions of the broker under test that the world does not play yet, with what they are about."""

RULES = {
    "Produce": "spec.broker.leader.produce.handle_produce",
    "ProduceAgain": "spec.broker.leader.produce.handle_produce",
    "Fetch": "spec.broker.leader.fetch.handle_fetch, spec.broker.follower.handle_fetch_response",
    "FetchUnanswered": "spec.broker.leader.fetch.handle_fetch",
    "HandleLateFetch": "spec.broker.leader.fetch.handle_fetch",
    "TakeLateAnswer": "spec.broker.follower.handle_fetch_response",
    "TakeAnswerReadLate": "spec.broker.follower.handle_fetch_response",
    "ReplayMetadata": "spec.broker.roles.apply_change",
    "ProposeShrink": "spec.broker.leader.isr.consider_shrinking",
    "TakeIsrAnswer": "spec.broker.leader.isr.handle_alter_partition_response",
}
"""The handlers whose rules say what is expected after a step of the broker under test."""


class DepartedError(Exception):
    """The real broker does something else than the model."""

    def __init__(self, what: str, expected: str, observed: str) -> None:
        super().__init__(f"{what}: expected {expected}, observed {observed}")
        self.what, self.expected, self.observed = what, expected, observed


def unplayed(run: Run) -> str | None:
    """Why the world does not play a run, or `None` if it does."""
    for step in run.trace[1:]:
        assert step.action is not None
        if step.action.name in NOT_PLAYED and step.action.args.get("broker") == run.real:
            return NOT_PLAYED[step.action.name]
    return None


async def replay(world: World, run: Run, name: str) -> Verdict:
    """Play a run with the world's broker, on a topic of this name, and say whether it follows.

    Raises: `BrokerGoneError`, `UnplayedError`.
    """
    reason = unplayed(run)
    if reason is not None:
        raise UnplayedError(reason)
    play = _Play(world, run, name)
    try:
        return await play.to_the_end()
    finally:
        await play.clean_up()


class _Play:
    """One run under way."""

    def __init__(self, world: World, run: Run, name: str) -> None:
        self.world = world
        self.run = run
        self.real = run.real
        self.players = Players(dict(run.model.parameters))
        self.cast = Cast(world, run.real, name)
        self.idempotent = bool(run.model.parameters["retries"])
        self.verdict = Verdict(world.jars.release, run.name, run.real, 0)
        self.cuts = [world.log.shown]
        self.produced: dict[int, list[asyncio.Future[Message]]] = {}
        self.told_elsewhere: set[int] = set()
        self.connections: list[Connection] = []
        self.proposal: Arrived | None = None
        self.waiting: dict[int, Arrived] = {}
        self.late: Arrived | None = None
        self._looked_at = 0

    # ---- the steps in order

    async def to_the_end(self) -> Verdict:
        trace = self.run.trace
        first = Scene(self.run.model, trace[0].state)
        for entry in first.cluster.brokers:
            self.cast.knows_epoch(entry.broker, entry.broker_epoch)
        before = first
        for number, step in enumerate(trace[1:], start=1):
            assert step.action is not None
            after = Scene(self.run.model, step.state)
            try:
                await self._step(step.action.name, dict(step.action.args), before, after)
            except DepartedError as error:
                rule = RULES.get(step.action.name, "spec.broker.roles.apply_change")
                self.verdict.departure = Departure(
                    number, step.action.label, error.what, error.expected, error.observed, rule
                )
                break
            self.verdict.steps = number
            before = after
        self._count_records()
        return self.verdict

    async def _step(self, name: str, args: dict[str, Any], before: Scene, after: Scene) -> None:
        await self._let_lag_pass(name, before, after)
        perform = getattr(self, f"_do_{name}", None)
        if perform is not None:
            act: Callable[..., Awaitable[None]] = perform
            await act(before, after, **args)
        await self._publish(before, after)
        await self._close_exchange(name, before, after)
        await self._compare(name, before, after)

    async def _let_lag_pass(self, name: str, before: Scene, after: Scene) -> None:
        """Where the clock runs, a follower counts as caught up for a while: wait before the high watermark passes one."""
        rises = after.log(self.real).high_watermark > before.log(self.real).high_watermark
        if self.world.lag_ms != ENDLESS_LAG_MS and rises and after.role(self.real).leader == self.real:
            isr = after.role(self.real).isr
            counted = isr.isr | isr.pending_isr | {self.real}
            if frozenset(entry.broker for entry in after.cluster.brokers) - counted:
                await asyncio.sleep(self.world.lag_ms / 1000 + 0.05)

    # ---- metadata

    async def _publish(self, before: Scene, after: Scene) -> None:
        """Write what the controller has decided, and show the broker what it reads at once."""
        world = self.world
        settings = {"min.insync.replicas": self.run.model.parameters["min_isr"]}
        records = records_of_decision(self.cast, before.cluster, after.cluster, settings)
        if not records:
            return
        world.log.append(records)
        if self.cast.registration is not None:
            self.cast.registration.answer(Message(error_code=0, broker_epoch=world.epochs[REAL_NODE]))
            self.cast.registration = None
        unread, was = len(after.reading(self.real)), len(before.reading(self.real))
        if not was:
            self.cuts = [world.log.end]
        elif unread > was:
            self.cuts.append(world.log.end)
        elif unread:
            self.cuts[-1] = world.log.end
            if unread == 1:
                await self._show(world.log.end)

    async def _show(self, end: int) -> None:
        self.world.log.show(end)
        await self.world.applied()

    async def _do_ReplayMetadata(self, before: Scene, after: Scene, *, broker: int, decisions: int) -> None:
        if broker == self.real:
            self.cuts = self.cuts[decisions:]
            await self._show(self.cuts[0])

    # ---- stopping and starting

    async def _do_UncleanShutdown(
        self,
        before: Scene,
        after: Scene,
        *,
        broker: int,
        kept: int,
        checkpointedHighWatermark: int,
    ) -> None:
        if broker == self.real:
            await lose_power(self.cast, kept, checkpointedHighWatermark)
            self.produced = {value: sent for value, sent in self.produced.items() if all(map(_was_heard, sent))}
            self.proposal = None

    async def _do_Register(self, before: Scene, after: Scene, *, broker: int, successor: int) -> None:
        if broker == self.real:
            self.cast.registration = await start_again(self.cast)

    async def _do_TakeFirstImage(self, before: Scene, after: Scene, *, broker: int, decisions: int) -> None:
        if broker == self.real:
            self.cuts = self.cuts[decisions:]
            let_read(self.cast)
            await self._show(self.cuts[0])

    async def _serves(self, after: Scene) -> bool:
        """Whether the broker answers requests in this state; if it does, its start is complete."""
        if not self.players.answers(after, self.real):
            return False
        if not self.world.process.started:
            await self.world.until(lambda: self.world.process.started, "complete its start", self.world.start_seconds)
        return True

    # ---- clients

    async def _do_Produce(self, before: Scene, after: Scene, *, leader: int) -> None:
        if leader == self.real:
            await self._produce(after.state[self.run.model.slot_named("produced").position])

    async def _do_ProduceAgain(self, before: Scene, after: Scene, *, leader: int, value: int) -> None:
        if leader == self.real:
            if value in {placed.record.value for placed in before.clients.told} and value not in self.produced:
                self.told_elsewhere.add(value)
            await self._produce(value)

    async def _produce(self, value: int) -> None:
        """Send a record on a connection of its own: a connection waits for the answer to its last request."""
        acks = ACKS_LEADER if self.run.model.parameters["acks"] == "1" else ACKS_ALL
        connection = await self.world.connect()
        self.connections.append(connection)
        part = Message(index=0, records=self.cast.record_batch(value, idempotent=self.idempotent))
        topic = Message(name=self.cast.topic, partition_data=[part])
        request = Message(transactional_id=None, acks=acks, timeout_ms=600_000, topic_data=[topic])
        self.produced.setdefault(value, []).append(connection.send("Produce", PRODUCE_VERSION, request))

    def _answers(self, value: int) -> list[Answer]:
        found = []
        for future in self.produced.get(value, ()):
            if future.done() and future.exception() is None:
                part = future.result().responses[0].partition_responses[0]
                found.append(Answer(part.error_code, part.base_offset))
        return found

    # ---- fetching

    async def _do_Fetch(self, before: Scene, after: Scene, *, follower: int, leader: int) -> None:
        if leader == self.real:
            await self._ask_real(before, self._next_fetch(before, follower))
        elif follower == self.real:
            arrived = await self._real_fetch(before, leader)
            answer = self.players.fetch_answer(before, leader, self._next_fetch(before, follower))
            arrived.answer(self.cast.answer_on_wire(answer, idempotent=self.idempotent))
            await self._await_next_fetch(after, leader)

    async def _do_FetchUnanswered(self, before: Scene, after: Scene, *, follower: int, leader: int) -> None:
        if leader == self.real:
            await self._ask_real(before, self._next_fetch(before, follower))
        elif follower == self.real:
            arrived = await self._real_fetch(before, leader)
            arrived.close()
            await self._await_next_fetch(after, leader)

    async def _do_AskLeader(self, before: Scene, after: Scene, *, follower: int, leader: int) -> None:
        if follower == self.real:
            raise UnplayedError("a follower's question where its leader's log ends")

    def _next_fetch(self, scene: Scene, follower: int) -> FetchRequest:
        found = self.players.next_fetch(scene, follower)
        assert found is not None, "the model says that this broker fetches"
        return found[1]

    async def _ask_real(self, scene: Scene, request: FetchRequest) -> None:
        """A played follower fetches from the real leader; its answer is compared.

        Kafka looks for the replica before any handler is asked. The model has neither topics nor hosts: a broker that has
        not read of the partition's creation, or has no replica any more, knows no such epoch.
        """
        expected = self.cast.expected_answer(self.players.fetch_answer(scene, self.real, request))
        if scene.reading(self.real)[0].topic == NO_TOPIC:
            expected = SeenAnswer(Error.UNKNOWN_TOPIC_ID.value, None, None, ())
        elif not scene.has_replica(self.real):
            expected = SeenAnswer(Error.NOT_LEADER_OR_FOLLOWER.value, None, None, ())
        answer = await self.world.ask("Fetch", FETCH_VERSION, self.cast.fetch_on_wire(request))
        self._same("the answer to a fetch", expected, self.cast.seen_answer(answer))

    async def _real_fetch(self, scene: Scene, leader: int) -> Arrived:
        """The fetch that the real follower has sent this leader in its present state; older ones are answered away."""
        request = self._next_fetch(scene, self.real)
        expected = self.cast.expected_fetch(request)
        arrived = await self._arrival(self.cast.node(leader), expected)
        if arrived is None:
            raise DepartedError("the follower's fetch", in_words(expected), "none")
        self.waiting[self.cast.node(leader)] = arrived
        self._same("the follower's fetch", expected, self.cast.seen_fetch(arrived.message))
        return self.waiting.pop(self.cast.node(leader))

    async def _arrival(self, node: int, expected: SeenFetch) -> Arrived | None:
        """The next fetch at a node that is about this partition in the expected epoch; `None` if none comes in time."""
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while True:
            arrived = self.waiting.pop(node, None)
            while arrived is None or arrived.lost:
                if time.monotonic() > deadline:
                    return None
                arrived = await self._next_arrived(node)
            seen = self.cast.seen_fetch(arrived.message)
            if seen is not None and seen.current_leader_epoch >= expected.current_leader_epoch:
                return arrived
            arrived.answer(_empty_answer(arrived.message))

    async def _next_arrived(self, node: int) -> Arrived | None:
        queue = self.world.fetches[node]
        if queue.empty():
            self.world.check()
            await asyncio.sleep(POLL_SECONDS)
            return None
        return queue.get_nowait()

    async def _await_next_fetch(self, after: Scene, leader: int) -> None:
        """The barrier after an answer to the real follower: its next fetch of this leader, if it has one to send."""
        found = self.players.next_fetch(after, self.real)
        if found is None or found[0] != leader:
            return
        arrived = await self._arrival(self.cast.node(leader), self.cast.expected_fetch(found[1]))
        if arrived is not None:
            self.waiting[self.cast.node(leader)] = arrived

    # ---- late fetches

    async def _do_SendFetch(self, before: Scene, after: Scene, *, follower: int, leader: int) -> None:
        if follower == self.real:
            self.late = await self._real_fetch(before, leader)

    async def _do_LoseConnection(self, before: Scene, after: Scene, *, follower: int) -> None:
        if follower == self.real and self.late is not None:
            self.late.close()
            self.late = None

    async def _do_HandleLateFetch(self, before: Scene, after: Scene, *, follower: int, leader: int) -> None:
        if leader == self.real:
            await self._ask_real(before, before.late(follower).request)

    async def _do_TakeLateAnswer(self, before: Scene, after: Scene, *, follower: int, leader: int) -> None:
        if follower == self.real and self.late is not None:
            answer = before.late(follower).answer
            self.late.answer(self.cast.answer_on_wire(answer, idempotent=self.idempotent))
            self.late = None
            await self._await_next_fetch(after, leader)

    async def _do_TakeAnswerReadLate(self, before: Scene, after: Scene, *, follower: int, leader: int) -> None:
        if follower == self.real:
            raise UnplayedError("an answer whose records were read late")

    def _drop_late(self, before: Scene, after: Scene) -> None:
        """An answer that the model has dropped reaches nobody: its connection is closed."""
        if self.late is None or not self.run.model.parameters["late_fetches"]:
            return
        if after.late(self.real) == NOTHING_LATE and before.late(self.real) != NOTHING_LATE:
            self.late.close()
            self.late = None

    # ---- changes of the ISR

    async def _do_ProposeShrink(self, before: Scene, after: Scene, *, leader: int, slow: tuple[int, ...]) -> None:
        """Time passes until the real leader finds these followers too slow; the others fetch at its end meanwhile."""
        if leader != self.real:
            return
        if self.world.lag_ms == ENDLESS_LAG_MS:
            raise UnplayedError("a shrink of the ISR where no lag is too long")
        kept = [one for one in before.role(self.real).isr.isr if one != self.real and one not in slow]
        repeated = [self.cast.fetch_on_wire(self._fetch_in_time(before, one)) for one in kept]
        deadline = time.monotonic() + PROPOSAL_LAGS * self.world.lag_ms / 1000
        while not self._has_proposal() and time.monotonic() < deadline:
            for request in repeated:
                await self.world.ask("Fetch", FETCH_VERSION, request)
            await asyncio.sleep(0.02)

    def _fetch_in_time(self, scene: Scene, follower: int) -> FetchRequest:
        """The fetch that a follower repeats so that it is not too slow: of what the leader knows of it, no more.

        One that has not fetched yet says the same by a fetch of an empty log without a broker epoch.
        """
        end = scene.log(self.real).log.end_offset
        known = {one.broker: one.state for one in scene.memory(self.real).followers}
        state = known[BrokerId(follower)]
        offset = Offset(0) if state.end_offset == UNKNOWN_OFFSET else state.end_offset
        if offset != end:
            raise UnplayedError("a follower that is in time, although it has not fetched all that the leader has")
        last = scene.log(self.real).log.epoch_at(Offset(offset - 1))
        position = FetchPosition(scene.role(self.real).leader_epoch, offset, last)
        return FetchRequest(BrokerId(follower), position, state.broker_epoch)

    async def _do_TakeIsrAnswer(self, before: Scene, after: Scene, *, leader: int) -> None:
        if leader == self.real:
            await self._answer_proposal(self.cast.isr_answer_on_wire(before.exchange(leader).response))

    async def _do_GrantIsrUnanswered(self, before: Scene, after: Scene, *, leader: int, successor: int = 0) -> None:
        await self._send_again(leader)

    async def _do_SendProposalAgain(self, before: Scene, after: Scene, *, leader: int) -> None:
        await self._send_again(leader)

    async def _send_again(self, leader: int) -> None:
        """The connection of the real leader's proposal is lost; it sends the same again on another."""
        if leader != self.real or self.proposal is None:
            return
        expected = self.cast.seen_proposal(self.proposal.message)
        self.proposal.close()
        self.proposal = await self._next_proposal()
        seen = None if self.proposal is None else self.cast.seen_proposal(self.proposal.message)
        self._same("the repeated proposal", expected, seen)

    async def _close_exchange(self, name: str, before: Scene, after: Scene) -> None:
        """Compare a new proposal; answer one that the model has closed without an action of its own."""
        self._drop_late(before, after)
        asked, now = before.exchange(self.real), after.exchange(self.real)
        if self.proposal is not None and now != asked and (now == NO_EXCHANGE or now.state == Under.SENT):
            if asked.state == Under.ANSWERED:
                answer = asked.response
            else:
                decided = name in ("GrantIsr", "RefuseIsr", "RefuseIsrForGood")
                answer = self.players.isr_answer((before if decided else after).cluster, asked.request)
            await self._answer_proposal(self.cast.isr_answer_on_wire(answer))
        request = proposed(now)
        if request is not None and request != proposed(asked):
            expected = self.cast.expected_proposal(request)
            self.proposal = await self._next_proposal()
            seen = None if self.proposal is None else self.cast.seen_proposal(self.proposal.message)
            self._same("the leader's proposal", expected, seen)

    async def _next_proposal(self) -> Arrived | None:
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while time.monotonic() < deadline:
            if self._has_proposal():
                return self.world.proposals.get_nowait()
            self.world.check()
            await asyncio.sleep(POLL_SECONDS)
        return None

    def _has_proposal(self) -> bool:
        """Whether a proposal for this partition has arrived. One for another is of an earlier run, and is refused."""
        queue = self.world.proposals
        while not queue.empty():
            arrived = queue.get_nowait()
            if self.cast.seen_proposal(arrived.message) is not None:
                queue.put_nowait(arrived)
                return True
            arrived.answer(_refusal(arrived.message))
        return False

    async def _answer_proposal(self, answer: Message) -> None:
        """Answer the real leader's proposal, and wait until it has noted that, if it does."""
        if self.proposal is None:
            return
        noted = len(self._notes())
        self.proposal.answer(answer)
        self.proposal = None
        deadline = time.monotonic() + REACTION_SECONDS
        while len(self._notes()) == noted and time.monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)

    def _notes(self) -> list[str]:
        """Lines of the broker's own log about the ISR of this partition."""
        words = ("ISR updated", "Failed to alter", "Failed to enqueue", "Ignoring")
        lines = self.world.process.log_text().splitlines()
        return [line for line in lines if f"{self.cast.topic}-0" in line and any(word in line for word in words)]

    # ---- comparing

    def _same(self, what: str, expected: Any, observed: Any) -> None:
        if expected == observed:
            return
        found = None if observed is None else difference(expected, observed)
        if found is None:
            raise DepartedError(what, in_words(expected), "none" if observed is None else in_words(observed))
        raise DepartedError(f"{what}: {found[0]}", found[1], found[2])

    async def _compare(self, name: str, before: Scene, after: Scene) -> None:
        expected = expected_replica(after, self.real) if await self._serves(after) else None
        if expected is not None:
            self._same("the replica", expected, await settled_replica(self.cast, expected))
        await self._compare_clients(after)
        if self.world.unexpected:
            raise DepartedError("a question of the follower", "none", self.world.unexpected[0].api)
        if self._has_proposal():
            self.proposal = self.world.proposals.get_nowait()
            raise DepartedError("the leader's proposal", "none", in_words(self.cast.seen_proposal(self.proposal.message)))
        heard = [f"m{value} {_outcome(self._answers(value), len(sent))}" for value, sent in self.produced.items()]
        shown = "nothing to see" if expected is None else _replica_in_words(expected)
        self.verdict.told.append(f"{name}: {', '.join([shown, *heard])}")

    async def _compare_clients(self, after: Scene) -> None:
        """What producers have heard: acknowledged, refused, or nothing yet."""
        told = {placed.record.value: placed.offset for placed in after.clients.told}
        waits = {waiting.request for waiting in after.memory(self.real).waiting}
        deadline = time.monotonic() + ARRIVAL_SECONDS
        for value, sent in self.produced.items():
            wanted = {"refused"} if value not in told or value in self.told_elsewhere else set[str]()
            if value in told:
                wanted.add(f"acknowledged at offset {told[value]}")
            if value in waits:
                wanted = {"waiting"}
            while _outcome(self._answers(value), len(sent)) not in wanted and time.monotonic() < deadline:
                if value in waits:
                    break
                self.world.check()
                await asyncio.sleep(POLL_SECONDS)
            found = _outcome(self._answers(value), len(sent))
            if found not in wanted:
                raise DepartedError(f"the producer of m{value}", " or ".join(sorted(wanted)), found)

    def _count_records(self) -> None:
        """Which records were acknowledged, and whether one is lost: the real broker has it no more."""
        disk = {record.value for record in on_disk(self.cast)}
        for value, sent in self.produced.items():
            outcome = _outcome(self._answers(value), len(sent))
            if outcome.startswith("acknowledged"):
                self.verdict.acknowledged.append(value)
                self.verdict.acknowledged_lost |= value not in disk
            elif outcome == "refused":
                self.verdict.refused.append(value)

    # ---- afterwards

    async def clean_up(self) -> None:
        """Remove the topic, answer what still waits, and bring all registrations back to what they were."""
        world = self.world
        for connection in self.connections:
            await connection.close()
        if not world.process.running:
            return
        if self.late is not None:
            self.late.close()
        try:
            if not world.process.started:
                await come_back(self.cast)
            world.holds_registrations = False
            world.log.show()
            await world.applied()
            world.log.append([("RemoveTopicRecord", Message(topic_id=self.cast.topic_id))])
            back = [world.registration_change(node, fenced=False) for node in sorted(world.fenced)]
            if back:
                world.log.append(back)
            for node in sorted(world.leaving):
                world.log.append([world.new_incarnation(node, world.log.end)])
            world.log.show()
            await world.applied()
        finally:
            self._answer_what_waits()

    def _answer_what_waits(self) -> None:
        self.world.unexpected.clear()
        for arrived in self.waiting.values():
            arrived.answer(_empty_answer(arrived.message))
        for queue in self.world.fetches.values():
            while not queue.empty():
                arrived = queue.get_nowait()
                arrived.answer(_empty_answer(arrived.message))
        proposals = [] if self.proposal is None else [self.proposal]
        while not self.world.proposals.empty():
            proposals.append(self.world.proposals.get_nowait())
        for arrived in proposals:
            arrived.answer(_refusal(arrived.message))


_GONE = Error.UNKNOWN_TOPIC_OR_PARTITION.value


def _was_heard(sent: asyncio.Future[Message]) -> bool:
    """Whether a producer has its answer: one that has none when the broker stops never hears."""
    return sent.done() and sent.exception() is None


def _refusal(asked: Message) -> Message:
    """The answer to a proposal for a partition that is there no more."""
    gone = [Message(partition_index=0, error_code=_GONE)]
    return Message(error_code=0, topics=[Message(topic_id=one.topic_id, partitions=gone) for one in asked.topics])


def _outcome(answers: list[Answer], sent: int) -> str:
    """What producers of one record have heard in the end."""
    if len(answers) < sent:
        return "waiting"
    granted = sorted({answer.offset for answer in answers if answer.error == 0})
    return f"acknowledged at offset {granted[0]}" if granted else "refused"


def _replica_in_words(replica: Any) -> str:
    role = "leads" if replica.leads else "follows"
    return f"{role} in epoch {replica.leader_epoch}, log {in_words(replica.log)}, high watermark {replica.high_watermark}"


def _empty_answer(asked: Message) -> Message:
    """An answer to a fetch that nobody wants any more: no error, no records."""
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
