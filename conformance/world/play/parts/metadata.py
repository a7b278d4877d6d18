"""The metadata log of a run: what the controller has decided is written, and the broker sees it when the run says so."""

from collections.abc import Sequence

from conformance.world.play.decisions import records_of_decision
from conformance.world.play.parts.performance import Act, Performance, Step
from conformance.world.stage.registry import Written


class Metadata:
    """`cuts`: where the log ended after what the broker has read, and after each decision that it has still to read."""

    def __init__(self, performance: Performance) -> None:
        self._performance = performance
        self._world = performance.world
        self._cuts = [self._world.log.shown]
        self.acts: dict[str, Act] = {"ReplayMetadata": self._replay}

    def begins_to_read(self) -> None:
        """A broker that starts has all decisions so far to read, as one image."""
        self._cuts = [self._world.log.end]

    async def read(self, decisions: int) -> None:
        """The broker reads this many decisions at once."""
        self._cuts = self._cuts[decisions:]
        await self._show(self._cuts[0])

    async def publish(self, step: Step) -> None:
        """Write what the controller has decided, and answer the registration that it was about."""
        cast = self._performance.cast
        settings = {"min.insync.replicas": self._performance.run.model.parameters["min_isr"]}
        records = records_of_decision(cast, step.before.cluster, step.after.cluster, settings)
        if not records:
            return
        await self.write(records, step)
        if cast.registration is not None:
            cast.registration.answer(self._world.controller.registered())
            cast.registration = None

    async def write(self, records: Sequence[Written], step: Step) -> None:
        """Write a decision; a broker that needs no step of its own for it reads it at once, if it reads at all yet."""
        world, real = self._world, self._performance.real
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

    async def _replay(self, step: Step) -> None:
        if step.is_of("broker", self._performance.real):
            await self.read(step.args["decisions"])

    async def _show(self, end: int) -> None:
        self._world.log.show(end)
        await self._world.applied()
