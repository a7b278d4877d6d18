"""Faults of processes: brokers and the controller are killed, paused, or shut down, and start again."""

from collections.abc import Iterator
from random import Random

from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.kinds.site import Fault, FewSeeds, SimulatedFault
from kspec.trials.simulated.nodes import BrokerNode

LOOKS_EVERY_MS, DOWN_MS, LONGEST_ROLL_MS = 50, 200, 10_000
"""In a rolling restart: the interval of looks at its progress, the downtime of each broker, and the longest time for one."""


class BrokerKill(SimulatedFault):
    """A broker is killed, and later started."""

    words, weight = "broker {node} is killed", 3.0

    def act(self) -> bool:
        """Kill it, unless another broker lacks records that it has lost."""
        node = self.victim()
        if node is None or not self.cluster.may_stop_uncleanly(node):
            return False
        self.site.kill(node, Survives.ALL, sent_arrives_ms(self.fault))
        return True

    def undo(self) -> None:
        """Start it."""
        self.site.start(self.broker)


class PowerLoss(SimulatedFault):
    """A broker loses power and what it had not synced, and is started later."""

    words, weight = "broker {node} loses power; of what was not synced, {survives} is left", 4.0

    def act(self) -> bool:
        """Cut its power, but not while another broker lacks records that it has lost: two losses break promises."""
        node = self.victim()
        if node is None or not self.cluster.may_lose_power(node):
            return False
        self.site.kill(node, self.fault.survives, sent_arrives_ms(self.fault))
        return True

    def undo(self) -> None:
        """Start it."""
        self.site.start(self.broker)


class BrokerPause(SimulatedFault):
    """A broker is paused and resumed."""

    words, weight = "broker {node} is paused", 3.0

    def act(self) -> bool:
        """Pause it."""
        node = self.victim()
        if node is not None:
            node.pause()
        return node is not None

    def undo(self) -> None:
        """Resume it."""
        self.broker.go_on()


class BrokerRestart(SimulatedFault):
    """A broker is shut down, and started when the fault is over."""

    words, weight = "broker {node} is shut down", 3.0

    def act(self) -> bool:
        """Shut it down."""
        node = self.victim()
        if node is None or not self.site.may_stop(node):
            return False
        self.site.stop_in_order(node)
        return True

    def undo(self) -> None:
        """Start it; if it still shuts down, kill it before, once that is allowed."""
        if self.broker.up and not self.cluster.may_stop_uncleanly(self.broker):
            self.site.after(self.fault.lasts_ms, self.undo)
            return
        if self.broker.up:
            self.site.kill(self.broker)
        self.site.start(self.broker)


class ControllerKill(SimulatedFault):
    """The controller is killed, and later started."""

    words, weight = "the controller is killed; of what was not synced, {survives} is left", 1.0

    def act(self) -> bool:
        """Kill it."""
        controller = self.cluster.controller
        if controller.up:
            controller.kill(self.fault.survives)
            return True
        return False

    def undo(self) -> None:
        """Start it."""
        if self.cluster.controller.revive():
            self.cluster.tell("the controller starts")


class ControllerPause(SimulatedFault):
    """The controller is paused and resumed."""

    words, weight = "the controller is paused", 0.5

    def act(self) -> bool:
        """Pause it."""
        if self.cluster.controller.up:
            self.cluster.controller.pause()
            return True
        return False

    def undo(self) -> None:
        """Resume it."""
        self.cluster.controller.go_on()


class RollingRestart(SimulatedFault):
    """All brokers are restarted, each once the one before serves."""

    words, weight, is_undone = "all brokers are restarted, one after the other", 0.3, False

    def act(self) -> bool:
        """Begin with the first broker, unless another rolling restart is under way."""
        if self.site.is_rolling:
            return False
        self.site.is_rolling = True
        self._go_on(iter(self.cluster.brokers.values()))
        return True

    def _go_on(self, brokers: Iterator[BrokerNode]) -> None:
        node = next(brokers, None) if self.site.is_active else None
        if node is None:
            self.site.is_rolling = False
            return
        if node.up and self.site.may_stop(node):
            self.site.stop_in_order(node)
        self.clock.after(DOWN_MS, lambda: self._look(node, brokers, self.clock.now_ms + LONGEST_ROLL_MS))

    def _look(self, node: BrokerNode, brokers: Iterator[BrokerNode], until_ms: int) -> None:
        """Start a broker once it is down, and kill it if that takes too long."""
        too_long = self.clock.now_ms > until_ms
        if self.site.is_active and too_long and node.up and self.cluster.may_stop_uncleanly(node):
            self.site.kill(node)
        if self.site.is_active and not node.up:
            self.site.start(node)
            self._go_on_when_served(node, brokers, until_ms)
        else:
            self.clock.after(
                LOOKS_EVERY_MS,
                lambda: self._look(node, brokers, until_ms) if self.site.is_active else self._go_on(brokers),
            )

    def _go_on_when_served(self, node: BrokerNode, brokers: Iterator[BrokerNode], until_ms: int) -> None:
        if node.serves or self.clock.now_ms > until_ms or not self.site.is_active:
            self._go_on(brokers)
        else:
            self.clock.after(LOOKS_EVERY_MS, self._go_on_when_served, node, brokers, until_ms)


class BrokerRemoval(PowerLoss):
    """A broker loses power, and an operator unregisters it: nobody asks its next incarnation how the one before stopped."""

    words, weight = "broker {node} loses power, and an operator unregisters it before it is back", 1.0
    few_seeds = FewSeeds("removed brokers", 10, 4.0)

    def act(self) -> bool:
        """Cut its power, and unregister it."""
        if not super().act():
            return False
        self.cluster.operator.unregister(self.fault.node)
        return True


def sent_arrives_ms(fault: Fault) -> int | None:
    """The delay of a killed process's last messages: they never arrive, or late, perhaps after its next start."""
    random = Random(fault.number)
    return random.randint(0, 2 * fault.lasts_ms) if random.random() < 0.5 else None
