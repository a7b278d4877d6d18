"""The clients of a run: producers, each with a connection of its own, and the responses to them."""

import asyncio
import time

from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.world.environment.world import POLL_SECONDS
from kspec.conformance.world.replay.observed_replica import ProduceAnswer, on_disk
from kspec.conformance.world.replay.parties import PRODUCE_VERSION
from kspec.conformance.world.replay.parts.context import (
    ARRIVAL_SECONDS,
    DepartedError,
    ReplayContext,
    StepFunction,
    WorldStep,
)
from kspec.conformance.world.replay.verdict import RunVerdict
from kspec.impl.wire.values import Message
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER


class WorldProducers:
    """The producers that have sent the real broker a record."""

    def __init__(self, context: ReplayContext) -> None:
        self._context = context
        self._produced: dict[int, list[asyncio.Future[Message]]] = {}
        self._told_elsewhere: set[int] = set()
        self._connections: list[NodeConnection] = []
        self.functions: dict[str, StepFunction] = {"Produce": self._produce, "ProduceAgain": self._produce_again}

    # ---- sending

    async def _produce(self, step: WorldStep) -> None:
        if step.is_of("leader", self._context.real):
            await self._send(step.after.produced)

    async def _produce_again(self, step: WorldStep) -> None:
        value = step.args["value"]
        if step.is_of("leader", self._context.real):
            if value in {placed.record.value for placed in step.before.clients.told} and value not in self._produced:
                self._told_elsewhere.add(value)
            await self._send(value)

    async def _send(self, value: int) -> None:
        """Send a record on a connection of its own: a connection waits for the response to its last request."""
        parties, parameters = self._context.parties, self._context.run.model.parameters
        acks = ACKS_LEADER if parameters["acks"] == "1" else ACKS_ALL
        connection = await self._context.world.connect()
        self._connections.append(connection)
        part = Message(index=0, records=parties.record_batch(value, idempotent=self._context.idempotent))
        topic = Message(name=parties.topic, partition_data=[part])
        request = Message(transactional_id=None, acks=acks, timeout_ms=600_000, topic_data=[topic])
        self._produced.setdefault(value, []).append(connection.send("Produce", PRODUCE_VERSION, request))

    def forget_unheard(self) -> None:
        """Forget the producers without a response: the broker has stopped."""
        self._produced = {value: sent for value, sent in self._produced.items() if all(map(_was_heard, sent))}

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            await connection.close()

    # ---- responses

    def _answers(self, value: int) -> list[ProduceAnswer]:
        found = []
        for future in self._produced.get(value, ()):
            if _was_heard(future):
                part = future.result().responses[0].partition_responses[0]
                found.append(ProduceAnswer(part.error_code, part.base_offset))
        return found

    def _outcome(self, value: int) -> str:
        """The outcome of one record for its producers."""
        answers = self._answers(value)
        if len(answers) < len(self._produced[value]):
            return "waiting"
        granted = sorted({answer.offset for answer in answers if answer.error == 0})
        return f"acknowledged at offset {granted[0]}" if granted else "refused"

    async def compare(self, step: WorldStep) -> None:
        """Compare the producers' outcomes: acknowledged, refused, or waiting. Raises: `DepartedError`."""
        told = {placed.record.value: placed.offset for placed in step.after.clients.told}
        waits = {waiting.request for waiting in step.after.memory(self._context.real).waiting}
        deadline = time.monotonic() + ARRIVAL_SECONDS
        for value in self._produced:
            wanted = {"refused"} if value not in told or value in self._told_elsewhere else set[str]()
            if value in told:
                wanted.add(f"acknowledged at offset {told[value]}")
            if value in waits:
                wanted = {"waiting"}
            while self._outcome(value) not in wanted and time.monotonic() < deadline:
                if value in waits:
                    break
                self._context.world.check()
                await asyncio.sleep(POLL_SECONDS)
            found = self._outcome(value)
            if found not in wanted:
                raise DepartedError(f"the producer of m{value}", " or ".join(sorted(wanted)), found)

    def in_words(self) -> list[str]:
        """The outcome of each record so far."""
        return [f"m{value} {self._outcome(value)}" for value in self._produced]

    def count(self, verdict: RunVerdict) -> None:
        """Note the acknowledged records, and whether the real broker has lost one."""
        disk = {record.value for record in on_disk(self._context.parties)}
        for value in self._produced:
            outcome = self._outcome(value)
            if outcome.startswith("acknowledged"):
                verdict.acknowledged.append(value)
                verdict.acknowledged_lost |= value not in disk
            elif outcome == "refused":
                verdict.refused.append(value)


def _was_heard(sent: asyncio.Future[Message]) -> bool:
    return sent.done() and sent.exception() is None
