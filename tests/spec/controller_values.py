"""A value of every class of the controller and of the metadata, for `test_purity`."""

from typing import Any

from kspec.spec.broker.lifecycle import CleanShutdown
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle
from kspec.spec.controller.protocol import Controller, ControllerSettings, PartitionSettings
from kspec.spec.controller.rules.brokers import BrokerSession
from kspec.spec.controller.rules.features import FeatureLevel, FeatureRange
from kspec.spec.controller.rules.partition_change import NOBODY_ELECTED, unchanged
from kspec.spec.controller.state import AppendRecords, activate
from kspec.spec.messages.administration.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.messages.zookeeper_era.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from kspec.spec.messages.zookeeper_era.leader_and_isr import LeaderAndIsrRequest
from kspec.spec.messages.zookeeper_era.stop_replica import StopReplicaRequest
from kspec.spec.metadata import (
    EMPTY_IMAGE,
    UNCHANGED,
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kspec.spec.releases.features import ReleaseFeatures
from kspec.spec.releases.kraft import KRAFT_4_0
from kspec.spec.releases.zookeeper import ZK_0_10
from kspec.spec.step import Reply, Send, SendToController, Step
from kspec.spec.values import (
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Incarnation,
    LeaderAndIsr,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    PartitionId,
)
from kspec.spec.zookeeper.controller import ZkControllerState, ZkPartition
from kspec.spec.zookeeper.node import ConditionalWrite, NodeCreation, PartitionNode, write_partition
from kspec.spec.zookeeper.protocol import LiveBroker, ZkController, ZkControllerSettings

B, E, P = BrokerId(1), BrokerEpoch(10), PartitionId(0)
PARTITION = PartitionRegistration((B,), frozenset({B}), B, Epoch(0), PartitionEpoch(0))
BROKER = BrokerRegistration(B, E, Incarnation(1), fenced=False)
ROLE = LeaderAndIsr(B, Epoch(0), frozenset({B}))
NODE = PartitionNode(ROLE, Epoch(0), PartitionEpoch(0))
WRITE = ConditionalWrite(P, ROLE, Epoch(0), PartitionEpoch(0))

CONTROLLER_VALUES: tuple[Any, ...] = (
    AlterPartitionReassignmentsRequest(P),
    AlterPartitionRequest(B, E, P, Epoch(0), PartitionEpoch(0), frozenset()),
    AlterPartitionResponse(Error.NONE, P),
    BROKER,
    BrokerLifecycle(B, Incarnation(1)),
    CleanShutdown(E),
    BrokerHeartbeatRequest(B, E, Offset(0)),
    BrokerHeartbeatResponse(Error.NONE),
    BrokerRegistrationChangeRecord(B, E),
    BrokerRegistrationRequest(B, Incarnation(1)),
    BrokerRegistrationResponse(Error.NONE, Incarnation(1)),
    ControlledShutdownRequest(B, E),
    ControlledShutdownResponse(Error.NONE),
    Controller(KRAFT_4_0),
    ControllerSettings(),
    PartitionSettings(P, 1, False),
    FeatureLevel("f", 1),
    FeatureRange("f", 0, 1),
    ReleaseFeatures("f", 1),
    ZkController(ZK_0_10),
    ZkControllerSettings(),
    EMPTY_IMAGE,
    AppendRecords(Epoch(0), Offset(0), ()),
    activate(Epoch(0), EMPTY_IMAGE, MonotonicMs(0)),
    KRAFT_4_0,
    LiveBroker(B, E),
    NODE,
    NodeCreation(P, NODE),
    NOBODY_ELECTED,
    BrokerSession(B, MonotonicMs(0)),
    WRITE,
    ZK_0_10,
    ZkControllerState(Epoch(0)),
    ZkPartition(P, (B,), NODE),
    unchanged(PARTITION),
    write_partition(NODE, Epoch(0), WRITE),
    ElectLeadersRequest(P),
    ErrorResponse(Error.NONE),
    IsrMember(B),
    LeaderAndIsrRequest(Epoch(0), E, P, B, Epoch(0), frozenset(), PartitionEpoch(0), (B,)),
    PARTITION,
    PartitionChangeRecord(P),
    PartitionRecord(P, PARTITION),
    RegisterBrokerRecord(BROKER),
    Reply(ErrorResponse(Error.NONE)),
    Send(B, ErrorResponse(Error.NONE)),
    SendToController(ElectLeadersRequest(P)),
    Step(0),
    StopReplicaRequest(Epoch(0), E, P, Epoch(0), delete=False),
    UNCHANGED,
    UnregisterBrokerRecord(B, E),
)
