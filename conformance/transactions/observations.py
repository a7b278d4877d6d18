"""Runs that the model does not have, on one real broker: a file that is lost, a version that goes back, a slow thread.

What is claimed is looked for on the broker; no rule of `spec` is compared.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.kafka.single import SingleKafka
from kspec.conformance.transactions.holding import holding
from kspec.conformance.transactions.observer import ProducerName, TransactionObserver
from kspec.conformance.transactions.prompt import has_versions
from kspec.conformance.transactions.replay import (
    TRANSACTION_KEY,
    coordinator_epoch,
    create_topic,
    find_coordinator,
    set_level,
)
from kspec.conformance.transactions.wire import EncodedRequest, told_by_broker
from kspec.impl.wire.values import Message
from kspec.model_check.models.transactions.board import ID
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.topics import TopicPartition
from kspec.spec.values import LAST_PRODUCER_EPOCH, Epoch, Error, ProducerEpoch, ProducerId

COORDINATOR = "kafka.coordinator.transaction.TransactionCoordinator"
ENDS = {0: "$anonfun$endTransactionWithTV1$1", 1: "$anonfun$endTransactionWithTV1$1", 2: "$anonfun$endTransaction$1"}
"""The part of `endTransaction` before the lock of the transactional id is taken, by the version of transactions."""

VERIFIER_METHOD = "generateRequests"
VERIFIERS = ("org.apache.kafka.server.transaction.AddPartitionsToTxnManager", "kafka.server.AddPartitionsToTxnManager")
"""The class that asks coordinators for a leader, from 4.0 on, and before."""

MARKERS = ("kafka.coordinator.transaction.TransactionMarkerChannelManager", "generateRequests")
"""The part of a coordinator that sends markers, and which is called again and again."""

PLACE = TopicPartition("topic", 0)
MANY = 500
"""Requests that are under way at a time."""


class ObservedBroker(TransactionObserver):
    """One broker under observation."""

    def __init__(self, node: SingleKafka, codec: Codec, level: int, name: str) -> None:
        super().__init__(codec, level, name)
        self.node = node
        self.debugger_port = 0

    async def begin(self) -> None:
        """Make the topic, and have the coordinator loaded."""
        if self.opened is None:
            self.opened = await NodeConnection.open(self.codec, self.node.port)
        await create_topic(self.opened, self.names.topic, 1)
        await find_coordinator(self.opened, self.names.transactional_id(ID), TRANSACTION_KEY)
        self.names.coordinator_epoch = await coordinator_epoch(self.opened)

    @property
    def has_versions(self) -> bool:
        """Whether the release has versions of transactions: 4.0 and later."""
        return has_versions(self.codec.release)

    @property
    def verifier(self) -> str:
        """The class that asks coordinators for a leader."""
        return VERIFIERS[0] if self.has_versions else VERIFIERS[1]

    async def another(self) -> NodeConnection:
        """A connection of its own."""
        return await NodeConnection.open(self.codec, self.node.port)

    async def marker(self, producer: ProducerName, committed: bool, words: str) -> None:
        """Somebody sends a marker, in the name of the coordinator."""
        self.names.learn(producer.producer_id, producer.producer_id)
        marker = TransactionMarker(
            ProducerId(producer.producer_id),
            ProducerEpoch(producer.epoch),
            Epoch(0),
            committed,
            frozenset({PLACE}),
            self.level,
        )
        answer = await self.connection.ask(*self.writer.marker(marker))
        error = Error(answer.markers[0].topics[0].partitions[0].error_code)
        self.lines.append(f"{words}: {error.name}")

    async def many(self, request: EncodedRequest, times: int) -> Message:
        """Send a request again and again, many at a time; the last answer."""
        answers: list[Message] = []
        while times:
            count = min(times, MANY)
            answers = await asyncio.gather(*[self.connection.send(*request) for _ in range(count)])
            times -= count
        return answers[-1]

    async def restart(self, change: Callable[[], None] = lambda: None, *, is_killed: bool = False) -> None:
        """Stop the broker in order, or kill it, change something on its disk, and start it."""
        await self.close()
        if is_killed:
            self.node.process.kill()
        else:
            self.node.process.stop()
        change()
        self.node.start()
        self.lines.append(f"the broker {'is killed' if is_killed else 'stops'} and starts")
        await self.begin()


class TransactionObservation(NamedTuple):
    """An observation: the versions of transactions in which it is made, and what must be seen.

    - `observe`: whether the claim is true;
    - `is_held`: a thread of the broker is held, so Java listens for a debugger.
    """

    name: str
    words: str
    claim: str
    levels: tuple[int, ...]
    observe: Callable[[ObservedBroker], Awaitable[bool]]
    is_held: bool = False
    since: tuple[int, ...] = (3, 9)


# ---- a version that goes back


async def _locked_id(broker: ObservedBroker) -> bool:
    producer = await broker.producer()
    await broker.transact(producer, 1, committed=True)
    broker.lines.append("it commits a transaction in version 2")
    await set_level(broker.connection, 0)
    broker.lines.append("transaction.version is set to 0")
    first, _ = await broker.init("the producer starts again")
    second, _ = await broker.init("and asks again")
    await set_level(broker.connection, 2)
    broker.lines.append("transaction.version is set to 2")
    third, _ = await broker.init("and asks again")
    await broker.restart()
    freed = await broker.producer("and asks the coordinator that has loaded its log")
    return first != Error.NONE and second == third == Error.CONCURRENT_TRANSACTIONS and freed.epoch > 0


# ---- a file that is lost


async def _lost_index(broker: ObservedBroker) -> bool:
    producer = await broker.producer()
    for number, committed in enumerate((True, False, False), start=1):
        sequence = 0 if broker.level > 1 else number - 1
        producer = await broker.transact(producer, number, committed, sequence)
    broker.lines.append("transaction 1 commits, 2 and 3 abort")
    before = await broker.read("read as committed")
    folder = broker.node.process.folder / "logs" / f"{broker.names.topic}-0"

    def lose() -> None:
        (folder / f"{0:020d}.txnindex").unlink()
        broker.lines.append("the .txnindex of the segment is removed")

    await broker.restart(lose)
    after = await broker.read("read as committed")
    return before == ["1.1"] and after == ["1.1", "1.2", "1.3"]


# ---- a marker that nobody should have sent


async def _given_up(broker: ObservedBroker) -> bool:
    producer = await broker.producer()
    if broker.level < 2:
        await broker.ask(broker.adding(producer), "it adds the partition")
    await broker.ask(broker.record(producer, 0, 1), "it writes a record")
    later = producer._replace(epoch=producer.epoch + 2)
    await broker.marker(later, False, "somebody ends its transaction in a later epoch")
    await broker.ask(broker.ending(producer, True), "it commits")
    stuck = not await broker.state("Complete", 5.0)
    broker.lines.append(f"5 seconds later the transaction is {await broker.described()}")
    await broker.restart()
    still = not await broker.state("Complete", 5.0)
    broker.lines.append(f"5 seconds after a start it is {await broker.described()}")
    error, _ = await broker.init("the next producer asks for its id")
    return stuck and still and error == Error.CONCURRENT_TRANSACTIONS


# ---- a slow thread


async def _commit_in_fence(broker: ObservedBroker) -> bool:
    producer = await broker.producer()
    if broker.level < 2:
        await broker.ask(broker.adding(producer), "it adds the partition")
    await broker.ask(broker.record(producer, 0, 1), "it writes a record")
    client = await broker.another()
    async with holding(broker.debugger_port, COORDINATOR, ENDS[broker.level]) as hold:
        fencing = asyncio.create_task(broker.init("another producer of the id asks for its id, and fences it"))
        await hold.held()
        broker.lines.append("the fence is prepared, and its thread is slow to abort the transaction")
        error = await broker.ask(broker.ending(producer, True), "meanwhile the first one commits", client)
        again = await broker.ask(broker.ending(producer, True), "and asks again", client)
        await hold.let_go()
        await fencing
    await client.close()
    await broker.state("Complete")
    broker.lines.append(f"the transaction is {await broker.described()}")
    await broker.read("read as committed")
    return Error.UNKNOWN_SERVER_ERROR in (error, again)


async def _decided(broker: ObservedBroker) -> None:
    """A transaction of one record whose end is decided; its marker is not sent."""
    producer = await broker.producer()
    if broker.level < 2:
        await broker.ask(broker.adding(producer), "it adds the partition")
    await broker.ask(broker.record(producer, 0, 1), "it writes a record")
    broker.lines.append("the thread of the coordinator that sends markers is slow")
    await broker.ask(broker.ending(producer, True), "it commits")
    broker.lines.append(f"the transaction is {await broker.described()}")


async def _moved(broker: ObservedBroker) -> bool:
    async with holding(broker.debugger_port, *MARKERS) as hold:
        await hold.held()
        await _decided(broker)
        is_open = await broker.described() == "PrepareCommit" and not await broker.read("read as committed")
        await broker.restart(is_killed=True)
    ended = await broker.state("CompleteCommit")
    broker.lines.append(f"the transaction is {await broker.described()}")
    return is_open and ended and await broker.read("read as committed") == ["1.1"]


async def _deleted(broker: ObservedBroker) -> bool:
    async with holding(broker.debugger_port, *MARKERS) as hold:
        await hold.held()
        await _decided(broker)
        is_open = await broker.described() == "PrepareCommit"
        deletion = Message(topics=[Message(name=broker.names.topic)], timeout_ms=10_000)
        answer = await broker.connection.ask("DeleteTopics", 6, deletion)
        broker.lines.append(f"the topic is deleted: {Error(answer.responses[0].error_code).name}")
        await asyncio.sleep(1.0)
        await hold.let_go()
    ended = await broker.state("CompleteCommit")
    broker.lines.append(f"the transaction is {await broker.described()}")
    error, _ = await broker.init("the next producer asks for its id")
    return is_open and ended and error == Error.NONE


async def _other_id(broker: ObservedBroker) -> bool:
    last = await _almost_last(broker)
    broker.lines.append(f"a producer has epoch {last.epoch}, the last one that a client gets")
    old = await broker.another()
    async with holding(broker.debugger_port, broker.verifier, VERIFIER_METHOD) as hold:
        await hold.held()
        late = old.send(*broker.encoded(broker.record(last, 0, 1)))
        broker.lines.append("it writes a record, and the leader is slow to ask the coordinator about it")
        await asyncio.sleep(1.0)
        following = await broker.producer("the next producer of the id asks for its id, and gets another one")
        error = await broker.ask(broker.record(following, 0, 2), "it writes its first record")
        await hold.let_go()
        answer = await asyncio.wait_for(late, 30.0)
    broker.lines.append(f"the old record: {told_by_broker(broker.record(last, 0, 1), answer, broker.level)[0].name}")
    await old.close()
    return error == Error.INVALID_PRODUCER_EPOCH and following.producer_id != last.producer_id


async def _second_marker(broker: ObservedBroker) -> bool:
    first = await broker.producer()
    if broker.level < 2:
        await broker.ask(broker.adding(first), "it adds the partition")
    await broker.ask(broker.record(first, 0, 1), "it writes a record")
    second = await broker.producer("another producer of the id asks for its id, and fences it")
    if broker.level < 2:
        await broker.ask(broker.adding(second), "it adds the partition")
    client = await broker.another()
    request = broker.record(second, 0, 2)
    async with holding(broker.debugger_port, broker.verifier, VERIFIER_METHOD) as hold:
        await hold.held()
        waiting = client.send(*broker.encoded(request))
        broker.lines.append("it writes its first record, and the leader is slow to ask the coordinator about it")
        await asyncio.sleep(1.0)
        between = first._replace(epoch=second.epoch - 1)
        await broker.marker(between, False, f"the marker of the fence, of epoch {between.epoch}, arrives once more")
        await hold.let_go()
        answer = await asyncio.wait_for(waiting, 30.0)
    await client.close()
    error = told_by_broker(request, answer, broker.level)[0]
    broker.lines.append(f"the record: {error.name}")
    await broker.ask(broker.record(second, 0, 2), "and once more")
    return error == Error.INVALID_TXN_STATE


async def _almost_last(broker: ObservedBroker) -> ProducerName:
    """The producer that has the last epoch but one of all: each start of a producer takes one."""
    first = await broker.producer()
    left = LAST_PRODUCER_EPOCH - 1 - first.epoch
    answer = await broker.many(broker.encoded(InitProducerIdRequest(transactional_id=ID)), left)
    return ProducerName(answer.producer_id, answer.producer_epoch)


OBSERVATIONS = (
    TransactionObservation(
        "locked-id",
        "A producer of version 2 has used the id. The cluster goes back to version 0, and then to 2 again.",
        "nobody gets the id until its coordinator loads its log anew",
        (2,),
        _locked_id,
        since=(4, 0),
    ),
    TransactionObservation(
        "lost-index",
        "The broker stops cleanly, and the index of aborted transactions of a segment is lost.",
        "aborted records are read as committed",
        (0, 1, 2),
        _lost_index,
    ),
    TransactionObservation(
        "given-up-marker",
        "Somebody sends a marker of a later epoch, and then the transaction is committed.",
        "the transaction never ends, not even when its coordinator starts again, and nobody gets the id",
        (0, 1, 2),
        _given_up,
    ),
    TransactionObservation(
        "commit-in-fence",
        "A producer is fenced while it commits: between the two steps of the fence the lock of the id is free.",
        "the producer is told UNKNOWN_SERVER_ERROR, and not that it is fenced",
        (1, 2),
        _commit_in_fence,
        is_held=True,
        since=(4, 0),
    ),
    TransactionObservation(
        "moved-before-markers",
        "A commit is decided. The coordinator is killed before it sends a marker, and starts again.",
        "the coordinator that has loaded its log sends the marker, and the record is read",
        (0, 1, 2),
        _moved,
        is_held=True,
    ),
    TransactionObservation(
        "deleted-before-markers",
        "A commit is decided. The topic is deleted before the coordinator sends a marker.",
        "the transaction ends without the marker, and the next producer gets the id",
        (0, 1, 2),
        _deleted,
        is_held=True,
    ),
    TransactionObservation(
        "epoch-of-another-id",
        "A record of the last epoch waits for its verification. The next producer has another id, and epoch 0.",
        "the first record of a producer is refused with INVALID_PRODUCER_EPOCH",
        (0, 1, 2),
        _other_id,
        is_held=True,
    ),
    TransactionObservation(
        "second-marker",
        "A producer is fenced. The marker of the fence arrives once more while a record of the next one is verified.",
        "the record is refused with INVALID_TXN_STATE, which is fatal, and nobody has fenced its producer",
        (0, 1, 2),
        _second_marker,
        is_held=True,
    ),
)
"""Observations of things that no action of the model does."""
