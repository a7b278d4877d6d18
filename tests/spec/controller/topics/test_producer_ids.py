"""Producer ids. Facts from Apache Kafka's `ProducerIdControlManagerTest` and `TransactionCoordinatorTest`."""

import pytest

from kspec.spec.controller.topics.producer_ids import (
    ProducerIds,
    allocated,
    handle_allocate_producer_ids,
    handle_init_producer_id,
)
from kspec.spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.metadata import MetadataImage, ProducerIdsRecord, replay
from kspec.spec.step import Reply
from kspec.spec.values import BrokerEpoch, BrokerId, Error, MonotonicMs, ProducerEpoch, ProducerId
from tests.spec.controller.topics.places import cluster, decided


def allocate(image: MetadataImage, broker: int, broker_epoch: int) -> tuple[MetadataImage, AllocateProducerIdsResponse]:
    request = AllocateProducerIdsRequest(BrokerId(broker), BrokerEpoch(broker_epoch))
    decision = decided(handle_allocate_producer_ids, image, request)
    return decision.image, decision.answer


def test_blocks_follow_each_other() -> None:
    image, first = allocate(cluster(), 1, 10)
    image, second = allocate(image, 2, 20)
    assert (first.first, first.size, second.first, second.size) == (0, 1000, 1000, 1000)
    assert image.following_producer_id == 2000


def test_only_a_registered_broker_gets_ids() -> None:
    for broker, broker_epoch in ((1, 9), (9, 90)):
        image, answer = allocate(cluster(), broker, broker_epoch)
        assert (answer.error, image) == (Error.STALE_BROKER_EPOCH, cluster())


def test_ids_end() -> None:
    last = ProducerIdsRecord(BrokerId(1), BrokerEpoch(10), ProducerId(2**63 - 1000))
    _, answer = allocate(replay(cluster(), last), 1, 10)
    assert answer.error == Error.UNKNOWN_SERVER_ERROR


def test_each_producer_gets_an_id_of_its_own_until_the_block_ends() -> None:
    ids = allocated(AllocateProducerIdsResponse(Error.NONE, ProducerId(5), 2))
    given = []
    for _ in range(3):
        ids, effects = handle_init_producer_id(ids, InitProducerIdRequest(), MonotonicMs(0))
        given.append(effects[0])
    assert given == [
        Reply(InitProducerIdResponse(Error.NONE, ProducerId(5), ProducerEpoch(0))),
        Reply(InitProducerIdResponse(Error.NONE, ProducerId(6), ProducerEpoch(0))),
        Reply(InitProducerIdResponse(Error.COORDINATOR_LOAD_IN_PROGRESS)),
    ]


@pytest.mark.parametrize(("had_id", "had_epoch", "legal"), [(3, 4, True), (3, -1, False), (-1, 4, False)])
def test_what_a_producer_had_must_be_whole_and_does_not_matter(had_id: int, had_epoch: int, legal: bool) -> None:
    request = InitProducerIdRequest(ProducerId(had_id), ProducerEpoch(had_epoch))
    ids = ProducerIds(ProducerId(9), ProducerId(10))
    answer = InitProducerIdResponse(Error.NONE, ProducerId(9), ProducerEpoch(0))
    expected = answer if legal else InitProducerIdResponse(Error.INVALID_REQUEST)
    assert handle_init_producer_id(ids, request, MonotonicMs(0)).effects == (Reply(expected),)
