"""Producer ids: the controller gives brokers blocks of them, and a broker gives producers one after the other."""

from typing import NamedTuple

from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.rules.brokers import check_broker_epoch
from kspec.spec.controller.state import ControllerState, ControllerStep, decide
from kspec.spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.metadata import ProducerIdsRecord, broker_of
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Error, MonotonicMs, ProducerEpoch, ProducerId

BLOCK_SIZE = 1000
"""Kafka: `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`."""

HIGHEST = 2**63 - 1


def handle_allocate_producer_ids(
    controller: Controller, state: ControllerState, request: AllocateProducerIdsRequest, now: MonotonicMs
) -> ControllerStep:
    """Give a broker the next block of producer ids. No id is given twice, also after the controller has changed.

    Errors: `STALE_BROKER_EPOCH` (also of a broker that is not registered), `UNKNOWN_SERVER_ERROR` (no ids are left).

    **Kafka:** `ProducerIdControlManager.generateNextProducerId`, `ClusterControlManager.checkBrokerEpoch`.
    """
    error = check_broker_epoch(broker_of(state.image.brokers, request.broker), request.broker_epoch)
    if error != Error.NONE:
        return decide(state, (), AllocateProducerIdsResponse(error))
    first = state.image.following_producer_id
    if first > HIGHEST - BLOCK_SIZE:
        return decide(state, (), AllocateProducerIdsResponse(Error.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(request.broker, request.broker_epoch, ProducerId(first + BLOCK_SIZE))
    return decide(state, (record,), AllocateProducerIdsResponse(Error.NONE, first, BLOCK_SIZE))


class ProducerIds(NamedTuple):
    """The ids that a broker has and has not given out: from `following` on, up to below `end`. Kafka: `ProducerIdsBlock`."""

    following: ProducerId = ProducerId(0)
    end: ProducerId = ProducerId(0)


def allocated(response: AllocateProducerIdsResponse) -> ProducerIds:
    """The block that the controller has given. **Kafka:** `RPCProducerIdManager.handleAllocateProducerIdsResponse`."""
    return ProducerIds(response.first, ProducerId(response.first + response.size))


def check_available(ids: ProducerIds) -> Error:
    """Whether a broker has an id to give out. Errors: `COORDINATOR_LOAD_IN_PROGRESS`: it has to ask for a block first.

    **Kafka:** `RPCProducerIdManager.generateProducerId`.
    """
    return Error.COORDINATOR_LOAD_IN_PROGRESS if ids.following >= ids.end else Error.NONE


def one_taken(ids: ProducerIds) -> ProducerIds:
    """The ids that are left when the next one has been given out."""
    return ids._replace(following=ProducerId(ids.following + 1))


def handle_init_producer_id(
    ids: ProducerIds, request: InitProducerIdRequest, now: MonotonicMs
) -> Step[ProducerIds, Reply[InitProducerIdResponse]]:
    """Give a producer without transactions a new id, and epoch 0. The id that it had is not looked at.

    Errors: `INVALID_REQUEST` (an id without an epoch, or an epoch without an id), `COORDINATOR_LOAD_IN_PROGRESS` (the broker
    has to ask for a block first).

    **Kafka:** `KafkaApis.handleInitProducerIdRequest`, `TransactionCoordinator.handleInitProducerId`,
    `RPCProducerIdManager.generateProducerId`.
    """
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return Step(ids, (Reply(InitProducerIdResponse(Error.INVALID_REQUEST)),))
    error = check_available(ids)
    if error != Error.NONE:
        return Step(ids, (Reply(InitProducerIdResponse(error)),))
    answer = InitProducerIdResponse(Error.NONE, ids.following, ProducerEpoch(0))
    return Step(one_taken(ids), (Reply(answer),))
