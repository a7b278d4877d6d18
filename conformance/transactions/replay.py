"""A run on a broker: each request is sent when the run delivers it; answers, coordinator, logs and offsets are compared."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.kafka.single import StartedNode
from kspec.conformance.transactions.looks import TransactionsLook, expected, observed
from kspec.conformance.transactions.prompt import BrokerStep, settled, slots_of
from kspec.conformance.transactions.runs import FoundRun
from kspec.conformance.transactions.wire import EncodedRequest, RequestWriter, RunNames, told, told_by_broker
from kspec.impl.wire.values import Message
from kspec.model_check.core.model import State
from kspec.model_check.models.processes import INPUT
from kspec.model_check.models.transactions.board import ID
from kspec.model_check.models.transactions.values import Processor, ProducerRequest, SentMarker, TransactionExchange
from kspec.model_check.models.transactions.words import request_in_words
from kspec.spec.values import Error

SETTLE_SECONDS = 15.0
"""The longest wait until the broker has done what it does by itself."""

POLL_SECONDS = 0.02
LONG_MS, SHORT_MS = 60_000, 3_000
"""The time that a transaction may take; the short one, if the run is about it."""

TRANSACTION_KEY = 1
TRANSACTION_STATE = "__transaction_state"
PATIENCE = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)


class TransactionDeparture(NamedTuple):
    """The step at which the broker does something else."""

    step: int
    words: str


class TransactionResult(NamedTuple):
    """A run that was replayed: each step in words, and where the broker departs from it, if it does."""

    found: FoundRun
    told: tuple[str, ...]
    departure: TransactionDeparture | None


class _DepartsError(Exception):
    """The broker does something else: what was expected, and what was observed."""


class TransactionReplay:
    """One run on a broker that runs."""

    def __init__(self, node: StartedNode, codec: Codec, found: FoundRun, level: int, name: str) -> None:
        self._node = node
        self._codec = codec
        self._found = found
        self._level = level
        self._names = RunNames(name)
        is_timed = any(step.action.name == "TimeOut" for step in found.steps)
        self._writer = RequestWriter(codec, self._names, level, SHORT_MS if is_timed else LONG_MS)
        self._looker: NodeConnection | None = None
        self._live: dict[int, NodeConnection] = {}
        self._asked: dict[int, tuple[ProducerRequest, asyncio.Future[Message]]] = {}

    async def replay(self) -> TransactionResult:
        """Replay it. Raises: `ConnectionError`, `TimeoutError`, if the broker does not answer."""
        lines: list[str] = []
        try:
            await self._set_up()
            for step in self._found.steps:
                lines.append(await self._taken(step))
        except _DepartsError as departs:
            words = f"departs at step {len(lines) + 1}, {self._found.steps[len(lines)].action.label}: {departs}"
            return TransactionResult(self._found, tuple(lines), TransactionDeparture(len(lines) + 1, words))
        finally:
            await self._close()
        return TransactionResult(self._found, tuple(lines), None)

    # ---- before the first step

    async def _set_up(self) -> None:
        model = self._found.model
        count = int(model.parameters["topic_partitions"])
        await create_topic(await self._look_through(), self._names.topic, count)
        await find_coordinator(await self._look_through(), self._names.transactional_id(ID), TRANSACTION_KEY)
        if slots_of(model, "group"):
            await create_topic(await self._look_through(), INPUT, 1)
            await find_coordinator(await self._look_through(), self._names.group, 0)
            await self._join()
        self._names.coordinator_epoch = await coordinator_epoch(await self._look_through())

    async def _join(self) -> None:
        """The first process becomes the member of the group, in its first generation."""
        connection = await self._look_through()
        protocols = [Message(name="range", metadata=b"")]
        given = {"group_id": self._names.group, "session_timeout_ms": 300_000, "rebalance_timeout_ms": 300_000}
        member = ""
        for _ in range(2):
            asked = Message(**given, member_id=member, protocol_type="consumer", protocols=protocols)
            joined = await connection.ask("JoinGroup", 5, asked)
            member = joined.member_id
        named = {"group_id": self._names.group, "generation_id": joined.generation_id, "member_id": member}
        assignments = [Message(member_id=member, assignment=b"")]
        synced = await connection.ask("SyncGroup", 3, Message(**named, assignments=assignments))
        if joined.error_code or synced.error_code:
            raise _DepartsError("the group does not begin")
        self._names.members["m1"] = member
        self._names.generations[1] = joined.generation_id

    # ---- steps

    async def _taken(self, step: BrokerStep) -> str:
        """Take a step, and compare. Its line."""
        action, name = step.action, step.action.name
        producer = action.args.get("producer", 0)
        assert isinstance(producer, int), "an action is of one producer"
        words = action.name
        match name:
            case "Deliver" | "Verify":
                request = self._exchange(step.before, "exchange", producer).request
                words = request_in_words(request)
                await self._send(producer, request)
            case "DeliverLate" | "VerifyLate":
                request = self._exchange(step.before, "late", producer).request
                answer = await self._send_apart(self._writer.request(request))
                error = told_by_broker(request, answer, self._level)[0]
                words = f"late: {request_in_words(request)}: {error.name}"
            case "WriteLateMarker":
                await self._write_late(step)
                words = "the late marker"
            case "Disconnect":
                await self._disconnect(producer)
                words = "the connection breaks"
            case "FetchOffset":
                await self._fetch_offset(step, producer)
                words = "asks for the committed offset"
            case "MoveCoordinator":
                await self._restart()
                words = "the broker starts again"
            case "TimeOut":
                words = "the transaction has taken too long"
            case _:
                return action.label
        after = settled(self._found.model, step.after)
        answered = await self._compare_answers(after)
        look = await self._compare(after)
        return f"{words}{answered} | {look.in_words()}"

    def _exchange(self, state: State, name: str, producer: int) -> TransactionExchange:
        found: TransactionExchange = state[self._found.model.slot_named(f"{name}[{producer}]").position]
        return found

    async def _send(self, producer: int, request: ProducerRequest) -> None:
        if producer not in self._live:
            self._live[producer] = await NodeConnection.open(self._codec, self._node.port)
        asked = self._writer.request(request)
        self._asked[producer] = (request, self._live[producer].send(*asked))

    async def _send_apart(self, asked: EncodedRequest) -> Message:
        """Send a request on a connection of its own, on which nobody waits."""
        connection = await NodeConnection.open(self._codec, self._node.port)
        try:
            return await connection.ask(*asked)
        finally:
            await connection.close()

    async def _write_late(self, step: BrokerStep) -> None:
        partition = step.action.args["partition"]
        sent: SentMarker = step.before[self._found.model.slot_named(f"lateMarker {partition}").position]
        await self._send_apart(self._writer.marker(sent.marker))

    async def _disconnect(self, producer: int) -> None:
        self._asked.pop(producer, None)
        if producer in self._live:
            await self._live.pop(producer).close()

    async def _restart(self) -> None:
        for connection in self._live.values():
            await connection.close()
        self._live.clear()
        await self._close_looker()
        self._node.kill()
        self._node.start()
        await find_coordinator(await self._look_through(), self._names.transactional_id(ID), TRANSACTION_KEY)

    async def _fetch_offset(self, step: BrokerStep, producer: int) -> None:
        """The committed offset is compared before the step: the process reads on from there."""
        process: Processor = step.after[self._found.model.slot_named(f"processor[{producer}]").position]
        look = await self._compare(step.before)
        position = 0 if look.offset == "none" else int(look.offset or -1)
        if position != process.position:
            raise _DepartsError(f"the process reads on: expected from {process.position}, observed from {position}")

    # ---- comparing

    async def _compare_answers(self, state: State) -> str:
        """Each request whose answer the model has is answered by the broker, and alike."""
        lines = []
        for producer in list(self._asked):
            exchange = self._exchange(state, "exchange", producer)
            if exchange is None or exchange.answer is None:
                continue
            request, future = self._asked.pop(producer)
            own = told(exchange.answer, self._level)
            other = told_by_broker(request, await asyncio.wait_for(future, SETTLE_SECONDS), self._level)
            self._names.learn(own[1], other[1])
            seen = (other[0], self._names.in_model(other[1]) if other[1] >= 0 else -1, other[2])
            if seen != own:
                raise _DepartsError(f"the answer: expected {_answer_in_words(own)}, observed {_answer_in_words(seen)}")
            lines.append(f": {_answer_in_words(own)}")
        return "".join(lines)

    async def _compare(self, state: State) -> TransactionsLook:
        """Look until the broker shows what the state says; the look."""
        own = expected(self._found.model, state)
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            found = await observed(await self._look_through(), self._names, own)
            if found == own:
                return found
            if time.monotonic() > end:
                raise _DepartsError("; ".join(own.differences(found)))
            await asyncio.sleep(POLL_SECONDS)

    async def _look_through(self) -> NodeConnection:
        if self._looker is None:
            self._looker = await NodeConnection.open(self._codec, self._node.port)
        return self._looker

    async def _close_looker(self) -> None:
        if self._looker is not None:
            await self._looker.close()
            self._looker = None

    async def _close(self) -> None:
        for connection in self._live.values():
            await connection.close()
        await self._close_looker()


def _answer_in_words(told_of: tuple[Error, int, int]) -> str:
    error, producer_id, epoch = told_of
    return error.name if producer_id < 0 else f"{error.name}, {producer_id} in epoch {epoch}"


async def until(is_so: Callable[[], Awaitable[bool]], what: str, seconds: float = SETTLE_SECONDS) -> None:
    """Wait until something is so. Raises: `TimeoutError`, with what is not."""
    end = time.monotonic() + seconds
    while not await is_so():
        if time.monotonic() > end:
            raise TimeoutError(what)
        await asyncio.sleep(POLL_SECONDS)


async def create_topic(connection: NodeConnection, name: str, partitions: int) -> None:
    """A topic, led by the broker; one that there is stays."""
    topic = Message(name=name, num_partitions=partitions, replication_factor=1)
    await connection.ask("CreateTopics", 7, Message(topics=[topic], timeout_ms=10_000))
    asked = [Message(partition_index=number, timestamp=-1) for number in range(partitions)]

    async def is_led() -> bool:
        topics = [Message(name=name, partitions=asked)]
        answer = await connection.ask("ListOffsets", 7, Message(replica_id=-1, topics=topics))
        return all(one.error_code == 0 for one in answer.topics[0].partitions)

    await until(is_led, f"{name} is not led")


async def set_level(connection: NodeConnection, level: int) -> None:
    """Set the feature `transaction.version` of a cluster. Raises: `ConnectionError`, if it refuses."""
    told_of = json.dumps({"transaction.version": level})
    for kind in (1, 2):
        update = Message(feature="transaction.version", max_version_level=level, upgrade_type=kind)
        answer = await connection.ask("UpdateFeatures", 1, Message(feature_updates=[update], timeout_ms=10_000))
        results = [answer.error_code, *(one.error_code for one in answer.results or ())]
        if not any(results):
            break
    else:
        raise ConnectionError(f"the cluster does not take {told_of}: {answer.error_message or results}")

    async def is_told() -> bool:
        asked = Message(client_software_name="kspec", client_software_version="1")
        features = (await connection.ask("ApiVersions", 4, asked)).finalized_features
        levels = {one.name: one.max_version_level for one in features}
        return bool(levels.get("transaction.version", 0) == level)

    await until(is_told, f"the broker does not hear of {told_of}")


async def coordinator_epoch(connection: NodeConnection) -> int:
    """The epoch of the broker as a coordinator: the leader epoch of the log in which it keeps transactions."""
    asked = Message(topics=[Message(name=TRANSACTION_STATE)])
    (topic,) = (await connection.ask("Metadata", 12, asked)).topics
    return int(topic.partitions[0].leader_epoch)


async def find_coordinator(connection: NodeConnection, key: str, kind: int) -> None:
    """Wait until the broker coordinates a transactional id or a group; it makes the topic when it is asked for one."""
    asked = Message(key_type=kind, coordinator_keys=[key])

    async def is_there() -> bool:
        answer = await connection.ask("FindCoordinator", 4, asked)
        return not answer.coordinators[0].error_code

    async def is_loaded() -> bool:
        if kind == TRANSACTION_KEY:  # of another id, since an id that is asked for is known
            first = Message(transactional_id=f"{key}-first", transaction_timeout_ms=LONG_MS)
            return Error((await connection.ask("InitProducerId", 4, first)).error_code) not in PATIENCE
        groups = (await connection.ask("DescribeGroups", 5, Message(groups=[key]))).groups
        return Error(groups[0].error_code) not in PATIENCE

    await until(is_there, f"no coordinator of {key}")
    await until(is_loaded, f"the coordinator of {key} does not load")
