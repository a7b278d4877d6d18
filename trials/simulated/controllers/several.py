"""Several controllers, which checks and faults take for one: it is up while one decides, and its image is what is committed.

Brokers act on what is committed alone, and a change that was decided may be lost with the controller that has decided it.
So promises are about an image that no controller has in itself: it is read from the log of whoever knows most of it to be
committed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kspec.impl.metadata.active import ActiveController
from kspec.impl.metadata.image import ClusterImage
from kspec.spec.controller.state import ControllerState
from kspec.trials.simulated.checks.quorum import QuorumChecks
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.nodes import ControllerNode


@dataclass(frozen=True, slots=True)
class CommittedCore:
    """The committed image, and the state of the active controller, which may be ahead of it."""

    image: ClusterImage
    state: ControllerState
    deciding: ActiveController


class SeveralControllers:
    """The controllers of a cluster, of which one decides."""

    def __init__(self, nodes: Sequence[ControllerNode]) -> None:
        self.nodes = list(nodes)
        self.checks = QuorumChecks()
        """Checks of all their steps as voters."""
        for node in self.nodes:
            node.note_voter = self.checks.note
        self._image = ClusterImage()
        self._last = self.nodes[0]
        """The controller that has decided last."""

    # ---- as one

    @property
    def active(self) -> ControllerNode | None:
        """The controller that decides, in the last epoch of those who believe so."""
        found = [one for one in self.nodes if one.up and one.core.is_active]
        return max(found, key=lambda one: one.core.voter.epoch, default=None)

    @property
    def up(self) -> bool:
        """Whether one decides."""
        return self.active is not None

    @property
    def node_id(self) -> int:
        """The id of the one that decides, or has decided last."""
        self._last = self.active or self._last
        return self._last.node_id

    @property
    def incarnation(self) -> int:
        """A number that is another one when another process decides, or more is committed."""
        self._look()
        return self._image.spec.end_offset

    @property
    def core(self) -> CommittedCore:
        """The committed image, and the state of the one that decides."""
        self._look()
        self._last = self.active or self._last
        core = self._last.core
        return CommittedCore(self._image, core.state, core.deciding)

    # ---- what is committed

    def _look(self) -> None:
        """Read what is committed by now. Raises: `BrokenPromiseError`, if no quorum could have come to that."""
        self.checks.look()
        for node in self.nodes:
            if node.up:
                self._read(node)

    def _read(self, node: ControllerNode) -> None:
        core = node.core
        log, end = core.log, core.voter.committed
        if end > self._image.spec.end_offset:
            if self._image.spec.end_offset < log.snapshot.end_offset:
                self._image = log.restored(self._image)
            image = ActiveController(core.deciding.controller, self._image)
            image.replay(log.batches_between(self._image.spec.end_offset, end))

    # ---- faults

    def start(self) -> None:
        """Start those that are down."""
        for node in self.nodes:
            if not node.up:
                node.start()

    def revive(self) -> bool:
        """Start those that are down; whether there were any."""
        down = [node for node in self.nodes if not node.up]
        self.start()
        return bool(down)

    def kill(self, survives: Survives = Survives.ALL) -> None:
        """Kill the one that decides."""
        (self.active or self._last).kill(survives)

    def pause(self) -> None:
        """Pause the one that decides."""
        (self.active or self._last).pause()

    def go_on(self) -> None:
        """Let those go on that are paused."""
        for node in self.nodes:
            if node.up:
                node.go_on()
