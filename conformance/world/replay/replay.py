"""A run of model `kafka` on the real broker: each step performed, waited for, and compared with the model's state after it.

The run of the model gives the order of steps. The messages of the other parties are those of `spec`'s handlers
(`spec_parties`), the controller's records are the decisions of `spec`'s controller (`decisions`). The parts, each about one
subject, exchange messages with the real broker and observe it.
"""

from collections.abc import Iterator

from kspec.conformance.world.environment.world import World
from kspec.conformance.world.replay.cleanup import leave_as_before
from kspec.conformance.world.replay.decisions import NotReplayedError
from kspec.conformance.world.replay.model_state import ModelState
from kspec.conformance.world.replay.not_replayed import not_replayed
from kspec.conformance.world.replay.observed_replica import expected_replica, replica_in_words, settled_replica
from kspec.conformance.world.replay.parts.clients import WorldProducers
from kspec.conformance.world.replay.parts.context import DepartedError, ReplayContext, WorldStep, same
from kspec.conformance.world.replay.parts.fetching import FetchPart
from kspec.conformance.world.replay.parts.incarnations import Incarnations
from kspec.conformance.world.replay.parts.isr import Proposals
from kspec.conformance.world.replay.parts.metadata import Metadata
from kspec.conformance.world.replay.verdict import BrokerDeparture, RunVerdict
from kspec.conformance.world.runs.run import WorldRun

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
"""The handlers whose rules give the expectation after a step of the broker under test."""


async def replay(world: World, run: WorldRun, name: str) -> RunVerdict:
    """Replay a run with the world's broker, on a topic of this name; whether it follows.

    Raises: `BrokerGoneError`, `NotReplayedError`.
    """
    reason = not_replayed(run)
    if reason is not None:
        raise NotReplayedError(reason)
    replaying = _RunReplay(ReplayContext(world, run, name))
    try:
        return await replaying.to_the_end()
    finally:
        await replaying.clean_up()


class _RunReplay:
    """The replay of one run: each step goes to the part that it is about, and then all parts are compared."""

    def __init__(self, context: ReplayContext) -> None:
        self.context = context
        self.metadata = Metadata(context)
        self.clients = WorldProducers(context)
        self.fetching = FetchPart(context)
        self.proposals = Proposals(context)
        self.incarnations = Incarnations(context, self.metadata, self.clients, self.proposals)
        parts = (self.metadata, self.clients, self.fetching, self.proposals, self.incarnations)
        self.functions = {name: function for part in parts for name, function in part.functions.items()}
        run, world = context.run, context.world
        self.verdict = RunVerdict(world.target.jars.release, run.name, run.real, 0, target=world.target.name)

    async def to_the_end(self) -> RunVerdict:
        for step in self._steps():
            try:
                await self._take(step)
            except DepartedError as error:
                rule = RULES.get(step.name, "spec.broker.roles.apply_change")
                self.verdict.departure = BrokerDeparture(
                    step.number, step.action.label, error.what, error.expected, error.observed, rule
                )
                break
            self.verdict.steps = step.number
        self.clients.count(self.verdict)
        return self.verdict

    def _steps(self) -> Iterator[WorldStep]:
        run = self.context.run
        before = ModelState(run.model, run.trace[0].state)
        for entry in before.cluster.brokers:
            self.context.parties.knows_epoch(entry.broker, entry.broker_epoch)
        for number, taken in enumerate(run.trace[1:], start=1):
            assert taken.action is not None
            after = ModelState(run.model, taken.state)
            yield WorldStep(number, taken.action, before, after)
            before = after

    async def _take(self, step: WorldStep) -> None:
        await self.proposals.let_lag_pass(step)
        if step.name in self.functions:
            await self.functions[step.name](step)
        await self.metadata.publish(step)
        self.fetching.answer_older(step)
        self.fetching.drop_late(step)
        await self.proposals.close_exchange(step)
        await self._compare(step)

    async def _compare(self, step: WorldStep) -> None:
        context = self.context
        expected = expected_replica(step.after, context.real) if await self.incarnations.serves(step) else None
        if expected is not None:
            same("the replica", expected, await settled_replica(context.parties, expected))
        await self.clients.compare(step)
        if context.world.unexpected:
            raise DepartedError("a question of the follower", "none", context.world.unexpected[0].api)
        self.proposals.compare()
        shown = "nothing to see" if expected is None else replica_in_words(expected)
        self.verdict.told.append(f"{step.name}: {', '.join([shown, *self.clients.in_words()])}")

    async def clean_up(self) -> None:
        """Remove the topic, answer the waiting requests, and restore all registrations."""
        await self.clients.close()
        await self.incarnations.end_if_told_to_stop()
        if not self.context.world.process.running:
            return
        self.fetching.close()
        try:
            await leave_as_before(self.context.parties)
        finally:
            self.fetching.answer_what_waits()
            self.proposals.refuse_what_waits()
