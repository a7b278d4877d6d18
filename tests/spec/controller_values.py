"""A value of every class of the controller and of the metadata, for `test_purity`."""

from typing import Any

from spec.controller_messages import (
    AlterPartitionReassignmentRequest,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ElectLeadersRequest,
    ErrorResponse,
    IsrMember,
    LeaderAndIsrRequest,
    StopReplicaRequest,
)
from spec.metadata import (
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
from spec.step import Reply, Send, SendToController, Step
from spec.values import BrokerEpoch, BrokerId, Epoch, Error, Incarnation, Offset, PartitionEpoch, PartitionId

B, E, P = BrokerId(1), BrokerEpoch(10), PartitionId(0)
PARTITION = PartitionRegistration((B,), frozenset({B}), B, Epoch(0), PartitionEpoch(0))
BROKER = BrokerRegistration(B, E, Incarnation(1), fenced=False)

CONTROLLER_VALUES: tuple[Any, ...] = (
    AlterPartitionReassignmentRequest(P),
    AlterPartitionRequest(B, E, P, Epoch(0), PartitionEpoch(0), frozenset()),
    AlterPartitionResponse(Error.NONE, P),
    BROKER,
    BrokerHeartbeatRequest(B, E, Offset(0)),
    BrokerHeartbeatResponse(Error.NONE),
    BrokerRegistrationChangeRecord(B, E),
    BrokerRegistrationRequest(B, Incarnation(1)),
    BrokerRegistrationResponse(Error.NONE, Incarnation(1)),
    ControlledShutdownRequest(B, E),
    ControlledShutdownResponse(Error.NONE),
    EMPTY_IMAGE,
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
