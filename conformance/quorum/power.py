"""A controller that is alone, whose power fails between a change of the metadata and the flush of its log.

Whether it answers before it flushes is told by the handler of `spec/quorum`, in the order of its effects.
"""

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.jars import Jars, KafkaMissingError
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.quorum.controller import RealVoter
from kspec.conformance.quorum.disk import ProcessOnDisk, build_library
from kspec.conformance.quorum.translation import answer_in_words_of_spec, on_the_wire, record_epochs
from kspec.impl.wire.values import Message
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse
from kspec.spec.quorum.effects import LogCommitted, LogFlushed
from kspec.spec.quorum.leading import append
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import NO_ELECTION, QuorumServer, QuorumSettings
from kspec.spec.quorum.rules.voters import fixed_voters
from kspec.spec.quorum.starting import start
from kspec.spec.values import (
    NO_DIRECTORY,
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    BrokerId,
    Epoch,
    Error,
    MonotonicMs,
    Offset,
    Record,
    ReplicaKey,
)

OBSERVER = ReplicaKey(BrokerId(9))
BROKER_SETTINGS, SET = 4, 0
"""The kind of settings, and what is done to one. Kafka: `ConfigResource.Type.BROKER`, `AlterConfigOp.OpType.SET`."""

START_SECONDS = 120.0
HOLD_SECONDS = 5.0
"""The time in which a held disk syncs nothing. An answer that has not come by then waits for the sync."""

WAIT_MS = 60_000


class FlushRun(NamedTuple):
    """A run: whether the disk is held up while the metadata change."""

    name: str
    words: str
    claim: str
    is_held: bool


FLUSH_RUNS = {
    run.name: run
    for run in (
        FlushRun(
            "answers-before-flush",
            "A controller is alone, and its power fails while it flushes a change of the metadata.",
            "a change is lost that was answered",
            is_held=True,
        ),
        FlushRun(
            "answers-after-flush",
            "The control of answers-before-flush: power fails after the flush.",
            "a change is lost that was answered",
            is_held=False,
        ),
    )
}
"""The runs by name."""


class FlushResult(NamedTuple):
    """The result: what was told, whether the change was answered while the disk was held, and whether it was lost."""

    run: FlushRun
    told: tuple[str, ...]
    answered: bool
    lost: bool

    def follows(self, protocol: QuorumProtocol) -> bool:
        """Whether the controller does what the rules say of the order of answer and flush."""
        expects = answers_before_flush(protocol)
        return self.answered == (expects or not self.run.is_held) and self.lost == (expects and self.run.is_held)


def answers_before_flush(protocol: QuorumProtocol) -> bool:
    """Whether a leader that is alone commits what it appends, and so answers it, before it flushes it."""
    server = QuorumServer(protocol, QuorumSettings(), BrokerId(1))
    alone = fixed_voters(frozenset({ReplicaKey(BrokerId(1))}))
    leader = start(server, EMPTY_LOG, NO_ELECTION, NO_DIRECTORY, alone).state
    effects = append(server, leader, (Record(1, NO_EPOCH),), MonotonicMs(0)).effects
    kinds = [type(effect) for effect in effects]
    return kinds.index(LogCommitted) < kinds.index(LogFlushed)


class FetchedRecords(NamedTuple):
    """The number of records that an observer was sent, and the high watermark. Some fetches are answered without records."""

    records: int = 0
    high_watermark: int = -1


NOTHING = FetchedRecords()


class LonelyController:
    """A controller on such a disk, with an observer of its log."""

    def __init__(self, jars: Jars, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._codec = Codec(jars)
        self._voter = RealVoter(jars, folder / "controller")
        self._process = ProcessOnDisk(jars, folder / "controller", build_library(folder))
        self._voter.process = self._process
        self._data = folder / "controller" / "data"
        self._asking: NodeConnection | None = None
        self._reading: NodeConnection | None = None

    async def run(self, run: FlushRun) -> FlushResult:
        """Change the metadata, lose power, start again, and look. Raises: `KafkaMissingError`."""
        try:
            return await self._run(run)
        finally:
            await self._disconnect()
            await self._voter.kill()

    async def _run(self, run: FlushRun) -> FlushResult:
        told = []
        await self._start()
        await self._synced()
        before = self._voter.log()
        while (waiting := await self._fetch(Offset(len(before)), before[-1], WAIT_MS)).done():
            pass  # what was committed meanwhile
        if run.is_held:
            self._process.hold_syncs()
        changing = self._change(2)
        answered = await _is_done(changing, HOLD_SECONDS if run.is_held else START_SECONDS)
        fetched = _records_in(waiting) if await _is_done(waiting, 1.0) else NOTHING
        if not run.is_held:
            await self._synced()
        written, synced = self._process.written_and_synced(self._data)
        words = f"answered {_error_in(changing)}" if answered else "not answered"
        told.append(f"a setting is changed: {words} | {synced} of {written} bytes of the log are synced")
        if fetched.records:
            told.append(f"an observer fetches: {fetched.records} record, high watermark {fetched.high_watermark}")
        taken = await asyncio.to_thread(self._process.lose_power, self._data)
        await self._disconnect()
        told.append(
            f"power fails: {taken} bytes are lost | the log has {len(self._voter.log())} of {len(before) + 1} records"
        )
        after = self._voter.log()
        await self._start()
        told.append(f"the controller starts again | it leads in epoch {max(self._voter.log())}")
        if fetched.records:
            told.append(await self._observed_again(Offset(len(before) + 1), before[-1], fetched.high_watermark))
        return FlushResult(run, tuple(told), answered, answered and len(after) <= len(before))

    async def _observed_again(self, offset: Offset, epoch: Epoch, high_watermark: int) -> str:
        answer = self._answer_to(await (await self._fetch(offset, epoch, 0)))
        if answer.diverging == UNDEFINED_EPOCH_END:
            return f"the observer fetches from {offset}: its log is as the controller's"
        end = answer.diverging.end_offset
        below = f", below the high watermark {high_watermark} that it was told" if end < high_watermark else ""
        return f"the observer fetches from {offset}: it has to truncate to {end}{below}"

    # ---- the controller

    async def _start(self) -> None:
        """Start the process, and wait until it takes a change of the metadata."""
        await self._voter.start({})
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.running:
            try:
                self._asking = await NodeConnection.open(self._codec, self._voter.port)
                self._reading = await NodeConnection.open(self._codec, self._voter.port)
                if await _is_done(change := self._change(1), START_SECONDS) and _error_in(change) == Error.NONE.name:
                    return
            except ConnectionError:
                pass
            await self._disconnect()
            await asyncio.sleep(0.2)
        raise KafkaMissingError(f"the controller does not become active: {' '.join(self._process.last_lines(1))}")

    async def _disconnect(self) -> None:
        for connection in (self._asking, self._reading):
            if connection is not None:
                await connection.close()
        self._asking = self._reading = None

    async def _synced(self) -> None:
        """Wait until all that is written is synced."""
        end, written, synced = time.monotonic() + START_SECONDS, 1, 0
        while synced < written and time.monotonic() < end:
            await asyncio.sleep(0.2)
            written, synced = self._process.written_and_synced(self._data)

    def _change(self, hours: int) -> asyncio.Future[Message]:
        """Change a setting of all brokers, which is one record."""
        assert self._asking is not None, "the controller has been started"
        value = Message(name="log.retention.hours", config_operation=SET, value=str(hours))
        resource = Message(resource_type=BROKER_SETTINGS, resource_name="", configs=[value])
        request = Message(resources=[resource], validate_only=False)
        version = self._codec.versions("IncrementalAlterConfigs").last
        return self._asking.send("IncrementalAlterConfigs", version, request)

    async def _fetch(self, offset: Offset, epoch: Epoch, wait_ms: int) -> asyncio.Future[Message]:
        """Fetch as an observer, which knows what is committed."""
        assert self._reading is not None, "the controller has been started"
        current = max(self._voter.log())
        request = QuorumFetchRequest(OBSERVER, FetchPosition(current, offset, epoch), Offset(offset))
        sent = on_the_wire(self._codec, request, wait_ms)
        answer = self._reading.send(sent.api, sent.version, sent.message)
        await asyncio.sleep(0.5 if wait_ms else 0)  # it waits there before anything else happens
        return answer

    @staticmethod
    def _answer_to(message: Message) -> QuorumFetchResponse:
        answer = answer_in_words_of_spec("Fetch", message)
        assert isinstance(answer, QuorumFetchResponse)
        return answer


async def _is_done(future: asyncio.Future[Message], seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done) and future.exception() is None


def _error_in(future: asyncio.Future[Message]) -> str:
    return Error(future.result().responses[0].error_code).name


def _records_in(future: asyncio.Future[Message]) -> FetchedRecords:
    part = future.result().responses[0].partitions[0]
    return FetchedRecords(len(record_epochs(bytes(part.records or b""))), part.high_watermark)
