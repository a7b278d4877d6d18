"""Faults of several controllers: voters are removed and added, stopped, parted, late, or lose their disks."""

from collections.abc import Sequence
from typing import ClassVar

from kspec.trials.simulated.controllers.voters import SimulatedVoterOperator
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.kinds.site import Fault, FaultSite, SimulatedFault
from kspec.trials.simulated.kinds.stops import sent_arrives_ms
from kspec.trials.simulated.nodes import ControllerNode

MENDS_EVERY_MS = 300
"""The interval in which an operator goes on, until all vote that should."""

OFTEN_ACTIVE, ALL_AT_ONCE = 0.4, 0.15
"""The share of these faults that happen to the controller that decides, and of stops that happen to all controllers."""

VOTER_PURPOSES = ("votes", "log")
"""The purposes of controllers' connections to one another: elections, and the log."""

MOST_LATE_MS = 1_500
"""The largest extra delay of a frame between controllers (ms): longer than half of an election's time."""


class VoterFault(SimulatedFault):
    """A fault of one of several controllers, often of the one that decides."""

    factors: ClassVar[tuple[float, ...]] = (0.2, 0.5, 1, 2, 4)
    """Factors of its weight, one of which each seed has."""

    def __init__(self, site: FaultSite, fault: Fault) -> None:
        super().__init__(site, fault)
        controllers = self.cluster.controllers
        active = [one for one in controllers if one.node_id == self.cluster.controller.node_id]
        self.controller = self.random.choice(active if self.random.random() < OFTEN_ACTIVE else controllers)

    @property
    def voters(self) -> SimulatedVoterOperator | None:
        """The operator of the voters, if they are in the log."""
        return self.cluster.voters

    def tell(self, what: str) -> None:
        """Say what has happened to the controller."""
        self.cluster.tell(f"controller {self.controller.node_id} {what}")

    def mend(self) -> None:
        """Go on until all vote that should."""
        if self.voters is not None and not self.voters.is_done:
            self.voters.mend()
            self.site.after(MENDS_EVERY_MS, self.mend)

    def start(self, stopped: Sequence[ControllerNode]) -> None:
        """Start controllers that are down."""
        for node in stopped:
            if node.revive():
                self.cluster.tell(f"controller {node.node_id} starts")


class VoterRemoval(VoterFault):
    """A controller is removed from the voters, and added again when the fault is over."""

    words, weight = "an operator removes a controller from the voters, and adds it again later", 4.0

    def act(self) -> bool:
        """Ask to remove it."""
        if self.voters is None or not self.voters.remove(self.controller):
            return False
        self.tell("is to vote no more")
        return True

    def undo(self) -> None:
        """Add it."""
        assert self.voters is not None
        self.voters.away.discard(self.controller.node_id)
        self.tell("is to vote again")
        self.mend()


class VoterStop(VoterFault):
    """A controller, or all, are killed or lose power, and are started later."""

    words, weight = "controllers are killed, or lose power; of what was not synced, {survives} is left", 4.0

    def act(self) -> bool:
        """Stop it, or all."""
        every = self.random.random() < ALL_AT_ONCE
        stopped = self.cluster.controllers if every else [self.controller]
        self._stopped = [one for one in stopped if one.up]
        survives = Survives.ALL if self.random.random() < 0.3 else self.fault.survives
        for node in self._stopped:
            self.cluster.tell(f"controller {node.node_id} {'is killed' if survives == Survives.ALL else 'loses power'}")
            node.kill(survives, sent_arrives_ms(self.fault))
        return bool(self._stopped)

    def undo(self) -> None:
        """Start those that were stopped."""
        self.start(self._stopped)


class LostVoterDisk(VoterFault):
    """A controller loses its disk. It comes back as another replica, and an operator lets that vote in its place."""

    words, weight = "a controller loses its disk, and an operator replaces the voter", 1.5

    def act(self) -> bool:
        """Take its disk, if all controllers vote: with two disks lost a quorum of three does not come back."""
        if self.voters is None or not self.voters.may_lose_disk():
            return False
        if self.controller.up:
            self.controller.kill()
        self.controller.lose_disk()
        self.tell("loses its disk")
        return True

    def undo(self) -> None:
        """Start it, and replace the voter."""
        self.start([self.controller])
        self.mend()


class VoterPause(VoterFault):
    """A controller is paused and resumed."""

    words, weight = "a controller is paused", 2.0

    def act(self) -> bool:
        """Pause it."""
        if self.controller.up:
            self.controller.pause()
            self.tell("is paused")
        return self.controller.up

    def undo(self) -> None:
        """Resume it."""
        self.controller.go_on()


class VoterSeparation(VoterFault):
    """A controller reaches no other one, or one of them not; brokers and clients reach all."""

    words, weight = "a controller does not reach others", 4.0

    def act(self) -> bool:
        """Block its connections to the others."""
        others = [one for one in self.cluster.controllers if one is not self.controller]
        cut = others if self.random.random() < 0.5 else [self.random.choice(others)]
        self._pairs = {frozenset((self.controller.node_id, one.node_id)) for one in cut}
        self.network.blocked |= self._pairs
        self.tell(f"does not reach {', '.join(str(one.node_id) for one in cut)}")
        return True

    def undo(self) -> None:
        """Open them."""
        self.network.blocked -= self._pairs


class LateVoterMessages(VoterFault):
    """Messages of a controller on some connections to others take longer, or arrive when the fault is over."""

    words, weight = "messages between controllers are late", 4.0

    def act(self) -> bool:
        """Choose the connections."""
        ways = [(self.controller.node_id, purpose, forth) for purpose in VOTER_PURPOSES for forth in (True, False)]
        self._chosen = self.random.sample(ways, self.random.randint(1, len(ways)))
        for way in self._chosen:
            if self.random.random() < 0.5:
                self.network.slow_links[way] = self.random.randint(10, MOST_LATE_MS)
            else:
                self.network.late[way] = self.end_ms
        told = ", ".join(f"{purpose} {'sent' if forth else 'answered'}" for _, purpose, forth in self._chosen)
        self.tell(f"has late messages: {told}")
        return True

    def undo(self) -> None:
        """Let them be quick."""
        for way in self._chosen:
            self.network.slow_links.pop(way, None)
