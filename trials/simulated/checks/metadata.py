"""Decisions of the controller, as its image and its sessions show them."""

from collections.abc import Callable

from kspec.impl.metadata.image import ClusterImage
from kspec.spec.controller.rules.brokers import is_shutting_down
from kspec.spec.metadata import BrokerRegistration, MetadataImage, PartitionRegistration, has_leader, is_active, is_unfenced
from kspec.spec.topics import TopicPartition
from kspec.spec.values import NO_LEADER, PartitionId
from kspec.trials.simulated.controllers.several import SeveralControllers
from kspec.trials.simulated.history import BrokenPromiseError
from kspec.trials.simulated.nodes import ControllerNode


def place_of(image: ClusterImage, partition_id: PartitionId) -> TopicPartition:
    """The topic and index of a partition of the metadata image."""
    key = image.key_of(partition_id)
    return TopicPartition(image.topics_by_id[key.topic_id].name, key.partition)


class MetadataChecks:
    """The partitions and brokers of the image that was looked at last."""

    def __init__(
        self,
        controller: ControllerNode | SeveralControllers,
        indexes: dict[TopicPartition, int],
        keeps: bool,
        on_elected: Callable[[int, PartitionRegistration], None],
    ) -> None:
        self._controller, self._indexes, self._keeps, self._on_elected = controller, indexes, keeps, on_elected
        self.image: MetadataImage | None = None
        """The image that was looked at last."""
        self.registered: dict[int, PartitionRegistration] = {}
        """The partitions by their indexes."""
        self.brokers: dict[int, BrokerRegistration] = {}
        """The brokers by their ids."""
        self.moved: set[int] = set()
        """The partitions that have had other replicas."""
        self._lossy: dict[int, int] = {}
        """The brokers that have lost power and have not registered since, with their broker epochs."""

    def lost_power(self, node: int) -> None:
        """Note that a broker may have lost records."""
        if node in self.brokers:
            self._lossy[node] = self.brokers[node].broker_epoch

    def look_at_sessions(self) -> None:
        """Check that no fenced broker is in controlled shutdown."""
        state = self._controller.core.state
        for session in state.sessions:
            if is_shutting_down(session) and not is_unfenced(state.image.brokers, session.broker):
                raise BrokenPromiseError("FencedIsNotStopping", f"{session}")

    def look_at_image(self, image: MetadataImage) -> set[int]:
        """Check a new metadata image; the partitions that have changed."""
        before, self.image = self.image, image
        changed: set[int] = set()
        if before is None or image.partitions is not before.partitions:
            for record in image.partitions:
                index = self._indexes[place_of(self._controller.core.image, record.partition_id)]
                known = self.registered.get(index)
                if known is not record.registration and known != record.registration:
                    self.registered[index] = record.registration
                    self._look_at_decision(index, known, record.registration, image)
                    changed.add(index)
        if before is None or image.brokers is not before.brokers:
            self.brokers = {int(one.broker): one for one in image.brokers}
            self._look_at_unclean()
            changed |= self.registered.keys()
        return changed

    def _look_at_decision(
        self, index: int, before: PartitionRegistration | None, after: PartitionRegistration, image: MetadataImage
    ) -> None:
        if has_leader(after) and after.leader not in after.isr:
            raise BrokenPromiseError("LeaderInIsr", f"partition {index}: {after}")
        if not after.isr | after.elr <= frozenset(after.replicas) or after.isr & after.elr:
            raise BrokenPromiseError("IsrIsAssigned", f"partition {index}: {after}")
        if before is None:
            return
        if frozenset(before.replicas) != frozenset(after.replicas):
            self.moved.add(index)
        grown = after.partition_epoch > before.partition_epoch and after.leader_epoch >= before.leader_epoch
        if not grown or (after.leader != before.leader and after.leader_epoch == before.leader_epoch):
            raise BrokenPromiseError("PartitionEpochGrows", f"partition {index}: {before}, {after}")
        if after.leader != before.leader and has_leader(after) and not is_active(image.brokers, after.leader):
            raise BrokenPromiseError("LeaderIsActive", f"partition {index}: {after}")
        if after.leader != NO_LEADER and after.leader_epoch != before.leader_epoch and self._keeps:
            self._on_elected(index, after)

    def _look_at_unclean(self) -> None:
        """Check that brokers that have lost power and are registered again were removed from all ISRs."""
        for node, epoch in list(self._lossy.items()):
            found = self.brokers.get(node)
            if found is None or found.broker_epoch == epoch:
                continue
            del self._lossy[node]
            for index, registration in self.registered.items():
                if self._keeps and node in registration.isr | registration.elr:
                    what = f"broker {node} lost records and is registered again; partition {index}: {registration}"
                    raise BrokenPromiseError("UncleanExclusion", what)
