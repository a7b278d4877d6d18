"""Requests about transactions, between the words of the wire and those of the coordinator."""

from collections.abc import Callable
from functools import partial

from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, ends_turn
from kspec.impl.requests.modern.expressions import is_expression, matching
from kspec.impl.requests.transactions.coordinator import Transactions
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.named_partitions import NO_TOPIC, check_named_partition
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.describe_transactions import DescribedTransaction
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.messages.transactions.list_transactions import NO_DURATION, ListTransactionsRequest
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.metadata import BUMPS_EPOCH
from kspec.spec.transactions.refusals import check_added
from kspec.spec.values import Error, GroupId, Instant, ProducerEpoch, ProducerId, TransactionalId

FIRST_KNOWING_FENCED = {"InitProducerId": 4, "AddPartitionsToTxn": 2, "AddOffsetsToTxn": 2, "EndTxn": 2}
"""The versions from which clients understand `PRODUCER_FENCED` (KIP-588)."""

FIRST_FROM_BROKERS = 4
"""The version of AddPartitionsToTxn from which brokers send it, for several transactions."""

FIRST_BUMPING_EPOCH = 5
"""The version of EndTxn from which a client knows that its epoch is raised (KIP-890)."""

FIRST_WITH_FORMER_ID, FIRST_WITH_DURATION, FIRST_WITH_PATTERN = 3, 1, 2

TopicResults = list[Message]


def _knows_fenced(call: Call, api: str) -> bool:
    return call.version >= FIRST_KNOWING_FENCED[api]


def init_transactional_producer(transactions: Transactions, call: Call, now: Instant) -> list[Effect]:
    """Give a producer of transactions its id and epoch. **Kafka:** `KafkaApis.handleInitProducerIdRequest`."""
    message = call.message
    named = call.version >= FIRST_WITH_FORMER_ID
    request = InitProducerIdRequest(
        ProducerId(message.producer_id if named else -1),
        ProducerEpoch(message.producer_epoch if named else -1),
        TransactionalId(message.transactional_id),
        message.transaction_timeout_ms,
        _knows_fenced(call, "InitProducerId"),
    )

    return transactions.decide(request, InitProducerIdResponse, partial(_with_producer, call), now)


def _with_producer(call: Call, response: InitProducerIdResponse | EndTxnResponse) -> list[Effect]:
    """The answer that tells a producer its id and epoch."""
    return [
        call.respond(
            error_code=response.error.value, producer_id=response.producer_id, producer_epoch=response.producer_epoch
        )
    ]


def add_offsets_to_txn(transactions: Transactions, call: Call, now: Instant) -> list[Effect]:
    """Offsets of a group are to be committed in a transaction. **Kafka:** `KafkaApis.handleAddOffsetsToTxnRequest`."""
    message = call.message
    request = AddOffsetsToTxnRequest(
        TransactionalId(message.transactional_id),
        ProducerId(message.producer_id),
        ProducerEpoch(message.producer_epoch),
        GroupId(message.group_id),
        _knows_fenced(call, "AddOffsetsToTxn"),
    )

    def answer(response: AddOffsetsToTxnResponse) -> list[Effect]:
        return [call.respond(error_code=response.error.value)]

    return transactions.decide(request, AddOffsetsToTxnResponse, answer, now)


def end_txn(transactions: Transactions, call: Call, now: Instant) -> list[Effect]:
    """Commit or abort a transaction. **Kafka:** `KafkaApis.handleEndTxnRequest`."""
    message = call.message
    request = EndTxnRequest(
        TransactionalId(message.transactional_id),
        ProducerId(message.producer_id),
        ProducerEpoch(message.producer_epoch),
        message.committed,
        BUMPS_EPOCH if call.version >= FIRST_BUMPING_EPOCH else 0,
        _knows_fenced(call, "EndTxn"),
    )

    return transactions.decide(request, EndTxnResponse, partial(_with_producer, call), now)


# ---- AddPartitionsToTxn


def add_partitions_to_txn(transactions: Transactions, call: Call, now: Instant) -> list[Effect]:
    """Add partitions to transactions, or say whether they are in them. **Kafka:** `handleAddPartitionsToTxnRequest`."""
    return [InTurns(call, _add_partitions(transactions, call, now))]


def _add_partitions(transactions: Transactions, call: Call, now: Instant) -> Steps:
    message = call.message
    from_brokers = call.version >= FIRST_FROM_BROKERS
    if from_brokers:
        wanted = {one.transactional_id: one for one in reversed(message.transactions)}
    else:
        wanted = {message.v3_and_below_transactional_id: _first_of_client(message)}
    found: dict[str, TopicResults] = {}
    effects: list[Effect] = []

    def answered() -> list[Effect]:
        if len(found) < len(wanted):
            return []
        if not from_brokers:
            (results,) = found.values()
            return [call.respond(results_by_topic_v3_and_below=results).long_if(_is_long(results))]
        listed = [Message(transactional_id=name, topic_results=found[name]) for name in wanted]
        return [call.respond(error_code=0, results_by_transaction=listed)]

    number = 0
    for name, one in wanted.items():
        asked, refused = set(), {}
        for topic in one.topics:
            known = transactions.core.cluster.topic(topic.name, b"", by_id=False)
            count = NO_TOPIC if known is None else len(known.partitions)
            for index in topic.partitions:
                asked.add(TopicPartition(topic.name, index))
                error = check_named_partition(count, index, by_id=False)
                if error != Error.NONE:
                    refused[TopicPartition(topic.name, index)] = error
                if ends_turn(number):
                    yield effects
                    effects = []
                number += 1

        def take(response: AddPartitionsToTxnResponse, name: str = name) -> list[Effect]:
            found[name] = _topic_results(response)
            return answered()

        if refused:
            partitions = check_added(frozenset(asked), frozenset(refused.items()))
            effects += take(AddPartitionsToTxnResponse(partitions))
            continue
        request = AddPartitionsToTxnRequest(
            TransactionalId(name),
            ProducerId(one.producer_id),
            ProducerEpoch(one.producer_epoch),
            frozenset(asked),
            BUMPS_EPOCH if from_brokers else 0,
            one.verify_only,
            _knows_fenced(call, "AddPartitionsToTxn"),
        )
        effects += transactions.decide(request, AddPartitionsToTxnResponse, take, now)
    return effects if wanted else [*effects, *answered()]


def _first_of_client(message: Message) -> Message:
    """The one transaction of a client's request, as brokers name theirs. **Kafka:** `normalizeRequest`."""
    return Message(
        producer_id=message.v3_and_below_producer_id,
        producer_epoch=message.v3_and_below_producer_epoch,
        topics=message.v3_and_below_topics,
        verify_only=False,
    )


def _topic_results(response: AddPartitionsToTxnResponse) -> TopicResults:
    by_topic: dict[str, list[Message]] = {}
    for place, error in response.partitions:
        told = Message(partition_index=place.partition, partition_error_code=error.value)
        by_topic.setdefault(place.topic, []).append(told)
    return [Message(name=name, results_by_partition=results) for name, results in by_topic.items()]


def _is_long(results: TopicResults) -> bool:
    return sum(len(topic.results_by_partition) for topic in results) > TURN_SIZE


# ---- looking at transactional ids


def list_transactions(transactions: Transactions, call: Call, now: Instant) -> list[Effect]:
    """The transactional ids of this broker. **Kafka:** `KafkaApis.handleListTransactionsRequest`."""
    message = call.message
    pattern = message.transactional_id_pattern if call.version >= FIRST_WITH_PATTERN else None
    request = ListTransactionsRequest(
        tuple(message.state_filters),
        frozenset(map(ProducerId, message.producer_id_filters)),
        message.duration_filter if call.version >= FIRST_WITH_DURATION else NO_DURATION,
        not pattern or is_expression(pattern),
    )
    answer = transactions.listed(request, _matcher(pattern), now)
    states = [
        Message(transactional_id=one.transactional_id, producer_id=one.producer_id, transaction_state=one.state)
        for one in answer.transactions
    ]
    return [
        call.respond(
            error_code=answer.error.value,
            unknown_state_filters=list(answer.unknown_states),
            transaction_states=states,
        ).long_if(len(states) > TURN_SIZE)
    ]


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    if not pattern:
        return lambda name: True
    return lambda name: bool(matching((pattern,), (name,))[pattern])


def describe_transactions(transactions: Transactions, call: Call, now: Instant) -> list[Effect]:
    """The states of some transactional ids. **Kafka:** `KafkaApis.handleDescribeTransactionsRequest`."""
    return [InTurns(call, _describe(transactions, call))]


def _describe(transactions: Transactions, call: Call) -> Steps:
    found = []
    for number, name in enumerate(call.message.transactional_ids):
        found.append(_described(transactions.described(TransactionalId(name))))
        if ends_turn(number):
            yield []
    return [call.respond(transaction_states=found).long_if(len(found) > TURN_SIZE)]


def _described(one: DescribedTransaction) -> Message:
    topics: dict[str, list[int]] = {}
    for place in one.partitions:
        topics.setdefault(place.topic, []).append(place.partition)
    return Message(
        error_code=one.error.value,
        transactional_id=one.transactional_id,
        transaction_state=one.state,
        transaction_timeout_ms=one.timeout_ms,
        transaction_start_time_ms=one.start_ms,
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        topics=[Message(topic=name, partitions=numbers) for name, numbers in topics.items()],
    )
