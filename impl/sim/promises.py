"""What must hold after each event, looked at with the eyes of nobody in the cluster: on all logs and states at once.

A record is committed once it is below the high watermark of a replica that believes to lead. A log holds what is committed
if it has the same epochs at the same offsets; that records of one epoch are the same is looked at in the end, with their
values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from impl.broker.replica import Place, Replica
from impl.sim.history import BrokenPromiseError, PartitionHistory
from impl.sim.nodes import BrokerNode, ControllerNode
from impl.sim.setup import TOPIC, Setup
from spec.broker.partition import Partition
from spec.broker.rules.isr.proposal import maximal_isr
from spec.log.epoch_history import EpochEntry, EpochHistory
from spec.log.epoch_log import EpochLog
from spec.messages.produce import ACKS_ALL
from spec.metadata import BrokerRegistration, MetadataImage, PartitionRegistration, has_leader, is_active
from spec.values import NO_EPOCH, NO_LEADER, BrokerId, Offset

Stretches: TypeAlias = tuple[EpochEntry, ...]
"""The epochs of a part of a log that begins at offset 0, with their first offsets."""


def stretches(log: EpochLog, end_offset: int) -> Stretches:
    """The epochs of a log below an offset."""
    return log.epoch_history.truncate_from_end(Offset(end_offset)).entries


@dataclass(frozen=True, slots=True)
class Committed:
    """What any leader has shown of a partition: up to which offset, and in which epochs it was written."""

    end_offset: int = 0
    stretches: Stretches = ()

    def below(self, end_offset: int) -> Stretches:
        """The part of it below an offset."""
        return EpochHistory(self.stretches).truncate_from_end(Offset(end_offset)).entries


@dataclass(slots=True)
class Seen:
    """A broker as it was looked at last: its process, whether that is the registered one, and its partitions."""

    incarnation: int = 0
    present: bool = False
    partitions: dict[Place, Partition[Any]] = field(default_factory=dict)


class Promises:
    """Looks at the cluster after each event, as far as something has changed."""

    def __init__(
        self,
        setup: Setup,
        controller: ControllerNode,
        brokers: Mapping[int, BrokerNode],
        histories: Mapping[int, PartitionHistory],
    ) -> None:
        self._controller, self._brokers, self._histories = controller, brokers, histories
        self._keeps = not setup.unclean_elections
        self._waits_for_isr = setup.acks == ACKS_ALL
        self._min_isr = setup.surroundings.min_isr
        self._places = {index: Place(TOPIC, index) for index in histories}
        self._committed = dict.fromkeys(histories, Committed())
        self._held: dict[tuple[int, int], tuple[Committed, EpochLog]] = {}
        """By broker and partition: what was found to be held, and by which log."""
        self._same: dict[tuple[int, int], tuple[Stretches, Stretches]] = {}
        """By broker and partition: the epochs of its log, and those committed, that were found equal last."""
        self._seen: dict[int, Seen] = {node: Seen() for node in brokers}
        self._image: MetadataImage | None = None
        self._registered: dict[int, PartitionRegistration] = {}
        self._epochs: dict[int, BrokerRegistration] = {}
        self._moved: set[int] = set()
        self.stepped: set[int] = set()
        """The brokers whose partitions have made a step, and the controller for all other steps."""
        self._controller_run = -1
        """The controller's process whose image was looked at: another one has an image that no step has made."""
        self._lossy: dict[int, int] = {}
        """The brokers that have lost power and are not registered since, with the broker epochs that they have."""

    def lost_power(self, node: int) -> None:
        """A broker may have lost records."""
        if node in self._epochs:
            self._lossy[node] = self._epochs[node].broker_epoch

    # ---- after each event

    def look_at_all(self) -> None:
        """Look at everything, and remember nothing that was found to hold: `look` finds the same with less work.

        Raises: `BrokenPromiseError`.
        """
        self._held.clear()
        self._same.clear()
        self.stepped |= self._brokers.keys()
        Promises.look(self)
        if not self._keeps:
            return
        for node in self._brokers.values():
            for replica in node.core.replicas.values() if node.up else ():
                if not replica.offline:
                    self._note_committed(node.node_id, replica)
        for index in self._histories if self._controller.up else ():
            self._look_at_partition(index)

    def look(self) -> None:
        """Look at what has changed. Raises: `BrokenPromiseError`."""
        controller = self._controller
        if not self.stepped and self._controller_run == controller.incarnation:
            return
        self._controller_run = controller.incarnation
        image = controller.core.cluster.image.spec if controller.up else self._image
        changed: set[int] = set()
        for node_id in self.stepped:
            node = self._brokers.get(node_id)
            if node is not None and node.up:
                self._look_at_broker(node, changed)
        self.stepped.clear()
        if image is not None and image is not self._image:
            changed |= self._look_at_metadata(image)
        if self._keeps and changed and controller.up:
            for index in changed:
                self._look_at_partition(index)

    # ---- one replica

    def _look_at_broker(self, node: BrokerNode, changed: set[int]) -> None:
        """Look at the partitions of a broker whose state is another one; those that others depend on are `changed`."""
        seen = self._seen[node.node_id]
        if seen.incarnation != node.incarnation:
            seen = self._seen[node.node_id] = Seen(node.incarnation)
        present = self._is_present(node)
        partitions = seen.partitions
        for place, replica in node.core.replicas.items():
            before, now = partitions.get(place), replica.partition
            if before is now:
                if present is not seen.present:
                    changed.add(place.partition)
            elif replica.offline:  # it serves nobody until the next start, and finds then what its files have
                partitions[place] = now
                if self._keeps:
                    self._note_committed(node.node_id, replica, replica.files.log.end_offset)
            else:
                partitions[place] = now
                if self._look_at_replica(node, replica, before, now) or present is not seen.present:
                    changed.add(place.partition)
        seen.present = present

    def _look_at_replica(
        self, node: BrokerNode, replica: Replica, before: Partition[Any] | None, now: Partition[Any]
    ) -> bool:
        """Whether anything has changed on which a promise depends; when followers have fetched last is nothing such."""
        log, mark = now.local
        if before is None or before.local is not now.local:
            if not log.start_offset <= mark <= log.end_offset:
                what = f"broker {node.node_id}: {log.start_offset}, {mark}, {log.end_offset}"
                raise BrokenPromiseError("TypeOk", what)
            if self._keeps:
                self._note_committed(node.node_id, replica)
        if before is None:
            return True
        self._look_at_step(node.node_id, before, now)
        return (
            before.local is not now.local
            or before.isr is not now.isr
            or before.leader_epoch != now.leader_epoch
            or before.leader != now.leader
        )

    def _look_at_step(self, node: int, before: Partition[Any], now: Partition[Any]) -> None:
        if now.leader_epoch < before.leader_epoch and now.leader_epoch != NO_EPOCH:
            what = f"broker {node} from epoch {before.leader_epoch} to {now.leader_epoch}"
            raise BrokenPromiseError("LeaderEpochGrows", what)
        if not before.leader == now.leader == node:
            return
        if now.local.high_watermark < before.local.high_watermark:
            what = f"broker {node} from {before.local.high_watermark} to {now.local.high_watermark}"
            raise BrokenPromiseError("HighWatermarkGrows", what)
        if now.isr.partition_epoch < before.isr.partition_epoch:
            raise BrokenPromiseError("LeaderEpochGrows", f"broker {node} from {before.isr} to {now.isr}")

    def _note_committed(self, node: int, replica: Replica, stored_end: int | None = None) -> None:
        """Hold what is below a high watermark against what is committed; a leader's may commit more.

        `stored_end`: where the files end, if the last step could not be written; what is before that is committed.
        """
        partition, index = replica.partition, replica.place.partition
        (log, mark), known = partition.local, self._committed[index]
        mark = mark if stored_end is None else Offset(min(mark, stored_end))
        end = min(mark, known.end_offset)
        if not self._agree(node, index, stretches(log, end), known.below(end)):
            name = "ConsistentRead" if partition.leader == node else "LogMatching"
            what = f"broker {node} has {_in_words(stretches(log, mark))} up to {mark} of partition {index}"
            raise BrokenPromiseError(name, f"{what}, committed was {_in_words(known.stretches)} up to {known.end_offset}")
        if mark > known.end_offset:
            if partition.leader != node:
                what = f"broker {node} at {mark} in partition {index}, the leaders at {known.end_offset}"
                raise BrokenPromiseError("HighWatermarkFromLeader", what)
            self._committed[index] = Committed(mark, stretches(log, mark))

    def _agree(self, node: int, index: int, has: Stretches, committed: Stretches) -> bool:
        """Whether a log has the epochs that are committed. Neither ever changes: what was found equal stays so."""
        same = self._same.get((node, index))
        if same is not None and same[0] is has and same[1] is committed:
            return True
        if has != committed:
            return False
        self._same[node, index] = (has, committed)
        return True

    # ---- the metadata

    def _look_at_metadata(self, image: MetadataImage) -> set[int]:
        """The partitions that have changed."""
        before, self._image = self._image, image
        changed: set[int] = set()
        if before is None or image.partitions is not before.partitions:
            for record in image.partitions:
                index = self._controller.core.image.key_of(record.partition_id).partition
                known = self._registered.get(index)
                if known is not record.registration and known != record.registration:
                    self._registered[index] = record.registration
                    self._look_at_decision(index, known, record.registration, image)
                    changed.add(index)
        if before is None or image.brokers is not before.brokers:
            self._epochs = {int(one.broker): one for one in image.brokers}
            self._look_at_unclean()
            changed |= self._registered.keys()
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
            self._moved.add(index)
        grown = after.partition_epoch > before.partition_epoch and after.leader_epoch >= before.leader_epoch
        if not grown or (after.leader != before.leader and after.leader_epoch == before.leader_epoch):
            raise BrokenPromiseError("PartitionEpochGrows", f"partition {index}: {before}, {after}")
        if after.leader != before.leader and has_leader(after) and not is_active(image.brokers, after.leader):
            raise BrokenPromiseError("LeaderIsActive", f"partition {index}: {after}")
        if after.leader != NO_LEADER and after.leader_epoch != before.leader_epoch and self._keeps:
            self._look_at_leader(index, after)

    def _look_at_leader(self, index: int, elected: PartitionRegistration) -> None:
        """Whether a leader that has just been elected holds every acknowledged record."""
        node = self._brokers[elected.leader]
        replica = node.core.replicas.get(self._places[index]) if node.up else None
        if replica is None:
            return
        known, end = self._histories[index].end_of_acknowledged, replica.partition.local.log.end_offset
        if end < known:
            what = f"broker {node.node_id} is elected in epoch {elected.leader_epoch} with a log that ends at {end}"
            raise BrokenPromiseError("AcknowledgedOnNextLeader", f"{what}, acknowledged are {known}")

    def _look_at_unclean(self) -> None:
        """Whether brokers that have lost power and are registered again were taken out of all ISRs."""
        for node, epoch in list(self._lossy.items()):
            found = self._epochs.get(node)
            if found is None or found.broker_epoch == epoch:
                continue
            del self._lossy[node]
            for index, registration in self._registered.items():
                if self._keeps and node in registration.isr | registration.elr:
                    what = f"broker {node} lost records and is registered again; partition {index}: {registration}"
                    raise BrokenPromiseError("UncleanExclusion", what)

    # ---- one partition on all brokers

    def _is_present(self, node: BrokerNode) -> bool:
        """Whether a broker runs as the controller has registered it."""
        found = self._epochs.get(node.node_id) if node.up else None
        return found is not None and found.broker_epoch == node.member.membership.lifecycle.broker_epoch

    def _look_at_partition(self, index: int) -> None:
        registration = self._registered.get(index)
        if registration is None:
            return
        place, committed, logs = self._places[index], self._committed[index], {}
        for node_id in registration.isr | registration.elr if registration.elr else registration.isr:
            node = self._brokers[node_id]
            replica = node.core.replicas.get(place) if self._is_present(node) else None
            if replica is not None and not replica.offline:
                log = logs[node_id] = replica.partition.local.log
                held = self._held.get((node_id, index))
                if held is None or held[0] is not committed or held[1] is not log:
                    self._look_at_candidate(node_id, index, log, registration)
        if not has_leader(registration):
            return
        leader = self._brokers[registration.leader]
        found = leader.core.replicas.get(place) if leader.up else None
        if found is None or found.offline:
            return
        partition = found.partition
        if partition.leader != leader.node_id or partition.leader_epoch != registration.leader_epoch:
            return
        if not registration.isr <= maximal_isr(partition.isr):
            what = f"broker {leader.node_id} counts {partition.isr}, the controller has {registration}"
            raise BrokenPromiseError("QuorumSuperset", what)
        self._look_at_isr(index, partition, registration, logs)

    def _look_at_candidate(self, node: int, index: int, log: EpochLog, registration: PartitionRegistration) -> None:
        """Whether one that leads, or may be elected, has all that is committed."""
        committed = self._committed[index]
        end = committed.end_offset
        if log.end_offset >= end and self._agree(node, index, stretches(log, end), committed.stretches):
            self._held[node, index] = (committed, log)
            return
        if log.end_offset < self._histories[index].end_of_acknowledged:
            name = "AcknowledgedOnNextLeader"
        else:
            name = "LeaderCompleteness" if node == registration.leader else "CommittedOnNextLeader"
        has = f"broker {node} has {_in_words(stretches(log, log.end_offset))} up to {log.end_offset} of partition {index}"
        committed_is = f"{_in_words(committed.stretches)} up to {committed.end_offset}"
        raise BrokenPromiseError(name, f"{has}, committed is {committed_is}; {registration}")

    def _look_at_isr(
        self, index: int, leader: Partition[Any], registration: PartitionRegistration, logs: Mapping[BrokerId, EpochLog]
    ) -> None:
        """Whether the members of the controller's ISR have what the leader calls committed; `logs` are those of who runs."""
        mark = leader.local.high_watermark
        for node_id in registration.isr:
            if node_id in logs and logs[node_id].end_offset < mark:
                end = logs[node_id].end_offset
                what = (
                    f"leader {leader.leader} of partition {index} has high watermark {mark}, broker {node_id} ends at {end}"
                )
                raise BrokenPromiseError("StrongIsr", what)

    # ---- what producers are told

    def acknowledged(self, index: int, end_offset: int) -> None:
        """Whether enough brokers have what a producer was just told is safe; of a broker that is down nobody knows."""
        if not self._keeps or not self._waits_for_isr:
            return
        if end_offset > self._committed[index].end_offset:
            what = f"records up to {end_offset} are acknowledged, committed is up to {self._committed[index].end_offset}"
            raise BrokenPromiseError("AcknowledgedIsCommitted", what)
        if index in self._moved:
            return
        found = [node.core.replicas.get(self._places[index]) for node in self._brokers.values() if node.up]
        ends = [replica.partition.local.log.end_offset for replica in found if replica is not None]
        down = len(self._registered[index].replicas) - len(ends)
        if sum(end >= end_offset for end in ends) + down < self._min_isr:
            what = f"records up to {end_offset} are acknowledged, logs of partition {index} end at {sorted(ends)}"
            raise BrokenPromiseError("AcknowledgedByEnough", what)


def _in_words(found: Stretches) -> str:
    """The last epochs of a log, each with its first offset."""
    told = ", ".join(f"{entry.leader_epoch} from {entry.start_offset}" for entry in found[-5:])
    return f"epochs {told}" if told else "nothing"
