"""Properties that must hold after each event, judged from outside the cluster: on all logs and states at once.

A record is committed once it is below the high watermark of a replica that believes to lead. A log holds what is committed
if it has the same epochs at the same offsets; that records of one epoch are the same is looked at in the end, with their
values. The properties themselves are in `checks`, by their subjects; here is when each is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kspec.impl.broker.replica import Replica
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.rules.isr.proposal import maximal_isr
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.metadata import PartitionRegistration, has_leader
from kspec.spec.topics import TopicPartition
from kspec.trials.simulated.checks.committed import CommittedChecks
from kspec.trials.simulated.checks.metadata import MetadataChecks
from kspec.trials.simulated.checks.replicas import look_at_change, look_at_offsets
from kspec.trials.simulated.checks.steps import StepChecks
from kspec.trials.simulated.controllers.several import SeveralControllers
from kspec.trials.simulated.history import BrokenPromiseError, ClientPartitionHistory
from kspec.trials.simulated.nodes import BrokerNode, ControllerNode
from kspec.trials.simulated.setup import RunSetup


@dataclass(slots=True)
class BrokerObservation:
    """The last observation of a broker: its process, whether that is the registered one, and its partitions."""

    incarnation: int = 0
    present: bool = False
    partitions: dict[TopicPartition, Partition[EpochLog]] = field(default_factory=dict)


class Promises:
    """A checker that looks at the changed parts of the cluster after each event."""

    def __init__(
        self,
        setup: RunSetup,
        controller: ControllerNode | SeveralControllers,
        brokers: Mapping[int, BrokerNode],
        histories: Mapping[int, ClientPartitionHistory],
        places: Mapping[int, TopicPartition],
    ) -> None:
        self._controller, self._brokers, self._histories, self._places = controller, brokers, histories, places
        self._keeps = not setup.unclean_elections
        self._waits_for_isr = setup.acks == ACKS_ALL
        self._indexes = {place: index for index, place in places.items()}
        self._committed = CommittedChecks(setup, brokers, histories, places)
        self._metadata = MetadataChecks(controller, self._indexes, self._keeps, self._committed.look_at_leader)
        self._steps = StepChecks(controller, brokers, self._keeps)
        self._wrong: BrokenPromiseError | None = None
        """The first step that was wrong: raised after the event, since a process may end with an error of its own."""
        self._seen: dict[int, BrokerObservation] = {node: BrokerObservation() for node in brokers}
        self.stepped: set[int] = set()
        """The brokers whose partitions have taken a step, and the controller for all other steps."""
        self._controller_run = -1
        """The controller's process whose image was checked last: another one has an image that no step has made."""

    def lost_power(self, node: int) -> None:
        """Note that a broker may have lost records."""
        self._metadata.lost_power(node)
        self._committed.lost_power(node)

    def look_at_step(
        self, handler: object, party: object, state: object, given: tuple[object, ...], outcome: object
    ) -> None:
        """A handler has made a step: what is wrong in it is raised after the event."""
        if self._wrong is None:
            try:
                self._steps.look_at(handler, party, state, given, outcome)
            except BrokenPromiseError as wrong:
                self._wrong = wrong

    def acknowledged(self, index: int, end_offset: int) -> None:
        """A producer was told that its records are safe up to an offset. Raises: `BrokenPromiseError`."""
        if self._keeps and self._waits_for_isr:
            moved = index in self._metadata.moved
            registration = None if moved else self._metadata.registered[index]
            self._committed.look_at_acknowledged(index, end_offset, registration)

    # ---- after each event

    def look_at_all(self) -> None:
        """Check all parts, without remembered results: `look` finds the same with less work.

        Raises: `BrokenPromiseError`.
        """
        self._committed.forget()
        self.stepped |= self._brokers.keys()
        Promises.look(self)
        if not self._keeps:
            return
        for node in self._brokers.values():
            for replica in node.core.replicas.values() if node.up else ():
                if not replica.offline:
                    self._committed.note(node.node_id, replica)
        for index in self._histories if self._controller.up else ():
            self._look_at_partition(index)

    def look(self) -> None:
        """Check the changed parts. Raises: `BrokenPromiseError`."""
        if self._wrong is not None:
            raise self._wrong
        controller, metadata = self._controller, self._metadata
        now = controller.incarnation
        if not self.stepped and self._controller_run == now:
            return
        self._controller_run = now
        image = controller.core.image.spec if controller.up else metadata.image
        changed: set[int] = set()
        for node_id in self.stepped:
            node = self._brokers.get(node_id)
            if node is not None and node.up:
                self._look_at_broker(node, changed)
        self.stepped.clear()
        if controller.up:
            metadata.look_at_sessions()
        if image is not None and image is not metadata.image:
            changed |= metadata.look_at_image(image)
        if self._keeps and changed and controller.up:
            for index in changed:
                self._look_at_partition(index)

    # ---- one replica

    def _look_at_broker(self, node: BrokerNode, changed: set[int]) -> None:
        """Check the changed partitions of a broker; those on which others depend are added to `changed`."""
        seen = self._seen[node.node_id]
        if seen.incarnation != node.incarnation:
            seen = self._seen[node.node_id] = BrokerObservation(node.incarnation)
        present = self._is_present(node)
        partitions = seen.partitions
        for place, replica in node.core.replicas.items():
            before, now = partitions.get(place), replica.partition
            if before is now:
                if present is not seen.present:
                    changed.add(self._indexes[place])
            elif replica.offline or node.broker.failure is not None:
                # It serves nobody until the next start, and finds then what its files have; a broker that has failed ends
                # with the next event, and does not carry out any more what its handlers ask for.
                partitions[place] = now
                if self._keeps:
                    self._committed.note(node.node_id, replica, replica.files.log.end_offset)
            else:
                partitions[place] = now
                if self._look_at_replica(node, replica, before, now) or present is not seen.present:
                    changed.add(self._indexes[place])
        seen.present = present

    def _look_at_replica(
        self, node: BrokerNode, replica: Replica, before: Partition[EpochLog] | None, now: Partition[EpochLog]
    ) -> bool:
        """Check a changed replica; whether a change matters to promises: the times of followers' last fetches do not."""
        misled = self._committed.is_misled(node.node_id)
        if before is None and not misled:
            self._committed.look_at_epochs(node.node_id, replica)
        if before is None or before.local is not now.local:
            log = now.local.log
            if replica.files.log != log and not misled:
                raise BrokenPromiseError("PersistRebuildsLog", f"broker {node.node_id}: {replica.files.log}, {log}")
            look_at_offsets(node.node_id, now.local)
            if self._keeps:
                self._committed.note(node.node_id, replica)
        if before is None:
            return True
        look_at_change(node.node_id, before, now)
        if now.leader == node.node_id and before.local is not now.local:
            first, log = before.local.log.end_offset, now.local.log
            self._histories[self._indexes[replica.place]].append(first, log.end_offset, log.start_offset)
        return (
            before.local is not now.local
            or before.isr is not now.isr
            or before.leader_epoch != now.leader_epoch
            or before.leader != now.leader
        )

    # ---- one partition on all brokers

    def _is_present(self, node: BrokerNode) -> bool:
        """Whether a broker runs as the controller has registered it."""
        found = self._metadata.brokers.get(node.node_id) if node.up else None
        return found is not None and found.broker_epoch == node.member.membership.lifecycle.broker_epoch

    def _look_at_partition(self, index: int) -> None:
        registration = self._metadata.registered.get(index)
        if registration is None:
            return
        place, logs = self._places[index], {}
        for node_id in registration.isr | registration.elr if registration.elr else registration.isr:
            node = self._brokers[node_id]
            replica = node.core.replicas.get(place) if self._is_present(node) else None
            if replica is not None and not replica.offline:
                log = logs[node_id] = replica.partition.local.log
                if not self._committed.is_held(node_id, index, log):
                    self._committed.look_at_candidate(node_id, index, replica, registration)
        leading = self._leading(place, registration)
        if leading is None:
            return
        if not registration.isr <= maximal_isr(leading.isr):
            what = f"broker {leading.leader} counts {leading.isr}, the controller has {registration}"
            raise BrokenPromiseError("QuorumSuperset", what)
        self._committed.look_at_isr(index, leading, registration, logs)

    def _leading(self, place: TopicPartition, registration: PartitionRegistration) -> Partition[EpochLog] | None:
        """The partition at its true leader, if that knows of its office."""
        if not has_leader(registration):
            return None
        leader = self._brokers[registration.leader]
        found = leader.core.replicas.get(place) if leader.up else None
        if found is None or found.offline:
            return None
        now = found.partition
        knows = now.leader == leader.node_id and now.leader_epoch == registration.leader_epoch
        return now if knows else None
