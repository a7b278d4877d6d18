"""A run of model `kafka` on the real broker: each step performed, waited for, and compared with the model's state after it.

The script, a run of the model, only says when. What the played parties send is what `spec`'s handlers say (`players`), what
the controller writes is what `spec`'s controller has decided (`decisions`). The real broker is asked, told, and looked at by
the parts, each of which is about one subject.
"""

from collections.abc import Iterator

from conformance.world.play.afterwards import leave_as_before
from conformance.world.play.decisions import UnplayedError
from conformance.world.play.parts.clients import Clients
from conformance.world.play.parts.fetching import Fetching
from conformance.world.play.parts.isr import Proposals
from conformance.world.play.parts.life import Life
from conformance.world.play.parts.metadata import Metadata
from conformance.world.play.parts.performance import DepartedError, Performance, Step, same
from conformance.world.play.players import Scene
from conformance.world.play.unplayed import unplayed
from conformance.world.play.verdict import Departure, Verdict
from conformance.world.play.watching import expected_replica, replica_in_words, settled_replica
from conformance.world.runs.run import Run
from conformance.world.stage.world import World

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


async def replay(world: World, run: Run, name: str) -> Verdict:
    """Play a run with the world's broker, on a topic of this name, and say whether it follows.

    Raises: `BrokerGoneError`, `UnplayedError`.
    """
    reason = unplayed(run)
    if reason is not None:
        raise UnplayedError(reason)
    play = _Play(Performance(world, run, name))
    try:
        return await play.to_the_end()
    finally:
        await play.clean_up()


class _Play:
    """One run under way: each step goes to the part that it is about, and then all parts are compared."""

    def __init__(self, performance: Performance) -> None:
        self.performance = performance
        self.metadata = Metadata(performance)
        self.clients = Clients(performance)
        self.fetching = Fetching(performance)
        self.proposals = Proposals(performance)
        self.life = Life(performance, self.metadata, self.clients, self.proposals)
        parts = (self.metadata, self.clients, self.fetching, self.proposals, self.life)
        self.acts = {name: act for part in parts for name, act in part.acts.items()}
        run, world = performance.run, performance.world
        self.verdict = Verdict(world.target.jars.release, run.name, run.real, 0, target=world.target.name)

    async def to_the_end(self) -> Verdict:
        for step in self._steps():
            try:
                await self._take(step)
            except DepartedError as error:
                rule = RULES.get(step.name, "spec.broker.roles.apply_change")
                self.verdict.departure = Departure(
                    step.number, step.action.label, error.what, error.expected, error.observed, rule
                )
                break
            self.verdict.steps = step.number
        self.clients.count(self.verdict)
        return self.verdict

    def _steps(self) -> Iterator[Step]:
        run = self.performance.run
        before = Scene(run.model, run.trace[0].state)
        for entry in before.cluster.brokers:
            self.performance.cast.knows_epoch(entry.broker, entry.broker_epoch)
        for number, taken in enumerate(run.trace[1:], start=1):
            assert taken.action is not None
            after = Scene(run.model, taken.state)
            yield Step(number, taken.action, before, after)
            before = after

    async def _take(self, step: Step) -> None:
        await self.proposals.let_lag_pass(step)
        if step.name in self.acts:
            await self.acts[step.name](step)
        await self.metadata.publish(step)
        self.fetching.answer_older(step)
        self.fetching.drop_late(step)
        await self.proposals.close_exchange(step)
        await self._compare(step)

    async def _compare(self, step: Step) -> None:
        performance = self.performance
        expected = expected_replica(step.after, performance.real) if await self.life.serves(step) else None
        if expected is not None:
            same("the replica", expected, await settled_replica(performance.cast, expected))
        await self.clients.compare(step)
        if performance.world.unexpected:
            raise DepartedError("a question of the follower", "none", performance.world.unexpected[0].api)
        self.proposals.compare()
        shown = "nothing to see" if expected is None else replica_in_words(expected)
        self.verdict.told.append(f"{step.name}: {', '.join([shown, *self.clients.in_words()])}")

    async def clean_up(self) -> None:
        """Remove the topic, answer what still waits, and bring all registrations back to what they were."""
        await self.clients.close()
        await self.life.end_if_told_to_stop()
        if not self.performance.world.process.running:
            return
        self.fetching.close()
        try:
            await leave_as_before(self.performance.cast)
        finally:
            self.fetching.answer_what_waits()
            self.proposals.refuse_what_waits()
