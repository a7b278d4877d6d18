"""Stops and starts of the broker under test in a run: loss of power, clean stops, and the way back."""

from conformance.world.play.parts.clients import Clients
from conformance.world.play.parts.isr import Proposals
from conformance.world.play.parts.metadata import Metadata
from conformance.world.play.parts.performance import Act, DepartedError, Performance, Step, same
from conformance.world.play.parts.power import Left, left_behind, lose_power
from conformance.world.play.unplayed import asks_at_next_stop
from conformance.world.stage.controller import Registering
from conformance.world.stage.registry import REAL_NODE
from conformance.world.stage.world import START_SECONDS
from spec.broker.rules.lifecycle import BrokerState
from spec.values import BrokerEpoch


class Life:
    """The incarnations of the broker under test. `_told_to_stop`: the present one has got the signal."""

    def __init__(self, performance: Performance, metadata: Metadata, clients: Clients, proposals: Proposals) -> None:
        self._performance = performance
        self._real = performance.real
        self._world, self._controller = performance.world, performance.world.controller
        self._metadata, self._clients, self._proposals = metadata, clients, proposals
        self._told_to_stop = False
        acts: dict[str, Act] = {
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
        self.acts = {name: self._if_real(act) for name, act in acts.items()}

    def _if_real(self, act: Act) -> Act:
        async def perform(step: Step) -> None:
            if step.is_of("broker", self._real):
                await act(step)

        return perform

    # ---- stopping

    async def _lose_power(self, step: Step) -> None:
        await lose_power(self._performance.cast, step.args["kept"], step.args["checkpointedHighWatermark"])
        self._is_gone()

    def _is_gone(self) -> None:
        self._told_to_stop = False
        self._clients.forget_unheard()
        self._proposals.forget()

    async def _begin_shutdown(self, step: Step) -> None:
        """The broker is told to stop. It asks its controller, which does not give it leave yet."""
        self._tell_to_stop()
        await self._asks_for_leave()

    async def _ask_to_stop(self, step: Step) -> None:
        self._controller.heard = self._controller.heard._replace(wants_to_stop=False)
        await self._asks_for_leave()

    async def _asks_for_leave(self) -> None:
        await self._world.until(lambda: self._controller.heard.wants_to_stop, "ask for leave to stop")

    async def _stop(self, step: Step) -> None:
        """The broker stops, with leave or without having asked; its files are compared."""
        self._controller.may_stop = True
        if not self._told_to_stop:
            self._tell_to_stop()
        await self._world.stopped()
        same("whether the broker has asked for leave", step.name != "StopUnheard", self._controller.heard.wants_to_stop)
        self._is_gone()
        process, local, cast = step.after.process(self._real), step.after.log(self._real), self._performance.cast
        noted = BrokerEpoch(cast.epoch_on_wire(self._real, process.noted))
        expected = Left(tuple(local.log.records), local.high_watermark, noted)
        same("what the broker has left", expected, left_behind(cast))

    def _tell_to_stop(self) -> None:
        self._told_to_stop = True
        self._world.process.terminate()

    # ---- coming back

    async def _register(self, step: Step) -> None:
        self._start_process(step, Registering.HELD)
        await self._asks_to_be_registered(step)

    async def _start(self, step: Step) -> None:
        """The broker starts. It is not registered as long as the session of its last incarnation is valid."""
        self._start_process(step, Registering.REFUSED)
        self._metadata.begins_to_read()
        await self._world.until(lambda: self._controller.asked is not None, "ask to be registered", START_SECONDS)
        self._compare_registration(step)

    def _start_process(self, step: Step, registering: Registering) -> None:
        """Start the process; it sees no metadata yet."""
        asks = asks_at_next_stop(self._performance.run, step.number)
        self._world.asks_to_stop = self._world.asks_to_stop if asks is None else asks
        self._world.log.frozen = True
        self._world.start(registering)

    async def _register_started(self, step: Step) -> None:
        self._controller.registering = Registering.HELD
        await self._asks_to_be_registered(step)

    async def _asks_to_be_registered(self, step: Step) -> None:
        await self._world.until(lambda: self._controller.held is not None, "ask to be registered", START_SECONDS)
        self._compare_registration(step)
        self._performance.cast.registration, self._controller.held = self._controller.held, None

    def _compare_registration(self, step: Step) -> None:
        """The broker names the broker epoch of its last incarnation, if that has stopped cleanly."""
        life = step.after.process(self._real).life
        assert self._controller.asked is not None, "the broker has asked to be registered"
        expected = self._performance.cast.epoch_on_wire(self._real, life.previous_broker_epoch)
        seen = self._controller.asked.message.previous_broker_epoch
        same("the previous broker epoch in the registration", expected, seen)

    async def _register_again(self, step: Step) -> None:
        """The controller gets the broker's registration a second time, and writes it down again as it is."""
        await self._metadata.write([self._world.registry.same_incarnation()], step)

    async def _take_first_image(self, step: Step) -> None:
        self._world.log.frozen = False
        self._world.log.wake()
        await self._metadata.read(step.args["decisions"])

    async def _unfence(self, step: Step) -> None:
        """The controller unfences a broker that wants to take part, and has caught up."""
        controller = self._controller
        await self._world.until(lambda: controller.heard.wants_part and controller.heard.caught_up, "want to take part")

    # ---- comparing

    async def serves(self, step: Step) -> bool:
        """Whether the broker answers requests after the step; if it does, its start is complete. Raises: `DepartedError`."""
        if not self._performance.players.answers(step.after, self._real):
            return False
        if not self._world.process.running and self._told_to_stop:
            raise DepartedError("the broker", BrokerState.PENDING_CONTROLLED_SHUTDOWN.value, "it has stopped")
        if not self._world.process.started:
            await self._completes_its_start()
        return True

    async def _completes_its_start(self) -> None:
        """The broker opens its ports once it is registered and unfenced; before, only a weakened model says that it does."""
        registry = self._world.registry
        if self._controller.registering == Registering.REFUSED or REAL_NODE in registry.fenced:
            raise DepartedError("whether the broker answers requests", "it does", "not before it is unfenced")
        await self._world.until(lambda: self._world.process.started, "complete its start", START_SECONDS)

    async def end_if_told_to_stop(self) -> None:
        """A broker that was told to stop is of no use for another run."""
        if self._told_to_stop:
            await self._world.power_off()
