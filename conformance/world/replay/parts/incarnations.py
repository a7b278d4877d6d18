"""Stops and starts of the broker under test in a run: loss of power, clean stops, registrations."""

from kspec.conformance.world.environment.controller import RegistrationFate
from kspec.conformance.world.environment.registry import REAL_NODE
from kspec.conformance.world.environment.world import START_SECONDS
from kspec.conformance.world.replay.not_replayed import asks_at_next_stop
from kspec.conformance.world.replay.parts.clients import WorldProducers
from kspec.conformance.world.replay.parts.context import DepartedError, ReplayContext, StepFunction, WorldStep, same
from kspec.conformance.world.replay.parts.isr import Proposals
from kspec.conformance.world.replay.parts.metadata import Metadata
from kspec.conformance.world.replay.parts.power import BrokerRemains, left_behind, lose_power
from kspec.spec.broker.rules.lifecycle import BrokerState
from kspec.spec.values import BrokerEpoch


class Incarnations:
    """The incarnations of the broker under test. `_told_to_stop`: whether the present one has got the signal."""

    def __init__(self, context: ReplayContext, metadata: Metadata, clients: WorldProducers, proposals: Proposals) -> None:
        self._context = context
        self._real = context.real
        self._world, self._controller = context.world, context.world.controller
        self._metadata, self._clients, self._proposals = metadata, clients, proposals
        self._told_to_stop = False
        functions: dict[str, StepFunction] = {
            "UncleanShutdown": self._lose_power,
            "BeginShutdown": self._begin_shutdown,
            "AskToStop": self._ask_to_stop,
            "StopAtOnce": self._stop,
            "StopCleanly": self._stop,
            "StopUnheard": self._stop,
            "Register": self._register,
            "Start": self._start,
            "RegisterStarted": self._register_started,
            "RegisterAgain": self._register_again,
            "TakeFirstImage": self._take_first_image,
            "Unfence": self._unfence,
        }
        self.functions = {name: self._if_real(function) for name, function in functions.items()}

    def _if_real(self, function: StepFunction) -> StepFunction:
        async def perform(step: WorldStep) -> None:
            if step.is_of("broker", self._real):
                await function(step)

        return perform

    # ---- stopping

    async def _lose_power(self, step: WorldStep) -> None:
        await lose_power(self._context.parties, step.args["kept"], step.args["checkpointedHighWatermark"])
        self._is_gone()

    def _is_gone(self) -> None:
        self._told_to_stop = False
        self._clients.forget_unheard()
        self._proposals.forget()

    async def _begin_shutdown(self, step: WorldStep) -> None:
        """Signal the broker to stop. It asks its controller, which does not let it yet."""
        self._tell_to_stop()
        await self._asks_for_leave()

    async def _ask_to_stop(self, step: WorldStep) -> None:
        self._controller.heard = self._controller.heard._replace(wants_to_stop=False)
        await self._asks_for_leave()

    async def _asks_for_leave(self) -> None:
        await self._world.until(lambda: self._controller.heard.wants_to_stop, "ask for leave to stop")

    async def _stop(self, step: WorldStep) -> None:
        """Let the broker stop, with the controller's leave or without having asked; compare its files."""
        self._controller.may_stop = True
        if not self._told_to_stop:
            self._tell_to_stop()
        await self._world.stopped()
        same("whether the broker has asked for leave", step.name != "StopUnheard", self._controller.heard.wants_to_stop)
        self._is_gone()
        process, local, parties = step.after.process(self._real), step.after.log(self._real), self._context.parties
        noted = BrokerEpoch(parties.epoch_on_wire(self._real, process.noted))
        expected = BrokerRemains(tuple(local.log.records), local.high_watermark, noted)
        same("what the broker has left", expected, left_behind(parties))

    def _tell_to_stop(self) -> None:
        self._told_to_stop = True
        self._world.process.terminate()

    # ---- starts

    async def _register(self, step: WorldStep) -> None:
        self._start_process(step, RegistrationFate.HELD)
        await self._asks_to_be_registered(step)

    async def _start(self, step: WorldStep) -> None:
        """Start the broker. It is not registered as long as the session of its previous incarnation is valid."""
        self._start_process(step, RegistrationFate.REFUSED)
        self._metadata.begins_to_read()
        await self._world.until(lambda: self._controller.asked is not None, "ask to be registered", START_SECONDS)
        self._compare_registration(step)

    def _start_process(self, step: WorldStep, registering: RegistrationFate) -> None:
        """Start the process; it sees no metadata yet."""
        asks = asks_at_next_stop(self._context.run, step.number)
        self._world.asks_to_stop = self._world.asks_to_stop if asks is None else asks
        self._world.log.frozen = True
        self._world.start(registering)

    async def _register_started(self, step: WorldStep) -> None:
        self._controller.registering = RegistrationFate.HELD
        await self._asks_to_be_registered(step)

    async def _asks_to_be_registered(self, step: WorldStep) -> None:
        await self._world.until(lambda: self._controller.held is not None, "ask to be registered", START_SECONDS)
        self._compare_registration(step)
        self._context.parties.registration, self._controller.held = self._controller.held, None

    def _compare_registration(self, step: WorldStep) -> None:
        """Compare the previous broker epoch: that of the last incarnation, if it has stopped cleanly."""
        life = step.after.process(self._real).life
        assert self._controller.asked is not None, "the broker has asked to be registered"
        expected = self._context.parties.epoch_on_wire(self._real, life.previous_broker_epoch)
        seen = self._controller.asked.message.previous_broker_epoch
        same("the previous broker epoch in the registration", expected, seen)

    async def _register_again(self, step: WorldStep) -> None:
        """Write the broker's registration a second time, as it is: it has arrived at the controller again."""
        await self._metadata.write([self._world.registry.same_incarnation()], step)

    async def _take_first_image(self, step: WorldStep) -> None:
        self._world.log.frozen = False
        self._world.log.wake()
        await self._metadata.read(step.args["decisions"])

    async def _unfence(self, step: WorldStep) -> None:
        """Wait until the broker asks to be unfenced, and has caught up."""
        controller = self._controller
        await self._world.until(lambda: controller.heard.wants_part and controller.heard.caught_up, "want to take part")

    # ---- comparison

    async def serves(self, step: WorldStep) -> bool:
        """Whether the broker serves requests after the step; if so, its start is complete. Raises: `DepartedError`."""
        if not self._context.spec_parties.answers(step.after, self._real):
            return False
        if not self._world.process.running and self._told_to_stop:
            raise DepartedError("the broker", BrokerState.PENDING_CONTROLLED_SHUTDOWN.value, "it has stopped")
        if not self._world.process.started:
            await self._completes_its_start()
        return True

    async def _completes_its_start(self) -> None:
        """Wait until the broker has opened its ports. It does once it is unfenced; a weakened model may say earlier."""
        registry = self._world.registry
        if self._controller.registering == RegistrationFate.REFUSED or REAL_NODE in registry.fenced:
            raise DepartedError("whether the broker answers requests", "it does", "not before it is unfenced")
        await self._world.until(lambda: self._world.process.started, "complete its start", START_SECONDS)

    async def end_if_told_to_stop(self) -> None:
        """Kill a broker that was told to stop: it is of no use for another run."""
        if self._told_to_stop:
            await self._world.power_off()
