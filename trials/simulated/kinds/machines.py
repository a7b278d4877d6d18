"""Faults of machines: their disks and clocks."""

from random import Random

from kspec.trials.simulated.clock import EVEN
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.kinds.site import Fault, FaultSite, SimulatedFault
from kspec.trials.simulated.nodes import SimulatedNode

LONGEST_SYNC_MS = 120
MOST_SKEW = 3
"""The longest usual jump of a wall clock, as a multiple of the fault's length."""

HOUR_MS = 3_600_000
FAR_MS = (60_000, HOUR_MS, 24 * HOUR_MS, 20 * 24 * HOUR_MS)
"""Long jumps of a wall clock. Producer states expire after 24.8 days at most, and a retry is appended again then."""

WALL_RATES, EVEN_RATES = (0, 5_000), (900, 1_100)
"""The rates of a wrong wall clock, and of an uneven monotonic one (ms in a second)."""


class SlowSyncs(SimulatedFault):
    """A broker's disk is slow."""

    words, weight = "each sync of broker {node} takes long", 1.0

    def act(self) -> bool:
        """Let each sync take its time."""
        self.broker.disk.condition.sync_ms = 1 + self.fault.number % LONGEST_SYNC_MS
        return True

    def undo(self) -> None:
        """Let it be quick."""
        self.broker.disk.condition.sync_ms = 0


class FullDisk(SimulatedFault):
    """A broker's disk is full, until there is space again and the broker is restarted, as an operator does."""

    words, weight = "the disk of broker {node} is full", 0.7

    def act(self) -> bool:
        """Fill it."""
        node = self.victim()
        if node is None or not self.cluster.may_stop_uncleanly(node):
            return False
        node.disk.condition.full = True
        return True

    def undo(self) -> None:
        """Make space, and restart the broker. One that has ended by itself, since it could not write, stopped uncleanly."""
        self.broker.disk.condition.full = False
        if self.broker.up:
            self.site.kill(self.broker)
        else:
            self.cluster.stops_uncleanly(self.broker, Survives.ALL)
        self.site.start(self.broker)


class WrongClock(SimulatedFault):
    """A wall clock jumps forth or back, little or far, or drifts; or the monotonic one is uneven."""

    words, weight = "the clock of broker {node}, or the controller's, jumps", 0.7

    def __init__(self, site: FaultSite, fault: Fault) -> None:
        super().__init__(site, fault)
        is_controller = self.random.random() < 0.25
        controllers = self.cluster.controllers
        controller = controllers[self.fault.number % len(controllers)]
        self._node: SimulatedNode = controller if is_controller else self.broker

    def act(self) -> bool:
        """Set it wrong."""
        lasts_ms, node = self.fault.lasts_ms, self._node
        ahead_ms = self.random.randint(-lasts_ms, lasts_ms) * MOST_SKEW
        how = Random(f"clock {self.fault.number}")
        match how.choice(("jump", "far", "drift", "uneven")):
            case "jump":
                node.set_wall_clock(ahead_ms)
            case "far":
                node.set_wall_clock(how.choice(FAR_MS) * how.choice((-1, 1)))
            case "drift":
                node.set_wall_clock(0, how.randint(*WALL_RATES))
            case _:
                node.set_rate(how.randint(*EVEN_RATES))
        return True

    def undo(self) -> None:
        """Set it right."""
        set_right(self._node)


def set_right(node: SimulatedNode) -> None:
    """Set a node's clocks right."""
    node.set_wall_clock(0)
    node.set_rate(EVEN)
