"""A controller driven by plain code: brokers that register, send heartbeats and propose ISRs."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import strategies as st

from kspec.spec.controller.brokers import (
    handle_broker_heartbeat,
    handle_broker_registration,
    handle_unregister_broker,
    on_session_check,
)
from kspec.spec.controller.partitions import (
    handle_alter_partition,
    handle_alter_partition_reassignments,
    handle_elect_leaders,
    on_balance_check,
    on_min_isr_change,
    on_unclean_election_check,
)
from kspec.spec.controller.protocol import Controller, ControllerProtocol, ControllerSettings
from kspec.spec.controller.state import AppendRecords, ControllerState, ControllerStep, activate, check_append
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.administration.unregister_broker import UnregisterBrokerRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.messages.topics.create_topics import CreateTopicsRequest, NewTopic, ReplicaAssignment
from kspec.spec.metadata import EMPTY_IMAGE, MetadataImage, MetadataRecord, PartitionRegistration, partition_of, replay_all
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.step import Reply
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Incarnation,
    MonotonicMs,
    Offset,
    PartitionId,
    TopicId,
)

PARTITION = PartitionId(0)


TIMEOUT_MS = 9000


def ids(*brokers: int) -> frozenset[BrokerId]:
    return frozenset(BrokerId(broker) for broker in brokers)


def order(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker) for broker in brokers)


def records_of(step: ControllerStep) -> tuple[MetadataRecord, ...]:
    return next((effect.records for effect in step.effects if isinstance(effect, AppendRecords)), ())


def answer_of(step: ControllerStep) -> Any:
    return next(effect.message for effect in step.effects if isinstance(effect, Reply))


@dataclass
class ControllerDriver:
    """A controller, the time, and what each broker knows of itself."""

    rules: ControllerProtocol
    settings: ControllerSettings = field(default_factory=ControllerSettings)
    now_ms: int = 0
    state: ControllerState = field(default_factory=lambda: ControllerState(Epoch(1), EMPTY_IMAGE))
    incarnations: dict[int, int] = field(default_factory=dict)
    broker_epochs: dict[int, BrokerEpoch] = field(default_factory=dict)
    leaving: set[int] = field(default_factory=set)

    @property
    def image(self) -> MetadataImage:
        return self.state.image

    @property
    def partition(self) -> PartitionRegistration:
        found = partition_of(self.image, PARTITION)
        assert found is not None
        return found

    @property
    def controller(self) -> Controller:
        return Controller(self.rules, self.settings)

    def take(self, step: ControllerStep) -> ControllerStep:
        """Carry out a step as the metadata log and the network would."""
        appends = [effect for effect in step.effects if isinstance(effect, AppendRecords)]
        assert len(appends) <= 1
        assert list(step.effects[: len(appends)]) == appends, "an answer comes after the records that it tells of"
        committed = self.image
        for append in appends:
            assert check_append(self.state.controller_epoch, committed.end_offset, append) == Error.NONE
            committed = replay_all(committed, append.records)
        assert step.state.image == committed
        self.state = step.state
        return step

    def register(self, broker: int, new_incarnation: bool = True, clean: bool = False) -> ControllerStep:
        incarnation = self.incarnations.get(broker, 0) + new_incarnation
        previous = self.broker_epochs.get(broker, NO_BROKER_EPOCH) if clean else NO_BROKER_EPOCH
        request = BrokerRegistrationRequest(BrokerId(broker), Incarnation(incarnation), previous)
        step = self.take(handle_broker_registration(self.controller, self.state, request, MonotonicMs(self.now_ms)))
        answer = answer_of(step)
        if answer.error == Error.NONE:
            if incarnation != self.incarnations.get(broker):
                self.leaving.discard(broker)
            self.incarnations[broker] = incarnation
            self.broker_epochs[broker] = answer.broker_epoch
        return step

    def heartbeat(
        self, broker: int, fence: bool = False, shutdown: bool = False, offset: int | None = None
    ) -> ControllerStep:
        """A heartbeat; `offset` is the last record that the broker has replayed, all unless given.

        An incarnation that has asked for leave to stop does so until it stops.
        """
        if shutdown:
            self.leaving.add(broker)
        replayed = self.image.end_offset - 1 if offset is None else offset
        epoch = self.broker_epochs.get(broker, NO_BROKER_EPOCH)
        request = BrokerHeartbeatRequest(BrokerId(broker), epoch, Offset(replayed), fence, broker in self.leaving)
        return self.take(handle_broker_heartbeat(self.controller, self.state, request, MonotonicMs(self.now_ms)))

    def start(self, *brokers: int) -> None:
        """Register brokers, and let them be unfenced."""
        for broker in brokers:
            self.register(broker)
            self.heartbeat(broker)

    def create(self, *replicas: int, topic: str = "topic", number: int = 1) -> ControllerStep:
        """A topic of one partition on these replicas; `number` makes its id."""
        assignments = (ReplicaAssignment(0, order(*replicas)),)
        new = NewTopic(topic, TopicId(number.to_bytes(16, "big")), assignments=assignments)
        request = CreateTopicsRequest((new,))
        return self.take(handle_create_topics(self.controller, self.state, request, MonotonicMs(self.now_ms)))

    def proposal(self, *isr: int) -> AlterPartitionRequest:
        """The proposal of the true leader if it knows the present state."""
        leader = self.partition.leader
        members = frozenset(IsrMember(BrokerId(broker), self.broker_epochs[broker]) for broker in isr)
        epoch = self.broker_epochs.get(leader, NO_BROKER_EPOCH)
        partition = self.partition
        return AlterPartitionRequest(
            leader, epoch, PARTITION, partition.leader_epoch, partition.partition_epoch, members, partition.recovery
        )

    def alter(self, request: AlterPartitionRequest) -> ControllerStep:
        return self.take(handle_alter_partition(self.controller, self.state, request, MonotonicMs(self.now_ms)))

    def elect(self, unclean: bool = False) -> ControllerStep:
        return self.take(
            handle_elect_leaders(
                self.controller, self.state, ElectLeadersRequest(PARTITION, unclean), MonotonicMs(self.now_ms)
            )
        )

    def reassign(self, *replicas: int) -> ControllerStep:
        """Move the partition; without replicas, cancel the move."""
        request = AlterPartitionReassignmentsRequest(PARTITION, order(*replicas) if replicas else None)
        return self.take(
            handle_alter_partition_reassignments(self.controller, self.state, request, MonotonicMs(self.now_ms))
        )

    def pass_time(self, ms: int) -> ControllerStep:
        self.now_ms += ms
        return self.take(on_session_check(self.controller, self.state, MonotonicMs(self.now_ms)))

    def expire(self, *brokers: int) -> None:
        """Let the sessions of exactly these brokers expire."""
        self.now_ms += TIMEOUT_MS
        for registration in self.image.brokers:
            if registration.broker not in brokers and not registration.fenced:
                self.heartbeat(registration.broker)
        for _ in brokers:
            self.pass_time(1)

    def balance(self) -> ControllerStep:
        return self.take(on_balance_check(self.controller, self.state, MonotonicMs(self.now_ms)))

    def elect_uncleanly(self) -> ControllerStep:
        return self.take(on_unclean_election_check(self.controller, self.state, MonotonicMs(self.now_ms)))

    def unregister(self, broker: int) -> ControllerStep:
        return self.take(
            handle_unregister_broker(
                self.controller, self.state, UnregisterBrokerRequest(BrokerId(broker)), MonotonicMs(self.now_ms)
            )
        )

    def change_min_isr(self, min_isr: int) -> ControllerStep:
        self.settings = replace(self.settings, min_isr=min_isr)
        return self.take(on_min_isr_change(self.controller, self.state, MonotonicMs(self.now_ms)))

    def fail_over(self) -> None:
        self.state = activate(Epoch(self.state.controller_epoch + 1), self.image, MonotonicMs(self.now_ms))


def cluster(rules: ControllerProtocol, replicas: int = 3, **settings: Any) -> ControllerDriver:
    """Brokers 1 to `replicas`, unfenced, and a partition on all of them."""
    driver = ControllerDriver(rules, ControllerSettings(session_timeout_ms=TIMEOUT_MS, **settings))
    driver.start(*range(1, replicas + 1))
    driver.create(*range(1, replicas + 1))
    return driver


Operation = tuple[str, tuple[Any, ...]]


brokers = st.integers(1, 4)


operations = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.tuples(brokers, st.booleans(), st.booleans())),
        st.tuples(st.just("heartbeat"), st.tuples(brokers, st.booleans(), st.booleans())),
        st.tuples(st.just("heartbeat"), st.tuples(brokers)),
        st.tuples(st.just("propose"), st.lists(brokers, min_size=1, max_size=4).map(tuple)),
        st.tuples(st.just("elect"), st.tuples(st.booleans())),
        st.tuples(st.just("reassign"), st.lists(brokers, max_size=4, unique=True).map(tuple)),
        st.tuples(st.just("pass_time"), st.tuples(st.sampled_from([1, TIMEOUT_MS // 2, TIMEOUT_MS + 1]))),
        st.tuples(st.just("expire"), st.tuples(brokers)),
        st.tuples(st.just("unregister"), st.tuples(brokers)),
        st.tuples(st.sampled_from(["balance", "elect_uncleanly", "fail_over"]), st.just(())),
    ),
    max_size=25,
)


def carry_out(driver: ControllerDriver, operation: Operation) -> None:
    name, arguments = operation
    if name == "propose":
        members = {driver.partition.leader, *arguments} & set(driver.broker_epochs)
        driver.alter(driver.proposal(*members))
    else:
        getattr(driver, name)(*arguments)


by_version = pytest.mark.parametrize("rules", KRAFT_RELEASES, ids=lambda rules: rules.name)


def named(value: object) -> str | None:
    """The name of a case in a test: the release, or the error."""
    return value.name if isinstance(value, ControllerProtocol | Error) else None


def state_of(driver: ControllerDriver) -> tuple[int, frozenset[BrokerId], int, int]:
    partition = driver.partition
    return partition.leader, partition.isr, partition.leader_epoch, partition.partition_epoch
