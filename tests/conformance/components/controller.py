"""`controller`: one controller with its brokers and one topic. Kafka: `ReplicationControlManager`, as its test drives it."""

from dataclasses import replace
from typing import Any

from kspec.spec.controller.decisions import effective_min_isr, records_of_departure
from kspec.spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
    handle_elect_leaders,
)
from kspec.spec.controller.protocol import ControllerSettings
from kspec.spec.controller.rules.brokers import IncarnationChange
from kspec.spec.controller.state import ControllerStep, decide
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.messages.topics.create_topics import CreateTopicsRequest, NewTopic, ReplicaAssignment
from kspec.spec.metadata import (
    BrokerRegistrationChangeRecord,
    LeaderRecoveryState,
    MetadataRecord,
    PartitionRegistration,
    broker_of,
    partition_of,
)
from kspec.spec.releases.kraft import KRAFT_4_0
from kspec.spec.values import NO_LEADER, BrokerEpoch, BrokerId, Epoch, MonotonicMs, PartitionEpoch, PartitionId, TopicId
from tests.conformance.components import BrokerIds, ById, VectorAnswer
from tests.conformance.outcomes import UnsupportedError
from tests.spec.controller_driver import TIMEOUT_MS, ControllerDriver, answer_of, records_of

FIRST_WITH_INELIGIBLE_REPLICA = 2
"""The version of AlterPartition since which a leader knows that error."""


class ControllerOfVectors:
    """`controller`: the partitions of the topic are numbered as they are created."""

    def __init__(self) -> None:
        self.driver = ControllerDriver(KRAFT_4_0, ControllerSettings(session_timeout_ms=TIMEOUT_MS))

    def config(self, min_insync_replicas: int = 1, elr_enabled: bool = False, unclean_election: bool = False) -> None:
        self.driver.settings = replace(
            self.driver.settings,
            min_isr=min_insync_replicas,
            eligible_leader_replicas=elr_enabled,
            unclean_election=unclean_election,
        )

    # ---- brokers

    def register_brokers(self, brokers: list[int]) -> VectorAnswer:
        """Each as a new incarnation after a clean stop, so that no partition changes; the first refusal counts."""
        errors = [answer_of(self.driver.register(broker, clean=True)).error.name for broker in brokers]
        return VectorAnswer(next((error for error in errors if error != "NONE"), "NONE"))

    def unfence_brokers(self, brokers: list[int]) -> None:
        for broker in brokers:
            self._known(broker)
            self.driver.heartbeat(broker)

    def fence_brokers(self, brokers: list[int]) -> None:
        """The sessions of exactly these brokers expire."""
        self.driver.expire(*[self._known(broker) for broker in brokers])

    def shut_down_uncleanly(self, brokers: list[int]) -> None:
        """Apply the changes when each of these brokers registers after an unclean shutdown."""
        for broker in brokers:
            image = self.driver.image
            self._write(records_of_departure(self.driver.controller, image, self._known(broker), IncarnationChange.UNCLEAN))

    def in_controlled_shutdown(self, brokers: list[int]) -> None:
        """Only the brokers' registrations say so; the test writes the records itself."""
        for broker in brokers:
            epoch = self.driver.broker_epochs[self._known(broker)]
            self._write((BrokerRegistrationChangeRecord(BrokerId(broker), epoch, in_controlled_shutdown=True),))

    def request_controlled_shutdown(self, broker: int) -> None:
        self.driver.heartbeat(self._known(broker), shutdown=True)

    def _write(self, records: tuple[MetadataRecord, ...]) -> None:
        self.driver.take(decide(self.driver.state, records, None))

    def _known(self, broker: int) -> BrokerId:
        if broker_of(self.driver.image.brokers, BrokerId(broker)) is None:
            raise UnsupportedError(f"broker {broker}, which is not registered")
        return BrokerId(broker)

    # ---- requests

    def create_topic(self, assignment: list[list[int]]) -> VectorAnswer:
        """The partitions of the topic, one for each list of replicas."""
        given = tuple(ReplicaAssignment(index, tuple(map(BrokerId, replicas))) for index, replicas in enumerate(assignment))
        number = len(self.driver.image.topics.by_name) + 1
        new = NewTopic(f"topic-{number}", TopicId(number.to_bytes(16, "big")), assignments=given)
        request = CreateTopicsRequest((new,))
        step = handle_create_topics(self.driver.controller, self.driver.state, request, MonotonicMs(self._now))
        (created,) = answer_of(self.driver.take(step)).topics
        return VectorAnswer(created.error.name, named={"records": len(records_of(step))})

    def alter_partition(
        self,
        isr: list[int],
        partition: int = 0,
        broker: int | None = None,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        broker_epoch: int | None = None,
        broker_epochs: dict[str, int] | None = None,
        leader_recovery: str = "RECOVERED",
        version: int = 3,
    ) -> VectorAnswer:
        """A leader proposes an ISR; what is not given is as the controller has it.

        A broker epoch may be counted from the present one: -1 is that of an earlier incarnation.
        """
        registration = self._registration(partition)
        leader = registration.leader if broker is None else self._known(broker)
        now = self.driver.broker_epochs
        changed = broker_epochs or {}
        members = frozenset(
            IsrMember(BrokerId(member), BrokerEpoch(now.get(member, BrokerEpoch(0)) + changed.get(str(member), 0)))
            for member in isr
        )
        request = AlterPartitionRequest(
            leader,
            BrokerEpoch(now[leader] + (broker_epoch or 0)),
            PartitionId(partition),
            registration.leader_epoch if leader_epoch is None else Epoch(leader_epoch),
            registration.partition_epoch if partition_epoch is None else PartitionEpoch(partition_epoch),
            members,
            LeaderRecoveryState[leader_recovery],
            understands_ineligible_replica=version >= FIRST_WITH_INELIGIBLE_REPLICA,
        )
        return self._answer(
            handle_alter_partition(self.driver.controller, self.driver.state, request, MonotonicMs(self._now))
        )

    def elect_leaders(self, partition: int = 0, election: str = "PREFERRED") -> VectorAnswer:
        if election.upper() not in ("PREFERRED", "UNCLEAN"):
            raise UnsupportedError(f"election {election}")
        request = ElectLeadersRequest(PartitionId(partition), unclean=election.upper() == "UNCLEAN")
        return self._answer(handle_elect_leaders(self.driver.controller, self.driver.state, request, MonotonicMs(self._now)))

    def reassign(self, replicas: list[int] | None = None, partition: int = 0) -> VectorAnswer:
        """Move a partition; without replicas, cancel the move."""
        wanted = None if replicas is None else tuple(map(BrokerId, replicas))
        request = AlterPartitionReassignmentsRequest(PartitionId(partition), wanted)
        step = handle_alter_partition_reassignments(
            self.driver.controller, self.driver.state, request, MonotonicMs(self._now)
        )
        return self._answer(step)

    def balance_leaders(self) -> VectorAnswer:
        return VectorAnswer(value=len(records_of(self.driver.balance())))

    @property
    def _now(self) -> int:
        return self.driver.now_ms

    def _answer(self, step: ControllerStep) -> VectorAnswer:
        error = answer_of(self.driver.take(step)).error
        return VectorAnswer(error.name, named={"records": len(records_of(step))})

    # ---- what can be seen

    def _registration(self, partition: int) -> PartitionRegistration:
        found = partition_of(self.driver.image, PartitionId(partition))
        if found is None:
            raise UnsupportedError(f"partition {partition}, which does not exist")
        return found

    def final_state(self) -> dict[str, Any]:
        """The partitions and brokers by their numbers; and the first partition by itself."""
        partitions = {
            str(record.partition_id): self._state_of(record.registration) for record in self.driver.image.partitions
        }
        brokers = {
            str(entry.broker): {"fenced": entry.fenced, "shutting_down": entry.in_controlled_shutdown}
            for entry in self.driver.image.brokers
        }
        return {"partitions": ById(partitions), "brokers": ById(brokers)} | partitions.get("0", {})

    def _state_of(self, partition: PartitionRegistration) -> dict[str, Any]:
        sets = ("isr", "elr", "last_known_elr", "adding", "removing")
        return {
            "replicas": list(partition.replicas),
            "leader": None if partition.leader == NO_LEADER else partition.leader,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "leader_recovery": partition.recovery.name,
            "effective_min_isr": effective_min_isr(self.driver.settings, partition),
            **{name: BrokerIds(sorted(getattr(partition, name))) for name in sets},
        }
