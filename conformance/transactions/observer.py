"""A broker, or a cluster of them, whose transactions are observed: requests are sent to it, and what it tells is noted."""

import asyncio
from typing import NamedTuple

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.transactions.looks import look_at_partition
from kspec.conformance.transactions.replay import LONG_MS, PATIENCE
from kspec.conformance.transactions.wire import EncodedRequest, RequestWriter, RunNames, told_by_broker
from kspec.impl.wire.values import Message
from kspec.model_check.models.transactions.board import ID
from kspec.model_check.models.transactions.values import ProducerRequest, RecordOf, WriteRequest
from kspec.spec.log.producers import ProducerBatch
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.topics import TopicPartition
from kspec.spec.values import Error, ProducerEpoch, ProducerId, TransactionalId

PLACE = TopicPartition("topic", 0)
PAUSE_S = 0.05
"""The pause (s) before a request is sent again, and between two looks."""


class ProducerName(NamedTuple):
    """A producer id of the broker, and an epoch."""

    producer_id: int
    epoch: int


class TransactionObserver:
    """Producers of one transactional id, and a topic of one partition.

    `lines`: what was observed; `opened`: the connection that is used if no other is given, once it is open; `given`: the
    producer that the last answer names, as that of an end in version 2 does.
    """

    def __init__(self, codec: Codec, level: int, name: str) -> None:
        self.codec = codec
        self.level = level
        self.names = RunNames(name)
        self.lines: list[str] = []
        self.given = ProducerName(-1, -1)
        self.writer = RequestWriter(codec, self.names, level, LONG_MS)
        self.opened: NodeConnection | None = None

    def take_at_most(self, timeout_ms: int) -> None:
        """A transaction may take so long (ms), if its producer asks for its id from now on."""
        self.writer = RequestWriter(self.codec, self.names, self.level, timeout_ms)

    def encoded(self, request: ProducerRequest) -> EncodedRequest:
        """A request as it is sent."""
        return self.writer.request(request)

    async def ask(self, request: ProducerRequest, words: str, connection: NodeConnection | None = None) -> Error:
        """Send a request, and tell the error."""
        answer = await (connection or self.connection).ask(*self.writer.request(request))
        error, *given = told_by_broker(request, answer, self.level)
        self.given = ProducerName(*given)
        self.lines.append(f"{words}: {error.name}")
        return error

    @property
    def connection(self) -> NodeConnection:
        """The connection that is used if no other is given."""
        assert self.opened is not None, "the observation has begun"
        return self.opened

    async def init(self, words: str) -> tuple[Error, ProducerName]:
        """A producer asks for its id."""
        request = InitProducerIdRequest(transactional_id=ID)
        answer = await self.connection.ask(*self.writer.request(request))
        error = Error(answer.error_code)
        given = f", epoch {answer.producer_epoch}" if error == Error.NONE else ""
        self.lines.append(f"{words}: {error.name}{given}")
        return error, ProducerName(answer.producer_id, answer.producer_epoch)

    async def producer(self, words: str = "a producer asks for its id") -> ProducerName:
        """A producer that has its id, as soon as the coordinator gives it."""
        while True:
            error, found = await self.init(words)
            if error == Error.NONE:
                self.names.learn(found.producer_id, found.producer_id)
                return found
            if error not in (*PATIENCE, Error.CONCURRENT_TRANSACTIONS):
                raise ConnectionError(f"the broker gives no producer id: {error.name}")
            self.lines.pop()
            await asyncio.sleep(PAUSE_S)

    def record(self, producer: ProducerName, sequence: int, transaction: int) -> WriteRequest:
        """A record of a producer; its producer id is learnt."""
        self.names.learn(producer.producer_id, producer.producer_id)
        batch = ProducerBatch(ProducerId(producer.producer_id), ProducerEpoch(producer.epoch), sequence, 1)
        return WriteRequest(0, batch, RecordOf(1, transaction))

    def adding(self, producer: ProducerName) -> AddPartitionsToTxnRequest:
        """The partition becomes part of the transaction."""
        return AddPartitionsToTxnRequest(*self._named(producer), frozenset({PLACE}))

    def ending(self, producer: ProducerName, committed: bool) -> EndTxnRequest:
        """The end of a producer's transaction."""
        return EndTxnRequest(*self._named(producer), committed, self.level if self.level > 1 else 0)

    def _named(self, producer: ProducerName) -> tuple[TransactionalId, ProducerId, ProducerEpoch]:
        return ID, ProducerId(producer.producer_id), ProducerEpoch(producer.epoch)

    async def transact(self, producer: ProducerName, number: int, committed: bool, sequence: int = 0) -> ProducerName:
        """A transaction of one record, up to its end; the producer of the next one."""
        if self.level < 2:
            await self._must(self.adding(producer))
        await self._must(self.record(producer, sequence, number))
        await self._must(self.ending(producer, committed))
        await self.state("Complete")
        return self.given if self.level > 1 else producer

    async def take(self, request: ProducerRequest, words: str, connection: NodeConnection | None = None) -> Error:
        """Send a request as often as its error is one that goes away; the last error."""
        error = await self.ask(request, words, connection)
        while error in (*PATIENCE, Error.CONCURRENT_TRANSACTIONS, Error.NOT_ENOUGH_REPLICAS):
            self.lines.pop()
            await asyncio.sleep(PAUSE_S)
            error = await self.ask(request, words, connection)
        return error

    async def _must(self, request: ProducerRequest) -> None:
        name = type(request).__name__
        error = await self.take(request, name)
        self.lines.pop()
        if error != Error.NONE:
            raise ConnectionError(f"the broker refuses {name}: {error.name}")

    async def described(self) -> str:
        """The state of the transactional id."""
        asked = Message(transactional_ids=[self.names.transactional_id(ID)])
        (one,) = (await self.connection.ask("DescribeTransactions", 0, asked)).transaction_states
        return str(one.transaction_state) if not one.error_code else Error(one.error_code).name

    async def state(self, wanted: str, seconds: float = 10.0) -> bool:
        """Wait until the state begins with a word; whether it has come."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not (await self.described()).startswith(wanted):
            if loop.time() > end:
                return False
            await asyncio.sleep(PAUSE_S)
        return True

    async def read(self, words: str) -> list[str]:
        """The records that a consumer gets which reads what is committed."""
        look = await look_at_partition(self.connection, self.names, 0)
        self.lines.append(f"{words}: {' '.join(look.committed) or 'nothing'}")
        return list(look.committed)

    async def close(self) -> None:
        """Close the connection."""
        if self.opened is not None:
            await self.opened.close()
            self.opened = None
