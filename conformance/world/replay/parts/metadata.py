"""The metadata log of a run: the controller's decisions are written, and become visible by steps of the run."""

from collections.abc import Sequence

from kspec.conformance.world.environment.registry import Written
from kspec.conformance.world.replay.decisions import records_of_decision
from kspec.conformance.world.replay.parts.context import ReplayContext, StepFunction, WorldStep


class Metadata:
    """The broker's progress. `cuts`: the log's end after the decisions it has read, and after each one still to read."""

    def __init__(self, context: ReplayContext) -> None:
        self._context = context
        self._world = context.world
        self._cuts = [self._world.log.shown]
        self.functions: dict[str, StepFunction] = {"ReplayMetadata": self._replay}

    def begins_to_read(self) -> None:
        """Give a broker that starts all decisions so far to read, as one image."""
        self._cuts = [self._world.log.end]

    async def read(self, decisions: int) -> None:
        """Let the broker read this many decisions at once."""
        self._cuts = self._cuts[decisions:]
        await self._show(self._cuts[0])

    async def publish(self, step: WorldStep) -> None:
        """Write the controller's decision, and answer the registration that it was about."""
        parties = self._context.parties
        settings = {"min.insync.replicas": self._context.run.model.parameters["min_isr"]}
        records = records_of_decision(parties, step.before.cluster, step.after.cluster, settings)
        if not records:
            return
        await self.write(records, step)
        if parties.registration is not None:
            parties.registration.answer(self._world.controller.registered())
            parties.registration = None

    async def write(self, records: Sequence[Written], step: WorldStep) -> None:
        """Write a decision; the broker reads it at once if it needs no step of its own for it, and reads at all yet."""
        world, real = self._world, self._context.real
        world.log.append(records)
        unread, was = len(step.after.reading(real)), len(step.before.reading(real))
        if not was:
            self.begins_to_read()
        elif unread > was:
            self._cuts.append(world.log.end)
        elif unread:
            self._cuts[-1] = world.log.end
            if unread == 1 and step.before.process(real).published:
                await self._show(world.log.end)

    async def _replay(self, step: WorldStep) -> None:
        if step.is_of("broker", self._context.real):
            await self.read(step.args["decisions"])

    async def _show(self, end: int) -> None:
        self._world.log.show(end)
        await self._world.applied()
