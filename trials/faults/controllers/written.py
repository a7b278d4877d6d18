"""The image that the active controller has written into its metadata log, read while it runs."""

from collections.abc import Sequence
from contextlib import suppress

from kspec.impl.metadata.election_file import read_election
from kspec.impl.metadata.files import FOLDER, ImageReader
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.storage import RealDisk, StorageError
from kspec.spec.quorum.replica import NO_ELECTION, ElectionState
from kspec.spec.values import NO_LEADER
from kspec.trials.cluster.plan import Node


class WrittenMetadata:
    """The metadata log of the controllers of a cluster. Of several, the one counts that leads in the last epoch.

    A leader cuts nothing off its log, so what is new is read while its epoch lasts.
    """

    def __init__(self, controllers: Sequence[Node]) -> None:
        self._controllers = {node.node_id: node for node in controllers}
        self._election = NO_ELECTION
        self._reader = ImageReader(controllers[0].data)

    @property
    def active(self) -> Node:
        """The controller that leads, or that has led last."""
        only, *others = self._controllers.values()
        return self._controllers.get(self._election.leader, only) if others else only

    def image(self) -> ClusterImage:
        """The image as it is now."""
        if len(self._controllers) > 1:
            newest = max([self._election, *map(self._stored, self._controllers.values())], key=lambda one: one.epoch)
            if newest != self._election:
                self._election = newest
                self._reader = ImageReader(self.active.data)
        return self._reader.image()

    def _stored(self, node: Node) -> ElectionState:
        """The election that a controller has stored, if somebody has won it."""
        with suppress(OSError, StorageError):
            found = read_election(RealDisk(), str(node.data / FOLDER))
            if found.leader != NO_LEADER:
                return ElectionState(found.epoch, found.leader)
        return NO_ELECTION
